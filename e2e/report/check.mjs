// Looks at report pages in a real browser: node check.mjs BROWSER OUT PAGE.html...
// Prints one line a finding and ends 1 if there is any. Screenshots go to OUT.
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import puppeteer from 'puppeteer-core';

const [browserPath, out, ...pages] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const browser = await puppeteer.launch({
  executablePath: browserPath,
  headless: true,
  // The pages are our own and nothing is loaded; a container has no namespaces for the browser's sandbox.
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run', '--disable-background-networking'],
});
let findings = 0;
const find = (page, what) => { findings++; console.log(`${basename(page)}: ${what}`); };

async function open(file, width, scheme, script) {
  const page = await browser.newPage();
  const trouble = [];
  page.on('console', m => { if (['error', 'warn'].includes(m.type())) trouble.push(`console: ${m.text()}`); });
  page.on('pageerror', e => trouble.push(`script: ${e.message}`));
  page.on('request', r => { if (r.url() !== pathToFileURL(file).href) trouble.push(`asks for ${r.url()}`); });
  await page.setJavaScriptEnabled(script);
  await page.setViewport({ width, height: 900, isMobile: width < 600, hasTouch: width < 600 });
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
  await page.goto(pathToFileURL(file).href, { waitUntil: 'load' });
  return { page, trouble };
}

// Each link is reached by Tab, in the order of the page, and shows that it is.
async function keyboard(file, page) {
  const links = await page.$$eval('a[href], summary, [tabindex]', es => es.length);
  let last = -1;
  for (let i = 0; i < links; i++) {
    await page.keyboard.press('Tab');
    const at = await page.evaluate(() => {
      const all = [...document.querySelectorAll('a[href], summary, [tabindex]')];
      const style = getComputedStyle(document.activeElement);
      return { i: all.indexOf(document.activeElement), seen: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2 };
    });
    if (at.i !== last + 1) find(file, `Tab ${i + 1} reaches element ${at.i}, not ${last + 1}`);
    if (!at.seen) find(file, `element ${at.i} does not show that it has the focus`);
    last = at.i;
  }
}

// The record is saved from the page as a person does it, and is the one in PAGE.record to the byte.
async function save(file, page) {
  const name = await page.$eval('a[download]', a => a.download).catch(() => '');
  if (!name) return find(file, 'the record cannot be saved from it');
  const dir = mkdtempSync(join(tmpdir(), 'report-'));
  const session = await browser.target().createCDPSession();
  await session.send('Browser.setDownloadBehavior', { behavior: 'allow', downloadPath: dir });
  await page.click('a[download]');
  const saved = join(dir, name);
  for (let i = 0; i < 100 && !existsSync(saved); i++) await sleep(100);
  if (!existsSync(saved)) {
    find(file, `${name} is not saved`);
  } else {
    const text = readFileSync(saved);
    const want = readFileSync(file.replace(/\.html$/, '.record'));
    if (!want.equals(name.endsWith('.gz') ? gunzipSync(text) : text)) find(file, 'what is saved is not the record');
  }
  if (page.url() !== pathToFileURL(file).href) find(file, `saving leads to ${page.url().slice(0, 80)}`);
  rmSync(dir, { recursive: true });
}

for (const file of pages.map(p => resolve(p))) {
  if (statSync(file).size >= 500_000) find(file, `${statSync(file).size} bytes, 500000 or more`);
  let words = '';
  for (const width of [1280, 390]) {
    for (const scheme of ['light', 'dark']) {
      const { page, trouble } = await open(file, width, scheme, true);
      trouble.forEach(t => find(file, `${width} ${scheme}: ${t}`));
      const seen = await page.evaluate(() => ({ wide: document.scrollingElement.scrollWidth, text: document.body.innerText, small: [...document.querySelectorAll('body *')].filter(e => e.childElementCount === 0 && e.textContent.trim() && parseFloat(getComputedStyle(e).fontSize) < 12).length }));
      if (seen.wide > width) find(file, `${width} ${scheme}: ${seen.wide} wide, it scrolls sideways`);
      if (seen.small) find(file, `${width} ${scheme}: ${seen.small} texts are smaller than 12 px`);
      if (!seen.text.includes('Provenance')) find(file, `${width} ${scheme}: the page is not whole`);
      const height = Math.min(8000, await page.evaluate(() => document.scrollingElement.scrollHeight)); // a huge page is no picture
      await page.screenshot({ path: join(out, `${basename(file, '.html')}-${width}-${scheme}.png`), clip: { x: 0, y: 0, width, height }, captureBeyondViewport: true });
      if (width === 1280 && scheme === 'light') { words = seen.text; await keyboard(file, page); }
      await page.close();

      // A page of its own: axe's script has to get past the page's policy, which the run above kept.
      const again = await open(file, width, scheme, true);
      await again.page.setBypassCSP(true);
      await again.page.reload({ waitUntil: 'load' });
      await again.page.evaluate(axe);
      const { violations } = await again.page.evaluate(() => axe.run({ resultTypes: ['violations'] }));
      for (const v of violations) {
        if (['serious', 'critical'].includes(v.impact)) find(file, `${width} ${scheme}: ${v.impact}: ${v.help}: ${v.nodes.slice(0, 3).map(n => n.html.slice(0, 160)).join(' | ')}`);
      }
      await again.page.close();
    }
  }
  const { page } = await open(file, 1280, 'light', false);
  const still = await page.evaluate(() => document.body.innerText);
  if (still !== words) find(file, 'without JavaScript it says something else');
  await save(file, page);
  await page.close();
}
await browser.close();
console.log(`${pages.length} pages, 1280 and 390 px, light and dark: ${findings} findings`);
process.exit(findings ? 1 : 0);

// What actions/upload-artifact v4 does, by the same libraries: find the files, hidden ones aside, and upload them below the directory that
// is named. The library refuses a forge that is neither github.com nor on loopback by name, so that it is told of github.com here.
process.env.GITHUB_SERVER_URL = 'https://github.com'
// act's server does not escape the = at the end of its signature, and the library then leaves it out.
const http = require('http')
const request = http.request
http.request = (...args) => {
  for (const a of args) if (a && a.path) a.path = a.path.replace(/([?&]sig=[\w-]{43})(?=&)/, '$1%3D')
  return request(...args)
}
const {statSync} = require('fs')
const core = require('@actions/core')
const glob = require('@actions/glob')
const {DefaultArtifactClient} = require('@actions/artifact')

async function run() {
  const path = core.getInput('path', {required: true})
  const globber = await glob.create(path, {excludeHiddenFiles: true})
  const files = (await globber.glob()).filter(f => !statSync(f).isDirectory())
  if (files.length === 0) {
    if (core.getInput('if-no-files-found') === 'error') throw new Error('no files were found')
    return
  }
  await new DefaultArtifactClient().uploadArtifact(core.getInput('name'), files, path)
}
run().catch(error => core.setFailed(error.message))

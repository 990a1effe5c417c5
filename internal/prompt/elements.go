package prompt

import (
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/html"

	"github.com/proctor-ci/proctor/internal/inert"
)

// anchor is an open link.
type anchor struct {
	href string
	from int // where its text begins on the page
}

type tableState struct {
	cells  int // of the row so far
	inCell bool
}

func void(tag string) bool {
	switch tag {
	case "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr":
		return true
	}
	return false
}

// known are the elements that forges let through; of any other only the content is seen.
func known(tag string) bool {
	switch tag {
	case "a", "abbr", "b", "bdo", "big", "blockquote", "br", "caption", "center", "cite", "code", "dd", "del", "details", "dfn", "div", "dl", "dt",
		"em", "figcaption", "figure", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "img", "input", "ins", "kbd", "li", "mark", "ol", "p",
		"picture", "pre", "q", "rp", "rt", "ruby", "s", "samp", "section", "small", "source", "span", "strike", "strong", "sub", "summary",
		"sup", "table", "tbody", "td", "tfoot", "th", "thead", "time", "tr", "tt", "ul", "var", "wbr":
		return true
	}
	return false
}

func attr(t html.Token, key string) (string, bool) {
	for _, a := range t.Attr {
		if a.Key == key {
			return a.Val, true
		}
	}
	return "", false
}

// element writes what an opening tag looks like.
func (p *page) element(t html.Token) {
	if p.code != nil {
		if p.code.tag == "pre" {
			if class, ok := attr(t, "class"); ok && t.Data == "code" {
				p.code.lang = strings.TrimPrefix(class, "language-")
			}
			if t.Data == "br" {
				p.code.text.WriteByte('\n')
			}
			return
		}
		if !block(t.Data) {
			return
		}
		p.endCode() // an inline element that was left open ends with its block
	}
	if block(t.Data) {
		p.endTask()
		p.owe(2)
	}
	switch t.Data {
	case "pre", "code":
		p.code = &capture{tag: t.Data}
	case "h1", "h2", "h3", "h4", "h5", "h6":
		p.write(strings.Repeat("#", int(t.Data[1]-'0')) + " ")
	case "blockquote":
		p.open("blockquote", "> ", "> ")
	case "ul":
		p.open("ul", "", "")
	case "ol":
		start, _ := attr(t, "start")
		n, err := strconv.Atoi(start)
		if err != nil {
			n = 1
		}
		p.open("ol", strconv.Itoa(n-1), "")
		p.containers[len(p.containers)-1].used = true // carries the number, writes nothing
	case "li":
		p.item()
	case "hr":
		p.write("---")
		p.owe(2)
	case "br":
		p.breaks = min(p.breaks+1, 2)
	case "summary":
		p.write("▸ ")
	case "tr":
		p.table = tableState{}
		p.owe(1)
		p.write("|")
	case "td", "th":
		p.table.cells++
		p.table.inCell = true
		p.breaks = 0
		p.write(" ")
	default:
		p.inline(t)
	}
}

func (p *page) inline(t html.Token) {
	switch t.Data {
	case "a":
		p.endLink()
		href, _ := attr(t, "href")
		p.begin()
		p.link = &anchor{href: href, from: len(p.out)}
	case "img":
		p.write("[image]")
	case "input":
		kind, _ := attr(t, "type")
		_, done := attr(t, "checked")
		if kind == "checkbox" {
			p.checkbox(done)
		}
	case "em", "i":
		p.write("*")
	case "strong", "b":
		p.write("**")
	case "del", "s", "strike":
		p.write("~~")
	case "sup":
		p.write("^")
	case "sub":
		p.write("_")
	}
}

// endElement writes what a closing tag looks like.
func (p *page) endElement(tag string) {
	if p.code != nil {
		if tag == p.code.tag || (p.code.tag == "code" && block(tag)) {
			p.endCode()
		}
		if tag == "code" || tag == "pre" || p.code != nil {
			return
		}
	}
	switch tag {
	case "a":
		p.endLink()
	case "em", "i":
		p.write("*")
	case "strong", "b":
		p.write("**")
	case "del", "s", "strike":
		p.write("~~")
	case "td", "th":
		p.write(" |")
		p.table.inCell = false
	case "tr":
		p.table.inCell = false
		p.owe(1)
	case "thead":
		p.owe(1)
		p.write("|" + strings.Repeat("---|", min(p.table.cells, 1000)))
		p.owe(1)
	case "li":
		p.endTask()
		p.close(tag)
		p.owe(1)
	case "ul", "ol", "blockquote":
		p.endTask()
		p.close(tag)
		p.owe(2)
	default:
		if block(tag) {
			p.endLink()
			p.endTask()
			p.owe(2)
		}
	}
}

// block are the elements that begin and end on a line of their own.
func block(tag string) bool {
	switch tag {
	case "blockquote", "center", "dd", "details", "div", "dl", "dt", "figure", "figcaption", "h1", "h2", "h3", "h4", "h5", "h6", "hr",
		"p", "pre", "section", "summary", "table", "caption":
		return true
	}
	return false
}

// item opens a list item with the mark of the list it lies in.
func (p *page) item() {
	p.owe(1)
	mark := "- "
	for i := len(p.containers) - 1; i >= 0; i-- {
		c := &p.containers[i]
		if c.tag == "ol" {
			n, _ := strconv.Atoi(c.first)
			c.first = strconv.Itoa(n + 1)
			mark = c.first + ". "
		}
		if c.tag == "ol" || c.tag == "ul" {
			break
		}
	}
	p.open("li", mark, strings.Repeat(" ", len(mark)))
}

// endLink writes the address behind the text unless the text is the address.
func (p *page) endLink() {
	l := p.link
	if l == nil {
		return
	}
	p.link = nil
	shown := string(p.out[min(l.from, len(p.out)):])
	href := address(l.href)
	if href == "" || strings.TrimSpace(shown) == "" || strings.HasPrefix(href, "#fn") ||
		href == address(shown) || href == "mailto:"+shown || href == address("http://"+shown) {
		return
	}
	p.out = append(p.out[:l.from], ("[" + shown + "](" + href + ")")...)
}

// maxAddress is longer than any address that is meant to be read.
const maxAddress = 500

// address is a link's target in plain ASCII; "" for one that forges do not link to.
func address(href string) string {
	u, err := url.Parse(strings.TrimSpace(inert.Clean(href, nil)))
	if err != nil {
		return ""
	}
	switch strings.ToLower(u.Scheme) {
	case "", "http", "https", "mailto", "ftp", "irc", "ssh", "git":
	default:
		return ""
	}
	s := u.String()
	if len(s) > maxAddress {
		return s[:strings.LastIndexByte(s[:maxAddress], '/')+1] + "…"
	}
	return s
}

// checkbox writes a task's box and remembers where its text begins.
func (p *page) checkbox(done bool) {
	p.endTask()
	if done {
		p.write("[x]")
	} else {
		p.write("[ ]")
	}
	if p.inside("li") && !p.inside("blockquote") {
		p.task, p.taskBox = len(p.out), done
	}
}

func (p *page) endTask() {
	if p.task == 0 || p.task > len(p.out) {
		return
	}
	var words []string
	for line := range strings.SplitSeq(string(p.out[p.task:]), "\n") {
		if w := strings.TrimSpace(line); w != "" {
			words = append(words, w)
		}
	}
	if len(words) > 0 {
		p.tasks = append(p.tasks, Criterion{Text: strings.Join(words, " "), Done: p.taskBox})
	}
	p.task = 0
}

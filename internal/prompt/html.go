package prompt

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"golang.org/x/net/html"

	"github.com/proctor-ci/proctor/internal/inert"
)

// veil is an open element whose content is not shown; depth counts elements of the same name in it.
type veil struct {
	tag    string
	depth  int
	silent bool // not hidden from readers, only not wanted in this mode
}

// readHTML reads the rendered page as a browser's tokenizer does, so that a comment or an attribute
// that begins in one block and ends in another hides here what it hides there.
func (p *page) readHTML(doc []byte) {
	z := html.NewTokenizer(bytes.NewReader(doc))
	rest := func() []byte { return z.Buffered() }
	for {
		switch z.Next() {
		case html.ErrorToken:
			if raw := bytes.TrimSpace(z.Raw()); errors.Is(z.Err(), io.EOF) && len(raw) > 0 {
				p.ledger.add("broken html", string(raw))
			}
			return
		case html.TextToken:
			p.characters(string(z.Text()))
		case html.CommentToken:
			p.ledger.add("html comment", string(z.Text()))
		case html.DoctypeToken:
			p.ledger.add("html comment", string(z.Raw()))
		case html.StartTagToken, html.SelfClosingTagToken:
			raw := string(z.Raw())
			p.startTag(raw, z.Token(), z, rest)
		case html.EndTagToken:
			raw := string(z.Raw())
			name, _ := z.TagName()
			if filtered(string(name)) {
				p.characters(raw)
				break
			}
			p.endTag(string(name))
		}
	}
}

func (p *page) characters(s string) {
	if v := p.veiled(); v != nil {
		if !v.silent && strings.TrimSpace(s) != "" {
			p.ledger.add("hidden element", s)
		}
		return
	}
	s = inert.Clean(s, p.ledger.add)
	if p.code != nil {
		p.code.text.WriteString(s)
		return
	}
	p.text(s)
}

func (p *page) veiled() *veil {
	if len(p.hidden) == 0 {
		return nil
	}
	return p.hidden[len(p.hidden)-1]
}

// filtered are the tags that GitHub's flavour shows as text instead of obeying: a browser would take
// all that follows for their content (GFM, "Disallowed Raw HTML").
func filtered(tag string) bool {
	switch tag {
	case "title", "textarea", "xmp", "iframe", "noembed", "noframes", "plaintext", "noscript":
		return true
	}
	return false
}

func (p *page) startTag(raw string, t html.Token, z *html.Tokenizer, rest func() []byte) {
	if filtered(t.Data) {
		z.NextIsNotRawText()
		p.characters(raw)
		return
	}
	if t.Data == "script" || t.Data == "style" {
		// One that is never closed would hide the page; a forge shows it as text.
		if !bytes.Contains(bytes.ToLower(rest()), []byte("</"+t.Data)) {
			z.NextIsNotRawText()
			p.characters(raw)
			return
		}
	}
	if v := p.veiled(); v != nil {
		if v.tag == t.Data && !void(t.Data) {
			v.depth++
		}
		return
	}
	p.attributes(raw, t)
	if conceals(t) && !void(t.Data) && t.Type != html.SelfClosingTagToken {
		p.hidden = append(p.hidden, &veil{tag: t.Data, depth: 1})
		return
	}
	if p.mode == ownWords {
		switch t.Data {
		case "blockquote", "pre", "code", "del", "s", "strike":
			p.hidden = append(p.hidden, &veil{tag: t.Data, depth: 1, silent: true})
			return
		}
	}
	p.element(t)
}

func (p *page) endTag(tag string) {
	if v := p.veiled(); v != nil {
		if v.tag == tag {
			if v.depth--; v.depth == 0 {
				p.hidden = p.hidden[:len(p.hidden)-1]
			}
		}
		return
	}
	p.endElement(tag)
}

// conceals tells that a browser does not draw the element's content.
func conceals(t html.Token) bool {
	switch t.Data {
	case "script", "style", "template", "head", "object", "audio", "video", "canvas", "datalist", "dialog":
		return true
	}
	for _, a := range t.Attr {
		switch a.Key {
		case "hidden":
			return true
		case "style":
			s := strings.ToLower(strings.Join(strings.Fields(a.Val), ""))
			for _, trick := range []string{"display:none", "visibility:hidden", "visibility:collapse", "opacity:0", "font-size:0", "content-visibility:hidden"} {
				if i := strings.Index(s, trick); i >= 0 && !strings.HasPrefix(s[i+len(trick):], ".") {
					return true
				}
			}
		}
	}
	return false
}

// attributes lists what is written in attributes that a page does not show.
func (p *page) attributes(raw string, t html.Token) {
	if !known(t.Data) {
		p.ledger.add("unknown tag", raw)
		return
	}
	for _, a := range t.Attr {
		switch a.Key {
		case "src", "srcset":
			if t.Data == "img" || t.Data == "source" {
				p.ledger.add("image address", a.Val)
			}
		case "alt":
			if strings.TrimSpace(a.Val) != "" {
				p.ledger.add("image text", a.Val)
			}
		case "title":
			p.ledger.add("title", a.Val)
		case "href", "align", "valign", "width", "height", "start", "type", "checked", "disabled", "open", "colspan", "rowspan",
			"rel", "target", "dir", "lang", "hidden", "border", "style", "role", "reversed":
		case "class", "id":
			if strings.ContainsAny(strings.TrimSpace(a.Val), " \t\n") {
				p.ledger.add("attribute", a.Key+"="+a.Val)
			}
		default:
			p.ledger.add("attribute", a.Key+"="+a.Val)
		}
	}
}

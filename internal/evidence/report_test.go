package evidence

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"html"
	"strings"
	"testing"

	xhtml "golang.org/x/net/html"
)

func TestTheReportIsOneInertFile(t *testing.T) {
	t.Parallel()
	for _, a := range append([]string{"plain"}, attacks...) {
		r := poisoned(a)
		page, err := Report(r, altered(a))
		if err != nil {
			t.Fatal(err)
		}
		var style string
		var policy string
		saved := 0
		for z := xhtml.NewTokenizer(bytes.NewReader(page)); ; {
			kind := z.Next()
			if kind == xhtml.ErrorToken {
				break
			}
			tok := z.Token()
			if kind != xhtml.StartTagToken && kind != xhtml.SelfClosingTagToken {
				continue
			}
			switch tok.Data {
			case "script", "img", "iframe", "link", "object", "embed", "form", "base", "video", "audio", "source":
				t.Errorf("INV-52: %q makes a %s", a, tok)
			case "style":
				z.Next()
				style = string(z.Raw())
			}
			for _, at := range tok.Attr {
				switch {
				case strings.HasPrefix(at.Key, "on"), at.Key == "style", at.Key == "src", at.Key == "srcset":
					t.Errorf("INV-52: %q makes the attribute %s=%q", a, at.Key, at.Val)
				case at.Key == "href" && strings.HasPrefix(at.Val, "data:") && saves(tok, r):
					saved++
				case at.Key == "href" && !strings.HasPrefix(at.Val, "https://"):
					t.Errorf("INV-52: %q links to %q", a, at.Val)
				case at.Key == "content" && strings.HasPrefix(at.Val, "default-src"):
					policy = at.Val
				}
			}
		}
		if saved != 1 {
			t.Errorf("%q: the record can be saved at %d places", a, saved)
		}
		sum := sha256.Sum256([]byte(style))
		want := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"
		if policy != want {
			t.Errorf("policy %q, want %q", policy, want)
		}
		if bytes.ContainsAny(page, "\x1b\u202e\x00") {
			t.Errorf("%q passes a control character on", a)
		}
	}
}

// altered is change with a wherever a change holds text of others.
func altered(a string) *Change {
	c := change()
	for _, mark := range []string{" ", "+", "-", "\\"} {
		c.Files[0].Hunks[0].Lines = append(c.Files[0].Hunks[0].Lines, mark+a)
	}
	c.Files = append(c.Files, ChangedFile{FileDelta: FileDelta{Path: a, Status: a, OldMode: a, NewMode: a + "x", Risk: a}, Words: []string{a}, Hunks: []Hunk{{Old: 1, New: 1, Lines: []string{" " + a, a}}}})
	bounded := c.within()
	return &bounded
}

// saves tells whether a link offers the record as its file, to be saved and not to be shown.
func saves(link xhtml.Token, r Record) bool {
	var href, name string
	for _, at := range link.Attr {
		switch at.Key {
		case "href":
			href = at.Val
		case "download":
			name = at.Val
		}
	}
	text, plain := strings.CutPrefix(href, "data:application/json;base64,")
	got, err := base64.StdEncoding.DecodeString(text)
	want, wrong := encodeRecord(r)
	return plain && err == nil && wrong == nil && name == RecordFile && bytes.Equal(got, want)
}

func TestTheReportSaysWhatTheRecordSays(t *testing.T) {
	t.Parallel()
	for _, term := range Terminals() {
		r := sample()
		if term.Name != Done {
			r = ended(t, term.Name)
		}
		b, err := Report(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		page := words(b)
		want := []string{term.Title, r.verdict(), r.Next, r.Totals.CostUSD.String(), r.Run, r.Trigger.Title}
		if term.Name != Done {
			want = append(want, r.Reason)
		}
		for _, e := range r.Confinement {
			want = append(want, e.Name, e.Detail)
		}
		if r.Head != nil {
			want = append(want, r.Head.ID, r.Head.Tree)
		}
		for _, w := range want {
			if !strings.Contains(page, w) {
				t.Errorf("%s: the page does not say %q", term.Name, w)
			}
		}
	}
}

// words is the text of a page.
func words(page []byte) string {
	var b strings.Builder
	for z := xhtml.NewTokenizer(bytes.NewReader(page)); ; {
		switch z.Next() {
		case xhtml.ErrorToken:
			return b.String()
		case xhtml.TextToken:
			b.WriteString(html.UnescapeString(string(z.Raw())))
		}
	}
}

func TestAHugeReportStaysBelowHalfAMegabyteAndSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	b, err := Report(huge(), nil)
	if err != nil || len(b) > 500_000 {
		t.Errorf("INV-52: %d bytes, %v", len(b), err)
	}
	for _, want := range []string{"102 files more are in", "200 ticks more are in", "101 notes more are in"} {
		if !strings.Contains(string(b), want) {
			t.Errorf("INV-52: does not say %q", want)
		}
	}
}

func TestNumbersOfTheReportAreForPeople(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 4200: "4.2 kB", 1_900_000: "1.9 MB", 7_000_000_000: "7.0 GB"} {
		if got := sizeWord(n); got != want {
			t.Errorf("sizeWord(%d) = %q, want %q", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1\u202f000", 27_000_123: "27\u202f000\u202f123", -123: "-123", -1234: "-1\u202f234"} {
		if got := grouped(n); got != want {
			t.Errorf("grouped(%d) = %q, want %q", n, got, want)
		}
	}
}

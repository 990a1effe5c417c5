// Package pattern owns regular expressions that are compiled at their first use. A run starts this program again for each
// confined process, and all that Go initializes before main is paid every time. It must never hold a pattern that is not
// written in the source: a test of internal/archtest compiles them all.
package pattern

import (
	"regexp"
	"sync"
)

// Regexp is a regular expression that costs nothing until it is used. It is safe for concurrent use, and its methods are
// those of the standard library.
type Regexp struct {
	expr string
	once sync.Once
	re   *regexp.Regexp
}

// Of is regexp.MustCompile, later: a malformed expression panics at its first use.
func Of(expr string) *Regexp { return &Regexp{expr: expr} }

func (r *Regexp) std() *regexp.Regexp {
	r.once.Do(func() { r.re = regexp.MustCompile(r.expr) })
	return r.re
}

func (r *Regexp) MatchString(s string) bool { return r.std().MatchString(s) }

func (r *Regexp) Match(b []byte) bool { return r.std().Match(b) }

func (r *Regexp) FindString(s string) string { return r.std().FindString(s) }

func (r *Regexp) FindStringSubmatch(s string) []string { return r.std().FindStringSubmatch(s) }

func (r *Regexp) FindStringSubmatchIndex(s string) []int { return r.std().FindStringSubmatchIndex(s) }

func (r *Regexp) FindAllString(s string, n int) []string { return r.std().FindAllString(s, n) }

func (r *Regexp) FindAllStringIndex(s string, n int) [][]int { return r.std().FindAllStringIndex(s, n) }

func (r *Regexp) FindAllStringSubmatch(s string, n int) [][]string {
	return r.std().FindAllStringSubmatch(s, n)
}

func (r *Regexp) FindAllStringSubmatchIndex(s string, n int) [][]int {
	return r.std().FindAllStringSubmatchIndex(s, n)
}

func (r *Regexp) ReplaceAllString(src, repl string) string {
	return r.std().ReplaceAllString(src, repl)
}

func (r *Regexp) ReplaceAllStringFunc(src string, repl func(string) string) string {
	return r.std().ReplaceAllStringFunc(src, repl)
}

func (r *Regexp) ReplaceAll(src, repl []byte) []byte { return r.std().ReplaceAll(src, repl) }

func (r *Regexp) Split(s string, n int) []string { return r.std().Split(s, n) }

func (r *Regexp) FindAllIndex(b []byte, n int) [][]int { return r.std().FindAllIndex(b, n) }

func (r *Regexp) FindAllSubmatchIndex(b []byte, n int) [][]int {
	return r.std().FindAllSubmatchIndex(b, n)
}

// String is the expression as it was written.
func (r *Regexp) String() string { return r.expr }

package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Error is one thing that is wrong in the file. Line and Column count from 1; they are 0 when the
// fault has no one place (a file that cannot be read).
type Error struct {
	File         string
	Line, Column int
	Key          string // dotted path, "" for the file as a whole
	Msg          string // what is wrong
	Next         string // what to write instead
}

// Error is "file:line:column: key: what is wrong; what to do", on one line.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
	}
	if e.Key != "" {
		b.WriteString(": " + e.Key)
	}
	b.WriteString(": " + e.Msg)
	if e.Next != "" {
		b.WriteString("; " + e.Next)
	}
	return printable(b.String())
}

// printable keeps what a file holds (a key with a line break, a parser's echo of a tab) on one line.
func printable(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
	}
	return b.String()
}

// Errors is everything that is wrong in one file, ordered by place, never empty where it is
// returned as an error.
type Errors []*Error

// maxShown keeps a file of another kind altogether from filling a log.
const maxShown = 20

// Error is one line for each fault.
func (es Errors) Error() string {
	lines := make([]string, 0, len(es))
	for i, e := range es {
		if i == maxShown {
			lines = append(lines, fmt.Sprintf("and %d more", len(es)-maxShown))
			break
		}
		lines = append(lines, e.Error())
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As find each *Error.
func (es Errors) Unwrap() []error {
	list := make([]error, len(es))
	for i, e := range es {
		list[i] = e
	}
	return list
}

// All is every *Error inside err, in order; nil when err is of another kind.
func All(err error) Errors {
	var es Errors
	if errors.As(err, &es) {
		return es
	}
	var e *Error
	if errors.As(err, &e) {
		return Errors{e}
	}
	return nil
}

func (es Errors) sorted() Errors {
	slices.SortStableFunc(es, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Key, b.Key))
	})
	return es
}

// fault is what is wrong with one value, before its place is known.
type fault struct{ msg, next string }

func (f *fault) Error() string { return f.msg + "; " + f.next }

func wrong(next, format string, args ...any) *fault {
	return &fault{msg: fmt.Sprintf(format, args...), next: next}
}

package toolloop

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Bounds of one page.
const (
	pageLines = 2000
	pageBytes = 48 << 10
	lineBytes = 2000 // of a longer line the beginning is shown
)

type readInput struct {
	Path   string `json:"path"`
	Offset int    `json:"offset"`
	Limit  int    `json:"limit"`
}

// read shows one page of a file, whatever its size: no more than the page is kept.
func (t *tools) read(in readInput) result {
	if in.Offset < 0 || in.Limit < 0 {
		return wrong("offset and limit are numbers from 1")
	}
	f, info, err := t.open(in.Path, os.O_RDONLY)
	if err != nil {
		return wrong("%v", err)
	}
	defer f.Close()
	br := bufio.NewReaderSize(f, 64<<10)
	if head, _ := br.Peek(8 << 10); binary(head) {
		return wrong("%s is a binary file of %d bytes and is not shown: look at it with a program by the shell tool", in.Path, info.Size())
	}
	p := page{first: max(in.Offset, 1), limit: pageLines}
	if in.Limit > 0 {
		p.limit = min(in.Limit, pageLines)
	}
	if err := p.fill(br); err != nil {
		return wrong("%s: %v", in.Path, err)
	}
	return p.result(in.Path, info.Size())
}

// page collects lines from first on.
type page struct {
	first, limit int
	line         int // lines seen
	shown        int
	more         bool
	lossy        bool
	out          strings.Builder
}

func (p *page) fill(br *bufio.Reader) error {
	for {
		head, size, there, err := lineHead(br)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if !there {
			return nil
		}
		if p.line++; p.line >= p.first {
			if p.shown == p.limit || p.out.Len() > pageBytes {
				p.more = true
				return nil
			}
			p.add(head, size)
		}
		if err != nil {
			return nil
		}
	}
}

func (p *page) add(head []byte, size int) {
	s := text(head)
	p.lossy = p.lossy || strings.Contains(s, "\uFFFD")
	fmt.Fprintf(&p.out, "%d\t%s", p.line, s)
	if size > len(head) {
		fmt.Fprintf(&p.out, " [the line goes on: %d bytes in all]", size)
	}
	p.out.WriteByte('\n')
	p.shown++
}

func (p *page) result(path string, size int64) result {
	switch {
	case p.line == 0:
		return result{Text: path + " is empty"}
	case p.shown == 0:
		return wrong("%s has %d lines: there is no line %d", path, p.line, p.first)
	}
	if p.more {
		fmt.Fprintf(&p.out, "[the file of %d bytes goes on: read it with offset %d]\n", size, p.first+p.shown)
	}
	if p.lossy {
		p.out.WriteString("[some bytes are not UTF-8 and are shown as \uFFFD: do not write them back by write]\n")
	}
	return result{Text: p.out.String()}
}

// lineHead reads a line and returns its beginning and its size, both without the line feed. At the end of the file
// there is none, or one without a line feed.
func lineHead(br *bufio.Reader) (head []byte, size int, there bool, err error) {
	for {
		part, err := br.ReadSlice('\n')
		there = there || len(part) > 0
		part = bytes.TrimSuffix(part, []byte("\n"))
		if room := lineBytes - len(head); room > 0 {
			head = append(head, part[:min(room, len(part))]...)
		}
		size += len(part)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return head, size, there, err
		}
	}
}

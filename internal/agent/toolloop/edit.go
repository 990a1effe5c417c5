package toolloop

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// editMax is the largest file that edit reads.
const editMax = 16 << 20

type writeInput struct {
	Path    string  `json:"path"`
	Content *string `json:"content"`
}

func (t *tools) write(in writeInput) result {
	if in.Content == nil {
		return wrong("the input of write has no content. Nothing was done")
	}
	path, err := t.place(in.Path)
	if err != nil {
		return wrong("%v", err)
	}
	if info, err := t.root.Stat(path); err == nil && !info.Mode().IsRegular() {
		return wrong("%s is no regular file", path)
	}
	if err := t.root.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return wrong("%v", plainError(path, err))
	}
	if err := t.root.WriteFile(path, []byte(*in.Content), 0o644); err != nil { // an existing file keeps its mode
		return wrong("%v", plainError(path, err))
	}
	return result{Text: fmt.Sprintf("%s is written, %d bytes", path, len(*in.Content))}
}

type editInput struct {
	Path string  `json:"path"`
	Old  string  `json:"old"`
	New  *string `json:"new"`
	All  bool    `json:"all"`
}

// edit replaces text that is there exactly once. Everything else stays byte for byte, also what is not UTF-8.
func (t *tools) edit(in editInput) result {
	switch {
	case in.Old == "":
		return wrong("old is empty: name the text to replace, or make a file with write")
	case in.New == nil:
		return wrong("the input of edit has no new. Nothing was done")
	case in.Old == *in.New:
		return wrong("old and new are the same. Nothing was done")
	}
	f, info, err := t.open(in.Path, os.O_RDWR)
	if err != nil {
		return wrong("%v", err)
	}
	defer f.Close()
	if info.Size() > editMax {
		return wrong("%s has %d bytes, too many to edit: change it with a program by the shell tool", in.Path, info.Size())
	}
	b, err := io.ReadAll(io.LimitReader(f, editMax+1))
	if err != nil {
		return wrong("%s: %v", in.Path, err)
	}
	old, n := []byte(in.Old), bytes.Count(b, []byte(in.Old))
	switch {
	case n == 0:
		return wrong("old is not in %s. Nothing was changed.%s", in.Path, hint(b, in.Old))
	case n > 1 && !in.All:
		return wrong("old is in %s %d times, at lines %s. Nothing was changed: take in more lines around the one that is meant, or give all", in.Path, n, lineList(b, old))
	}
	if err := replaceContent(f, bytes.ReplaceAll(b, old, []byte(*in.New))); err != nil {
		return wrong("%s: %v", in.Path, err)
	}
	return result{Text: fmt.Sprintf("%s is changed at %s", in.Path, places(n, lineList(b, old)))}
}

func places(n int, lines string) string {
	if n == 1 {
		return "line " + lines
	}
	return fmt.Sprintf("%d places, lines %s", n, lines)
}

// replaceContent writes in place, so that mode and owner stay.
func replaceContent(f *os.File, b []byte) error {
	_, err := f.WriteAt(b, 0)
	return errors.Join(err, f.Truncate(int64(len(b))))
}

// lineList names the lines where old starts, at most five.
func lineList(b, old []byte) string {
	var out []string
	line, at := 1, 0
	for {
		i := bytes.Index(b[at:], old)
		if i < 0 {
			return strings.Join(out, ", ")
		}
		if len(out) == 5 {
			return strings.Join(out, ", ") + ", …"
		}
		line += bytes.Count(b[at:at+i], []byte("\n"))
		out = append(out, fmt.Sprint(line))
		line += bytes.Count(old, []byte("\n"))
		at += i + len(old)
	}
}

// hint says what may be the matter with a text that is not there.
func hint(b []byte, old string) string {
	switch {
	case !strings.Contains(old, "\r") && bytes.Contains(b, []byte(strings.ReplaceAll(old, "\n", "\r\n"))):
		return ` The file's lines end in \r\n: write them so, too.`
	case bytes.Contains(squeeze(b), squeeze([]byte(old))):
		return " It is there with other blanks or line breaks: read the lines again and copy them exactly."
	}
	return " Read the file again: it may have changed."
}

func squeeze(b []byte) []byte { return bytes.Join(bytes.Fields(b), []byte(" ")) }

package toolloop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
)

// toolSpec is a tool as the model is told of it.
type toolSpec struct {
	Name        string
	Description string
	Schema      json.RawMessage
}

// toolSpecs lists the tools. Their schemas say what the strict decoding of each input enforces.
func toolSpecs() []toolSpec {
	return []toolSpec{
		{"read", "Read a text file, with line numbers. A long file comes in pages: give the offset that the last page names.", json.RawMessage(`{
"type":"object","additionalProperties":false,"required":["path"],"properties":{
"path":{"type":"string","description":"relative to the root of the work tree"},
"offset":{"type":"integer","minimum":1,"description":"first line to show, from 1"},
"limit":{"type":"integer","minimum":1,"maximum":2000,"description":"how many lines; 2000 unless given"}}}`)},
		{"write", "Write a whole file; it is made, with its directories, or replaced.", json.RawMessage(`{
"type":"object","additionalProperties":false,"required":["path","content"],"properties":{
"path":{"type":"string","description":"relative to the root of the work tree"},
"content":{"type":"string"}}}`)},
		{"edit", "Replace one piece of text in a file. old has to be in the file exactly once, blanks and line ends included: take in as many lines around it as make it unique. Line numbers of read are not part of the file.", json.RawMessage(`{
"type":"object","additionalProperties":false,"required":["path","old","new"],"properties":{
"path":{"type":"string","description":"relative to the root of the work tree"},
"old":{"type":"string","description":"the exact text that is there"},
"new":{"type":"string","description":"the text to put in its place"},
"all":{"type":"boolean","description":"replace every occurrence"}}}`)},
		{"search", "Search the files of the work tree for a regular expression (RE2), line by line. .git and node_modules are left out.", json.RawMessage(`{
"type":"object","additionalProperties":false,"required":["pattern"],"properties":{
"pattern":{"type":"string"},
"path":{"type":"string","description":"a file or directory to search in; the whole work tree unless given"},
"glob":{"type":"string","description":"only files whose path matches, such as **/*.go"}}}`)},
		{"shell", "Run a line of shell in the root of the work tree. It gets no input. Of long output the beginning and the end are shown. There is no network.", json.RawMessage(`{
"type":"object","additionalProperties":false,"required":["command"],"properties":{
"command":{"type":"string"},
"timeout_seconds":{"type":"integer","minimum":1,"maximum":1200,"description":"120 unless given"}}}`)},
	}
}

// tools work in one directory. What they open is below it: links that lead out are refused by the kernel's own
// resolution, not by a look at the path beforehand.
type tools struct {
	dir  string
	root *os.Root
}

func newTools(dir string) (*tools, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the work tree: %w", err)
	}
	return &tools{dir: dir, root: root}, nil
}

func (t *tools) close() { _ = t.root.Close() }

// run runs a tool by name.
func (t *tools) run(ctx context.Context, c call) result {
	switch c.Name {
	case "read":
		return with(c, t.read)
	case "write":
		return with(c, t.write)
	case "edit":
		return with(c, t.edit)
	case "search":
		return with(c, func(in searchInput) result { return t.search(ctx, in) })
	case "shell":
		return with(c, func(in shellInput) result { return t.shell(ctx, in) })
	}
	return wrong("there is no tool %q: the tools are read, write, edit, search and shell", cut(c.Name, 80))
}

// with decodes a tool's input strictly: no unknown, repeated or differently spelled member, nothing behind it.
func with[T any](c call, do func(T) result) result {
	var in T
	if err := jsonv2.Unmarshal([]byte(c.Input), &in, jsonv2.RejectUnknownMembers(true)); err != nil {
		return wrong("the input of %s is not what its schema says: %s. Nothing was done; call it again", c.Name, cut(err.Error(), 300))
	}
	return do(in)
}

func wrong(format string, args ...any) result { return result{fmt.Sprintf(format, args...), true} }

// place turns what a model calls a path into one below the root.
func (t *tools) place(path string) (string, error) {
	if path == "" {
		return "", errors.New("no path is given")
	}
	if filepath.IsAbs(path) {
		rel, err := filepath.Rel(t.dir, path)
		if err != nil {
			return "", fmt.Errorf("%s is outside the work tree", cut(path, 200))
		}
		path = rel
	}
	path = filepath.Clean(path)
	if !filepath.IsLocal(path) {
		return "", fmt.Errorf("%s is outside the work tree", cut(path, 200))
	}
	return path, nil
}

// open opens a regular file. A pipe or device of that name is not waited for.
func (t *tools) open(path string, flags int) (*os.File, fs.FileInfo, error) {
	path, err := t.place(path)
	if err != nil {
		return nil, nil, err
	}
	f, err := t.root.OpenFile(path, flags|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, plainError(path, err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file: %s", path, info.Mode().Type())
		if info.IsDir() {
			err = fmt.Errorf("%s is a directory: list it with the shell tool", path)
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// plainError names the path as the model called it.
func plainError(path string, err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	if strings.Contains(err.Error(), "escapes") {
		return fmt.Errorf("%s leads out of the work tree", path)
	}
	return fmt.Errorf("%s: %w", path, err)
}

// binary says whether the beginning of a file is not text.
func binary(head []byte) bool { return bytes.IndexByte(head, 0) >= 0 }

// about names what a call is about, for the account: never what it writes.
func about(c call) string {
	var in struct {
		Path    string `json:"path"`
		Command string `json:"command"`
		Pattern string `json:"pattern"`
	}
	_ = json.Unmarshal([]byte(c.Input), &in) // whatever can be read
	return cut(first(in.Command, in.Path, in.Pattern), 300)
}

// text makes bytes fit for a message.
func text(b []byte) string {
	return strings.ReplaceAll(strings.ToValidUTF8(string(b), "\uFFFD"), "\x00", "\uFFFD")
}

// cut shortens s to at most limit bytes without tearing a character.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

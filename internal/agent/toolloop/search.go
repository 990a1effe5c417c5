package toolloop

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"
)

// Bounds of one search.
const (
	searchHits  = 200
	searchBytes = 32 << 10
	searchFile  = 8 << 20 // larger files are passed over, and told
	searchTime  = 30 * time.Second
)

type searchInput struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
	Glob    string `json:"glob"`
}

func (t *tools) search(ctx context.Context, in searchInput) result {
	re, err := regexp.Compile(in.Pattern)
	switch {
	case in.Pattern == "":
		return wrong("no pattern is given")
	case err != nil:
		return wrong("the pattern is no regular expression: %v", err)
	case in.Glob != "" && !doublestar.ValidatePattern(in.Glob):
		return wrong("glob %q is no pattern of paths", cut(in.Glob, 100))
	}
	at, err := t.place(first(in.Path, "."))
	if err != nil {
		return wrong("%v", err)
	}
	if _, err := t.root.Stat(at); err != nil {
		return wrong("%v", plainError(at, err))
	}
	ctx, stop := context.WithTimeout(ctx, searchTime)
	defer stop()
	s := searching{tools: t, re: re, glob: in.Glob}
	err = fs.WalkDir(t.root.FS(), at, func(path string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return nil // a directory that cannot be read holds nothing to find
		case d.IsDir() && path != at && (d.Name() == ".git" || d.Name() == "node_modules"):
			return fs.SkipDir
		case d.Type().IsRegular():
			return s.file(path)
		}
		return nil
	})
	return s.result(err)
}

type searching struct {
	tools *tools
	re    *regexp.Regexp
	glob  string
	hits  int
	large int
	out   strings.Builder
}

var errEnough = errors.New("enough was found")

func (s *searching) file(path string) error {
	if s.glob != "" {
		// A glob without a slash means a name anywhere, as people write it.
		name := path[strings.LastIndexByte(path, '/')+1:]
		if !doublestar.MatchUnvalidated(s.glob, path) && (strings.Contains(s.glob, "/") || !doublestar.MatchUnvalidated(s.glob, name)) {
			return nil
		}
	}
	f, info, err := s.tools.open(path, os.O_RDONLY)
	if err != nil {
		return nil // gone, or no file any more
	}
	defer f.Close()
	if info.Size() > searchFile {
		s.large++
		return nil
	}
	br := bufio.NewReaderSize(f, 64<<10)
	if head, _ := br.Peek(8 << 10); binary(head) {
		return nil
	}
	for n := 1; ; n++ {
		line, err := readLine(br)
		if err != nil && (len(line) == 0 || !errors.Is(err, io.EOF)) {
			return nil
		}
		if s.re.Match(line) {
			if s.hits == searchHits || s.out.Len() > searchBytes {
				return errEnough
			}
			s.hits++
			fmt.Fprintf(&s.out, "%s:%d:%s\n", path, n, cut(text(line), 300))
		}
		if err != nil {
			return nil
		}
	}
}

func (s *searching) result(err error) result {
	switch {
	case errors.Is(err, errEnough):
		fmt.Fprintf(&s.out, "[there are more than %d lines: search for something narrower]\n", s.hits)
	case errors.Is(err, context.DeadlineExceeded):
		fmt.Fprintf(&s.out, "[the search was ended after %s: name a path]\n", searchTime)
	case s.hits == 0:
		s.out.WriteString("nothing was found\n")
	}
	if s.large > 0 {
		fmt.Fprintf(&s.out, "[%d files are larger than %d MiB and were passed over]\n", s.large, searchFile>>20)
	}
	return result{Text: s.out.String()}
}

package probe

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// maxFile bounds what is read of a file.
const maxFile = 16 << 20

// read reads a file of the checkout. A symlink that leads out of it is an error, not a file.
func read(path string) ([]byte, error) {
	root, err := os.OpenRoot(".")
	if err != nil {
		return nil, err
	}
	defer root.Close()
	info, err := root.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", path)
	}
	f, err := root.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = fmt.Errorf("%s has more than %d bytes", path, maxFile)
	}
	return b, err
}

func (c *check) file() int {
	if c.Absent {
		return c.absent()
	}
	b, err := read(c.Path)
	switch {
	case err != nil:
		c.say("%v", err)
		return failed
	case !bytes.Contains(b, []byte(c.Contains)):
		c.say("%s does not contain %q", c.Path, c.Contains)
		return failed
	}
	c.say("%s is as wanted", c.Path)
	return passed
}

func (c *check) absent() int {
	root, err := os.OpenRoot(".")
	if err != nil {
		c.say("%v", err)
		return cannotRun
	}
	defer root.Close()
	// The name itself counts: a dangling symlink is there too.
	_, err = root.Lstat(c.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.say("%s does not exist, as wanted", c.Path)
		return passed
	case err != nil:
		c.say("%v", err)
	default:
		c.say("%s exists", c.Path)
	}
	return failed
}

func (c *check) envFile() int {
	b, err := read(c.Path)
	if err != nil {
		c.say("%v", err)
		return failed
	}
	have := envNames(string(b))
	var missing []string
	for _, k := range c.Keys {
		if !slices.Contains(have, k) {
			missing = append(missing, k)
		}
	}
	if len(missing) > 0 {
		c.say("%s lacks %s", c.Path, strings.Join(missing, ", "))
		return failed
	}
	c.say("%s names all %d", c.Path, len(c.Keys))
	return passed
}

// envNames are the variables that an env file sets. Values are skipped, quoted ones over several lines too,
// so that a line inside a value names nothing.
func envNames(text string) []string {
	var names []string
	quote := byte(0)
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if quote != 0 {
			if closes(line, quote) {
				quote = 0
			}
			continue
		}
		line = strings.TrimSpace(strings.TrimPrefix(line, "export "))
		name, value, ok := strings.Cut(line, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || name == "" || strings.HasPrefix(name, "#") || strings.ContainsAny(name, " \t\"'") {
			continue
		}
		names = append(names, name)
		if value != "" && (value[0] == '"' || value[0] == '\'') && !closes(value[1:], value[0]) {
			quote = value[0]
		}
	}
	return names
}

// closes tells whether a quoted value ends in the rest of its line.
func closes(rest string, quote byte) bool {
	for i := 0; i < len(rest); i++ {
		switch {
		case rest[i] == '\\' && quote == '"':
			i++
		case rest[i] == quote:
			return true
		}
	}
	return false
}

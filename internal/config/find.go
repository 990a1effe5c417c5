package config

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// Paths are the places where the file may lie, from the root of the repository.
func Paths() []string {
	var all []string
	for _, stem := range []string{".github/proctor", ".gitlab/proctor", "proctor"} {
		all = append(all, stem+".yml", stem+".yaml")
	}
	return all
}

// Find looks for the file with read, which reports a missing one by an error that is fs.ErrNotExist.
// No file is no error: path is "" and data nil. Two files at once are an *Error that names both, for
// whichever was ignored would be the one somebody believes in.
func Find(read func(path string) ([]byte, error)) (path string, data []byte, err error) {
	var found []string
	for _, p := range Paths() {
		b, err := read(p)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return "", nil, fmt.Errorf("read %s: %w", p, err)
		default:
			found = append(found, p)
			path, data = p, b
		}
	}
	if len(found) > 1 {
		return "", nil, &Error{
			File: found[0], Msg: "there is more than one configuration: " + strings.Join(found, " and "),
			Next: "keep one of them, as by `git rm " + found[1] + " && git commit -m \"Keep one configuration\" && git push`",
		}
	}
	return path, data, nil
}

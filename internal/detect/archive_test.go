package detect_test

import (
	"bytes"
	"regexp"
	"testing/fstest"
)

// fileLine begins a file in an archive: "-- path --", as Go's own txtar has it.
var fileLine = regexp.MustCompile(`(?m)^-- (\S.*?) --\n`)

// archive is a small repository with what is right to say about it in front.
type archive struct {
	comment []byte
	rest    []byte // the files as they stand in the archive
	files   fstest.MapFS
}

func parseArchive(data []byte) archive {
	a := archive{comment: data, files: fstest.MapFS{}}
	marks := fileLine.FindAllSubmatchIndex(data, -1)
	for i, m := range marks {
		if i == 0 {
			a.comment, a.rest = data[:m[0]], data[m[0]:]
		}
		end := len(data)
		if i+1 < len(marks) {
			end = marks[i+1][0]
		}
		a.files[string(data[m[2]:m[3]])] = &fstest.MapFile{Data: bytes.Clone(data[m[1]:end]), Mode: 0o644}
	}
	return a
}

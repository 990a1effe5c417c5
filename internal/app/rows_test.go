package app

import "os"

// firstRows is how much of the long tables of whole runs `make test` plays; each row is a run of its own, with a forge, git and
// confinement. `make rows` plays the rest.
var firstRows = 4

// rows is the part of a table that PROCTOR_TEST_ROWS asks for: all, rest (without the first ones), or else the first.
func rows[T any](table []T) []T {
	first := min(len(table), firstRows)
	switch os.Getenv("PROCTOR_TEST_ROWS") {
	case "all":
		return table
	case "rest":
		return table[first:]
	}
	return table[:first]
}

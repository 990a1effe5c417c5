package app

import "os"

// allRows plays the long tables of whole runs to their ends, as `make e2e` does; each row is a run of its own, with a forge, git and
// confinement. `make test` and the race detector, which see every kind of run all the same, play the first rows.
var allRows = os.Getenv("PROCTOR_TEST_ROWS") == "all"

var firstRows = 4

func rows[T any](table []T) []T {
	if allRows {
		return table
	}
	return table[:min(len(table), firstRows)]
}

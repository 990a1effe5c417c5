//go:build race

package app

// underRace: the race detector looks for races of the harness, which every kind of run shows alike, and makes each run several times as
// long. So of long tables it plays the first rows; `make test` plays all of them.
const underRace = true

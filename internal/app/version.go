package app

// Set by the linker (see the Makefile); a plain `go build` leaves them as they are.
var (
	version = "dev"
	commit  = ""
)

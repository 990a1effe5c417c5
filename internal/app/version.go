package app

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Set by the linker (see the Makefile); a plain `go build` leaves them as they are.
var (
	version = "dev"
	commit  = ""
	date    = "" // of the commit, RFC 3339: two builds of one commit are the same bytes
)

func versionCommand(env Env) *cobra.Command {
	var modules bool
	c := &cobra.Command{
		Use: "version", Short: "Say which build this is: version, commit and its date, Go, modules", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			info, ok := debug.ReadBuildInfo()
			if !ok {
				return errors.New("this binary says nothing of its modules: it was built without them. Next: make build")
			}
			tellBuild(env.Stdout, info.Deps, modules)
			return nil
		},
	}
	c.Flags().BoolVar(&modules, "modules", false, "list each module that is built in, with its version and checksum")
	return c
}

// tellBuild writes what this binary was built from. Modules are what Go's linker wrote into it, not what a file says.
func tellBuild(w io.Writer, deps []*debug.Module, modules bool) {
	line := "proctor " + version
	if commit != "" {
		line += " (" + short(commit) + ")"
	}
	fmt.Fprintln(w, line)
	if commit != "" {
		fmt.Fprintf(w, "commit   %s of %s\n", commit, date)
	}
	fmt.Fprintf(w, "built    with %s for %s/%s\n", runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if !modules {
		fmt.Fprintf(w, "modules  %d; proctor version --modules lists them\n", len(deps))
		return
	}
	for _, m := range deps {
		if m.Replace != nil {
			m = m.Replace
		}
		fmt.Fprintf(w, "module   %s %s %s\n", m.Path, m.Version, m.Sum)
	}
}

package app

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/proctor-ci/proctor/internal/detect"
	"github.com/proctor-ci/proctor/internal/inert"
)

func detectCommand(env Env) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "detect",
		Short: "Say what this repository is made of, and what shows it",
		Long: `Detect reads the names of this checkout's files and the few that say how it is built, runs nothing and writes nothing. Each fact
comes with the files that show it and how sure it is: sure, where the repository says so itself; likely, where it is what the stack's tools do;
guess, where something has to be there and this is its usual form. What was looked for and not found is told too. Init writes a
configuration from the same facts.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			top, err := checkoutOf(env.Dir)
			if err != nil {
				return err
			}
			return tellDetected(env, detect.Detect(os.DirFS(top)), asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object: facts and unknown")
	return c
}

// maxShown is how much of a value or of a list of files stands on one line.
const maxShown = 300

// detectedFact is a fact as --json has it.
type detectedFact struct {
	About      string   `json:"about"` // a key of the configuration, "stack" or "monorepo"
	Value      string   `json:"value"`
	Stack      string   `json:"stack,omitempty"`
	Dir        string   `json:"dir,omitempty"` // "" at the root
	Confidence string   `json:"confidence"`
	Evidence   []string `json:"evidence"`
}

func tellDetected(env Env, p detect.Proposal, asJSON bool) error {
	if asJSON {
		out := struct {
			Facts   []detectedFact `json:"facts"`
			Unknown []string       `json:"unknown"`
		}{[]detectedFact{}, append([]string{}, p.Unknown...)}
		for _, f := range p.Facts {
			out.Facts = append(out.Facts, detectedFact{f.About, f.Value, f.Stack, f.Dir, string(f.Confidence), append([]string{}, f.Evidence...)})
		}
		enc := json.NewEncoder(env.Stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(out)
	}
	w := tabwriter.NewWriter(env.Stdout, 0, 0, 2, ' ', 0)
	for _, f := range p.Facts {
		value := f.Value
		if f.Dir != "" {
			value += " (in " + f.Dir + ")"
		}
		// Files are named by whoever wrote them.
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", f.About, f.Confidence, inert.Visible(value, maxShown), inert.Visible(strings.Join(f.Evidence, ", "), maxShown))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, u := range p.Unknown {
		fmt.Fprintf(env.Stdout, "unknown: %s\n", inert.Visible(u, maxShown))
	}
	fmt.Fprint(env.Stdout, "next: proctor init writes a configuration from this\n")
	return nil
}

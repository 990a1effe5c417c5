package app

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/proctor-ci/proctor/internal/sandbox"
)

// CLI is the developer's command line.
func CLI(ctx context.Context, env Env) int {
	code := 0
	root := newRoot(env, &code)
	root.SetArgs(env.Args)
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	if err := root.ExecuteContext(ctx); err != nil {
		var e *ended
		if errors.As(err, &e) && e.next != "" {
			fmt.Fprintf(env.Stderr, "proctor: %v. Next: %s\n", err, e.next)
		} else if strings.HasPrefix(err.Error(), "unknown command") {
			fmt.Fprintf(env.Stderr, "proctor: %s\n", unknownCommand(err))
		} else {
			fmt.Fprintln(env.Stderr, "proctor:", err)
		}
		if code == 0 {
			code = exitUsage
		}
	}
	return code
}

func newRoot(env Env, code *int) *cobra.Command {
	root := &cobra.Command{
		Use:   "proctor",
		Short: "A labelled issue becomes a draft pull request that has been proved",
		Long: `Proctor runs a coding agent on an issue, watches it, and proves the result: the visible gates, then
held-out ones that the agent never saw, in a pristine checkout of exactly the commit that is pushed.

Start with:  proctor demo      the main job on this machine, nothing set up, nothing spent
             proctor init      write the configuration and the CI job for this repository
             proctor doctor    say what is still missing, and what mends it`,
		SilenceUsage: true, SilenceErrors: true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return fmt.Errorf("%w. Next: %s --help lists the flags", plainFlag(err), c.CommandPath())
	})
	root.AddCommand(demoCommand(env, code), runCommand(env, code), verifyCommand(env, code), reviewCommand(env, code), reportCommand(env), watchCommand(env, code), detectCommand(env), initCommand(env), appCommand(env), doctorCommand(env, code), configCommand(env), pricesCommand(env), sandboxCommand(env, code), versionCommand(env))
	return root
}

// unknownCommand puts cobra's suggestions, which stand in lines of their own, behind the next step.
func unknownCommand(err error) string {
	text, hint, _ := strings.Cut(err.Error(), "\n\nDid you mean this?")
	if names := strings.Fields(hint); len(names) > 0 {
		return fmt.Sprintf("%s. Next: proctor %s, if you mean that; proctor --help lists the commands", text, strings.Join(names, " or proctor "))
	}
	return text + ". Next: proctor --help lists the commands"
}

// plainFlag says what a flag takes where its parser speaks of Go's functions.
func plainFlag(err error) error {
	var bad *pflag.InvalidValueError
	if !errors.As(err, &bad) {
		return err
	}
	wants := map[string]string{"int": "a whole number, such as 12", "duration": "a time with its unit, such as 30m"}[bad.GetFlag().Value.Type()]
	if wants == "" {
		return err
	}
	return fmt.Errorf("--%s is %q, and has to be %s", bad.GetFlag().Name, bad.GetValue(), wants)
}

func sandboxCommand(env Env, code *int) *cobra.Command {
	c := &cobra.Command{Use: "sandbox", Short: "What this machine can enforce"}
	c.AddCommand(&cobra.Command{
		Use: "check", Short: "Confine a test process and say what held it; exit code 5 when something is missing", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			box, err := sandbox.New(sandbox.Config{Mode: sandbox.Auto, Exe: env.Exe})
			if err != nil {
				return err
			}
			lines, err := box.Probe(cmd.Context())
			if err != nil {
				return err
			}
			for _, l := range lines {
				mark := "yes"
				switch {
				case !l.Active && l.Optional:
					mark = "no"
				case !l.Active:
					mark, *code = "NO", exitInfrastructure
				}
				fmt.Fprintf(env.Stdout, "%-4s %-14s %s\n", mark, l.Name, l.Detail)
			}
			return nil
		},
	})
	return c
}

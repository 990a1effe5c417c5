package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/proctor-ci/proctor/internal/config"
	"github.com/proctor-ci/proctor/internal/detect"
	"github.com/proctor-ci/proctor/templates"
)

func initCommand(env Env) *cobra.Command {
	return &cobra.Command{
		Use:   "init",
		Short: "Write .github/proctor.yml and .github/workflows/proctor.yml for this repository",
		Long: `Init looks at the repository, writes a configuration with the gates it found, each with where it was seen, and the workflow
that reacts to the label. It never overwrites a file.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return initialise(env) },
	}
}

func initialise(env Env) error {
	top, err := checkoutOf(env.Dir)
	if err != nil {
		return err
	}
	p := detect.Detect(os.DirFS(top))
	for _, f := range []struct {
		path string
		data []byte
	}{
		{".github/proctor.yml", starter(p)},
		{".github/workflows/proctor.yml", templates.GitHubWorkflow},
	} {
		if err := writeNew(filepath.Join(top, filepath.FromSlash(f.path)), f.data); err != nil {
			if !errors.Is(err, fs.ErrExist) {
				return err
			}
			fmt.Fprintf(env.Stdout, "kept     %s (it exists; init never overwrites)\n", f.path)
			continue
		}
		fmt.Fprintf(env.Stdout, "written  %s\n", f.path)
	}
	_, assumed := p.Config()
	for _, a := range assumed {
		fmt.Fprintf(env.Stdout, "assumed  %s\n", a)
	}
	fmt.Fprint(env.Stdout, `
Next:
  1. Read .github/proctor.yml; add a held-out acceptance gate if you have tests the agent should not see.
  2. Add the secret ANTHROPIC_API_KEY (Settings → Secrets and variables → Actions), and allow Actions to create pull
     requests (Settings → Actions → General → Workflow permissions).
  3. Commit both files to the default branch, then label an issue "proctor".
`)
	return nil
}

// starter is a configuration with what detect found, as text that a person goes on from.
func starter(p detect.Proposal) []byte {
	cfg, assumed := p.Config()
	var b strings.Builder
	b.WriteString("# yaml-language-server: $schema=" + config.SchemaID + "\n")
	b.WriteString("# Everything not written here has a default: proctor config explain lists the keys.\nversion: 1\n")
	for _, a := range assumed {
		b.WriteString("# assumed: " + strings.ReplaceAll(a, "\n", " ") + "\n")
	}
	if len(cfg.Setup) > 0 {
		b.WriteString("setup:\n")
		for _, c := range cfg.Setup {
			fmt.Fprintf(&b, "  - %q\n", commandLine(c.Argv))
		}
	}
	b.WriteString("gates:\n")
	if len(cfg.Gates.Iteration.Argv) > 0 {
		fmt.Fprintf(&b, "  iteration: %q\n", commandLine(cfg.Gates.Iteration.Argv))
	} else {
		b.WriteString("  iteration: \"\" # the command that tests this repository; without one nothing can be proved\n")
	}
	b.WriteString(`  # Tests that the agent never sees, run in a pristine checkout before anything is published:
  # acceptance: {run: "make acceptance", sealed: ["tests/acceptance/**"]}
`)
	return []byte(b.String())
}

// writeNew writes a file that must not exist yet, and its directories.
func writeNew(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("make the directory of %s: %w", filepath.Base(path), err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

package app

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

var (
	blockLine  = regexp.MustCompile(`(?m)^    (?:bin/)?((?:proctor|make) [^#\n]*)`)
	inlineCode = regexp.MustCompile("`((?:proctor|make) [^`\n]*)`")
	makeTarget = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`)
)

// A command that a page tells people to type has to be one that the program takes, with those flags and that number of arguments.
// Dots stand for a value; what follows a semicolon is not read.
func TestEveryCommandInTheDocsIsTaken(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	targets := map[string]bool{}
	for _, m := range makeTarget.FindAllStringSubmatch(string(makefile), -1) {
		targets[m[1]] = true
	}
	read := 0
	for _, page := range append(pages, "../../README.md", "../../CONTRIBUTING.md", "../../CHANGELOG.md") {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, re := range []*regexp.Regexp{blockLine, inlineCode} {
			for _, m := range re.FindAllStringSubmatch(string(b), -1) {
				if strings.Contains(m[1], "(") { // a synopsis of the generated reference
					continue
				}
				read++
				if err := taken(m[1], targets); err != nil {
					t.Errorf("%s: %q: %v", filepath.Base(page), strings.TrimSpace(m[1]), err)
				}
			}
		}
	}
	if read < 60 {
		t.Errorf("only %d commands were read", read)
	}
	for _, bad := range []string{"proctor runs", "proctor run --gaol x", "proctor version 2", "make tests"} {
		if taken(bad, targets) == nil {
			t.Errorf("the control %q is taken", bad)
		}
	}
}

func taken(line string, targets map[string]bool) error {
	line, _, _ = strings.Cut(line, "; ")
	line = strings.ReplaceAll(line, "…", "x")
	line, _, _ = strings.Cut(line, " && ")
	args := words(line)
	if args[0] == "make" {
		for _, a := range args[1:] {
			if !strings.Contains(a, "=") && !strings.HasPrefix(a, "-") && !targets[a] {
				return fmt.Errorf("there is no target %s", a)
			}
		}
		return nil
	}
	code := 0
	c, rest, err := newRoot(Env{}, &code).Find(args[1:])
	if err != nil {
		return err
	}
	if c.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return fmt.Errorf("%s has no command %s", c.CommandPath(), rest[0])
	}
	if err := c.ParseFlags(rest); err != nil && err != pflag.ErrHelp {
		return err
	}
	given := c.Flags().Args()
	if len(given) == 0 { // an argument may be left out where a command is only named
		return nil
	}
	return c.ValidateArgs(given)
}

// words splits a line as a shell does, as far as pages go.
func words(line string) []string {
	var out []string
	for _, m := range regexp.MustCompile(`"([^"]*)"|(\S+)`).FindAllStringSubmatch(line, -1) {
		out = append(out, m[1]+m[2])
	}
	return out
}

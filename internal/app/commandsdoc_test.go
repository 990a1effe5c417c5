package app

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/proctor-ci/proctor"
	"github.com/proctor-ci/proctor/internal/evidence"
)

//go:generate go test -run TestTheCommandReferenceIsGenerated -update .

var update = flag.Bool("update", false, "write the parts of docs/commands.md that are generated")

const commandsPage = "../../docs/commands.md"

// TestTheCommandReferenceIsGenerated: a command, a flag, a default, an input or an exit code that changes changes the page too.
// The webhook's part is held by its own package.
func TestTheCommandReferenceIsGenerated(t *testing.T) {
	t.Parallel()
	code := 0
	b, err := os.ReadFile(commandsPage)
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	want := page
	for name, text := range map[string]string{
		"proctor": commandTree(newRoot(Env{}, &code)), "exit codes": exitCodes(), "inputs": actionTable(t, "inputs"), "outputs": actionTable(t, "outputs"),
	} {
		part := regexp.MustCompile(`(?s)(<!-- generated: ` + name + ` -->\n).*?(<!-- end -->)`)
		if !part.MatchString(want) {
			t.Errorf("the page has no part %q", name)
		}
		want = part.ReplaceAllStringFunc(want, func(old string) string {
			m := part.FindStringSubmatch(old)
			return m[1] + "\n" + strings.TrimSpace(text) + "\n\n" + m[2]
		})
	}
	if *update {
		if err := os.WriteFile(commandsPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(want, page); d != "" {
		t.Errorf("docs/commands.md has drifted. Next: go generate ./internal/app\n(-program +page):\n%s", d)
	}
}

// TestTheCommandReferenceSeesEachChange is the control of the one above.
func TestTheCommandReferenceSeesEachChange(t *testing.T) {
	t.Parallel()
	code := 0
	fresh := func() *cobra.Command { return newRoot(Env{}, &code) }
	was := commandTree(fresh())
	find := func(root *cobra.Command) *cobra.Command {
		c, _, err := root.Find([]string{"run"})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for name, change := range map[string]func(*cobra.Command){
		"a new command": func(r *cobra.Command) {
			r.AddCommand(&cobra.Command{Use: "new", Run: func(*cobra.Command, []string) {}})
		},
		"a new subcommand": func(r *cobra.Command) {
			find(r).AddCommand(&cobra.Command{Use: "new", Run: func(*cobra.Command, []string) {}})
		},
		"a new flag":      func(r *cobra.Command) { find(r).Flags().Bool("new", false, "is new") },
		"another default": func(r *cobra.Command) { find(r).Flags().Lookup("max-ticks").DefValue = "7" },
		"another text":    func(r *cobra.Command) { find(r).Flags().Lookup("max-ticks").Usage = "something else" },
		"a command less":  func(r *cobra.Command) { r.RemoveCommand(find(r)) },
	} {
		root := fresh()
		change(root)
		if commandTree(root) == was {
			t.Errorf("%s does not show", name)
		}
	}
}

// commandTree describes every command below root.
func commandTree(root *cobra.Command) string {
	var b strings.Builder
	for _, c := range root.Commands() {
		if c.Hidden || c.Name() == "help" {
			continue
		}
		if c.Runnable() {
			command(&b, c)
		}
		b.WriteString(commandTree(c))
	}
	return b.String()
}

func command(b *strings.Builder, c *cobra.Command) {
	path := strings.TrimSpace(strings.TrimSuffix(c.CommandPath(), c.Name()))
	fmt.Fprintf(b, "### `%s %s`\n\n%s.\n\n", path, c.Use, strings.TrimSuffix(c.Short, "."))
	if c.Long != "" {
		b.WriteString(strings.TrimSpace(c.Long) + "\n\n")
	}
	rows := ""
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name, usage := pflag.UnquoteUsage(f)
		if name != "" {
			name = " " + name
		}
		if f.Shorthand != "" {
			name += ", -" + f.Shorthand
		}
		rows += fmt.Sprintf("| `--%s%s` | %s | %s |\n", f.Name, name, defaultOf(f), strings.ReplaceAll(usage, "|", `\|`))
	})
	if rows != "" {
		b.WriteString("| flag | default | what it does |\n|---|---|---|\n" + rows + "\n")
	}
	if c.Example != "" {
		fmt.Fprintf(b, "```sh\n%s\n```\n\n", outdent(c.Example))
	}
}

func defaultOf(f *pflag.Flag) string {
	switch f.DefValue {
	case "", "0", "0s", "false", "[]":
		return "–"
	}
	return "`" + f.DefValue + "`"
}

func outdent(s string) string {
	var out []string
	for line := range strings.Lines(s) {
		out = append(out, strings.TrimSpace(line))
	}
	return strings.TrimSpace(strings.Join(out, "\n"))
}

func exitCodes() string {
	var b strings.Builder
	b.WriteString("| exit | terminal | meaning | what to do next |\n|---|---|---|---|\n")
	for _, t := range evidence.Terminals() {
		fmt.Fprintf(&b, "| %d | `%s` | %s | %s |\n", t.Exit, t.Name, t.Meaning, t.Next)
	}
	return b.String()
}

// actionTable lists the inputs or the outputs of action.yml, in its order.
func actionTable(t *testing.T, key string) string {
	t.Helper()
	var meta yaml.MapSlice
	if err := yaml.UnmarshalWithOptions(proctor.ActionMetadata, &meta, yaml.UseOrderedMap()); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| name | what it is | default |\n|---|---|---|\n")
	if key == "outputs" {
		b.Reset()
		b.WriteString("| name | what it is |\n|---|---|\n")
	}
	rows := 0
	for _, top := range meta {
		if top.Key != key {
			continue
		}
		for _, item := range top.Value.(yaml.MapSlice) {
			about := item.Value.(yaml.MapSlice).ToMap()
			fmt.Fprintf(&b, "| `%v` | %v |", item.Key, about["description"])
			if key == "inputs" {
				value := "–"
				if about["default"] != nil {
					value = fmt.Sprintf("`%v`", about["default"])
				}
				fmt.Fprintf(&b, " %s |", value)
			}
			b.WriteString("\n")
			rows++
		}
	}
	if rows == 0 {
		t.Fatalf("action.yml has no %s", key)
	}
	return b.String()
}

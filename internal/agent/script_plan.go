package agent

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Plan is what the script agent does in each tick.
type Plan struct {
	ticks [][]Step
	idle  bool
}

// Step is one thing the script agent does; exactly one member is set. Paths are relative to the
// work tree, or absolute: a plan may try what it should not, the confinement answers.
type Step struct {
	Write   *WriteStep   `yaml:"write" json:"write,omitempty"`
	Append  *WriteStep   `yaml:"append" json:"append,omitempty"`
	Replace *ReplaceStep `yaml:"replace" json:"replace,omitempty"`
	Delete  *string      `yaml:"delete" json:"delete,omitempty"` // a file, or a directory with all in it
	Symlink *SymlinkStep `yaml:"symlink" json:"symlink,omitempty"`
	Rename  *RenameStep  `yaml:"rename" json:"rename,omitempty"`
	Run     *string      `yaml:"run" json:"run,omitempty"` // a line for sh; its exit code is told, not judged
	Say     *string      `yaml:"say" json:"say,omitempty"`
	Sleep   *string      `yaml:"sleep" json:"sleep,omitempty"` // a duration such as 2s
	Exit    *int         `yaml:"exit" json:"exit,omitempty"`   // ends without a result
	Crash   *string      `yaml:"crash" json:"crash,omitempty"` // dies by this signal: KILL, SEGV, …
	Spend   *SpendStep   `yaml:"spend" json:"spend,omitempty"`
	Hang    *string      `yaml:"hang" json:"hang,omitempty"` // "polite" ends on SIGTERM, "stubborn" does not
}

// WriteStep creates a file, its directories too, or appends to one. Mode is octal, "0644" unless given.
type WriteStep struct {
	Path    string `yaml:"path" json:"path"`
	Content string `yaml:"content" json:"content"`
	Mode    string `yaml:"mode" json:"mode,omitempty"`
}

// ReplaceStep replaces text that must occur exactly once.
type ReplaceStep struct {
	Path string `yaml:"path" json:"path"`
	Old  string `yaml:"old" json:"old"`
	New  string `yaml:"new" json:"new"`
}

// SymlinkStep makes a symbolic link, in the place of what was there.
type SymlinkStep struct {
	Path   string `yaml:"path" json:"path"`
	Target string `yaml:"target" json:"target"`
}

// RenameStep moves a file or directory.
type RenameStep struct {
	From string `yaml:"from" json:"from"`
	To   string `yaml:"to" json:"to"`
}

// SpendStep makes one model call through the gateway, so that money is really metered. The model
// server of the demo reports the tokens that are asked for; a real provider would report its own.
type SpendStep struct {
	Input  int64  `yaml:"input" json:"input"`
	Output int64  `yaml:"output" json:"output"`
	Model  string `yaml:"model" json:"model,omitempty"`
}

// Tick returns the steps of tick n, counted from 1. Beyond the plan the last tick is played again,
// or nothing when the plan says `then: idle`.
func (p *Plan) Tick(n int) []Step {
	switch {
	case n < 1 || len(p.ticks) == 0:
		return nil
	case n <= len(p.ticks):
		return p.ticks[n-1]
	case p.idle:
		return nil
	}
	return p.ticks[len(p.ticks)-1]
}

// ParsePlan reads a plan: `ticks:`, a list of lists of steps, and `then: repeat` (the default) or
// `then: idle` for the ticks after them. JSON is YAML here. Errors name line, tick and step.
func ParsePlan(b []byte) (*Plan, error) {
	file, err := parser.ParseBytes(b, 0)
	if err != nil {
		return nil, fmt.Errorf("plan: %s", oneLine(err))
	}
	if len(file.Docs) != 1 || file.Docs[0].Body == nil {
		return nil, errors.New("plan: want one document with ticks: in it")
	}
	plan := &Plan{}
	members, ok := mapping(file.Docs[0].Body)
	if !ok {
		return nil, fmt.Errorf("plan line %d: want `ticks:` and a list", line(file.Docs[0].Body))
	}
	for _, m := range members {
		switch key := m.Key.GetToken().Value; key {
		case "ticks":
			err = plan.readTicks(m.Value)
		case "then":
			err = plan.readThen(m.Value)
		default:
			err = fmt.Errorf("plan line %d: unknown key %q: the keys are ticks and then", line(m.Key), key)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(plan.ticks) == 0 {
		return nil, errors.New("plan: it has no ticks: want `ticks:` and a list of lists of steps")
	}
	return plan, nil
}

func (p *Plan) readThen(n ast.Node) error {
	var then string
	if err := yaml.NodeToValue(n, &then); err != nil || then != "repeat" && then != "idle" {
		return fmt.Errorf("plan line %d: then: want repeat or idle", line(n))
	}
	p.idle = then == "idle"
	return nil
}

func (p *Plan) readTicks(n ast.Node) error {
	ticks, ok := n.(*ast.SequenceNode)
	if !ok {
		return fmt.Errorf("plan line %d: ticks: want a list of ticks, each a list of steps", line(n))
	}
	for i, tick := range ticks.Values {
		steps, ok := tick.(*ast.SequenceNode)
		if !ok {
			if _, null := tick.(*ast.NullNode); null {
				p.ticks = append(p.ticks, nil)
				continue
			}
			return fmt.Errorf("plan line %d (tick %d): want a list of steps", line(tick), i+1)
		}
		var out []Step
		for j, node := range steps.Values {
			step, err := readStep(node)
			if err != nil {
				return fmt.Errorf("plan line %d (tick %d, step %d): %w", line(node), i+1, j+1, err)
			}
			out = append(out, step)
		}
		p.ticks = append(p.ticks, out)
	}
	return nil
}

func readStep(node ast.Node) (Step, error) {
	members, ok := mapping(node)
	if !ok || len(members) != 1 {
		return Step{}, fmt.Errorf("want one action, one of %s", strings.Join(actions(), ", "))
	}
	var s Step
	if err := yaml.NodeToValue(node, &s, yaml.Strict()); err != nil {
		return Step{}, fmt.Errorf("%s: %s", members[0].Key.GetToken().Value, oneLine(err))
	}
	return s, s.validate()
}

func (s Step) validate() error {
	switch {
	case s.Write != nil:
		return s.Write.validate("write")
	case s.Append != nil:
		return s.Append.validate("append")
	case s.Replace != nil && (s.Replace.Path == "" || s.Replace.Old == ""):
		return errors.New("replace: needs path, old and new")
	case s.Symlink != nil && (s.Symlink.Path == "" || s.Symlink.Target == ""):
		return errors.New("symlink: needs path and target")
	case s.Rename != nil && (s.Rename.From == "" || s.Rename.To == ""):
		return errors.New("rename: needs from and to")
	case s.Delete != nil && *s.Delete == "":
		return errors.New("delete: needs a path")
	case s.Spend != nil && (s.Spend.Input < 0 || s.Spend.Input > 2_000_000 || s.Spend.Output < 1 || s.Spend.Output > 1_000_000):
		return errors.New("spend: needs input of 0 to 2000000 and output of 1 to 1000000 tokens")
	case s.Hang != nil && *s.Hang != "polite" && *s.Hang != "stubborn" && *s.Hang != "true":
		return errors.New("hang: want polite (or true) or stubborn")
	case s.Crash != nil:
		if _, ok := signalNumber(*s.Crash); !ok {
			return fmt.Errorf("crash: %q is no signal: want a name such as KILL or SEGV", *s.Crash)
		}
	case s.Sleep != nil:
		if d, err := time.ParseDuration(*s.Sleep); err != nil || d < 0 {
			return fmt.Errorf("sleep: %q is no duration: want one such as 2s", *s.Sleep)
		}
	}
	if reflect.DeepEqual(s, Step{}) {
		return fmt.Errorf("the action has no value")
	}
	return nil
}

func (w *WriteStep) validate(action string) error {
	if w.Path == "" {
		return fmt.Errorf("%s: needs a path", action)
	}
	if _, err := w.mode(); err != nil {
		return fmt.Errorf("%s: mode %q: want octal digits such as \"0755\"", action, w.Mode)
	}
	return nil
}

func (w *WriteStep) mode() (os.FileMode, error) {
	if w.Mode == "" {
		return 0o644, nil
	}
	var m uint32
	if _, err := fmt.Sscanf(w.Mode, "%o", &m); err != nil || m > 0o7777 {
		return 0, errors.New("no file mode")
	}
	return os.FileMode(m & 0o777), nil
}

// actions are the names of the steps, from the one place where they stand.
func actions() []string {
	var names []string
	for f := range reflect.TypeFor[Step]().Fields() {
		names = append(names, f.Tag.Get("yaml"))
	}
	return names
}

// mapping returns the members of a mapping; a single member has a node type of its own.
func mapping(n ast.Node) ([]*ast.MappingValueNode, bool) {
	switch m := n.(type) {
	case *ast.MappingNode:
		return m.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{m}, true
	}
	return nil, false
}

func line(n ast.Node) int {
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return 0
	}
	return n.GetToken().Position.Line
}

// oneLine is the first line of a YAML error, which has a picture of the source behind it.
func oneLine(err error) string {
	first, _, _ := strings.Cut(yaml.FormatError(err, false, false), "\n")
	return first
}

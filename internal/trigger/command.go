package trigger

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/proctor-ci/proctor/internal/pattern"
)

// CommandInfo is one command that people may write in a comment.
type CommandInfo struct {
	Name string
	Args string // how arguments look in the help, "" for none
	Help string // one line for people
	// Starts is true where the command makes the agent work. The others only read or steer, so
	// they are allowed on a closed issue and need no fresh approval of its text.
	Starts bool
	// Spends is true where a model is asked though no agent works: like a run it wants an open issue whose text is what was
	// approved, and unlike one it opens nothing, so that it needs no room.
	Spends bool
	// Check is true where the command looks at a pull request that is open, and changes nothing of it.
	Check bool
	// Hook is true where the answer needs no run: the webhook gives it.
	Hook bool
	// Missing is what to do instead of a command that has no engine yet, as the rest of a sentence; "" where it has one.
	Missing string
}

// Commands is the one registry of comment commands, in the order of the help.
func Commands() []CommandInfo {
	return []CommandInfo{
		{Name: "run", Help: "start a run on this issue, or go on with the last one", Starts: true},
		{Name: "resume", Help: "go on where the last run stopped; refused when nothing was kept", Starts: true},
		{Name: "retry", Help: "start again from the base commit; what was spent counts", Starts: true},
		{Name: "stop", Help: "stop the run and keep its work"},
		{Name: "status", Help: "say what the run is doing"},
		{Name: "fix", Args: "[what]", Help: "work on what is asked of this pull request: what stands behind the command, and threads that wait", Starts: true},
		{Name: "review", Help: "have the reviewer read the whole change of the open pull request once more", Spends: true, Check: true},
		{Name: "verify", Help: "repeat the proof of the open pull request in a clean checkout, and compare", Check: true},
		{Name: "explain", Help: "say why the last run ended as it did"},
		{Name: "plan", Help: "write a plan and wait for approval", Starts: true, Missing: "put a task list into the issue: with `plan.from` set, a run works through it"},
		{Name: "approve", Help: "approve the plan", Starts: true, Missing: "plans need no approval yet"},
		{Name: "split", Help: "cut the issue into smaller ones", Starts: true, Missing: "open the smaller issues by hand"},
		{Name: "budget", Args: "+N", Help: "allow N more dollars for this issue, and go on", Starts: true},
		{Name: "help", Help: "list the commands", Hook: true},
	}
}

// Asks reports whether the command has somebody paid to work, agent or reviewer.
func (i CommandInfo) Asks() bool { return i.Starts || i.Spends }

// Info finds the command in the registry. ok is false for a name nobody knows.
func (c Command) Info() (info CommandInfo, ok bool) {
	for _, i := range Commands() {
		if i.Name == c.Name {
			return i, true
		}
	}
	return CommandInfo{}, false
}

// Help is the answer to "help" and to an unknown command: Markdown, without any text of the asker.
func Help(prefix string) string {
	var b strings.Builder
	b.WriteString("Commands stand first on a line, outside quotes and code, and count for people with write access:\n\n")
	for _, c := range Commands() {
		// In code, or the list would be read as commands when somebody quotes it.
		fmt.Fprintf(&b, "- `%s`: %s", c.usage(prefix), c.Help)
		if c.Missing != "" {
			b.WriteString(" (not there yet)")
		}
		b.WriteString("\n")
	}
	return b.String()
}

func (i CommandInfo) usage(prefix string) string {
	return strings.TrimSpace(prefix + " " + i.Name + " " + i.Args)
}

// Reply is the answer to a command that needs no run and nothing of the repository: help, a name nobody
// knows, an amount that is none, a command without an engine. ok is false for every other.
func (c Command) Reply(prefix string) (text string, ok bool) {
	info, known := c.Info()
	switch {
	case !known:
		return "There is no such command. " + Help(prefix), true
	case info.Name == "help":
		return Help(prefix), true
	case info.Missing != "":
		return fmt.Sprintf("`%s` is not there yet: %s.", info.usage(prefix), info.Missing), true
	}
	if _, err := c.Canonical(); err != nil {
		return fmt.Sprintf("`%s` was not understood: %v.", info.usage(prefix), err), true
	}
	return "", false
}

// ErrBudget is a budget command without a usable amount.
var ErrBudget = errors.New("budget wants an amount of dollars to add, for example budget +5")

// budgetForm bounds the amount below a million dollars and nine digits after the point, so that any
// exact money type takes it.
var budgetForm = pattern.Of(`^\+\$?(\d{1,6}(?:\.\d{1,9})?)$`)

// Amount is the decimal number of dollars a budget command adds ("2.50"). It is more than nothing.
func (c Command) Amount() (string, error) {
	if c.Name != "budget" || len(c.Args) != 1 {
		return "", ErrBudget
	}
	m := budgetForm.FindStringSubmatch(c.Args[0])
	if m == nil || strings.Trim(m[1], "0.") == "" {
		return "", ErrBudget
	}
	return m[1], nil
}

// Canonical is the command as a dispatch carries it: a known name and, for budget, the checked
// amount. Other arguments stay in the comment, where the run reads them as the text they are.
func (c Command) Canonical() (string, error) {
	if _, ok := c.Info(); !ok {
		return "", fmt.Errorf("unknown command %s: the commands are %s", name(c.Name), strings.Join(commandNames(), ", "))
	}
	if c.Name != "budget" {
		return c.Name, nil
	}
	usd, err := c.Amount()
	if err != nil {
		return "", err
	}
	return "budget +" + usd, nil
}

func commandNames() []string {
	var out []string
	for _, c := range Commands() {
		out = append(out, c.Name)
	}
	return out
}

// FindCommand gives the first command in a comment's Markdown. A command is a line that starts, in
// its first column, with prefix (in any case: phones capitalise) and a blank or the line's end, outside
// block quotes (also nested, also lazily continued, also GitLab's >>>), code, HTML and link titles. The
// rest of its line is its name and arguments; a bare prefix asks for help. Where the Markdown leaves a doubt, it
// is not a command. An unknown name is a command too, so that it can be answered.
func FindCommand(body, prefix string) (Command, bool) {
	if prefix == "" || !mentions(body, prefix) {
		return Command{}, false
	}
	_, line, ok := commandLine(normaliseLines(body), prefix)
	if !ok {
		return Command{}, false
	}
	args, _ := cutPrefixFold(line, prefix)
	return parseFields(strings.Fields(args)), true
}

// CommandText is what stands behind the command that FindCommand gives: the rest of its line behind the name, and all that
// follows in the comment. It is as hostile as the comment.
func CommandText(body, prefix string) string {
	body = normaliseLines(body)
	at, line, ok := commandLine(body, prefix)
	if prefix == "" || !ok {
		return ""
	}
	rest, _ := cutPrefixFold(line, prefix)
	rest = strings.TrimLeftFunc(rest, unicode.IsSpace)
	if i := strings.IndexFunc(rest, unicode.IsSpace); i >= 0 {
		rest = rest[i:]
	} else {
		rest = ""
	}
	return strings.TrimSpace(rest + body[min(at+len(line), len(body)):])
}

// commandLine is the first line of body (which has LF only) that is a command, and where it starts.
func commandLine(body, prefix string) (at int, line string, ok bool) {
	var md blocks
	for rest, more := body, true; more; at += len(line) + 1 {
		line, rest, more = strings.Cut(rest, "\n")
		plain := md.next(line)
		if _, ok := cutPrefixFold(line, prefix); ok && plain && md.visible(rest) {
			return at, line, true
		}
	}
	return 0, "", false
}

// mentions is the cheap test that spares most comments the Markdown reader.
func mentions(body, prefix string) bool {
	for rest := body; ; {
		if _, ok := cutPrefixFold(rest, prefix); ok {
			return true
		}
		i := strings.IndexAny(rest, "\r\n")
		if i < 0 {
			return false
		}
		rest = rest[i+1:]
	}
}

func cutPrefixFold(line, prefix string) (string, bool) {
	if len(line) < len(prefix) || !strings.EqualFold(line[:len(prefix)], prefix) {
		return "", false
	}
	rest := line[len(prefix):]
	if rest == "" || strings.HasPrefix(rest, "\u00a0") || strings.ContainsRune(" \t\r\n", rune(rest[0])) {
		return rest, true
	}
	return "", false
}

// maxArgs bounds what one line may bring along.
const maxArgs = 64

func parseFields(fields []string) Command {
	if len(fields) == 0 {
		return Command{Name: "help"}
	}
	c := Command{Name: strings.ToLower(fields[0])}
	if len(c.Name) > 40 {
		c.Name = c.Name[:40]
	}
	if args := fields[1:min(len(fields), maxArgs)]; len(args) > 0 {
		c.Args = args
	}
	return c
}

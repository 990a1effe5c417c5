package agenttest

import (
	"strings"
	"time"
)

// Script decides what the model says next. It is called for each request of a conversation, again
// for a request that is repeated, and from several goroutines.
type Script func(Request) Turn

// Turn is one answer of the model.
type Turn struct {
	Text  string
	Tools []Tool
	Usage *Usage // nil: plausible numbers from the sizes
	Stop  string // stop_reason; empty: "tool_use" with tools, else "end_turn"
	Delay time.Duration
	Fault Fault
	// Big adds a text of so many bytes in one event, so in one line.
	Big int
}

// Tool is a call of a tool. In string values of Input, {{dir}} stands for the client's work tree.
type Tool struct {
	Name  string
	Input map[string]any
}

// Usage is what the model reports; with Raw set, that text stands as the usage object instead. None
// leaves usage out.
type Usage struct {
	Input, Output, CacheRead, CacheWrite int64
	Raw                                  string
	None                                 bool
}

// Turns says one turn after the other, whichever process asks: turn n is the answer to a conversation
// that holds n answers. After the last one it says that it is done.
func Turns(turns ...Turn) Script {
	return func(r Request) Turn {
		if len(r.Tools) == 0 && len(turns) > 0 && len(turns[0].Tools) > 0 {
			return Turn{Text: "ok"} // a question on the side, such as for a title
		}
		if r.Turn < len(turns) {
			return turns[r.Turn]
		}
		return Turn{Text: "Done."}
	}
}

// Attempts plays one script per process, in the order in which they first appear; the last one goes
// on. So a first attempt can be naive and a second one right.
func Attempts(scripts ...Script) Script {
	return func(r Request) Turn {
		if len(scripts) == 0 {
			return Turn{Text: "Done."}
		}
		return scripts[min(r.Attempt, len(scripts))-1](r)
	}
}

// Read, Edit, Write and Bash are Claude Code's tools. Paths are relative to the work tree.

// Read is a call of the Read tool.
func Read(path string) Tool { return Tool{"Read", map[string]any{"file_path": inDir(path)}} }

// Write is a call of the Write tool; a file that exists must have been read before.
func Write(path, content string) Tool {
	return Tool{"Write", map[string]any{"file_path": inDir(path), "content": content}}
}

// Edit is a call of the Edit tool; the file must have been read before.
func Edit(path, from, to string) Tool {
	return Tool{"Edit", map[string]any{"file_path": inDir(path), "old_string": from, "new_string": to}}
}

// Bash is a call of the Bash tool.
func Bash(line string) Tool {
	return Tool{"Bash", map[string]any{"command": line, "description": "Run a command"}}
}

// Exec is a call of Codex's shell tool.
func Exec(line string) Tool { return Tool{"exec_command", map[string]any{"cmd": line}} }

// PatchTool is Codex's tool that takes a patch as free text.
const PatchTool = "apply_patch"

// Patch is a call of it.
func Patch(text string) Tool { return Tool{PatchTool, map[string]any{"input": text}} }

func inDir(path string) string {
	if strings.HasPrefix(path, "/") {
		return path
	}
	return "{{dir}}/" + path
}

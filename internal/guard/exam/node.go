package exam

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/proctor-ci/proctor/internal/gate"
	"github.com/proctor-ci/proctor/internal/guard/tamper"
)

// lifecycle are the scripts that installing runs.
var lifecycle = []string{"preinstall", "install", "postinstall", "prepublish", "preprepare", "prepare", "postprepare"}

// npm finds the entries of package.json that a package manager runs.
func (e *Exam) npm(gateName string, c gate.Call, depth int) {
	dir, verb, name := c.Dir, "", ""
	for i := 1; i < len(c.Words); i++ {
		w := c.Words[i]
		switch {
		case (w == "--prefix" || w == "-C" || w == "--cwd" || w == "--dir") && i+1 < len(c.Words):
			i++
			if dir = within(c.Dir, c.Words[i]); dir == "" {
				dir = c.Dir
			}
		case strings.HasPrefix(w, "-"):
		case verb == "":
			verb = w
		case name == "":
			name = w
		}
	}
	manifest := within(dir, "package.json")
	scripts := e.npmScripts(manifest)
	if scripts == nil {
		return
	}
	switch verb {
	case "run", "run-script", "rum", "urn":
	case "test", "t", "tst":
		name = "test"
	case "install", "i", "ci", "clean-install", "add", "":
		for _, s := range lifecycle {
			e.entry(gateName, manifest, dir, s, scripts, depth)
		}
		return
	default:
		name = verb
	}
	for _, s := range []string{"pre" + name, name, "post" + name} {
		e.entry(gateName, manifest, dir, s, scripts, depth)
	}
}

// entry notes one script, there or not: one that is not there must not come to be.
func (e *Exam) entry(gateName, manifest, dir, name string, scripts map[string]string, depth int) {
	if _, known := e.packages[manifest][name]; known {
		return
	}
	if e.packages[manifest] == nil {
		e.packages[manifest] = map[string]string{}
	}
	e.packages[manifest][name] = gateName
	if line := scripts[name]; line != "" {
		e.follow(gateName, []string{"sh", "-c", line}, dir, depth+1)
	}
}

func (e *Exam) npmScripts(manifest string) map[string]string {
	if manifest == "" {
		return nil
	}
	text, ok := e.files(manifest)
	if !ok {
		return nil
	}
	scripts, _ := readScripts(text)
	return scripts
}

func readScripts(text []byte) (scripts map[string]string, ok bool) {
	var p struct {
		Scripts map[string]any `json:"scripts"`
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return map[string]string{}, false
	}
	scripts = map[string]string{}
	for k, v := range p.Scripts {
		scripts[k] = fmt.Sprint(v)
	}
	return scripts, true
}

// comparePackage holds the entries that gates run to what they were.
func comparePackage(f tamper.File, used map[string]string) []tamper.Sign {
	before, _ := readScripts(f.Before)
	after, ok := readScripts(f.After)
	if !f.Is || !ok {
		return []tamper.Sign{{Path: f.Path, Detail: "the file whose scripts the gates run is gone or cannot be read", Next: putBack}}
	}
	var out []tamper.Sign
	for _, name := range sorted(used) {
		was, had := before[name]
		is, has := after[name]
		switch {
		case had == has && was == is:
		case !had:
			out = append(out, sign(f.Path, used[name], "script %q would now run too", name))
		case !has:
			out = append(out, sign(f.Path, used[name], "script %q is gone", name))
		default:
			out = append(out, sign(f.Path, used[name], "script %q was changed to %s", name, short(is)))
		}
	}
	return out
}

package forgetest

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// workflow is the part of a workflow file that the runner obeys. What it does not know it refuses by
// name where that would change what runs (matrix, services), and ignores where it would not.
type workflow struct {
	Name        string
	RunName     string `yaml:"run-name"`
	On          any
	Env         map[string]any
	Permissions any
	Jobs        yaml.MapSlice

	jobs []job
}

type job struct {
	id          string
	Name        string
	If          string
	Permissions any
	Env         map[string]any
	Timeout     float64 `yaml:"timeout-minutes"`
	Steps       []step
	Strategy    any
	Uses        string
	Needs       any // a name or a list
	Outputs     map[string]any
	Environment string
}

// needed are the ids of the jobs that this one waits for.
func (j job) needed() (ids []string) {
	switch n := j.Needs.(type) {
	case string:
		return []string{n}
	case []any:
		for _, id := range n {
			ids = append(ids, fmt.Sprint(id))
		}
	}
	return ids
}

type step struct {
	ID, Name, If, Uses, Run, Shell string
	With, Env                      map[string]any
	WorkingDirectory               string  `yaml:"working-directory"`
	ContinueOnError                any     `yaml:"continue-on-error"`
	Timeout                        float64 `yaml:"timeout-minutes"`
}

func parseWorkflow(data []byte) (*workflow, error) {
	var w workflow
	if err := yaml.Unmarshal(data, &w); err != nil {
		return nil, fmt.Errorf("workflow: %w", err)
	}
	for _, item := range w.Jobs {
		raw, err := yaml.Marshal(item.Value)
		if err != nil {
			return nil, fmt.Errorf("job %v: %w", item.Key, err)
		}
		j := job{id: fmt.Sprint(item.Key)}
		if err := yaml.Unmarshal(raw, &j); err != nil {
			return nil, fmt.Errorf("job %v: %w", item.Key, err)
		}
		if j.Strategy != nil || j.Uses != "" {
			return nil, fmt.Errorf("job %s: the test runner does not do strategy or reusable workflows", j.id)
		}
		w.jobs = append(w.jobs, j)
	}
	if len(w.jobs) == 0 {
		return nil, fmt.Errorf("workflow %q has no jobs", w.Name)
	}
	return &w, nil
}

// trigger is what `on:` says of one event, which may be a word, a list or a mapping.
func (w *workflow) trigger(event string) (any, bool) {
	switch on := w.On.(type) {
	case string:
		return nil, on == event
	case []any:
		return nil, slices.Contains(on, any(event))
	case map[string]any:
		v, ok := on[event]
		return v, ok
	}
	return nil, false
}

// listens tells whether the workflow starts on an event's action; no `types:` means the event's usual ones.
func (w *workflow) listens(event, action string) bool {
	v, ok := w.trigger(event)
	if !ok {
		return false
	}
	m, _ := v.(map[string]any)
	switch types := m["types"].(type) {
	case []any:
		return slices.Contains(types, any(action))
	case string:
		return types == action
	}
	return slices.Contains([]string{"opened", "edited", "labeled"}, action)
}

// follows tells whether a workflow that starts behind others' runs names the one that ended: GitHub wants their names. Other events have no such list.
func (w *workflow) follows(payload obj) bool {
	run, ok := payload["workflow_run"].(obj)
	if !ok {
		return true
	}
	v, _ := w.trigger("workflow_run")
	m, _ := v.(map[string]any)
	names, _ := m["workflows"].([]any)
	return slices.Contains(names, run["name"])
}

const maxDispatchInputs = 25

// dispatchInputs checks what was sent against what is declared and fills in defaults, in GitHub's words.
func (w *workflow) dispatchInputs(sent map[string]any) (map[string]string, error) {
	v, ok := w.trigger("workflow_dispatch")
	if !ok {
		return nil, refuse(http.StatusUnprocessableEntity, "Workflow does not have 'workflow_dispatch' trigger")
	}
	m, _ := v.(map[string]any)
	declared, _ := m["inputs"].(map[string]any)
	if len(sent) > maxDispatchInputs {
		return nil, refuse(http.StatusUnprocessableEntity, fmt.Sprintf("you may only define up to %d `inputs` for a `workflow_dispatch` event", maxDispatchInputs))
	}
	var unknown []string
	size := 0
	out := map[string]string{}
	for name, value := range sent {
		if _, ok := declared[name]; !ok {
			unknown = append(unknown, fmt.Sprintf("%q", name))
		}
		out[name] = fmt.Sprint(value)
		size += len(name) + len(out[name])
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		return nil, refuse(http.StatusUnprocessableEntity, "Unexpected inputs provided: ["+strings.Join(unknown, ", ")+"]")
	}
	if size > 65535 {
		return nil, refuse(http.StatusUnprocessableEntity, "inputs are too large.")
	}
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		spec, _ := declared[name].(map[string]any)
		if _, ok := out[name]; ok {
			continue
		}
		if d, ok := spec["default"]; ok {
			out[name] = fmt.Sprint(d)
		} else if spec["required"] == true {
			return nil, refuse(http.StatusUnprocessableEntity, fmt.Sprintf("Required input '%s' not provided", name))
		} else {
			out[name] = ""
		}
	}
	return out, nil
}

// jobPermissions of a job's own token: the job's, else the workflow's, else the restricted default. As
// soon as one is named, those not named are none.
func (w *workflow) jobPermissions(j job) (map[string]string, error) {
	v := j.Permissions
	if v == nil {
		v = w.Permissions
	}
	switch p := v.(type) {
	case nil:
		return map[string]string{"contents": "read", "packages": "read"}, nil
	case string:
		level, ok := map[string]string{"read-all": "read", "write-all": "write"}[p]
		if !ok {
			return nil, fmt.Errorf("job %s: permissions %q: want read-all, write-all or a mapping", j.id, p)
		}
		out := map[string]string{}
		for _, s := range []string{"actions", "checks", "contents", "issues", "pull_requests", "statuses"} {
			out[s] = level
		}
		return out, nil
	case map[string]any:
		out := map[string]string{}
		for scope, level := range p {
			if !slices.Contains([]string{"read", "write", "none"}, fmt.Sprint(level)) {
				return nil, fmt.Errorf("job %s: permission %s: %v: want read, write or none", j.id, scope, level)
			}
			if level != "none" {
				out[strings.ReplaceAll(scope, "-", "_")] = fmt.Sprint(level)
			}
		}
		return out, nil
	}
	return nil, fmt.Errorf("job %s: permissions: want a word or a mapping", j.id)
}

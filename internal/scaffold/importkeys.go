package scaffold

import (
	"fmt"
	"strings"

	"github.com/proctor-ci/proctor/internal/pattern"
)

// loopkitKeys are the keys of loopkit.toml. What is left has no counterpart, or one that means something else.
func loopkitKeys() map[string]rule {
	const always = "has no counterpart: "
	return map[string]rule{
		"agent.adapter": func(v any) ([]Setting, string) {
			name, ok := map[any]string{"claude-code": "claude-code", "codex": "codex", "claude-api": "anthropic", "openai-api": "openai"}[v]
			if !ok {
				return nil, fmt.Sprintf("names the agent %q, for which there is none here; agent.name keeps its default", fmt.Sprint(v))
			}
			return []Setting{{Key: "agent.name", Value: name}}, ""
		},
		"agent.model":                as[string]("agent.model"),
		"agent.max_cost_usd":         dollars("stops.max_cost_usd"),
		"agent.max_tool_calls":       leave(always + "agent.timeout and stops bound a tick"),
		"agent.args":                 leave("is not taken over: the agent is called with other arguments here; see proctor config explain agent.args"),
		"agent.use_api_key":          leave(always + "whichever secret the job is given is used"),
		"prompt.anchors":             texts("prompt.anchors", one),
		"plan.file":                  planFile,
		"gate.iteration":             as[string]("gates.iteration"),
		"gate.acceptance":            as[string]("gates.acceptance.run"),
		"gate.regression":            as[string]("gates.regression"),
		"stops.max_iter":             as[int64]("stops.max_ticks"),
		"stops.no_progress_after":    as[int64]("stops.no_progress_after"),
		"stops.plan_stall_after":     as[int64]("stops.plan_stall_after"),
		"safety.protected_paths":     texts("policy.protected", protected),
		"safety.gate_stability_runs": stability,
		"safety.require_clean_tree":  leave(always + "a run starts from a commit and never looks at the work tree"),
		"safety.allow_branches":      leave(always + "a push only ever goes to publish.branch"),
		"safety.forbid_branches":     leave(always + "a push only ever goes to publish.branch"),
		"remote.pr_base":             as[string]("publish.base"),
		"remote.enabled":             leave(always + "a run that is proved is published"),
		"remote.name":                leave(always + "the forge's own address is pushed to"),
		"remote.push":                leave(always + "a run that is proved is published"),
		"remote.open_pr":             leave(always + "a run that is proved is published"),
		"remote.provider":            leave(always + "the job knows its forge"),
		"remote.draft":               leave(always + "it is always a draft"),
		"review.enabled":             as[bool]("review.enabled"),
		"review.command":             leave("is not taken over: a reviewer of your own answers with a verdict here, not with an exit code; see proctor config explain review.command"),
		"trace.enabled":              leave(always + "every run leaves its record"),
		"trace.project":              leave(always + "every run leaves its record"),
		"goal":                       leave(always + "the issue says what to do"),
		"repo":                       leave(always + "the job knows its repository"),
		"branch":                     leave("is not taken over: each issue has a branch of its own; see proctor config explain publish.branch"),
	}
}

// autoloopKeys are the keys of autoloop.toml.
func autoloopKeys() map[string]rule {
	const always = "has no counterpart: "
	return map[string]rule{
		"impl_model":   modelID,
		"impl_timeout": seconds("agent.timeout"),
		"test_timeout": seconds("gates.timeout"),
		"verify_cmd":   as[string]("gates.iteration"),
		"pr_reviewer": func(v any) ([]Setting, string) {
			s, ok := v.(string)
			if !ok || s == "" {
				return nil, "names nobody"
			}
			return []Setting{{Key: "publish.reviewers", Value: yamlValue([]string{s})}}, ""
		},
		"lint_command":     leave("is not taken over: put it into gates.iteration or gates.regression"),
		"max_retries":      leave("is not taken over: stops.max_ticks counts all ticks, not those after the first"),
		"repo":             leave(always + "the job knows its repository"),
		"triage_model":     leave(always + "a person's label chooses what is worked on"),
		"triage_timeout":   leave(always + "a person's label chooses what is worked on"),
		"triage_labels":    leave(always + "the labels follow from trigger.label"),
		"max_story_points": leave(always + "policy.max bounds the change instead"),
		"tree_truncation":  leave(always + "the agent reads the files itself"),
		"spec_truncation":  leave(always + "the agent reads the files itself"),
		"diff_truncation":  leave(always + "a diff is judged whole, in parts where it is long"),
		"error_truncation": leave(always + "a gate's output is cut so that its first and last failures stay"),
	}
}

func one(s string) ([]string, string) { return []string{s}, "" }

// protected paths are prefixes there and patterns here: a path without a slash behind it may be a file or a folder, so
// both are protected.
func protected(s string) ([]string, string) {
	switch {
	case strings.ContainsAny(s, "*?[{"):
		return nil, fmt.Sprintf("holds the pattern %q, which may match something else here; write it into policy.protected", s)
	case strings.HasSuffix(s, "/"):
		return []string{s + "**"}, ""
	}
	return []string{s, s + "/**"}, ""
}

func planFile(v any) ([]Setting, string) {
	s, ok := v.(string)
	if !ok || s == "" {
		return nil, "names no file"
	}
	return []Setting{{Key: "plan.from", Value: "file"}, {Key: "plan.file", Value: yamlValue(s)}}, ""
}

func dollars(key string) rule {
	return func(v any) ([]Setting, string) {
		switch n := v.(type) {
		case int64:
			if n > 0 {
				return []Setting{{Key: key, Value: yamlValue(n)}}, ""
			}
		case float64:
			if n > 0 {
				return []Setting{{Key: key, Value: yamlValue(n)}}, ""
			}
		}
		return nil, "is no amount above zero"
	}
}

func stability(v any) ([]Setting, string) {
	n, ok := v.(int64)
	if !ok || n < 2 {
		return nil, "asks for no repeated gate; gates.stability keeps its default"
	}
	return []Setting{{Key: "gates.stability", Value: yamlValue(n)}}, ""
}

var fullModel = pattern.Of(`^claude-[a-z0-9.-]+$`)

// modelID takes only a full id: an alias has no price.
func modelID(v any) ([]Setting, string) {
	s, _ := v.(string)
	if !fullModel.MatchString(s) {
		return nil, fmt.Sprintf("is %q, which is no full id of a model and so has no price; write agent.model", fmt.Sprint(v))
	}
	return []Setting{{Key: "agent.model", Value: s}}, ""
}

package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/proctor-ci/proctor/internal/config"
	"github.com/proctor-ci/proctor/internal/pattern"
)

// Pipeline looks at GitLab's files: .gitlab-ci.yml and the job that it includes. nil: the file is not there.
func Pipeline(pipeline, template []byte, c config.Config) []Finding {
	if pipeline == nil {
		return []Finding{failed("pipeline", labSetup, "the base commit has no .gitlab-ci.yml, so nothing can be started")}
	}
	text := string(pipeline)
	inline := strings.Contains(text, "proctor-action")
	included := strings.Contains(text, ".gitlab/ci/proctor.yml")
	switch {
	case !inline && !included && strings.Contains(text, "proctor"):
		return []Finding{{Check: "pipeline", Status: Unproved, Text: ".gitlab-ci.yml includes the job from elsewhere, which is not read here"}}
	case !inline && !included:
		return []Finding{failed("pipeline", "add to .gitlab-ci.yml: `include: [{local: .gitlab/ci/proctor.yml}]`", ".gitlab-ci.yml does not include the job")}
	case included && template == nil:
		return []Finding{failed("pipeline", labSetup, ".gitlab-ci.yml includes .gitlab/ci/proctor.yml, which the base commit does not have")}
	}
	var found []Finding
	all := text + "\n" + string(template)
	if m := strategy.FindStringSubmatch(text); m != nil {
		found = append(found, failed("pipeline.checkout", "write `GIT_STRATEGY: clone`", ".gitlab-ci.yml sets GIT_STRATEGY: %s, and a job needs its commit", m[1]))
	}
	if limit, ok := jobLimit(pipeline, template, inline); ok && limit < c.Stops.MaxDuration+room {
		found = append(found, failed("pipeline.timeout", fmt.Sprintf("write `timeout: %dm` among the include's inputs, or lower stops.max_duration", int((c.Stops.MaxDuration+room).Minutes())), "the job is stopped after %s and the run stops itself after %s", limit, c.Stops.MaxDuration))
	}
	if image := jobInput("image", pipeline, template); !inline && strings.HasPrefix(image, publishedImage) && slices.Contains(vendors(), c.Agent.Name) {
		found = append(found, failed("pipeline.agent", "set the include's input image to one of your own that holds it (docs/image.md builds one), or choose the agent anthropic or openai, which need none",
			"the job runs in %s, which does not hold the CLI of the agent %s", image, c.Agent.Name))
	}
	if !strings.Contains(all, "resource_group:") {
		found = append(found, failed("pipeline.concurrency", "add `resource_group: proctor-$PROCTOR_ISSUE$PROCTOR_GROUP` to the job", "two runs of one issue are not kept apart"))
	}
	if !strings.Contains(all, "dotenv:") {
		found = append(found, noted("pipeline.report", "add `artifacts: {when: always, paths: [proctor], reports: {dotenv: proctor.env}}`", "the job keeps no report"))
	}
	return whole("pipeline", ".gitlab-ci.yml has the job, its time and its report", found)
}

var (
	strategy  = pattern.Of(`(?m)^\s*GIT_STRATEGY:\s*["']?(none|empty)\b`)
	hoursForm = pattern.Of(`^(?:(\d+)\s*h(?:ours?)?)?\s*(?:(\d+)\s*m(?:in(?:utes?)?)?)?$`)
)

// labSetup writes whatever is missing; what exists it shows as a diff.
const labSetup = "`proctor init --ci gitlab && git add .gitlab .gitlab-ci.yml && git commit -m \"Set up proctor\" && git push`"

// publishedImage is the one without vendors' programs, of any version.
const publishedImage = "ghcr.io/proctor-ci/proctor:"

// jobLimit is the job's time limit: of the include's input, of the template's default, or of a job written out.
func jobLimit(pipeline, template []byte, inline bool) (time.Duration, bool) {
	if !inline {
		return duration(jobInput("timeout", pipeline, template))
	}
	var file map[string]any
	if yaml.Unmarshal(pipeline, &file) != nil {
		return 0, false
	}
	raw, _ := field(file["proctor"], "timeout").(string)
	return duration(raw)
}

// jobInput is an input of the included job: the include's, else the template's default, "" for none.
func jobInput(name string, pipeline, template []byte) (raw string) {
	var file map[string]any
	if yaml.Unmarshal(pipeline, &file) != nil {
		return ""
	}
	if list, ok := file["include"].([]any); ok {
		for _, e := range list {
			if at, _ := field(e, "local").(string); strings.HasSuffix(at, ".gitlab/ci/proctor.yml") {
				raw, _ = field(field(e, "inputs"), name).(string)
			}
		}
	}
	if raw == "" {
		head, _, _ := strings.Cut(string(template), "\n---\n")
		var spec map[string]any
		if yaml.Unmarshal([]byte(head), &spec) == nil {
			raw, _ = field(field(field(spec["spec"], "inputs"), name), "default").(string)
		}
	}
	return raw
}

// duration reads GitLab's "75m", "1h 30m", "90 minutes".
func duration(s string) (time.Duration, bool) {
	m := hoursForm.FindStringSubmatch(strings.TrimSpace(s))
	if m == nil || m[1]+m[2] == "" {
		return 0, false
	}
	var h, min int
	_, _ = fmt.Sscan(m[1], &h)
	_, _ = fmt.Sscan(m[2], &min)
	return time.Duration(h)*time.Hour + time.Duration(min)*time.Minute, true
}

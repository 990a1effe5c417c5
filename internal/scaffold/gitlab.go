package scaffold

import (
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/proctor-ci/proctor/internal/pattern"
)

// Paths of the files.
const (
	GitHubConfig   = ".github/proctor.yml"
	GitHubWorkflow = ".github/workflows/proctor.yml"
	GitHubDoctor   = ".github/workflows/proctor-doctor.yml"
	GitLabConfig   = ".gitlab/proctor.yml"
	GitLabTemplate = ".gitlab/ci/proctor.yml"
	GitLabPipeline = ".gitlab-ci.yml"
)

const includeEntry = "  - local: " + GitLabTemplate + "\n"

// Include are the lines that a pipeline file needs.
const Include = "include:\n" + includeEntry

var (
	hasInclude  = regexp.MustCompile(`(?m)^\s*-?\s*(local:\s*)?["']?/?` + regexp.QuoteMeta(GitLabTemplate) + `["']?\s*$`)
	includeList = pattern.Of(`(?m)^include:[ \t]*(#.*)?\n(\s*#.*\n)*([ \t]*)- `)
	includeKey  = pattern.Of(`(?m)^["']?include["']?[ \t]*:`)
)

// entryFor is the include's entry for a pipeline file: one with stages of its own, none of them test, has to lend the job
// one of them.
func entryFor(pipeline []byte) string {
	var has struct{ Stages []string }
	if yaml.Unmarshal(pipeline, &has) != nil || len(has.Stages) == 0 || slices.Contains(has.Stages, "test") {
		return includeEntry
	}
	own := slices.DeleteFunc(slices.Clone(has.Stages), func(s string) bool { return strings.HasPrefix(s, ".") || !plainStage.MatchString(s) })
	if len(own) == 0 {
		return includeEntry
	}
	return includeEntry + "    inputs: {stage: " + own[len(own)-1] + "}\n"
}

var plainStage = pattern.Of(`^[A-Za-z][A-Za-z0-9_-]*$`)

// extendPipeline adds the include to a pipeline file. It is sure only where there is none yet, or a list of them in block style.
func extendPipeline(was []byte) ([]byte, bool) {
	text := string(was)
	switch {
	case hasInclude.MatchString(text):
		return was, true
	case !includeKey.MatchString(text):
		return []byte("include:\n" + entryFor(was) + "\n" + text), true
	}
	m := includeList.FindStringSubmatchIndex(text)
	if m == nil || len(includeKey.FindAllString(text, 2)) > 1 {
		return nil, false
	}
	indent, end := text[m[6]:m[7]], strings.IndexByte(text[m[0]:], '\n')+m[0]+1
	entry := indent + strings.ReplaceAll(strings.TrimPrefix(entryFor(was), "  "), "\n  ", "\n"+indent)
	return []byte(text[:end] + entry + text[end:]), true
}

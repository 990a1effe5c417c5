package trigger

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const someHash = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestADispatchCarriesIdsThereAndBack(t *testing.T) {
	t.Parallel()
	sent := Trigger{
		Kind: KindLabel, Delivery: "72d3162e-cc78-11e3-81ab-4c9367dc0958", ID: NewID("k"),
		Issue: Issue{Number: 12, Title: "$(rm -rf /) ${{ secrets.X }}\n::add-mask::x", Body: strings.Repeat("`", 70_000)},
		Actor: Actor{Login: "ann-lee", ID: 7}, Asked: Asked{ID: 99, At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
		Command: &Command{Name: "budget", Args: []string{"+2.50"}, CommentID: 5}, Change: &ChangeRef{Number: 12},
	}
	in, err := sent.Inputs()
	if err != nil {
		t.Fatal(err)
	}
	size := 0
	for k, v := range in {
		size += len(k) + len(v)
		if strings.ContainsAny(v, "$`{}\n\"'<>()") {
			t.Errorf("input %s is %q: text of a person got in", k, v)
		}
	}
	if size > 1000 || len(in) > 10 {
		t.Errorf("%d bytes in %d inputs, want at most 1000 in 10", size, len(in))
	}
	got, err := ParseDispatch(in)
	if err != nil {
		t.Fatal(err)
	}
	want := Trigger{
		Kind: KindDispatch, Event: "workflow_dispatch", Delivery: sent.Delivery, ID: sent.ID, Issue: Issue{Number: 12},
		Change: sent.Change, Actor: sent.Actor, Asked: sent.Asked, Snapshot: sent.Issue.Snapshot(),
		Command: &Command{Name: "budget", Args: []string{"+2.50"}, CommentID: 5},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestADispatchNamesAReviewAndNothingOfIt(t *testing.T) {
	t.Parallel()
	in, err := Trigger{Kind: KindReview, Review: &ReviewRef{ID: 77}, Change: &ChangeRef{Number: 12, Head: "proctor/issue-3"}, Issue: Issue{Number: 12, IsPull: true}, Actor: Actor{Login: "ann", ID: 7}}.Inputs()
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseDispatch(in)
	want := Trigger{Kind: KindDispatch, Event: "workflow_dispatch", Review: &ReviewRef{ID: 77}, Change: &ChangeRef{Number: 12}, Issue: Issue{Number: 12}, Actor: Actor{Login: "ann", ID: 7}}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v\n%s", err, d)
	}
}

func TestDispatchInputsAreReadStrictly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, key, value, want string }{
		{"no issue", "issue", "", `input "issue" is missing`},
		{"issue in words", "issue", "twelve", `input "issue" is "twelve"`},
		{"issue below one", "issue", "0", `input "issue"`},
		{"issue that is a shell line", "issue", "1; rm -rf /", `input "issue"`},
		{"request that is no query", "request", "%zz", `input "request"`},
		{"request with a bad member", "request", "change=abc", `input "change"`},
		{"review without a pull request", "review", "5", `input "review" names a review and no pull request`},
		{"review that is none", "review", "-5", `input "review" is`},
		{"hash too short", "snapshot", "abc", `input "snapshot"`},
		{"event without a time", "event", "12", `input "event"`},
		{"correlation id with a tail", "proctor_id", NewID("k") + "x", `input "proctor_id"`},
		{"actor without an id", "actor", "ann", `input "actor"`},
		{"actor with a mention", "actor", "7:@ann me", `input "actor"`},
		{"unknown command", "command", "dance", `unknown command "dance"`},
		{"comment in words", "comment", "x", `input "comment"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			in := map[string]string{"issue": " #12 ", "snapshot": someHash, "command": "run", "extra": "left alone"}
			if _, err := ParseDispatch(in); err != nil {
				t.Fatalf("control: %v", err)
			}
			in[c.key] = c.value
			_, err := ParseDispatch(in)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want an error with %s", err, c.want)
			}
		})
	}
}

// A person with the dispatch button cannot act for somebody else; our own App names whom it acts for.
func TestOnlyABotMayNameThePersonItDispatchesFor(t *testing.T) {
	t.Parallel()
	body := func(senderType string) []byte {
		return []byte(`{"inputs":{"issue":12,"actor":"7:ann"},"repository":{"name":"shop","owner":{"login":"octo"}},
			"sender":{"login":"mallory","id":9,"type":"` + senderType + `"}}`)
	}
	for senderType, want := range map[string]int64{"User": 9, "Bot": 7} {
		got, err := ParseGitHub("workflow_dispatch", body(senderType), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got.Actor.ID != want || got.Issue.Number != 12 || got.Repo.FullName() != "octo/shop" {
			t.Errorf("%s: actor %d, issue %d, want actor %d and issue 12", senderType, got.Actor.ID, got.Issue.Number, want)
		}
	}
}

func TestARunIsKnownByTheIdInItsName(t *testing.T) {
	t.Parallel()
	id := NewID("github:1#2@3")
	if id != NewID("github:1#2@3") || id == NewID("github:1#2@4") {
		t.Error("ids are not a function of their key")
	}
	body := func(title, event string) []byte {
		return []byte(`{"action":"completed","workflow_run":{"id":5,"display_title":"` + title + `","event":"` + event + `","path":".github/workflows/proctor.yml","head_branch":"trunk",
			"status":"completed","conclusion":"startup_failure"},
			"repository":{"name":"shop","owner":{"login":"octo"}},"sender":{"login":"ann","id":7}}`)
	}
	got, err := ParseGitHub("workflow_run", body("proctor #12 "+id, "workflow_dispatch"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Kind != KindRun || got.ID != id || got.Run.Conclusion != "startup_failure" || got.Run.Path != ".github/workflows/proctor.yml" || got.Run.Branch != "trunk" {
		t.Errorf("read as %+v", got)
	}
	if r := reading(ParseGitHub("workflow_run", body("ci", "workflow_dispatch"), Options{})); r != "ignored other_run" {
		t.Errorf("a run of somebody else: %s", r)
	}
	// INV-45: whoever opens a pull request gives the title of its runs.
	for _, event := range []string{"pull_request", "pull_request_target", "push", "issues", ""} {
		if r := reading(ParseGitHub("workflow_run", body("fix typo "+id, event), Options{})); r != "ignored other_run" {
			t.Errorf("a run by %q with our id as its title: %s", event, r)
		}
	}
}

// INV-45: a push, a merge request or a schedule can bring the variable of a run of ours along; only what a trigger or the API starts is ours.
func TestAPipelineIsKnownByTheIdInItsVariables(t *testing.T) {
	t.Parallel()
	id := NewID("gitlab:1#2@3")
	read := func(attributes string) (Trigger, error) {
		return ParseGitLab("Pipeline Hook", []byte(`{"object_kind":"pipeline","user":{"id":7,"username":"ann"},
			"project":{"id":5,"path_with_namespace":"group/sub/shop","default_branch":"trunk"},
			"merge_request":null,"builds":[],"object_attributes":{"id":31,"iid":3,"ref":"trunk","sha":"abc","created_at":"2026-01-02 15:23:28 UTC",`+attributes+`}}`), Options{})
	}
	variables := func(key, value string) string {
		return `"variables":[{"key":"PROCTOR_ISSUE","value":"3"},{"key":"` + key + `","value":"` + value + `"}]`
	}
	for status, want := range map[string]string{
		"created": "queued ", "waiting_for_resource": "queued ", "manual": "queued ", "running": "in_progress ", "canceling": "in_progress ",
		"success": "completed success", "failed": "completed failure", "canceled": "completed cancelled", "skipped": "completed skipped",
	} {
		for _, source := range []string{"trigger", "api"} {
			tr, err := read(`"tag":false,"source":"` + source + `","status":"` + status + `",` + variables("PROCTOR_ID", id))
			if err != nil || tr.Kind != KindRun || tr.ID != id || tr.Repo.FullName() != "group/sub/shop" || tr.Run.ID != 31 || tr.Run.Branch != "trunk" || tr.Run.Status+" "+tr.Run.Conclusion != want {
				t.Errorf("%s by %s: %+v of %+v, %v", status, source, tr.Run, tr, err)
			}
		}
	}
	for name, attributes := range map[string]string{
		"a push with the variable":   `"source":"push",` + variables("PROCTOR_ID", id),
		"a merge request's":          `"source":"merge_request_event",` + variables("PROCTOR_ID", id),
		"a schedule's":               `"source":"schedule",` + variables("PROCTOR_ID", id),
		"by hand in the web":         `"source":"web",` + variables("PROCTOR_ID", id),
		"of a parent pipeline":       `"source":"parent_pipeline",` + variables("PROCTOR_ID", id),
		"nothing said of its source": variables("PROCTOR_ID", id),
		"a tag of the branch's name": `"tag":true,"source":"api",` + variables("PROCTOR_ID", id),
		"another variable":           `"source":"api",` + variables("TITLE", id),
		"more than the id":           `"source":"api",` + variables("PROCTOR_ID", "fix typo "+id),
		"no variables":               `"source":"api","variables":null`,
	} {
		if r := reading(read(`"status":"success",` + attributes)); r != "ignored other_run" {
			t.Errorf("%s: %s", name, r)
		}
	}
}

func TestManualTriggersSayWhatIsMissing(t *testing.T) {
	t.Parallel()
	if _, err := FromIssue(GitHub, Repo{}, 0, Actor{}); err == nil || !strings.Contains(err.Error(), "--issue 12") {
		t.Error(err)
	}
	if _, err := FromGoal(" \n", Actor{}); err == nil || !strings.Contains(err.Error(), "--goal") {
		t.Error(err)
	}
	if got, err := FromGoal("fix it", Actor{Login: "ann"}); err != nil || got.Kind != KindManual || got.Forge != Local {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := FromIssue(GitLab, Repo{Owner: "a/b", Name: "c"}, 3, Actor{}); err != nil || got.Issue.Number != 3 {
		t.Errorf("%+v, %v", got, err)
	}
}

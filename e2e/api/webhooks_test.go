//go:build e2e

package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/proctor-ci/proctor/internal/forge/forgesuite"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
	"github.com/proctor-ci/proctor/internal/trigger"
)

const hookSchemaURL = "https://example.com/webhooks.json"

func hookSchema(t *testing.T, definition string) *jsonschema.Schema {
	t.Helper()
	data, err := os.ReadFile(npmFile(t, "webhooks-schemas", "schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonValue(data)
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	// The library's check of this format refuses operators of RFC 6570 ("{/name}"), which GitHub's templates use.
	c.RegisterFormat(&jsonschema.Format{Name: "uri-template", Validate: func(any) error { return nil }})
	if err := c.AddResource(hookSchemaURL, doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(hookSchemaURL + "#/definitions/" + definition)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The payload that the test forge signs and sends is a payload that GitHub could have sent.
func TestTheTestForgesWebhooksFitTheSchemas(t *testing.T) {
	t.Parallel()
	schema := hookSchema(t, "issues$labeled")
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusAccepted) }))
	defer hook.Close()
	for _, installation := range []int64{0, 77} {
		g, err := forgetest.NewGitHub(forgetest.Options{Dir: t.TempDir(), Files: forgesuite.Files(), Installation: installation})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		g.SetHook(hook.URL, "a secret of the test")
		n := g.OpenIssue("Totals are wrong", "See `cart.go`.", "alice")
		empty := g.OpenIssue("No body", "", "alice")
		for _, issue := range []int{n, empty} {
			d, err := g.LabelIssue(issue, "proctor", "bob")
			if err != nil || d.Status != http.StatusAccepted {
				t.Fatalf("delivery = %d, %v", d.Status, err)
			}
			value, err := jsonValue(d.Body)
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(value); err != nil {
				t.Errorf("issue %d: %v", issue, err)
			}
			tr, err := trigger.ParseGitHub(d.Event, d.Body, trigger.Options{Label: "proctor"})
			if err != nil || tr.Label != "proctor" || tr.Actor.Login != "bob" || tr.Issue.Number != issue {
				t.Errorf("trigger = %+v, %v", tr, err)
			}
			// Control: the schema notices what is missing and what is new.
			for _, spoil := range []func(map[string]any){
				func(m map[string]any) { delete(m["issue"].(map[string]any), "number") },
				func(m map[string]any) { m["labels"] = []any{} },
			} {
				value, _ := jsonValue(d.Body)
				spoil(value.(map[string]any))
				if schema.Validate(value) == nil {
					t.Error("a spoiled payload fits the schema: this test proves nothing")
				}
			}
		}
	}
}

// Every example payload of these events reads without being called malformed.
func TestEveryExamplePayloadReads(t *testing.T) {
	t.Parallel()
	wanted := func(event string) bool {
		return slices.Contains([]string{"issues", "issue_comment", "pull_request", "pull_request_review", "ping"}, event) ||
			strings.HasPrefix(event, "check_") || strings.HasPrefix(event, "workflow_") || strings.HasPrefix(event, "installation")
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(npmFile(t, "webhooks-examples", "package.json"))), "webhooks-examples", "*", "index.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	read := map[string]int{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var events []struct {
			Name     string
			Examples []json.RawMessage
		}
		if err := json.Unmarshal(data, &events); err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			for i, body := range e.Examples {
				if !wanted(e.Name) {
					continue
				}
				read[e.Name]++
				name := fmt.Sprintf("%s %s %d", filepath.Base(filepath.Dir(file)), e.Name, i)
				if err := reads(e.Name, body); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	}
	t.Logf("read %v", read)
	for _, event := range []string{"issues", "issue_comment", "pull_request", "pull_request_review", "check_run", "check_suite", "workflow_run", "workflow_job", "installation", "ping"} {
		if read[event] == 0 {
			t.Errorf("there was no example of %s", event)
		}
	}
	// Control: a body that is cut off does not read.
	if reads("issues", json.RawMessage(`{"action":"labeled","issue":{"number":`)) == nil {
		t.Error("a broken body reads: this test proves nothing")
	}
}

// reads is nil when the payload gives a trigger or says why it is ignored. The dispatches among the
// examples are of other people's workflows: they read, and then lack our input.
func reads(event string, body []byte) error {
	_, err := trigger.ParseGitHub(event, body, trigger.Options{Label: "proctor", Prefix: "/proctor"})
	var ignored *trigger.Ignored
	if errors.As(err, &ignored) || event == "workflow_dispatch" && errors.Is(err, trigger.ErrNoIssue) {
		return nil
	}
	return err
}

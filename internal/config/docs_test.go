package config_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/config"
	"github.com/proctor-ci/proctor/internal/config/configtest"
)

var update = flag.Bool("update", false, "write the generated documents")

func TestDocsAreGenerated(t *testing.T) {
	t.Parallel()
	docs := filepath.Join("..", "..", "docs")
	for name, want := range map[string][]byte{"configuration.md": config.Reference(), "proctor.schema.json": config.Schema()} {
		path := filepath.Join(docs, name)
		if *update {
			if err := os.MkdirAll(docs, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		got, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("docs/%s differs from the schema (%v); run: go generate ./internal/config", name, err)
		}
	}
}

// INV-55: every documented example loads.
func TestDocumentedExamplesLoad(t *testing.T) {
	t.Parallel()
	if n := configtest.CheckDocs(t, os.DirFS(filepath.Join("..", ".."))); n == 0 {
		t.Error("no example found: the search is broken")
	}
}

func TestExamplesAreFoundByTheirFirstLine(t *testing.T) {
	t.Parallel()
	md := "```yaml\n# .github/proctor.yml\nfix: {max_rounds: 1}\n```\n\n```yaml\non: push\n```\n\n- x\n\n  ```yml\n  version: 1\n  ```\n"
	var got []string
	for _, e := range configtest.Examples("a.md", []byte(md)) {
		got = append(got, string(e.YAML))
	}
	if len(got) != 2 || got[1] != "version: 1\n" {
		t.Errorf("found %q", got)
	}
}

func TestTheJSONSchemaKnowsEveryKey(t *testing.T) {
	t.Parallel()
	var root map[string]any
	if err := json.Unmarshal(config.Schema(), &root); err != nil {
		t.Fatal(err)
	}
	for _, path := range config.Keys() {
		node := root
		for part := range strings.SplitSeq(path, ".") {
			if either, ok := node["anyOf"].([]any); ok {
				node = either[0].(map[string]any)
			}
			properties, _ := node["properties"].(map[string]any)
			next, ok := properties[part].(map[string]any)
			if !ok {
				t.Fatalf("%s is not in the schema", path)
			}
			node = next
		}
		if node["description"] == "" {
			t.Errorf("%s has no description", path)
		}
	}
}

func TestExplainKnowsEveryKeyAndSuggests(t *testing.T) {
	t.Parallel()
	for _, path := range append(config.Keys(), "") {
		if text, err := config.Explain(path); err != nil || text == "" {
			t.Errorf("%q: %v", path, err)
		}
	}
	text, err := config.Explain("stops.max_cost_usd")
	if err != nil || !strings.Contains(text, "default  5\n") {
		t.Errorf("got %q, %v", text, err)
	}
	if _, err := config.Explain("stops.max_cost"); err == nil || !strings.Contains(err.Error(), `did you mean "max_cost_usd"?`) {
		t.Errorf("got %v", err)
	}
}

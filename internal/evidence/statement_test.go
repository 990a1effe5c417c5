package evidence

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// statementSchema is the shape of in-toto's Statement v1 (github.com/in-toto/attestation, spec/v1).
func statementSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	f, err := os.Open("testdata/statement-v1.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	doc, err := jsonschema.UnmarshalJSON(f)
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("statement.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("statement.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func conformsToStatement(t *testing.T, s *jsonschema.Schema, text string) error {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(v)
}

// written is a directory with a record and its statement.
func written(t *testing.T, r Record) (dir string, out Record) {
	t.Helper()
	dir = t.TempDir()
	out, err := Write(dir, r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if made, err := WriteStatement(dir, out); err != nil || !made {
		t.Fatalf("statement: %v, %v", made, err)
	}
	return dir, out
}

func TestStatementsHaveTheShapeOfInTotoV1(t *testing.T) {
	t.Parallel()
	schema := statementSchema(t)
	alone := sample()
	alone.Trigger.Repo, alone.Trigger.Forge = "", "local"
	for name, r := range map[string]Record{"done": sample(), "local": alone, "overfit": ended(t, Overfit)} {
		dir, _ := written(t, r)
		text, err := os.ReadFile(filepath.Join(dir, StatementFile))
		if err != nil {
			t.Fatal(err)
		}
		if err := conformsToStatement(t, schema, string(text)); err != nil {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
		for _, spoil := range [][2]string{
			{"in-toto.io/Statement/v1", "in-toto.io/Statement/v0.1"}, {`"gitCommit": "`, `"gitCommit": "X`}, {`"gitTree"`, `"tree"`},
			{`"subject": [`, `"subject": [], "more": [`}, {"/run/v1", "/run"},
		} {
			if err := conformsToStatement(t, schema, strings.Replace(string(text), spoil[0], spoil[1], 1)); err == nil {
				t.Errorf("%s: %s for %s passes", name, spoil[1], spoil[0])
			}
		}
	}
}

func TestOnlyADoneRunIsStatedAsProved(t *testing.T) {
	t.Parallel()
	for _, term := range Terminals() {
		r := sample()
		if term.Name != Done {
			r = ended(t, term.Name)
		}
		if r.Head == nil {
			continue
		}
		if s := newStatement(r, hexid("a", 64)); s.Predicate.Proved != (term.Name == Done) || s.Predicate.Verdict != term.Name {
			t.Errorf("%s is stated as %q, proved %v", term.Name, s.Predicate.Verdict, s.Predicate.Proved)
		}
	}
}

func TestARunWithoutACommitMakesNoStatement(t *testing.T) {
	t.Parallel()
	r := sample()
	r.Head = nil
	if made, err := WriteStatement(t.TempDir(), r); made || err != nil {
		t.Errorf("%v, %v", made, err)
	}
	if _, err := ReadStatement(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestAStatementBindsTheRecordToItsCommit(t *testing.T) {
	t.Parallel()
	dir, r := written(t, sample())
	file := filepath.Join(dir, RecordFile)
	s, err := ReadStatement(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Binds(file, r); err != nil {
		t.Fatalf("the control does not bind: %v", err)
	}
	other := r
	other.Head = commit("9")
	if err := s.Binds(file, other); err == nil || !strings.Contains(err.Error(), "subject") {
		t.Errorf("another commit: %v", err)
	}
	twice := s
	twice.Subject = append(twice.Subject, Subject{"x", map[string]string{"gitCommit": hexid("9", 40)}})
	if err := twice.Binds(file, r); err == nil {
		t.Error("two commits bind")
	}
	foreign := s
	foreign.PredicateType = "https://example.com/other/v1"
	if err := foreign.Binds(file, r); err == nil {
		t.Error("another predicate binds")
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(b), "maria", "mario", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Binds(file, r); err == nil || !strings.Contains(err.Error(), "digest") {
		t.Errorf("an edited record: %v", err)
	}
	if !json.Valid(b) {
		t.Error("the record is no JSON")
	}
}

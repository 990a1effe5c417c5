package app

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/meter"
)

// pricesIn runs `proctor prices` in a directory.
func pricesIn(t *testing.T, dir string, args ...string) (int, string, string) {
	t.Helper()
	var out, errs bytes.Buffer
	code := CLI(context.Background(), Env{
		Args: append([]string{"prices"}, args...), Getenv: func(string) string { return "" }, Stdout: &out, Stderr: &errs, Dir: dir,
		Now: func() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) },
	})
	return code, out.String(), errs.String()
}

func TestPricesAreListedWithSourceAndDateAndTheConfigurationsWin(t *testing.T) {
	t.Parallel()
	code, text, _ := pricesIn(t, t.TempDir())
	if code != 0 {
		t.Fatal(code)
	}
	for _, want := range []string{"MODEL", "claude-opus-4-8", "2026-10-24", "stored copy of the vendor's price page", "budget.unpriced: allow", "above 200000 tokens"} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q:\n%s", want, text)
		}
	}
	for _, p := range meter.Embedded().Rows() {
		if !strings.Contains(text, p.Model) || !strings.Contains(text, p.Source) || p.Source == fromConfiguration {
			t.Errorf("%s is not listed with its source", p.Model)
		}
	}

	dir := t.TempDir()
	if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if err := os.MkdirAll(filepath.Join(dir, ".github"), 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, ".github/proctor.yml")
	if err := os.WriteFile(file, []byte("version: 1\nbudget: {price: {claude-opus-4-8: {input: 1, output: 2}, mine: {input: 0.5, output: 1.5}}}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	code, text, errs := pricesIn(t, dir, "--json")
	var table struct {
		Unit   string
		Prices []struct {
			Model, Source, Date string
			Input, Output       json.Number
		}
	}
	if err := json.Unmarshal([]byte(text), &table); err != nil || code != 0 {
		t.Fatalf("%v %s %s", err, text, errs)
	}
	found := map[string]string{}
	for _, p := range table.Prices {
		found[p.Model] = strings.Join([]string{p.Input.String(), p.Output.String(), p.Source, p.Date}, " ")
	}
	if len(table.Prices) != len(meter.Embedded().Rows())+1 || found["mine"] != "0.5 1.5 configuration 2026-11-30" || found["claude-opus-4-8"] != "1 2 configuration 2026-11-30" {
		t.Errorf("%v", found)
	}

	if err := os.WriteFile(file, []byte("version: 1\nbudget: {prices: {}}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := pricesIn(t, dir); code != exitUsage || !strings.Contains(errs, "budget.prices") {
		t.Errorf("a wrong configuration: %d %s", code, errs)
	}
}

package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/trigger"
	"github.com/proctor-ci/proctor/internal/webhook"
	"github.com/proctor-ci/proctor/internal/webhook/bolt"
)

func TestWhatWasSetAsideIsListedAndPutBack(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "webhook.db")
	f, err := bolt.Open(path, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	m := webhook.Message{Version: 1, Delivery: "d1", Event: "issues", Trigger: trigger.Trigger{Repo: trigger.Repo{Owner: "octo", Name: "shop"}, Issue: trigger.Issue{Number: 3}}}
	if err := f.Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	taken, err := f.Take(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Aside(t.Context(), taken, "it failed for three days"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	say := func(args ...string) (string, int) {
		t.Helper()
		var out bytes.Buffer
		code := run(context.Background(), args, settings("PROCTOR_STORE", path), &out, &out)
		return out.String(), code
	}
	for _, c := range []struct{ arg, want string }{
		{"list", `"delivery":"d1","event":"issues","issue":3,"repo":"octo/shop","why":"it failed for three days"`},
		{"requeue", "1 messages are in the queue again"}, {"list", ""},
	} {
		out, code := say("-set-aside", c.arg)
		if code != exitOK || !strings.Contains(out, c.want) || c.want == "" && out != "" {
			t.Errorf("%s: exit %d, %q, want %q", c.arg, code, out, c.want)
		}
	}
	if out, code := say("-set-aside", "drop"); code != exitFailed || !strings.Contains(out, "list, or requeue") {
		t.Errorf("exit %d, %q", code, out)
	}
	var out bytes.Buffer
	if code := run(context.Background(), []string{"-set-aside", "list"}, settings(), &out, &out); code != exitFailed || !strings.Contains(out.String(), "PROCTOR_STORE is not set") {
		t.Errorf("without a file: %s", out.String())
	}
}

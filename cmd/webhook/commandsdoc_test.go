package main

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

//go:generate go test -run TestTheCommandReferenceHasTheHelp -update .

var update = flag.Bool("update", false, "write the webhook's part of docs/commands.md")

const commandsPage = "../../docs/commands.md"

// TestTheCommandReferenceHasTheHelp: a flag, a default or a variable that changes changes the page too.
func TestTheCommandReferenceHasTheHelp(t *testing.T) {
	t.Parallel()
	var help bytes.Buffer
	if code := run(t.Context(), []string{"-h"}, func(string) string { return "" }, &help, &help); code != exitOK {
		t.Fatalf("webhook -h ends with %d", code)
	}
	b, err := os.ReadFile(commandsPage)
	if err != nil {
		t.Fatal(err)
	}
	part := regexp.MustCompile(`(?s)(<!-- generated: webhook -->\n).*?(<!-- end -->)`)
	if !part.Match(b) {
		t.Fatal("docs/commands.md has no part for the webhook")
	}
	want := part.ReplaceAllStringFunc(string(b), func(old string) string {
		m := part.FindStringSubmatch(old)
		return m[1] + "\n```text\n" + strings.TrimSpace(strings.ReplaceAll(help.String(), "\t", "    ")) + "\n```\n\n" + m[2]
	})
	if *update {
		if err := os.WriteFile(commandsPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(b) {
		t.Error("docs/commands.md has another help of the webhook. Next: go generate ./cmd/webhook")
	}
	for _, v := range variables() {
		if !strings.Contains(want, v.name) {
			t.Errorf("the page does not name %s", v.name)
		}
	}
}

var typed = regexp.MustCompile("(?m)(?:^    |`)(?:bin/)?webhook (-[^`#\n]*)")

// What a page tells people to type has to be taken, as the command line's is in internal/app.
func TestEveryCommandOfTheWebhookInTheDocsIsTaken(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	taken := func(args string) bool {
		var f flags
		fs := f.set()
		fs.SetOutput(io.Discard)
		err := fs.Parse(strings.Fields(args))
		return (err == nil || errors.Is(err, flag.ErrHelp)) && fs.NArg() == 0
	}
	read := 0
	for _, page := range append(pages, "../../README.md") {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range typed.FindAllStringSubmatch(string(b), -1) {
			if read++; !taken(m[1]) {
				t.Errorf("%s: webhook %s is not taken", filepath.Base(page), m[1])
			}
		}
	}
	if read < 6 {
		t.Errorf("only %d commands were read", read)
	}
	for _, bad := range []string{"-lissten 127.0.0.1:80", "-check now"} {
		if taken(bad) {
			t.Errorf("the control %q is taken", bad)
		}
	}
}

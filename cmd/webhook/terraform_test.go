package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTheTerraformModuleKnowsTheVariables: a secret that the module took for a setting would lie in Terraform's state.
func TestTheTerraformModuleKnowsTheVariables(t *testing.T) {
	t.Parallel()
	// The module sets the first three itself, Lambda the rest; a file is of no use there.
	const notHere = "GITHUB_APP_KMS_KEY PROCTOR_TABLE PROCTOR_QUEUE_URL PROCTOR_STORE AWS_REGION AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AWS_ENDPOINT_URL"
	want := map[string][]string{}
	for _, v := range variables() {
		switch {
		case slices.Contains(strings.Fields(notHere), v.name):
		case strings.Contains(v.help, "(also _FILE)"):
			want["secrets"] = append(want["secrets"], v.name)
		default:
			want["settings"] = append(want["settings"], v.name)
		}
	}
	const names = "../../terraform/names.tf"
	b, err := os.ReadFile(names)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, list := range regexp.MustCompile(`(?s)(\w+) = \[(.*?)\]`).FindAllStringSubmatch(string(b), -1) {
		for _, name := range regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(list[2], -1) {
			got[list[1]] = append(got[list[1]], name[1])
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("terraform/names.tf differs from webhook -h (-help +module). Next: put the names there, in this order\n%s", d)
	}
}

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/policy"
)

// variable is one documented environment variable.
type variable struct{ name, help string }

// variables are all that is read, in the order of the help. A secret can also come from a file: NAME_FILE.
func variables() []variable {
	return []variable{
		{"PROCTOR_WEBHOOK_SECRET", "GitHub webhook secret, 16 bytes or more (also _FILE)"},
		{"PROCTOR_WEBHOOK_SECRET_PREVIOUS", "the one before, during a rotation (also _FILE)"},
		{"PROCTOR_GITLAB_WEBHOOK_TOKEN", "GitLab secret token, 10 bytes or more (also _FILE)"},
		{"PROCTOR_GITLAB_WEBHOOK_TOKEN_PREVIOUS", "the one before, during a rotation (also _FILE)"},
		{"PROCTOR_GITLAB_SIGNING_TOKEN", "GitLab signing token, whsec_… (also _FILE)"},
		{"GITHUB_APP_ID", "id of the GitHub App that starts runs"},
		{"GITHUB_APP_PRIVATE_KEY", "its private key: PEM, with \\n for line ends, or base64 (also _FILE)"},
		{"GITHUB_APP_KMS_KEY", "id, ARN or alias of that key in AWS KMS, which it never leaves; instead of GITHUB_APP_PRIVATE_KEY"},
		{"GITHUB_TOKEN", "a token instead of an App, for one owner's repositories (also _FILE)"},
		{"GITHUB_API_URL", "https://HOST/api/v3 for Enterprise Server; default https://api.github.com"},
		{"GITLAB_TOKEN", "GitLab access token with the api scope (also _FILE)"},
		{"GITLAB_URL", "https://HOST for self-managed GitLab; default https://gitlab.com"},
		{"GITLAB_TRIGGER_TOKEN", "starts GitLab pipelines instead of GITLAB_TOKEN (also _FILE)"},
		{"GITLAB_LENDER_TOKEN", "a Maintainer's token with the api scope that makes the tokens of runs on GitLab, see PROCTOR_TOKEN_AUDIENCE (also _FILE)"},
		{"PROCTOR_REPOS", "repositories that are served, comma-separated globs: octo/*; default all that the secret covers"},
		{"PROCTOR_LABEL", "trigger label; default proctor"},
		{"PROCTOR_COMMANDS", "prefix of comment commands; default /proctor"},
		{"PROCTOR_WORKFLOW", "workflow file to start; default proctor.yml"},
		{"PROCTOR_BRANCHES", "how branches of runs begin; default proctor/"},
		{"PROCTOR_ROLES", "roles that may ask, comma-separated; default admin,maintain,write"},
		{"PROCTOR_BOTS", "account ids of bots that may ask, comma-separated"},
		{"PROCTOR_ACTOR_PER_HOUR", "runs that one account may ask for in an hour, in all repositories; default 100, 0 for any number"},
		{"PROCTOR_REPO_PER_HOUR", "runs that may be asked for in one repository in an hour; default 300, 0 for any number"},
		{"PROCTOR_CHECK_FAILURES", "true: CI that fails on a branch of a run starts a round, where the repository sets fix.on_check_failure; default false"},
		{"PROCTOR_TOKEN_AUDIENCE", "turns POST /token on: runs exchange their job's identity, asked for this audience, for a token of the App's or of the GitLab project"},
		{"PROCTOR_TOKEN_ENVIRONMENT", "environment that such a job has to run in; default any"},
		{"PROCTOR_OIDC_ISSUER", "who signs jobs' identities; default https://token.actions.githubusercontent.com"},
		{"PROCTOR_STORE", "file that keeps claims and deliveries across restarts; default memory"},
		{"PROCTOR_TABLE", "DynamoDB table that keeps claims, instead of a file"},
		{"PROCTOR_QUEUE_URL", "SQS queue between the answer and the work"},
		{"AWS_REGION", "of table, queue and parameters; Lambda sets it and the three below"},
		{"AWS_ACCESS_KEY_ID", "credentials for them"},
		{"AWS_SECRET_ACCESS_KEY", "credentials for them"},
		{"AWS_SESSION_TOKEN", "credentials for them"},
		{"AWS_ENDPOINT_URL", "one address instead of AWS's own"},
		{"PROCTOR_SELF", "login of the account the runs act as, for example my-app[bot]"},
	}
}

// strangers are variables that look like the webhook's own and are not: a PROCTOR_REPO would leave every repository served.
func strangers(environ []string) []string {
	var out []string
	for _, line := range environ {
		name, _, _ := strings.Cut(line, "=")
		own := strings.TrimSuffix(strings.TrimSuffix(name, "_FILE"), "_PARAMETER")
		if strings.HasPrefix(name, "PROCTOR_") && !slices.ContainsFunc(variables(), func(v variable) bool { return v.name == own }) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func usage(w io.Writer, fs *flag.FlagSet) {
	fmt.Fprint(w, "webhook starts a run for every label that asks for one. It serves HTTP, or Lambda events when AWS starts it.\n\nusage: webhook [-listen ADDRESS] [-check] [-set-aside list|requeue]\n\n")
	fs.PrintDefaults()
	fmt.Fprint(w, "\nenvironment (what can come from a file, NAME_FILE, can also come from the SSM parameter that NAME_PARAMETER names):\n")
	for _, v := range variables() {
		fmt.Fprintf(w, "  %-38s %s\n", v.name, v.help)
	}
}

// env reads the environment; both functions are injected.
type env struct {
	getenv   func(string) string
	readFile func(string) ([]byte, error)
	// parameters are the values of SSM parameters, by the variable that each stands for.
	parameters map[string]string
}

// secret reads NAME, the file NAME_FILE names or the parameter NAME_PARAMETER names. White space around it was pasted along, and goes.
func (e env) secret(name string) (string, error) {
	v, file := e.getenv(name), e.getenv(name+"_FILE")
	stored, fromStore := e.parameters[name]
	switch {
	case fromStore && v+file != "":
		return "", fmt.Errorf("%s is set twice, by %s_PARAMETER too: unset one", name, name)
	case fromStore && strings.TrimSpace(stored) == "":
		return "", fmt.Errorf("%s_PARAMETER: the parameter is blank: store the secret in it", name)
	case fromStore:
		v = stored
	case v != "" && file != "":
		return "", fmt.Errorf("%s and %s_FILE are both set: unset one", name, name)
	case file != "":
		b, err := e.readFile(file)
		if err != nil {
			return "", fmt.Errorf("%s_FILE: %w: check the path and that this account may read it", name, err)
		}
		if v = string(b); strings.TrimSpace(v) == "" {
			return "", fmt.Errorf("%s_FILE: the file is empty: write the secret into it", name)
		}
	case v != "" && strings.TrimSpace(v) == "":
		return "", fmt.Errorf("%s is blank: set the secret you entered at the forge, or unset it", name)
	}
	return strings.TrimSpace(v), nil
}

// secrets reads several and leaves out what is not set.
func (e env) secrets(names ...string) ([]string, error) {
	var out []string
	for _, n := range names {
		s, err := e.secret(n)
		if err != nil {
			return nil, err
		}
		if s != "" {
			out = append(out, s)
		}
	}
	return out, nil
}

func (e env) list(name string) []string {
	var out []string
	for _, s := range strings.Split(e.getenv(name), ",") {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}

func (e env) roles() ([]forge.Role, error) {
	known := []forge.Role{forge.RoleAdmin, forge.RoleMaintain, forge.RoleWrite, forge.RoleTriage, forge.RoleRead}
	names := e.list("PROCTOR_ROLES")
	if len(names) == 0 {
		return policy.DefaultRoles(), nil
	}
	var out []forge.Role
	for _, n := range names {
		if !slices.Contains(known, forge.Role(n)) {
			return nil, fmt.Errorf("PROCTOR_ROLES: %q is no role: choose from admin, maintain, write, triage, read", n)
		}
		out = append(out, forge.Role(n))
	}
	return out, nil
}

func (e env) bots() ([]int64, error) {
	var out []int64
	for _, s := range e.list("PROCTOR_BOTS") {
		id, err := strconv.ParseInt(s, 10, 64)
		if err != nil || id <= 0 {
			return nil, fmt.Errorf("PROCTOR_BOTS: %q is no account id: logins can be taken by others, so look the number up at https://api.github.com/users/LOGIN", s)
		}
		out = append(out, id)
	}
	return out, nil
}

// rate reads a number of runs in an hour.
func (e env) rate(name string, otherwise int) (int, error) {
	v := strings.TrimSpace(e.getenv(name))
	if v == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s: %q is no number of runs: write a whole number, 0 for any number", name, v)
	}
	return n, nil
}

// flag reads a switch that is off by default.
func (e env) flag(name string) (bool, error) {
	switch v := strings.TrimSpace(e.getenv(name)); v {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	default:
		return false, fmt.Errorf("%s: %q is neither true nor false: write one of them, or unset it", name, v)
	}
}

func (e env) appID() (int64, error) {
	v := strings.TrimSpace(e.getenv("GITHUB_APP_ID"))
	if v == "" {
		return 0, nil
	}
	id, err := strconv.ParseInt(v, 10, 64)
	if err != nil || id <= 0 {
		return 0, errors.New("GITHUB_APP_ID is no positive number: it is the App ID on the App's settings page, not the client id")
	}
	return id, nil
}

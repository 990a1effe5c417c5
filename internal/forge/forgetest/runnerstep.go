package forgetest

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/goccy/go-yaml"
)

// checkout is actions/checkout: depth 1 unless told otherwise, a detached HEAD, and the credential in
// .git/config unless told otherwise.
func (jr *jobRun) checkout(ctx context.Context, s step) (int, error) {
	with, err := expandMap(s.With, jr.scope)
	if err != nil {
		return 0, err
	}
	dir := filepath.Join(jr.res.Workspace, filepath.FromSlash(with["path"]))
	if !strings.HasPrefix(dir+"/", jr.res.Workspace+"/") {
		return 0, fmt.Errorf("checkout: path %q is outside the workspace", with["path"])
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, err
	}
	g := jr.GitHub
	url := g.URL() + "/" + g.Owner() + "/" + g.Repo()
	header := "AUTHORIZATION: basic " + base64.StdEncoding.EncodeToString([]byte("x-access-token:"+or(with["token"], jr.token)))
	jr.log.mask(strings.TrimPrefix(header, "AUTHORIZATION: basic "))
	extra := "http." + g.URL() + "/.extraheader"
	want := or(with["ref"], jr.run.SHA)
	fetch := []string{"fetch", "-q", "--no-tags"}
	if d := or(with["fetch-depth"], "1"); d != "0" {
		fetch = append(fetch, "--depth="+d)
	}
	for _, args := range [][]string{
		{"init", "-q", "."}, {"remote", "add", "origin", url}, {"config", "--local", "gc.auto", "0"},
		{"config", "--local", extra, header}, append(fetch, "origin", want), {"checkout", "-q", "--detach", "FETCH_HEAD"},
	} {
		if _, err := git(ctx, dir, args...); err != nil {
			fmt.Fprintln(jr.log, jr.log.hide(err.Error()))
			return 1, nil
		}
	}
	if with["persist-credentials"] == "false" {
		if _, err := git(ctx, dir, "config", "--local", "--unset-all", extra); err != nil {
			return 1, err
		}
	}
	id, err := git(ctx, dir, "rev-parse", "HEAD")
	fmt.Fprintf(jr.log, "HEAD is now at %s\n", id)
	return 0, err
}

// upload is actions/upload-artifact: it copies what `path:` names below Dir.
func (jr *jobRun) upload(s step) (int, error) {
	with, err := expandMap(s.With, jr.scope)
	if err != nil {
		return 0, err
	}
	name := or(filepath.Base(with["name"]), "artifact")
	if there, err := jr.artifact(name); err != nil {
		return 0, err
	} else if there != "" {
		fmt.Fprintf(jr.log, "##[error]Failed to CreateArtifact: (409) Conflict: an artifact with this name already exists on the workflow run: %s\n", name)
		return 1, nil
	}
	to := filepath.Join(jr.dir, "artifacts", name)
	n := 0
	for line := range strings.Lines(with["path"]) {
		p := strings.TrimSpace(line)
		if p == "" {
			continue
		}
		if !filepath.IsAbs(p) {
			p = filepath.Join(jr.res.Workspace, p)
		}
		found, err := filepath.Glob(p)
		if err != nil {
			return 0, fmt.Errorf("upload-artifact: path %q: %w", p, err)
		}
		for _, f := range found {
			into := filepath.Join(to, filepath.Base(f))
			if info, err := os.Stat(f); err == nil && info.IsDir() && strings.TrimSpace(with["path"]) == p {
				into = to // of one directory the content is the artifact
			}
			if err := copyTree(f, into); err != nil {
				return 0, fmt.Errorf("upload-artifact: %w", err)
			}
			n++
		}
	}
	if n == 0 && with["if-no-files-found"] == "error" {
		fmt.Fprintln(jr.log, "##[error]No files were found with the provided path.")
		return 1, nil
	}
	return 0, nil
}

// artifact is where an artifact of this run lies, whichever job made it; "" for nowhere.
func (jr *jobRun) artifact(name string) (string, error) {
	found, err := filepath.Glob(filepath.Join(jr.Dir, fmt.Sprintf("run-%d-*", jr.run.ID), "artifacts", name))
	if err != nil || len(found) == 0 {
		return "", err
	}
	return found[0], nil
}

// download is actions/download-artifact with a name: what a job of this run uploaded, into `path:`.
func (jr *jobRun) download(s step) (int, error) {
	with, err := expandMap(s.With, jr.scope)
	if err != nil {
		return 0, err
	}
	from, err := jr.artifact(with["name"])
	if err != nil {
		return 0, err
	}
	if from == "" || with["name"] == "" {
		fmt.Fprintf(jr.log, "##[error]Unable to download artifact(s): Artifact not found for name: %s\n", with["name"])
		return 1, nil
	}
	to := with["path"]
	if !filepath.IsAbs(to) {
		to = filepath.Join(jr.res.Workspace, to)
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return 0, err
	}
	if err := copyTree(from, to); err != nil {
		return 0, fmt.Errorf("download-artifact: %w", err)
	}
	return 0, nil
}

func copyTree(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return copyFS(to, os.DirFS(from))
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o644)
}

// script is a `run:` step: bash with the runner's own flags.
func (jr *jobRun) script(ctx context.Context, i int, s step, env map[string]string) (int, error) {
	body, err := expand(s.Run, jr.scope)
	if err != nil {
		return 0, err
	}
	file := filepath.Join(jr.res.Temp, fmt.Sprintf("step-%d.sh", i))
	if err := os.WriteFile(file, []byte(body), 0o644); err != nil {
		return 0, err
	}
	return jr.process(ctx, i, s, env, "bash", "--noprofile", "--norc", "-e", "-o", "pipefail", file)
}

// metadata is the part of action.yml that decides how an action is started.
type metadata struct {
	Inputs map[string]struct {
		Default  any
		Required bool
	}
	Runs struct {
		Using string
		Args  []string
		Env   map[string]any
	}
}

// action starts the action's program with its inputs.
func (jr *jobRun) action(ctx context.Context, i int, s step, a Action, env map[string]string) (int, error) {
	var m metadata
	if err := yaml.Unmarshal(a.Metadata, &m); err != nil {
		return 0, fmt.Errorf("read action.yml of %s: %w", a.Uses, err)
	}
	with, err := expandMap(s.With, jr.scope)
	if err != nil {
		return 0, err
	}
	inputs := map[string]any{}
	for name, in := range m.Inputs {
		value, err := expand(yamlText(in.Default), jr.scope)
		if err != nil {
			return 0, fmt.Errorf("default of input %s: %w", name, err)
		}
		inputs[name] = value
	}
	for name, value := range with {
		if _, ok := inputs[name]; !ok {
			fmt.Fprintf(jr.log, "##[warning]Unexpected input(s) '%s', valid inputs are %q\n", name, slices.Sorted(maps.Keys(m.Inputs)))
		}
		inputs[name] = value
	}
	for name, value := range inputs {
		env["INPUT_"+strings.ToUpper(strings.ReplaceAll(name, " ", "_"))] = value.(string)
	}
	env["GITHUB_ACTION"], env["GITHUB_ACTION_REPOSITORY"] = or(s.ID, "__run"), a.Uses
	maps.Copy(env, a.Env)
	sc := scope{status: jr.scope.status, contexts: maps.Clone(jr.scope.contexts)}
	sc.contexts["inputs"] = inputs
	runsEnv, err := expandMap(m.Runs.Env, sc)
	if err != nil {
		return 0, err
	}
	maps.Copy(env, runsEnv)
	var args []string
	for _, arg := range m.Runs.Args {
		v, err := expand(arg, sc)
		if err != nil {
			return 0, err
		}
		args = append(args, v)
	}
	return jr.process(ctx, i, s, env, a.Binary, args...)
}

// process starts a program in the workspace with exactly env, and stops it as a cancel does when ctx ends.
func (jr *jobRun) process(ctx context.Context, i int, s step, env map[string]string, name string, args ...string) (int, error) {
	files, err := jr.newCommandFiles(i)
	if err != nil {
		return 0, err
	}
	files.addTo(env)
	if name == "bash" { // found by the job's PATH, not by ours
		if name, err = lookPath("bash", env["PATH"]); err != nil {
			return 0, err
		}
	}
	p := process{name: name, args: args, env: env, log: jr.log, after: jr.after,
		dir:  filepath.Join(jr.res.Workspace, filepath.FromSlash(s.WorkingDirectory)),
		stop: []signalStep{{syscall.SIGINT, afterInterrupt}, {syscall.SIGTERM, afterTerminate}}}
	code, err := p.run(ctx)
	if err != nil {
		return 0, err
	}
	if err := jr.collect(s, files); err != nil {
		fmt.Fprintf(jr.log, "##[error]%v\n", err)
		return max(code, 1), nil
	}
	return code, nil
}

func lookPath(name, path string) (string, error) {
	for _, dir := range filepath.SplitList(path) {
		p := filepath.Join(dir, name)
		if info, err := os.Stat(p); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return p, nil
		}
	}
	return "", fmt.Errorf("find %s: it is not in the job's PATH %s", name, path)
}

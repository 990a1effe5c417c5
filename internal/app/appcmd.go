package app

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/proctor-ci/proctor/internal/manifest"
)

// appTime is how long a code of the forge's is good.
const appTime = time.Hour

func appCommand(env Env) *cobra.Command {
	c := &cobra.Command{Use: "app", Short: "The GitHub App that the webhook works as"}
	var w manifest.Wanted
	var out string
	create := &cobra.Command{
		Use:   "create",
		Short: "Make the GitHub App: a page on this machine leads to GitHub, and what comes back is stored",
		Long: `Create serves a page on 127.0.0.1, prints its address and waits until you have confirmed the App on GitHub. The App gets the least that the
webhook needs. Its id, its private key and its webhook secret are written to files that only you can read; none of them is printed.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return createApp(cmd.Context(), env, w, out) },
	}
	f := create.Flags()
	f.StringVar(&w.Hook, "webhook-url", "", "where the webhook hears deliveries, such as https://hooks.example.com/github")
	f.StringVar(&w.Org, "org", "", "organisation that owns the App (default: your own account)")
	f.StringVar(&w.Name, "name", "", "name of the App (default: GitHub asks for it)")
	f.BoolVar(&w.Tokens, "tokens", false, "let runs get their tokens from it: contents and pull requests, read and write")
	f.StringVar(&out, "out", "proctor-app", "new directory for id, key and secret, outside of a repository")
	f.StringVar(&w.Server, "server", "https://github.com", "GitHub's address, or an Enterprise Server's")
	f.StringVar(&w.API, "api", "", "address of the API (default: the server's own)")
	c.AddCommand(create)
	return c
}

func createApp(ctx context.Context, env Env, w manifest.Wanted, out string) error {
	if w.Hook == "" {
		return errors.New("--webhook-url is missing. Next: give the address at which the webhook hears GitHub, such as https://hooks.example.com/github")
	}
	w.API = first(w.API, forgeAPI(w.Server))
	if err := w.Validate(); err != nil {
		return err
	}
	store, err := openAppStore(absolute(env.Dir, out))
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		store.abandon()
		return fmt.Errorf("listen on 127.0.0.1: %w", err)
	}
	desk := manifest.New(w, l.Addr(), func() string { var b [16]byte; env.random(b[:]); return hex.EncodeToString(b[:]) }, store.keep)
	srv := &http.Server{Handler: desk, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = srv.Serve(l) }() // it ends with the shutdown below
	fmt.Fprintf(env.Stdout, "open %s in a browser on this machine and confirm the App there\n", desk.Address())
	ctx, cancel := context.WithTimeout(ctx, appTime)
	defer cancel()
	app, err := desk.Wait(ctx)
	bye, done := until(ctx, 2*time.Second)
	defer done()
	_ = srv.Shutdown(bye) // the last page is out, or its reader is gone
	if err != nil {
		store.abandon()
		return err
	}
	store.tell(env, app)
	return nil
}

// forgeAPI is where a server has its API.
func forgeAPI(server string) string {
	if server = strings.TrimRight(server, "/"); server == "https://github.com" {
		return "https://api.github.com"
	}
	return server + "/api/v3"
}

func absolute(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// appStore is a new directory with three files in it, made before the forge is asked: what it gives, it gives once.
type appStore struct{ dir string }

const (
	appIDFile  = "app-id"
	appKeyFile = "private-key.pem"
	hookFile   = "webhook-secret"
)

func openAppStore(dir string) (appStore, error) {
	for d := filepath.Dir(dir); ; d = filepath.Dir(d) {
		if _, err := os.Lstat(filepath.Join(d, ".git")); err == nil {
			return appStore{}, fmt.Errorf("--out %s lies in the repository %s, where a key is soon committed. Next: give a directory outside of it", dir, d)
		}
		if d == filepath.Dir(d) {
			break
		}
	}
	err := os.Mkdir(dir, 0o700)
	if errors.Is(err, os.ErrExist) {
		return appStore{}, fmt.Errorf("--out %s exists. Next: give a new directory; another App's key may lie in this one", dir)
	}
	if err != nil {
		return appStore{}, fmt.Errorf("make the directory for the key: %w. Next: give --out a directory that can be made", err)
	}
	s := appStore{dir}
	for _, name := range []string{appIDFile, appKeyFile, hookFile} {
		if err := os.WriteFile(s.path(name), nil, 0o600); err != nil {
			s.abandon()
			return s, fmt.Errorf("make the file for the %s: %w", name, err)
		}
	}
	return s, nil
}

func (s appStore) path(name string) string { return filepath.Join(s.dir, name) }

// keep writes what came back.
func (s appStore) keep(a manifest.App) error {
	for name, text := range map[string]string{appIDFile: fmt.Sprint(a.ID), appKeyFile: a.Key, hookFile: a.HookSecret} {
		if err := os.WriteFile(s.path(name), []byte(text), 0o600); err != nil {
			return fmt.Errorf("store the %s: %w. Next: make a new key and a new webhook secret on %s", name, err, a.Page)
		}
	}
	return nil
}

// abandon removes what nothing was written to.
func (s appStore) abandon() {
	if id, err := os.ReadFile(s.path(appIDFile)); err != nil || len(id) > 0 {
		return
	}
	for _, name := range []string{appIDFile, appKeyFile, hookFile} {
		_ = os.Remove(s.path(name)) // empty
	}
	_ = os.Remove(s.dir)
}

// tell says what to do next, by names and paths.
func (s appStore) tell(env Env, a manifest.App) {
	fmt.Fprintf(env.Stdout, `the App %d is there; its id, key and webhook secret lie in %s

install it:  %s/installations/new
the webhook on a server:
  GITHUB_APP_ID=%d
  GITHUB_APP_PRIVATE_KEY_FILE=%s
  PROCTOR_WEBHOOK_SECRET_FILE=%s
or on AWS, before the files are destroyed:
  aws ssm put-parameter --type SecureString --name /proctor/app-key --value file://%s
  aws ssm put-parameter --type SecureString --name /proctor/webhook-secret --value file://%s
`, a.ID, s.dir, a.Page, a.ID, s.path(appKeyFile), s.path(hookFile), s.path(appKeyFile), s.path(hookFile))
}

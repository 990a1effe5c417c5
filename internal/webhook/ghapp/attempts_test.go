package ghapp_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
	"github.com/proctor-ci/proctor/internal/webhook/ghapp"
)

func TestTheAppFindsWhatFailedAndHasItDeliveredAgain(t *testing.T) {
	t.Parallel()
	g, err := forgetest.NewGitHub(forgetest.Options{Dir: t.TempDir(), Installation: 34, Enterprise: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	g.InstallApp(12, 34, "proctor-ci", &key.PublicKey, map[string]string{"issues": "write"})
	var down atomic.Bool
	down.Store(true)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if down.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(hook.Close)
	g.SetHook(hook.URL, "a-secret-for-loopback-tests")
	g.AddUser("ann", "write")
	issue := g.OpenIssue("a", "b", "ann")
	// More than a page.
	for range 103 {
		if _, err := g.LabelIssue(issue, "proctor", "ann"); err != nil {
			t.Fatal(err)
		}
		if err := g.UnlabelIssue(issue, "proctor", "ann"); err != nil {
			t.Fatal(err)
		}
	}
	g.Settle()
	app, err := ghapp.New(ghapp.Config{BaseURL: g.APIURL(), AppID: 12, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	all, complete, err := app.Attempts(ctx, time.Now().Add(-time.Hour))
	if err != nil || !complete || len(all) < 103 || all[0].Delivered || all[0].Event != "issues" {
		t.Fatalf("%d attempts, complete %v, %v", len(all), complete, err)
	}
	down.Store(false)
	if err := app.Redeliver(ctx, all[len(all)-1].ID); err != nil {
		t.Fatal(err)
	}
	again, _, err := app.Attempts(ctx, time.Now().Add(-time.Hour))
	for tries := 0; err == nil && len(again) == len(all) && tries < 600; tries++ {
		time.Sleep(50 * time.Millisecond) // it comes when it comes
		again, _, err = app.Attempts(ctx, time.Now().Add(-time.Hour))
	}
	if err != nil || len(again) != len(all)+1 || !again[0].Delivered || again[0].Delivery != all[len(all)-1].Delivery {
		t.Errorf("%d attempts after %d, newest %+v, %v", len(again), len(all), again[0], err)
	}
	if some, _, err := app.Attempts(ctx, time.Now().Add(time.Hour)); err != nil || len(some) != 0 {
		t.Errorf("%d attempts of the future, %v", len(some), err)
	}
	stranger, err := ghapp.New(ghapp.Config{BaseURL: g.APIURL(), AppID: 13, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := stranger.Attempts(ctx, time.Now()); !errors.Is(err, forge.ErrNotFound) {
		t.Errorf("another App: %v", err)
	}
}

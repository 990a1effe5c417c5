package aws_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/webhook"
	"github.com/proctor-ci/proctor/internal/webhook/aws"
)

// service answers calls in turn and keeps what it was asked; an answer beyond the list repeats the last.
type service struct {
	mu      sync.Mutex
	answers []answer
	asked   []asked
}

type answer struct {
	status int
	body   string
}

type asked struct {
	op   string
	auth string
	body map[string]any
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	a := asked{op: r.Header.Get("X-Amz-Target"), auth: r.Header.Get("Authorization")}
	_ = json.Unmarshal(raw, &a.body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, a)
	say := s.answers[min(len(s.asked), len(s.answers))-1]
	w.WriteHeader(say.status)
	_, _ = io.WriteString(w, say.body)
}

func client(t *testing.T, answers ...answer) (*aws.Client, *service) {
	t.Helper()
	s := &service{answers: answers}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	c, err := aws.New(aws.Config{
		Region: "eu-central-1", KeyID: "AKIDSAMPLE", Secret: "of-no-account", Endpoint: srv.URL,
		Sleep: func(context.Context, time.Duration) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return c, s
}

func TestATransactionIsRepeatedUnderItsOwnToken(t *testing.T) {
	t.Parallel()
	c, s := client(t, answer{200, `{}`}, answer{500, `{"__type":"com.amazon#InternalServerError"}`}, answer{200, `{}`})
	got, err := aws.NewClaims(c, "claims", time.Now).Claim(context.Background(), webhook.Claim{ID: "a", Keys: []string{"k"}}, time.Minute)
	if err != nil || got.Attempt != 1 || len(s.asked) != 3 {
		t.Fatalf("%+v %v after %d calls", got, err, len(s.asked))
	}
	first, second := s.asked[1].body["ClientRequestToken"], s.asked[2].body["ClientRequestToken"]
	if first != second || first == "" {
		t.Errorf("tokens %v and %v, want one", first, second)
	}
	if !strings.Contains(s.asked[0].auth, "AKIDSAMPLE/") || !strings.Contains(s.asked[0].auth, "/eu-central-1/dynamodb/aws4_request") {
		t.Errorf("signed as %q", s.asked[0].auth)
	}
}

func TestAnAnswerIsNotAskedForTwice(t *testing.T) {
	t.Parallel()
	c, s := client(t, answer{400, `{"__type":"x#ResourceNotFoundException","message":"no table"}`})
	_, err := aws.NewClaims(c, "claims", time.Now).Find(context.Background(), []string{"k"})
	var e *aws.Error
	if !errors.As(err, &e) || e.Code != "ResourceNotFoundException" || len(s.asked) != 1 {
		t.Errorf("%v after %d calls, want one answer", err, len(s.asked))
	}
}

func TestContentionEndsWithAnError(t *testing.T) {
	t.Parallel()
	s := &service{answers: []answer{{200, `{}`}}}
	// Looks find nothing and writes are always too late.
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.Header.Get("X-Amz-Target"), "TransactWriteItems") {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"__type":"x#TransactionCanceledException"}`)
			return
		}
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	c, err := aws.New(aws.Config{Region: "r", KeyID: "k", Secret: "s", Endpoint: srv.URL, Sleep: func(context.Context, time.Duration) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := aws.NewClaims(c, "claims", time.Now).Claim(context.Background(), webhook.Claim{ID: "a"}, time.Minute); err == nil || errors.Is(err, webhook.ErrTaken) {
		t.Errorf("%v, want an error that says nothing about the claim", err)
	}
}

func TestWhatIsMissingIsNamed(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]aws.Config{
		"AWS_REGION":        {KeyID: "k", Secret: "s"},
		"AWS_ACCESS_KEY_ID": {Region: "r"},
		"AWS_ENDPOINT_URL":  {Region: "r", KeyID: "k", Secret: "s", Endpoint: "localhost"},
	} {
		if _, err := aws.New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

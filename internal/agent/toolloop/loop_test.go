package toolloop

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func file(t *testing.T, dir, name, content string) {
	t.Helper()
	p := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return "(" + err.Error() + ")"
	}
	return string(b)
}

func TestTheLoopReadsEditsAndRunsUntilTheModelIsDone(t *testing.T) {
	t.Parallel()
	everyAPI(t, func(t *testing.T, api API) {
		dir := t.TempDir()
		file(t, dir, "sum.txt", "one\ntwo\n")
		s := newStub(t,
			said{text: "I look.", calls: []call{use("c1", "read", `{"path":"sum.txt"}`)}},
			said{calls: []call{use("c2", "edit", `{"path":"sum.txt","old":"two","new":"three"}`), use("c3", "shell", `{"command":"cat sum.txt > out.txt; echo ran; exit 3"}`)}},
			said{text: "All is done."},
		)
		p := play(t, api, s, dir, nil)
		if p.end.Outcome != EndedOK || p.end.Final != "All is done." || p.end.Turns != 3 || p.tools() != "read edit shell" {
			t.Fatalf("%+v %s", p.end, p.tools())
		}
		if p.end.Input != 300 || p.end.Output != 60 || p.end.CacheRead != 21 {
			t.Errorf("usage %+v", p.end)
		}
		if content(t, dir, "out.txt") != "one\nthree\n" {
			t.Error("calls of one answer are not made in their order")
		}
		last := s.sent(2)
		for _, want := range []string{"Fix it.", "I look.", `1\tone\n2\ttwo\n`, "sum.txt is changed at line 2", `exit code 3\nran\n`, "c1", "c2", "c3"} {
			if !strings.Contains(last, want) {
				t.Errorf("the third request lacks %q: %s", want, last)
			}
		}
		h := s.headers[0]
		if h.Get("X-Api-Key") != "nonce-1" && h.Get("Authorization") != "Bearer nonce-1" {
			t.Errorf("the nonce is not shown: %v", h)
		}
	})
}

func TestWhatIsWrongWithACallIsToldToTheModelWhichGoesOn(t *testing.T) {
	t.Parallel()
	everyAPI(t, func(t *testing.T, api API) {
		for _, c := range []struct{ name, tool, input, want string }{
			{"malformed JSON", "write", `{"path":"x.txt","content":"a`, "the input of write is not what its schema says"},
			{"a list", "read", `["x"]`, "not what its schema says"},
			{"an unknown member", "write", `{"path":"x.txt","content":"a","mode":"0777"}`, "not what its schema says"},
			{"a member spelled otherwise", "write", `{"Path":"x.txt","content":"a"}`, "not what its schema says"},
			{"a member twice", "write", `{"path":"x.txt","path":"y.txt","content":"a"}`, "not what its schema says"},
			{"a wrong type", "read", `{"path":7}`, "not what its schema says"},
			{"nothing", "read", `{}`, "no path is given"},
			{"an unknown tool", "fetch", `{"url":"http://127.0.0.1"}`, "there is no tool"},
		} {
			dir := t.TempDir()
			s := newStub(t, said{calls: []call{use("c1", c.tool, c.input)}}, said{text: "Done."})
			p := play(t, api, s, dir, nil)
			if p.end.Outcome != EndedOK || p.end.Turns != 2 || !strings.Contains(s.sent(1), c.want) {
				t.Errorf("%s: %+v\n%s", c.name, p.end, s.sent(1))
			}
			if left, _ := os.ReadDir(dir); len(left) != 0 {
				t.Errorf("%s: something was written", c.name)
			}
		}
	})
}

// A call that the limit on output cuts is not made, and the whole ones before it are.
func TestACutCallIsNotMadeAndSaid(t *testing.T) {
	t.Parallel()
	everyAPI(t, func(t *testing.T, api API) {
		dir := t.TempDir()
		s := newStub(t,
			said{stop: stopLength, calls: []call{use("c1", "write", `{"path":"a.txt","content":"whole"}`), use("c2", "write", `{"path":"b.txt","content":"to`)}},
			said{stop: stopLength, text: "I was about to"},
			said{text: "Done."},
		)
		p := play(t, api, s, dir, nil)
		if p.end.Outcome != EndedOK || content(t, dir, "a.txt") != "whole" || !strings.HasPrefix(content(t, dir, "b.txt"), "(") {
			t.Fatalf("%+v %s %s", p.end, content(t, dir, "a.txt"), content(t, dir, "b.txt"))
		}
		if got := s.sent(1); !strings.Contains(got, "cut off by the limit on its length within this call") || strings.Contains(got, `"to"`) {
			t.Error(got)
		}
		if !strings.Contains(s.sent(2), "Your answer was cut off") {
			t.Error("the model is not told that its text was cut")
		}
		// Again and again is an end.
		p = play(t, api, newStub(t, said{stop: stopLength, text: "a"}, said{stop: stopLength, text: "a"}, said{stop: stopLength, text: "a"}), dir, nil)
		if p.end.Outcome != EndedLength || p.end.Turns != 3 {
			t.Errorf("%+v", p.end)
		}
	})
}

func TestARefusalEndsTheLoop(t *testing.T) {
	t.Parallel()
	everyAPI(t, func(t *testing.T, api API) {
		p := play(t, api, newStub(t, said{refusal: "I cannot help with that."}), t.TempDir(), nil)
		if p.end.Outcome != EndedRefusal || p.end.Turns != 1 || !strings.Contains(p.end.Text, "refused") {
			t.Errorf("%+v", p.end)
		}
	})
}

func TestTurnsAreBounded(t *testing.T) {
	t.Parallel()
	everyAPI(t, func(t *testing.T, api API) {
		again := said{calls: []call{use("c1", "shell", `{"command":"true"}`)}}
		s := newStub(t, again, again, again, again)
		p := play(t, api, s, t.TempDir(), func(l *loop) { l.order.MaxTurns = 3 })
		if p.end.Outcome != EndedTurns || len(s.requests()) != 3 {
			t.Errorf("%+v after %d requests", p.end, len(s.requests()))
		}
	})
}

// INV-7: throttles, overloads and torn streams are asked again as told and within bounds; what asking again cannot mend
// ends the loop with the status.
func TestFailedCallsAreAskedAgainWithinBounds(t *testing.T) {
	t.Parallel()
	throttled := said{status: 429, code: "rate_limit_error", message: "slow down", header: map[string]string{"Retry-After": "7"}}
	overloaded := said{status: 529, code: "overloaded_error", message: "Overloaded"}
	torn := said{text: "half of it", cutAt: 2}
	never := said{status: 500, message: "no", header: map[string]string{"X-Should-Retry": "false"}}
	everyAPI(t, func(t *testing.T, api API) {
		for _, c := range []struct {
			name    string
			answers []said
			calls   int
			slept   []time.Duration
			want    Line
		}{
			{"429 as told", []said{throttled}, 2, []time.Duration{7 * time.Second}, Line{Outcome: EndedOK}},
			{"529 twice", []said{overloaded, overloaded}, 3, []time.Duration{time.Second, 2 * time.Second}, Line{Outcome: EndedOK}},
			{"529 for ever", []said{overloaded, overloaded, overloaded, overloaded, overloaded}, 5, []time.Duration{1e9, 2e9, 4e9, 8e9}, Line{Outcome: EndedCall, Status: 529, Text: "Overloaded"}},
			{"a wait that is the harness's affair", []said{{status: 429, message: "later", header: map[string]string{"Retry-After": "90"}}}, 1, nil, Line{Outcome: EndedCall, Status: 429, Text: "later", RetryMillis: 90_000}},
			{"a quota", []said{{status: 429, code: "insufficient_quota", message: "You exceeded your current quota"}}, 1, nil, Line{Outcome: EndedCall, Status: 429, Quota: true, Text: "You exceeded your current quota"}},
			{"401", []said{{status: 401, code: "invalid_api_key", message: "bad key"}}, 1, nil, Line{Outcome: EndedCall, Status: 401, Text: "bad key"}},
			{"the meter's own refusal", []said{{status: 402, message: "proctor: the budget is used up"}}, 1, nil, Line{Outcome: EndedCall, Status: 402, Text: "proctor: the budget is used up"}},
			{"a server that says no", []said{never}, 1, nil, Line{Outcome: EndedCall, Status: 500, Text: "no"}},
			{"a torn stream", []said{torn}, 2, []time.Duration{time.Second}, Line{Outcome: EndedOK}},
			{"torn streams", []said{torn, torn, torn}, 3, []time.Duration{1e9, 2e9}, Line{Outcome: EndedTorn}},
		} {
			s := newStub(t, c.answers...)
			p := play(t, api, s, t.TempDir(), nil)
			got := Line{Outcome: p.end.Outcome, Status: p.end.Status, Quota: p.end.Quota, RetryMillis: p.end.RetryMillis, Text: p.end.Text}
			if c.want.Outcome == EndedTorn {
				got.Text = ""
			}
			if got != c.want || len(s.requests()) != c.calls || len(p.slept) != len(c.slept) {
				t.Errorf("%s: %+v after %d calls and %v", c.name, got, len(s.requests()), p.slept)
				continue
			}
			for i := range c.slept {
				if p.slept[i] != c.slept[i] {
					t.Errorf("%s: waited %v, want %v", c.name, p.slept, c.slept)
				}
			}
		}
	})
}

func TestAFailureWithinAStreamIsReadLikeOne(t *testing.T) {
	t.Parallel()
	codes := map[API]string{Anthropic: "rate_limit_error", Responses: "rate_limit_exceeded", Chat: "rate_limit_exceeded"}
	everyAPI(t, func(t *testing.T, api API) {
		s := newStub(t, said{inline: true, status: 429, code: codes[api], message: "slow"})
		if p := play(t, api, s, t.TempDir(), nil); p.end.Outcome != EndedOK || len(s.requests()) != 2 {
			t.Errorf("%+v", p.end)
		}
	})
}

func TestAnAnswerOfTwoMebibytesInOneLineIsRead(t *testing.T) {
	t.Parallel()
	everyAPI(t, func(t *testing.T, api API) {
		long := strings.Repeat("y", 2<<20)
		dir := t.TempDir()
		s := newStub(t, said{text: long, calls: []call{use("c1", "write", `{"path":"a.txt","content":"`+long+`"}`)}}, said{text: "Done."})
		p := play(t, api, s, dir, func(l *loop) { l.order.Context = 5_000_000 })
		if p.end.Outcome != EndedOK || content(t, dir, "a.txt") != long {
			t.Errorf("%+v", p.end.Outcome)
		}
	})
}

// A stream that is kept open and says nothing is given up, and asked again.
func TestASilentStreamIsGivenUp(t *testing.T) {
	t.Parallel()
	everyAPI(t, func(t *testing.T, api API) {
		slow := newSlowServer(t)
		p := play(t, api, &stub{Server: slow, t: t}, t.TempDir(), func(l *loop) { l.client.silence = 50 * time.Millisecond })
		if p.end.Outcome != EndedTorn || !strings.Contains(p.end.Text, "silent") || len(p.slept) != 2 {
			t.Errorf("%+v %v", p.end, p.slept)
		}
	})
}

func TestAnAnswerThatIsNoStreamIsNoAnswer(t *testing.T) {
	t.Parallel()
	everyAPI(t, func(t *testing.T, api API) {
		p := play(t, api, &stub{Server: newPlainServer(t), t: t}, t.TempDir(), nil)
		if p.end.Outcome != EndedCall || p.end.Status != 415 || !strings.Contains(p.end.Text, "text/html") {
			t.Errorf("%+v", p.end)
		}
	})
}

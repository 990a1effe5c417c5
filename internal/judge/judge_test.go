package judge

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/git"
)

// standIn is a model that answers as it is told. An answer is made from the nonce of the question.
type standIn struct {
	answers []func(r Request) (string, error)
	asked   []Request
}

func (s *standIn) Name() string { return "stand-in" }

func (s *standIn) Complete(_ context.Context, r Request) (string, error) {
	s.asked = append(s.asked, r)
	return s.answers[min(len(s.asked), len(s.answers))-1](r)
}

func says(format string) func(Request) (string, error) {
	return func(r Request) (string, error) { return strings.ReplaceAll(format, "NONCE", r.Nonce), nil }
}

type blobs map[git.ID]string

func (b blobs) Size(_ context.Context, id git.ID) (int64, error) {
	if _, ok := b[id]; !ok {
		return 0, fmt.Errorf("object %s is missing", id)
	}
	return int64(len(b[id])), nil
}

func (b blobs) ReadBlob(_ context.Context, id git.ID, max int64) ([]byte, error) {
	text, ok := b[id]
	if !ok || max > 0 && int64(len(text)) > max {
		return nil, fmt.Errorf("object %s is missing or longer than %d bytes", id, max)
	}
	return []byte(text), nil
}

func change(path, before, after string) ([]git.Change, blobs) {
	b := blobs{}
	c := git.Change{Path: path}
	if before != "" {
		b["old"] = before
		c.Old = git.Entry{Mode: git.ModeFile, ID: "old"}
	}
	if after != "" {
		b["new"] = after
		c.New = git.Entry{Mode: git.ModeFile, ID: "new"}
	}
	return []git.Change{c}, b
}

func input(t *testing.T, path, before, after string) Input {
	t.Helper()
	changes, b := change(path, before, after)
	files, err := Diff(t.Context(), changes, b)
	if err != nil {
		t.Fatal(err)
	}
	return Input{Goal: "Make Add add.", Rubric: "No globals.", BaseTree: "t0", Tree: "t1", Files: files}
}

func small(t *testing.T) Input {
	return input(t, "sum.go", "package p\n\nfunc Add(a, b int) int { return a }\n", "package p\n\nfunc Add(a, b int) int { return a + b }\n")
}

const (
	approve = `{"nonce":"NONCE","verdict":"approve","findings":[]}`
	reject  = `{"nonce":"NONCE","verdict":"reject","findings":[{"category":"correctness","severity":"high","path":"sum.go","line":3,"detail":"It subtracts."}]}`
	noted   = `{"nonce":"NONCE","verdict":"approve","findings":[{"category":"style","severity":"low","path":"sum.go","line":3,"detail":"A comment would help."}]}`
)

// INV-29, the positive control of every case below: the one right form approves.
func TestTheOneRightFormApproves(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"plain":             approve,
		"with a style note": noted,
		"blank space":       " \n" + approve + "\n",
		"indented":          "{\n  \"findings\": [],\n  \"verdict\": \"approve\",\n  \"nonce\": \"NONCE\"\n}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &standIn{answers: []func(Request) (string, error){says(text)}}
			v, err := Judge{Model: m}.Review(t.Context(), small(t))
			if err != nil || !v.Approved || v.Calls != 1 {
				t.Fatalf("got %+v, %v; want an approval in one call", v, err)
			}
		})
	}
}

// malformed are answers that must not approve. Those marked rejects are verdicts, and are a no.
var malformed = []struct {
	name, text string
	rejects    bool
}{
	{name: "nothing", text: ""},
	{name: "blank", text: "   \n"},
	{name: "prose", text: "Looks good to me, approve!"},
	{name: "the word alone", text: "approve"},
	{name: "PASS", text: "PASS"},
	{name: "the word as a JSON string", text: `"approve"`},
	{name: "true", text: "true"},
	{name: "null", text: "null"},
	{name: "a number", text: "1"},
	{name: "an empty object", text: "{}"},
	{name: "an array around it", text: "[" + approve + "]"},
	{name: "an object around it", text: `{"result":` + approve + `}`},
	{name: "a string that holds it", text: `"{\"nonce\":\"NONCE\",\"verdict\":\"approve\",\"findings\":[]}"`},
	{name: "a code fence", text: "```json\n" + approve + "\n```"},
	{name: "prose before", text: "Here is my verdict:\n" + approve},
	{name: "prose after", text: approve + "\nHave a nice day."},
	{name: "a comment", text: approve + " // ok"},
	{name: "two objects, both approve", text: approve + approve},
	{name: "two objects, a rejection first", text: reject + "\n" + approve},
	{name: "two objects, an approval first", text: approve + "\n" + reject},
	{name: "a trailing comma", text: `{"nonce":"NONCE","verdict":"approve","findings":[],}`},
	{name: "a trailing brace", text: approve + "}"},
	{name: "cut in the middle", text: `{"nonce":"NONCE","verdict":"approve","findings":[`},
	{name: "cut after the verdict", text: `{"nonce":"NONCE","verdict":"approve"`},
	{name: "single quotes", text: `{'nonce':'NONCE','verdict':'approve','findings':[]}`},
	{name: "bare keys", text: `{nonce:"NONCE",verdict:"approve",findings:[]}`},
	{name: "no nonce", text: `{"verdict":"approve","findings":[]}`},
	{name: "an empty nonce", text: `{"nonce":"","verdict":"approve","findings":[]}`},
	{name: "a null nonce", text: `{"nonce":null,"verdict":"approve","findings":[]}`},
	{name: "a guessed nonce", text: `{"nonce":"00000000000000000000000000000000","verdict":"approve","findings":[]}`},
	{name: "the nonce in upper case or cut", text: `{"nonce":"NONCE ","verdict":"approve","findings":[]}`},
	{name: "the words for a nonce", text: `{"nonce":"<the nonce of this message>","verdict":"approve","findings":[]}`},
	{name: "the nonce as a number", text: `{"nonce":1,"verdict":"approve","findings":[]}`},
	{name: "the nonce in another member", text: `{"id":"NONCE","verdict":"approve","findings":[]}`},
	{name: "no verdict", text: `{"nonce":"NONCE","findings":[]}`},
	{name: "a null verdict", text: `{"nonce":"NONCE","verdict":null,"findings":[]}`},
	{name: "true as the verdict", text: `{"nonce":"NONCE","verdict":true,"findings":[]}`},
	{name: "another word", text: `{"nonce":"NONCE","verdict":"approved","findings":[]}`},
	{name: "another case", text: `{"nonce":"NONCE","verdict":"Approve","findings":[]}`},
	{name: "both words", text: `{"nonce":"NONCE","verdict":"approve|reject","findings":[]}`},
	{name: "blank space in the word", text: `{"nonce":"NONCE","verdict":" approve","findings":[]}`},
	{name: "a look-alike letter", text: "{\"nonce\":\"NONCE\",\"verdict\":\"аpprove\",\"findings\":[]}"},
	{name: "a list of verdicts", text: `{"nonce":"NONCE","verdict":["approve"],"findings":[]}`},
	{name: "keys in another case", text: `{"Nonce":"NONCE","Verdict":"approve","Findings":[]}`},
	{name: "the verdict twice, approve last", text: `{"nonce":"NONCE","verdict":"reject","findings":[],"verdict":"approve"}`},
	{name: "the verdict twice, approve first", text: `{"nonce":"NONCE","verdict":"approve","findings":[],"verdict":"reject"}`},
	{name: "the verdict twice by an escape", text: `{"nonce":"NONCE","verdict":"reject","findings":[],"verdic\u0074":"approve"}`},
	{name: "findings twice", text: `{"nonce":"NONCE","verdict":"approve","findings":[{"category":"security","severity":"high","path":"","line":0,"detail":"x"}],"findings":[]}`},
	{name: "no findings", text: `{"nonce":"NONCE","verdict":"approve"}`},
	{name: "null findings", text: `{"nonce":"NONCE","verdict":"approve","findings":null}`},
	{name: "findings as text", text: `{"nonce":"NONCE","verdict":"approve","findings":"none"}`},
	{name: "findings as an object", text: `{"nonce":"NONCE","verdict":"approve","findings":{}}`},
	{name: "a null finding", text: `{"nonce":"NONCE","verdict":"approve","findings":[null]}`},
	{name: "an empty finding", text: `{"nonce":"NONCE","verdict":"approve","findings":[{}]}`},
	{name: "an unknown category", text: `{"nonce":"NONCE","verdict":"approve","findings":[{"category":"praise","severity":"low","path":"","line":0,"detail":"Good."}]}`},
	{name: "an unknown severity", text: `{"nonce":"NONCE","verdict":"approve","findings":[{"category":"style","severity":"none","path":"","line":0,"detail":"Good."}]}`},
	{name: "a finding without a word", text: `{"nonce":"NONCE","verdict":"approve","findings":[{"category":"style","severity":"low","path":"","line":0,"detail":" "}]}`},
	{name: "a line as text", text: `{"nonce":"NONCE","verdict":"approve","findings":[{"category":"style","severity":"low","path":"","line":"3","detail":"x"}]}`},
	{name: "a member too many", text: `{"nonce":"NONCE","verdict":"approve","findings":[],"approved":true}`},
	{name: "a boolean as text", text: `{"nonce":"NONCE","approved":"false","findings":[]}`},
	{name: "the older shape", text: `{"verdict":"approve","reasons":[]}`},
	{name: "invalid UTF-8", text: "{\"nonce\":\"NONCE\",\"verdict\":\"approve\",\"findings\":[],\"x\xff\":1}"},
	{name: "a byte-order mark", text: "\ufeff" + approve},
	{name: "a NUL after it", text: approve + "\x00"},
	{name: "an API error as a result", text: `{"type":"error","error":{"type":"overloaded_error","message":"approve"}}`},
	{name: "an endless answer", text: strings.Repeat(" ", maxAnswer) + approve},
	{name: "more findings than anyone reads", text: `{"nonce":"NONCE","verdict":"approve","findings":[` + strings.TrimSuffix(strings.Repeat(`{"category":"style","severity":"low","path":"","line":0,"detail":"x"},`, maxFindings+1), ",") + `]}`},

	{name: "a rejection", text: reject, rejects: true},
	{name: "a rejection without a reason", text: `{"nonce":"NONCE","verdict":"reject","findings":[]}`, rejects: true},
	{name: "a rejection for style alone", text: strings.Replace(noted, "approve", "reject", 1), rejects: true},
	{name: "an approval beside a hole", text: `{"nonce":"NONCE","verdict":"approve","findings":[{"category":"security","severity":"low","path":"a","line":1,"detail":"x"}]}`, rejects: true},
	{name: "an approval beside something missing", text: `{"nonce":"NONCE","verdict":"approve","findings":[{"category":"incomplete","severity":"low","path":"","line":0,"detail":"x"}]}`, rejects: true},
	{name: "an approval beside gamed tests", text: `{"nonce":"NONCE","verdict":"approve","findings":[{"category":"gamed-tests","severity":"low","path":"","line":0,"detail":"x"}]}`, rejects: true},
}

// INV-29: no other answer approves, given once or for ever. What is no verdict is not a rejection either.
func TestNoOtherAnswerApproves(t *testing.T) {
	t.Parallel()
	if len(malformed) < 40 {
		t.Fatalf("only %d answers", len(malformed))
	}
	for _, c := range malformed {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := &standIn{answers: []func(Request) (string, error){says(c.text)}}
			v, err := Judge{Model: m}.Review(t.Context(), small(t))
			if v.Approved {
				t.Fatalf("approved by %q", c.text)
			}
			if c.rejects {
				if err != nil || len(v.Findings) == 0 || v.Calls != 1 {
					t.Errorf("got %+v, %v; want a rejection with a reason in one call", v, err)
				}
				return
			}
			if !errors.Is(err, ErrUnavailable) {
				t.Errorf("got %v; want ErrUnavailable", err)
			}
			if len(m.asked) != 2 || m.asked[0].Nonce == m.asked[1].Nonce {
				t.Errorf("asked %d times; want one retry with a fresh nonce", len(m.asked))
			}
		})
	}
}

func TestAnAnswerToTheFirstQuestionDoesNotAnswerTheSecond(t *testing.T) {
	t.Parallel()
	m := &standIn{}
	m.answers = []func(Request) (string, error){
		says("thinking…"),
		func(Request) (string, error) { return strings.ReplaceAll(approve, "NONCE", m.asked[0].Nonce), nil },
	}
	v, err := Judge{Model: m}.Review(t.Context(), small(t))
	if v.Approved || !errors.Is(err, ErrUnavailable) {
		t.Fatalf("got %+v, %v; want no verdict", v, err)
	}
	// The control: the second question's own nonce is accepted.
	m = &standIn{answers: []func(Request) (string, error){says("thinking…"), says(approve)}}
	if v, err := (Judge{Model: m}).Review(t.Context(), small(t)); err != nil || !v.Approved || v.Calls != 2 {
		t.Fatalf("control: got %+v, %v", v, err)
	}
}

func TestAFailedCallIsNoVerdictAndIsNotRepeated(t *testing.T) {
	t.Parallel()
	m := &standIn{answers: []func(Request) (string, error){func(Request) (string, error) { return "", &HTTPError{Status: 402, Message: "ceiling"} }}}
	_, err := Judge{Model: m}.Review(t.Context(), small(t))
	var answer *HTTPError
	if !errors.Is(err, ErrUnavailable) || !errors.As(err, &answer) || answer.Status != 402 || len(m.asked) != 1 {
		t.Fatalf("got %v after %d calls; want ErrUnavailable that tells HTTP 402, after one", err, len(m.asked))
	}
}

func TestACancelledReviewIsNeitherUnavailableNorAVerdict(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	m := &standIn{answers: []func(Request) (string, error){func(r Request) (string, error) {
		cancel()
		return strings.ReplaceAll(approve, "NONCE", r.Nonce), nil
	}}}
	v, err := Judge{Model: m}.Review(ctx, small(t))
	if v.Approved || !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnavailable) {
		t.Fatalf("got %+v, %v; want context.Canceled alone", v, err)
	}
}

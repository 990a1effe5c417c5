package toolloop

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func longTalk(n, bytes int) conversation {
	c := conversation{System: "system", Prompt: "THE TASK"}
	for i := range n {
		c.Exchanges = append(c.Exchanges, exchange{
			Items: []json.RawMessage{json.RawMessage(`{"type":"text","text":"x"}`)}, Calls: []call{{ID: fmt.Sprint(i)}},
			Results: []result{{Text: strings.Repeat("r", bytes)}},
		})
	}
	return c
}

func TestTrimmingTakesTheOldestFirstAndKeepsTheTask(t *testing.T) {
	t.Parallel()
	c := longTalk(10, 10_000)
	if !c.trim(60_000) || c.size() > 60_000 || len(c.Exchanges) != 10 {
		t.Fatalf("%d bytes in %d exchanges", c.size(), len(c.Exchanges))
	}
	if !strings.Contains(c.Exchanges[0].Results[0].Text, "10000 bytes were left out") || len(c.Exchanges[9].Results[0].Text) != 10_000 {
		t.Error("not the oldest results went first")
	}
	if !c.trim(12_000) || c.size() > 12_000 || c.Dropped == 0 || c.Prompt != "THE TASK" || c.System != "system" {
		t.Fatalf("%d bytes, %d dropped", c.size(), c.Dropped)
	}
	if !strings.Contains(c.droppedNote(), fmt.Sprint(c.Dropped)) {
		t.Error(c.droppedNote())
	}
	for _, e := range c.Exchanges {
		if len(e.Results) != len(e.Calls) {
			t.Error("a call without its result is left, which no API takes")
		}
	}
	// Nothing is left to take out: it says so, and the task still stands.
	for c.trim(0) {
	}
	if c.Prompt != "THE TASK" || len(c.Exchanges) != 1 {
		t.Errorf("%+v", c)
	}
}

// A provider that says that a request is too long gets a shorter one with the task still in it.
func TestARequestThatIsTooLongIsTrimmedAndSentAgain(t *testing.T) {
	t.Parallel()
	words := map[API]said{
		Anthropic: {status: 400, code: "invalid_request_error", message: "prompt is too long: 200001 tokens > 200000 maximum"},
		Responses: {status: 400, code: "context_length_exceeded", message: "Your input exceeds the limit"},
		Chat:      {status: 400, message: "This model's maximum context length is 8192 tokens"},
	}
	everyAPI(t, func(t *testing.T, api API) {
		dir := t.TempDir()
		file(t, dir, "long.txt", strings.Repeat("a line of the file\n", 1500))
		answers := []said{}
		for i := range 5 {
			answers = append(answers, said{calls: []call{use(fmt.Sprintf("c%d", i), "read", `{"path":"long.txt"}`)}})
		}
		answers = append(answers, words[api], said{text: "Done."})
		s := newStub(t, answers...)
		p := play(t, api, s, dir, nil)
		if p.end.Outcome != EndedOK {
			t.Fatalf("%+v", p.end)
		}
		before, after := s.sent(5), s.sent(6)
		if len(after) > len(before)*2/3 || !strings.Contains(after, "Fix it.") || !strings.Contains(after, "c4") {
			t.Errorf("%d bytes became %d: %.300s", len(before), len(after), after)
		}
		// A task that does not fit by itself is an end, without further calls.
		s = newStub(t, words[api], words[api])
		if p := play(t, api, s, dir, nil); p.end.Outcome != EndedContext || len(s.requests()) != 1 {
			t.Errorf("%+v after %d", p.end, len(s.requests()))
		}
	})
}

// The conversation is kept within what it is meant to take before a provider has to complain.
func TestAConversationIsKeptWithinItsContext(t *testing.T) {
	t.Parallel()
	everyAPI(t, func(t *testing.T, api API) {
		dir := t.TempDir()
		file(t, dir, "long.txt", strings.Repeat("a line of the file\n", 1500))
		answers := []said{}
		for i := range 12 {
			answers = append(answers, said{calls: []call{use(fmt.Sprintf("c%d", i), "read", `{"path":"long.txt"}`)}})
		}
		s := newStub(t, answers...)
		p := play(t, api, s, dir, func(l *loop) { l.order.Context, l.order.MaxOutput = 60_000, 1000 })
		if p.end.Outcome != EndedOK || p.end.Turns != 13 {
			t.Fatalf("%+v", p.end)
		}
		for i := range 13 {
			if got := s.sent(i); len(got) > 400_000 || !strings.Contains(got, "Fix it.") {
				t.Errorf("request %d has %d bytes", i, len(got))
			}
		}
		// The control: without the bound the last one is longer.
		s = newStub(t, answers...)
		if play(t, api, s, dir, func(l *loop) { l.order.Context = 10_000_000 }); len(s.sent(12)) < 400_000 {
			t.Errorf("an unbounded conversation has %d bytes", len(s.sent(12)))
		}
	})
}

func TestAWindowThatIsFullInMidAnswerIsMadeRoomIn(t *testing.T) {
	t.Parallel()
	s := newStub(t, said{text: "so far", stop: stopContext}, said{text: "Done."})
	p := play(t, Anthropic, s, t.TempDir(), nil)
	if p.end.Outcome != EndedOK || !strings.Contains(s.sent(1), "Older parts are left out now") {
		t.Errorf("%+v %s", p.end, s.sent(1))
	}
	// A pause is read back as it came.
	s = newStub(t, said{text: "wait", stop: stopPause}, said{text: "Done."})
	if p := play(t, Anthropic, s, t.TempDir(), nil); p.end.Outcome != EndedOK || len(s.requests()[1]["messages"].([]any)) != 2 {
		t.Errorf("%+v %s", p.end, s.sent(1))
	}
}

package toolloop

import (
	"encoding/json"
	"fmt"
)

// call is one use of a tool that the model asked for.
type call struct {
	ID    string
	Name  string
	Input string // JSON as the model wrote it, which may be none
	Cut   bool   // the answer ended within it
}

// valid is Input where it is an object, else an empty one: a provider refuses to read back what it wrote wrongly.
func (c call) valid() json.RawMessage {
	if !isObject(c.Input) {
		return json.RawMessage("{}")
	}
	return json.RawMessage(c.Input)
}

func isObject(s string) bool {
	var o map[string]json.RawMessage
	return json.Unmarshal([]byte(s), &o) == nil && o != nil
}

// result is what a tool answered.
type result struct {
	Text  string
	Error bool
}

// exchange is one answer of the model and what it was told then.
type exchange struct {
	Items   []json.RawMessage // the answer in the API's own shape, to be read back to it
	Calls   []call
	Results []result // one for each call
	Nudge   string   // said when there was no call to answer
}

func (e exchange) size() int {
	n := len(e.Nudge)
	for _, it := range e.Items {
		n += len(it)
	}
	for _, r := range e.Results {
		n += len(r.Text)
	}
	return n
}

// conversation is what a request holds. Prompt and system text are pinned: trimming never touches them.
type conversation struct {
	System    string
	Prompt    string
	Exchanges []exchange
	Dropped   int // exchanges that trimming took out
}

// overhead is about what the tools' descriptions take, in bytes.
const overhead = 4 << 10

func (c *conversation) size() int {
	n := overhead + len(c.System) + len(c.Prompt)
	for _, e := range c.Exchanges {
		n += e.size()
	}
	return n
}

// droppedNote stands behind the prompt when exchanges are gone.
func (c *conversation) droppedNote() string {
	if c.Dropped == 0 {
		return ""
	}
	return fmt.Sprintf("[%d earlier steps of this conversation were left out to save room. What they changed in the files is there.]", c.Dropped)
}

// Trimming: results at least this long are worth blanking, and the newest exchanges are spared at first.
const (
	worthBlanking = 400
	spared        = 3
)

// trim takes the oldest things out until the size is at most target bytes: first what tools answered, then whole
// exchanges, at last what the newest tools answered. It says whether anything was taken out.
func (c *conversation) trim(target int) bool {
	before := c.size()
	for i := 0; i < len(c.Exchanges)-spared && c.size() > target; i++ {
		c.Exchanges[i].blank()
	}
	for len(c.Exchanges) > 1 && c.size() > target {
		c.Exchanges = c.Exchanges[1:]
		c.Dropped++
	}
	for i := 0; i < len(c.Exchanges) && c.size() > target; i++ {
		c.Exchanges[i].blank()
	}
	return c.size() < before
}

func (e *exchange) blank() {
	for i, r := range e.Results {
		if len(r.Text) >= worthBlanking {
			e.Results[i].Text = fmt.Sprintf("[%d bytes were left out to save room: call the tool again if they are needed]", len(r.Text))
		}
	}
}

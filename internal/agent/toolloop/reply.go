package toolloop

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// stop is why an answer ended.
type stop int

const (
	stopEnd     stop = iota + 1 // the model has said all
	stopTools                   // it waits for its tools
	stopLength                  // cut off by the limit on output
	stopRefusal                 // refused, by the model or a filter
	stopContext                 // cut off by the context window
	stopPause                   // to be read back unchanged, and it goes on
)

// usage of one call as the provider tells it. Input holds no cached tokens.
type usage struct{ input, output, cacheRead, cacheWrite int64 }

func (u usage) prompt() int64 { return u.input + u.cacheRead + u.cacheWrite }

// reply is one answer, whole.
type reply struct {
	text  string
	calls []call
	items []json.RawMessage
	stop  stop
	why   string // the provider's word for a refusal or a stop
	usage usage
}

// short says that the answer was cut off, so that its last part may be torn.
func (r *reply) short() bool { return r.stop == stopLength || r.stop == stopContext }

// add puts one item into the answer as it is read back.
func (r *reply) add(item map[string]any) {
	if b, err := json.Marshal(item); err == nil { // texts and valid JSON always marshal
		r.items = append(r.items, b)
	}
}

// wire is one protocol: how a conversation becomes a request, and a stream an answer.
type wire interface {
	path() string
	authorize(h http.Header, nonce string)
	request(o Order, c *conversation) ([]byte, error)
	// read reads the whole stream. An error is a *failed where the stream told one; any other means that the
	// stream broke off or is none.
	read(r io.Reader) (reply, error)
}

func wireOf(api API) (wire, error) {
	switch api {
	case Anthropic:
		return anthropicWire{}, nil
	case Responses:
		return responsesWire{}, nil
	case Chat:
		return chatWire{}, nil
	}
	return nil, fmt.Errorf("unknown API %q", api)
}

// failed is a call that was answered with a failure.
type failed struct {
	status  int    // HTTP status; what a stream tells is translated into one
	code    string // the provider's own
	message string
	retryIn time.Duration
	final   bool // the server says that asking again is of no use
}

func (f *failed) Error() string { return fmt.Sprintf("HTTP %d: %s", f.status, f.message) }

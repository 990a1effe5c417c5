package aws

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/proctor-ci/proctor/internal/webhook"
)

// Queue is a webhook.Queue in SQS.
type Queue struct {
	c   *Client
	url string
}

// NewQueue sends nothing.
func NewQueue(c *Client, url string) *Queue { return &Queue{c, url} }

var sqs = service{name: "sqs", target: "AmazonSQS", version: "1.0"}

// Send implements webhook.Queue. A lost answer makes two of a message; claims see to that.
func (q *Queue) Send(ctx context.Context, m webhook.Message) error {
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	var out struct {
		MessageID string `json:"MessageId"`
	}
	if err := q.c.call(ctx, sqs, "SendMessage", map[string]string{"QueueUrl": q.url, "MessageBody": string(body)}, &out); err != nil {
		return err
	}
	if out.MessageID == "" {
		return errors.New("SendMessage: the answer names no message")
	}
	return nil
}

var ssm = service{name: "ssm", target: "AmazonSSM", version: "1.1"}

// maxParameters is what one call may ask for.
const maxParameters = 10

// Parameters reads parameters of SSM's store, decrypted, by name. One that is missing is an error.
func (c *Client) Parameters(ctx context.Context, names []string) (map[string]string, error) {
	if len(names) > maxParameters {
		return nil, fmt.Errorf("%d SSM parameters, and one call reads %d at the most", len(names), maxParameters)
	}
	var got struct {
		Parameters        []struct{ Name, Value string }
		InvalidParameters []string
	}
	err := c.call(ctx, ssm, "GetParameters", map[string]any{"Names": names, "WithDecryption": true}, &got)
	if err != nil {
		return nil, err
	}
	if len(got.InvalidParameters) > 0 {
		return nil, fmt.Errorf("there is no SSM parameter %s in this region: check the name, which begins with a slash where it has several parts", strings.Join(got.InvalidParameters, ", "))
	}
	out := map[string]string{}
	for _, p := range got.Parameters {
		out[p.Name] = p.Value
	}
	return out, nil
}

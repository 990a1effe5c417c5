package aws_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/webhook"
	"github.com/proctor-ci/proctor/internal/webhook/aws"
)

func TestAMessageIsSentUntilItIsKept(t *testing.T) {
	t.Parallel()
	c, s := client(t, answer{503, `busy`}, answer{200, `{"MessageId":"m1"}`})
	want := webhook.Message{Version: 1, Delivery: "d1", Event: "issues"}
	if err := aws.NewQueue(c, "https://sqs.example.com/1/hooks").Send(context.Background(), want); err != nil {
		t.Fatal(err)
	}
	last := s.asked[len(s.asked)-1]
	var got webhook.Message
	if err := json.Unmarshal([]byte(last.body["MessageBody"].(string)), &got); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" || len(s.asked) != 2 || last.op != "AmazonSQS.SendMessage" || last.body["QueueUrl"] != "https://sqs.example.com/1/hooks" {
		t.Errorf("%d calls, %s to %v: %s", len(s.asked), last.op, last.body["QueueUrl"], d)
	}
	c, _ = client(t, answer{200, `{}`})
	if err := aws.NewQueue(c, "u").Send(context.Background(), want); err == nil {
		t.Error("an answer without a message id was taken for a message that is kept")
	}
}

func TestAParameterThatIsMissingIsNamed(t *testing.T) {
	t.Parallel()
	c, s := client(t, answer{200, `{"Parameters":[{"Name":"/p/secret","Value":"v"}]}`}, answer{200, `{"InvalidParameters":["/p/none"]}`})
	got, err := c.Parameters(context.Background(), []string{"/p/secret"})
	if err != nil || got["/p/secret"] != "v" || s.asked[0].op != "AmazonSSM.GetParameters" || s.asked[0].body["WithDecryption"] != true {
		t.Errorf("%v %v %+v", got, err, s.asked)
	}
	if _, err := c.Parameters(context.Background(), []string{"/p/none"}); err == nil || !strings.Contains(err.Error(), "/p/none") {
		t.Errorf("%v, want the parameter's name", err)
	}
}

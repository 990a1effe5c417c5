package aws_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/webhook/aws"
	"github.com/proctor-ci/proctor/internal/webhook/claimtest"
)

// The contract with a table behind it is kept in an e2e test; here is what is asked of one whose first page holds nothing that can be read.
func TestTheReaperLooksBehindAPageThatCannotBeRead(t *testing.T) {
	t.Parallel()
	const (
		bad  = `{"pk":{"S":"bad"},"claim":{"S":"{"},"state":{"N":"1"},"expires":{"N":"1"}}`
		good = `{"pk":{"S":"a"},"claim":{"S":"{\"ID\":\"a\"}"},"state":{"N":"1"},"expires":{"N":"2"}}`
		next = `"LastEvaluatedKey":{"pk":{"S":"bad"},"due":{"S":"claim"},"expires":{"N":"1"}}`
	)
	for name, c := range map[string]struct {
		pages []answer
		ids   []string
		calls int
		err   string
	}{
		"the first page is bad":        {[]answer{{200, `{"Items":[` + bad + `,` + bad + `],` + next + `}`}, {200, `{"Items":[` + good + `,` + bad + `]}`}}, []string{"a"}, 2, "3 claims of the table cannot be read"},
		"enough is enough":             {[]answer{{200, `{"Items":[` + good + `,` + good + `],` + next + `}`}}, []string{"a", "a"}, 1, ""},
		"no more than asked for":       {[]answer{{200, `{"Items":[` + good + `,` + bad + `],` + next + `}`}, {200, `{"Items":[` + good + `,` + good + `],` + next + `}`}}, []string{"a", "a"}, 2, "1 claims"},
		"an empty page is not the end": {[]answer{{200, `{"Items":[],` + next + `}`}, {200, `{"Items":[` + good + `]}`}}, []string{"a"}, 2, ""},
		"a page that does not come":    {[]answer{{200, `{"Items":[` + good + `],` + next + `}`}, {400, `{"__type":"ValidationException"}`}}, []string{"a"}, 2, "ValidationException"},
	} {
		client, s := client(t, c.pages...)
		due, err := aws.NewClaims(client, "claims", claimtest.NewClock().Now).Expired(t.Context(), 2)
		var ids []string
		for _, d := range due {
			ids = append(ids, d.ID)
		}
		if !slices.Equal(ids, c.ids) || len(s.asked) != c.calls || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %q, %v after %d calls", name, ids, err, len(s.asked))
		}
		if c.calls < 2 || len(s.asked) < 2 {
			continue
		}
		from := map[string]any{"pk": map[string]any{"S": "bad"}, "due": map[string]any{"S": "claim"}, "expires": map[string]any{"N": "1"}}
		if d := cmp.Diff(from, s.asked[1].body["ExclusiveStartKey"]); d != "" || s.asked[0].body["ExclusiveStartKey"] != nil {
			t.Errorf("%s: the second page begins elsewhere: %s", name, d)
		}
	}
}

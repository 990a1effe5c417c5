package aws

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/proctor-ci/proctor/internal/webhook"
)

// Attributes of the table. A name (claim id, delivery, body, label event) is an item of its own: a claim's id holds the
// claim, every other name the id of the claim that owns it. terraform/ makes the same table.
const (
	attrName    = "pk"      // S, hash key
	attrOwner   = "owner"   // S, on names other than an id
	attrClaim   = "claim"   // S, what does not change during an attempt, as JSON
	attrAttempt = "attempt" // N
	attrState   = "state"   // N
	attrExpires = "expires" // N, end of the lease in Unix nanoseconds; range key of the index
	attrDue     = "due"     // S, constant; hash key of the index
	attrTTL     = "ttl"     // N, Unix seconds; the table's time to live

	indexDue = "due"
	allDue   = "claim"
)

// keep is how much longer than its lease DynamoDB keeps a claim at least. The reaper clears up long before; deletion by
// the table itself comes late and is never counted on.
const keep = 30 * 24 * time.Hour

type attr struct {
	S string `json:"S,omitempty"`
	N string `json:"N,omitempty"`
}

type item map[string]attr

func str(s string) attr { return attr{S: s} }

func num(n int64) attr { return attr{N: strconv.FormatInt(n, 10)} }

func key(name string) item { return item{attrName: str(name)} }

func claimItem(c webhook.Claim) (item, error) {
	raw, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	return item{
		attrName: str(c.ID), attrClaim: str(string(raw)), attrAttempt: num(int64(c.Attempt)), attrState: num(int64(c.State)),
		attrExpires: num(c.Expires.UnixNano()), attrDue: str(allDue), attrTTL: num(c.Expires.Add(keep).Unix()),
	}, nil
}

func nameItem(name, owner string, c webhook.Claim) item {
	return item{attrName: str(name), attrOwner: str(owner), attrTTL: num(c.Expires.Add(keep).Unix())}
}

// claim reads an item; nil where it is none of a claim.
func (i item) claim() (*webhook.Claim, error) {
	raw, ok := i[attrClaim]
	if !ok {
		return nil, nil
	}
	var c webhook.Claim
	if err := json.Unmarshal([]byte(raw.S), &c); err != nil {
		return nil, fmt.Errorf("item %q: %w", i[attrName].S, err)
	}
	state, err1 := strconv.Atoi(i[attrState].N)
	expires, err2 := strconv.ParseInt(i[attrExpires].N, 10, 64)
	if err1 != nil || err2 != nil {
		return nil, fmt.Errorf("item %q has no state or no lease", i[attrName].S)
	}
	c.State, c.Expires = webhook.State(state), time.Unix(0, expires)
	return &c, nil
}

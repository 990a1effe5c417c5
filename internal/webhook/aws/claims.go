package aws

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/proctor-ci/proctor/internal/webhook"
)

// Claims is a webhook.Store in one DynamoDB table. Nothing rests on the table's time to live, which deletes days late: the
// lease is compared in each condition.
type Claims struct {
	c     *Client
	table string
	now   func() time.Time
}

// NewClaims sends nothing.
func NewClaims(c *Client, table string, now func() time.Time) *Claims { return &Claims{c, table, now} }

var dynamo = service{name: "dynamodb", target: "DynamoDB_20120810", version: "1.0"}

// contended bounds how often a claim is looked at anew when others write the same names at that moment.
const contended = 8

var errContended = errors.New("too many deliveries of one event at once")

// Find implements webhook.Store.
func (s *Claims) Find(ctx context.Context, keys []string) (webhook.Claim, error) {
	v, err := s.look(ctx, keys)
	if err != nil {
		return webhook.Claim{}, err
	}
	for _, k := range keys {
		if h := v.holder(k); h != nil && !s.lapsed(h) {
			return *h, nil
		}
	}
	return webhook.Claim{}, webhook.ErrNoClaim
}

// Claim implements webhook.Store.
func (s *Claims) Claim(ctx context.Context, c webhook.Claim, lease time.Duration) (webhook.Claim, error) {
	wait := firstWait / 2
	for range contended {
		v, err := s.look(ctx, append([]string{c.ID}, c.Held()...))
		if err != nil {
			return webhook.Claim{}, err
		}
		got, steps, err := s.plan(c, v, lease)
		if err != nil {
			return got, err
		}
		err = s.transact(ctx, steps)
		if err == nil || !is(err, "TransactionCanceledException") && !is(err, "TransactionConflictException") {
			return got, err
		}
		// Somebody wrote one of these names since: look again.
		if s.c.cfg.Sleep(ctx, jitter(wait)) != nil {
			return webhook.Claim{}, err
		}
		wait = min(2*wait, 4*firstWait)
	}
	return webhook.Claim{}, fmt.Errorf("claim %s: %w", c.ID, errContended)
}

// plan is what has to be written, each step on the condition that its item still is as it was read. ErrTaken comes with
// the holder.
func (s *Claims) plan(c webhook.Claim, v view, lease time.Duration) (webhook.Claim, []step, error) {
	now := s.now()
	c.Attempt, c.Created, c.State, c.Expires = 1, now, webhook.Claimed, now.Add(lease)
	names := append([]string{c.ID}, c.Keys...)
	lapsed := map[string]*webhook.Claim{}
	for _, n := range names {
		h := v.holder(n)
		switch {
		case h == nil:
			continue
		case !s.lapsed(h):
			return *h, nil, webhook.ErrTaken
		case h.ID == c.ID:
			c.Attempt, c.Created = h.Attempt+1, h.Created
		}
		lapsed[h.ID] = h
	}
	if h := v.holder(c.Turn); h != nil && h.ID != c.ID && h.State != webhook.Ended {
		return *h, nil, webhook.ErrTaken
	}
	p := plan{table: s.table, done: map[string]bool{}}
	it, err := claimItem(c)
	if err != nil {
		return webhook.Claim{}, nil, err
	}
	p.put(it, ifLapsed(lapsed[c.ID], now))
	for _, k := range c.Held() {
		p.put(nameItem(k, c.ID, c), ifOwner(v.items[k][attrOwner].S))
	}
	for _, h := range lapsed {
		if h.ID != c.ID {
			p.delete(h.ID, ifLapsed(h, now))
		}
		for _, k := range h.Held() {
			p.delete(k, ifOwner(h.ID))
		}
	}
	for _, n := range append(names, c.Turn) {
		// A name whose claim is gone is free for as long as that claim stays gone.
		if o := v.items[n][attrOwner].S; o != "" && v.holder(n) == nil {
			p.check(o, condition{text: "attribute_not_exists(pk)"})
		}
	}
	return c, p.steps, nil
}

// Mark implements webhook.Store.
func (s *Claims) Mark(ctx context.Context, id string, attempt int, to webhook.State, lease time.Duration) error {
	expires := s.now().Add(lease)
	values := item{":to": num(int64(to)), ":expires": num(expires.UnixNano()), ":ttl": num(expires.Add(keep).Unix())}
	cond := "attribute_exists(claim) AND #state < :to"
	if attempt != 0 {
		cond += " AND attempt = :attempt"
		values[":attempt"] = num(int64(attempt))
	}
	err := s.c.call(ctx, dynamo, "UpdateItem", map[string]any{
		"TableName": s.table, "Key": key(id), "ConditionExpression": cond,
		"UpdateExpression":         "SET #state = :to, expires = :expires, #ttl = :ttl",
		"ExpressionAttributeNames": map[string]string{"#state": attrState, "#ttl": attrTTL}, "ExpressionAttributeValues": values,
	}, &struct{}{})
	if !is(err, "ConditionalCheckFailedException") {
		return err
	}
	c, err := s.get(ctx, id)
	switch {
	case err != nil:
		return err
	case c == nil || attempt != 0 && attempt != c.Attempt:
		return webhook.ErrLost
	case c.State >= to:
		return nil
	}
	return fmt.Errorf("mark %s: %w", id, errContended)
}

// Release implements webhook.Store.
func (s *Claims) Release(ctx context.Context, id string, attempt int, in webhook.State) error {
	c, err := s.get(ctx, id)
	if err != nil {
		return err
	}
	if c == nil || attempt != 0 && attempt != c.Attempt || c.State != in {
		return webhook.ErrLost
	}
	p := plan{table: s.table, done: map[string]bool{}}
	p.delete(id, ifAt(c))
	for _, k := range c.Keys {
		p.delete(k, ifOwner(id))
	}
	if c.Turn != "" {
		// Another claim may have it since this one ended.
		turn, err := s.read(ctx, []string{c.Turn})
		if err != nil {
			return err
		}
		if turn[c.Turn][attrOwner].S == id {
			p.delete(c.Turn, ifOwner(id))
		}
	}
	err = s.transact(ctx, p.steps)
	if is(err, "TransactionCanceledException") {
		// It moved on between the look and the write.
		return webhook.ErrLost
	}
	return err
}

// Expired implements webhook.Store. The index may lag by a moment: whoever acts on what it says does so by conditional steps.
func (s *Claims) Expired(ctx context.Context, limit int) ([]webhook.Claim, error) {
	var claims []webhook.Claim
	var unread int
	var last error
	for from := (item)(nil); ; {
		due, next, err := s.due(ctx, limit, from)
		if err != nil {
			return claims, err
		}
		for _, i := range due {
			c, err := i.claim()
			if err != nil {
				unread, last = unread+1, err
				continue
			}
			if c != nil && len(claims) < limit {
				claims = append(claims, *c)
			}
		}
		if from = next; len(claims) == limit || from == nil {
			break
		}
	}
	if unread > 0 {
		return claims, fmt.Errorf("%d claims of the table cannot be read, the last of them: %w", unread, last)
	}
	return claims, nil
}

// due gives a page of items whose lease is over, and where the next one begins; nil at the end.
func (s *Claims) due(ctx context.Context, limit int, from item) ([]item, item, error) {
	var out struct {
		Items            []item
		LastEvaluatedKey item
	}
	in := map[string]any{
		"TableName": s.table, "IndexName": indexDue, "Limit": limit, "KeyConditionExpression": "due = :due AND expires <= :now",
		"ExpressionAttributeValues": item{":due": str(allDue), ":now": num(s.now().UnixNano())},
	}
	if from != nil {
		in["ExclusiveStartKey"] = from
	}
	err := s.c.call(ctx, dynamo, "Query", in, &out)
	return out.Items, out.LastEvaluatedKey, err
}

// Count implements webhook.Store. The end is part of the item's name: each window has one of its own, which the table's time to live removes.
func (s *Claims) Count(ctx context.Context, name string, end time.Time) (int, error) {
	var out struct{ Attributes item }
	err := s.c.call(ctx, dynamo, "UpdateItem", map[string]any{
		"TableName": s.table, "Key": key("count:" + strconv.FormatInt(end.Unix(), 10) + ":" + name), "UpdateExpression": "ADD amount :one SET #ttl = :ttl",
		"ExpressionAttributeNames":  map[string]string{"#ttl": attrTTL},
		"ExpressionAttributeValues": item{":one": num(1), ":ttl": num(end.Add(time.Hour).Unix())}, "ReturnValues": "UPDATED_NEW",
	}, &out)
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(out.Attributes["amount"].N)
	if err != nil {
		return 0, fmt.Errorf("count %s: the table does not say what it is now", name)
	}
	return n, nil
}

func (s *Claims) lapsed(c *webhook.Claim) bool {
	return c.State == webhook.Claimed && !s.now().Before(c.Expires)
}

func (s *Claims) get(ctx context.Context, id string) (*webhook.Claim, error) {
	items, err := s.read(ctx, []string{id})
	if err != nil {
		return nil, err
	}
	return items[id].claim()
}

// transact carries a token of its own, so that an attempt whose answer was lost is not made twice.
func (s *Claims) transact(ctx context.Context, steps []step) error {
	return s.c.call(ctx, dynamo, "TransactWriteItems", map[string]any{"TransactItems": steps, "ClientRequestToken": rand.Text()}, &struct{}{})
}

// view is what the table held for some names, and for the claims that own them.
type view struct {
	items  map[string]item
	claims map[string]*webhook.Claim
}

func (v view) holder(name string) *webhook.Claim {
	if c := v.claims[name]; c != nil {
		return c
	}
	return v.claims[v.items[name][attrOwner].S]
}

func (s *Claims) look(ctx context.Context, names []string) (view, error) {
	v := view{claims: map[string]*webhook.Claim{}}
	var err error
	if v.items, err = s.read(ctx, names); err != nil {
		return v, err
	}
	var owners []string
	for _, i := range v.items {
		if o := i[attrOwner].S; o != "" && v.items[o] == nil && !slices.Contains(owners, o) {
			owners = append(owners, o)
		}
	}
	owned, err := s.read(ctx, owners)
	if err != nil {
		return v, err
	}
	for _, m := range []map[string]item{v.items, owned} {
		for name, i := range m {
			if v.claims[name], err = i.claim(); err != nil {
				return v, err
			}
		}
	}
	return v, nil
}

// read gives the items that exist, by name.
func (s *Claims) read(ctx context.Context, names []string) (map[string]item, error) {
	out := map[string]item{}
	var keys []item
	for _, n := range names {
		if _, twice := out[n]; !twice {
			out[n] = nil
			keys = append(keys, key(n))
		}
	}
	clear(out)
	type table struct {
		Keys           []item
		ConsistentRead bool
	}
	for tries := 0; len(keys) > 0; tries++ {
		var got struct {
			Responses       map[string][]item
			UnprocessedKeys map[string]table
		}
		if tries == contended {
			return nil, errors.New("BatchGetItem: the table leaves keys unread: raise its capacity")
		}
		if err := s.c.call(ctx, dynamo, "BatchGetItem", map[string]any{"RequestItems": map[string]table{s.table: {keys, true}}}, &got); err != nil {
			return nil, err
		}
		for _, i := range got.Responses[s.table] {
			out[i[attrName].S] = i
		}
		keys = got.UnprocessedKeys[s.table].Keys
	}
	return out, nil
}

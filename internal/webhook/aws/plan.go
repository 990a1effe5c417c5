package aws

import (
	"time"

	"github.com/proctor-ci/proctor/internal/webhook"
)

// write is one item's part of a transaction, in the API's own form.
type write struct {
	TableName                 string
	Item                      item              `json:",omitempty"`
	Key                       item              `json:",omitempty"`
	ConditionExpression       string            `json:",omitempty"`
	ExpressionAttributeNames  map[string]string `json:",omitempty"`
	ExpressionAttributeValues item              `json:",omitempty"`
}

type step struct {
	Put            *write `json:",omitempty"`
	Delete         *write `json:",omitempty"`
	ConditionCheck *write `json:",omitempty"`
}

type condition struct {
	text   string
	names  map[string]string
	values item
}

// ifLapsed: the item still is the claim that was read, and its lease is over; nil means that there was none.
func ifLapsed(c *webhook.Claim, now time.Time) condition {
	if c == nil {
		return condition{text: "attribute_not_exists(pk)"}
	}
	return condition{
		text: "attempt = :attempt AND #state = :state AND expires <= :now", names: map[string]string{"#state": attrState},
		values: item{":attempt": num(int64(c.Attempt)), ":state": num(int64(webhook.Claimed)), ":now": num(now.UnixNano())},
	}
}

// ifAt: the claim is where it was read.
func ifAt(c *webhook.Claim) condition {
	return condition{
		text: "attempt = :attempt AND #state = :state", names: map[string]string{"#state": attrState},
		values: item{":attempt": num(int64(c.Attempt)), ":state": num(int64(c.State))},
	}
}

// ifOwner: the name is nobody's or still that claim's.
func ifOwner(id string) condition {
	if id == "" {
		return condition{text: "attribute_not_exists(pk)"}
	}
	return condition{
		text: "attribute_not_exists(pk) OR #owner = :owner", names: map[string]string{"#owner": attrOwner}, values: item{":owner": str(id)},
	}
}

// plan gathers steps; a transaction names each item once, and the first step on it counts.
type plan struct {
	table string
	steps []step
	done  map[string]bool
}

func (p *plan) add(name string, w write, c condition, as func(*write) step) {
	if p.done[name] {
		return
	}
	p.done[name] = true
	w.TableName, w.ConditionExpression, w.ExpressionAttributeNames, w.ExpressionAttributeValues = p.table, c.text, c.names, c.values
	p.steps = append(p.steps, as(&w))
}

func (p *plan) put(i item, c condition) {
	p.add(i[attrName].S, write{Item: i}, c, func(w *write) step { return step{Put: w} })
}

func (p *plan) delete(name string, c condition) {
	p.add(name, write{Key: key(name)}, c, func(w *write) step { return step{Delete: w} })
}

func (p *plan) check(name string, c condition) {
	p.add(name, write{Key: key(name)}, c, func(w *write) step { return step{ConditionCheck: w} })
}

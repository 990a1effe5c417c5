package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/proctor-ci/proctor/internal/webhook"
	"github.com/proctor-ci/proctor/internal/webhook/aws"
	"github.com/proctor-ci/proctor/internal/webhook/bolt"
)

// keeping is where claims and messages are kept. The zero value keeps claims in memory and messages nowhere: a delivery is
// then dealt with before it is answered.
type keeping struct {
	store webhook.Store
	queue webhook.Queue
	file  *bolt.File // nil but for a plain server with a file
}

// keep opens what the environment names. A dry one checks the settings and opens nothing.
func keep(e env, dry bool) (keeping, error) {
	file, table, queue := e.getenv("PROCTOR_STORE"), e.getenv("PROCTOR_TABLE"), e.getenv("PROCTOR_QUEUE_URL")
	k := keeping{store: webhook.NewMemory(time.Now)}
	switch {
	case file != "" && (table != "" || queue != ""):
		return k, errors.New("PROCTOR_STORE is a file and PROCTOR_TABLE and PROCTOR_QUEUE_URL are AWS's: set the one or the other two")
	case queue != "" && table == "":
		return k, errors.New("PROCTOR_QUEUE_URL is set and PROCTOR_TABLE is not: workers in several processes need one table of claims")
	case file != "" && !dry:
		f, err := bolt.Open(file, time.Now)
		if err != nil {
			return k, fmt.Errorf("PROCTOR_STORE: %w", err)
		}
		return keeping{f, f, f}, nil
	case table != "":
		c, err := awsClient(e)
		if err != nil {
			return k, err
		}
		k.store = aws.NewClaims(c, table, time.Now)
		if queue != "" {
			k.queue = aws.NewQueue(c, queue)
		}
	}
	return k, nil
}

func awsClient(e env) (*aws.Client, error) {
	return aws.New(aws.Config{
		Region: e.getenv("AWS_REGION"), KeyID: e.getenv("AWS_ACCESS_KEY_ID"), Secret: e.getenv("AWS_SECRET_ACCESS_KEY"),
		SessionToken: e.getenv("AWS_SESSION_TOKEN"), Endpoint: e.getenv("AWS_ENDPOINT_URL"),
	})
}

// parameterNames are the SSM parameters that the environment names, by the variable they stand for.
func (e env) parameterNames() map[string]string {
	out := map[string]string{}
	for _, v := range variables() {
		if name := e.getenv(v.name + "_PARAMETER"); strings.Contains(v.help, "(also _FILE") && name != "" {
			out[v.name] = name
		}
	}
	return out
}

// withParameters reads them, in one call; none where none is named.
func (e env) withParameters(ctx context.Context) (env, error) {
	wanted := e.parameterNames()
	if len(wanted) == 0 {
		return e, nil
	}
	c, err := awsClient(e)
	if err != nil {
		return e, err
	}
	var names []string
	for _, n := range wanted {
		names = append(names, n)
	}
	got, err := c.Parameters(ctx, names)
	if err != nil {
		return e, err
	}
	e.parameters = map[string]string{}
	for variable, name := range wanted {
		e.parameters[variable] = got[name]
	}
	return e, nil
}

// loader makes the handler again only where a parameter has changed: a new one has no tokens in hand.
func loader(e env, make func(env) (*webhook.Handler, error)) func(context.Context) (*webhook.Handler, error) {
	var h *webhook.Handler
	var last map[string]string
	return func(ctx context.Context) (*webhook.Handler, error) {
		now, err := e.withParameters(ctx)
		if err != nil || h != nil && maps.Equal(last, now.parameters) {
			return h, err
		}
		fresh, err := make(now)
		if err != nil {
			return h, err
		}
		h, last = fresh, now.parameters
		return h, nil
	}
}

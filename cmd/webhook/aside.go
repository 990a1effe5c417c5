package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/proctor-ci/proctor/internal/webhook/bolt"
)

// setAside shows what the queue of a plain server has set aside, one JSON object a line, or puts it back.
func setAside(e env, what string, stdout io.Writer) error {
	path := e.getenv("PROCTOR_STORE")
	switch {
	case what != "list" && what != "requeue":
		return fmt.Errorf("-set-aside %q: write list, or requeue", what)
	case path == "":
		return errors.New("-set-aside: PROCTOR_STORE is not set: only a file has such messages; on AWS look into the dead-letter queue")
	}
	f, err := bolt.Open(path, time.Now)
	if err != nil {
		return fmt.Errorf("PROCTOR_STORE: %w", err)
	}
	defer func() { _ = f.Close() }() // every change is on the disk already
	if what == "requeue" {
		n, err := f.Requeue()
		if err != nil {
			return fmt.Errorf("PROCTOR_STORE: put messages back: %w", err)
		}
		fmt.Fprintf(stdout, "%d messages are in the queue again, and are worked on at the next start\n", n)
		return nil
	}
	all, err := f.Asides()
	if err != nil {
		return fmt.Errorf("PROCTOR_STORE: read the messages: %w", err)
	}
	enc := json.NewEncoder(stdout)
	for _, a := range all {
		if err := enc.Encode(asideLine(a)); err != nil {
			return err
		}
	}
	return nil
}

// asideLine is what a person needs to find the issue.
func asideLine(a bolt.SetAside) map[string]any {
	out := map[string]any{"at": a.At, "why": a.Why}
	if m := a.Message; m != nil {
		out["delivery"], out["event"], out["attempts"] = m.Delivery, m.Event, a.Attempts
		out["repo"], out["issue"] = m.Trigger.Repo.FullName(), m.Trigger.Issue.Number
	} else {
		out["raw"] = a.Raw
	}
	return out
}

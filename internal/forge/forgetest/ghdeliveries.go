package forgetest

import (
	"net/http"
	"strconv"
	"time"
)

// attempt is one line of an App's log of deliveries.
type attempt struct {
	id       int64
	guid     string
	event    string
	action   string
	at       time.Time
	status   int
	repeated bool
}

func (g *GitHub) noteAttempt(d *Delivery, status int) {
	g.attempts = append(g.attempts, attempt{int64(len(g.attempts) + 1), d.ID, d.Event, d.Action, g.now(), status, d.Redeliveries > 0})
}

// listAttempts gives the log, the newest first, a page at a time by cursor.
// https://docs.github.com/en/rest/apps/webhooks#list-deliveries-for-an-app-webhook
func listAttempts(c *call) (int, any, error) {
	if err := c.appJWT(); err != nil {
		return 0, nil, err
	}
	q := c.r.URL.Query()
	size, err := strconv.Atoi(q.Get("per_page"))
	if err != nil || size < 1 || size > 100 {
		size = 30
	}
	before := int64(len(c.g.attempts) + 1)
	if cur := q.Get("cursor"); cur != "" {
		if before, err = strconv.ParseInt(cur, 10, 64); err != nil {
			return 0, nil, refuse(http.StatusUnprocessableEntity, "Invalid cursor")
		}
	}
	page := []obj{}
	for i := min(before, int64(len(c.g.attempts)+1)) - 2; i >= 0 && len(page) < size; i-- {
		a := c.g.attempts[i]
		words := "OK"
		if a.status/100 != 2 {
			words = "Invalid HTTP Response: " + strconv.Itoa(a.status)
		}
		page = append(page, obj{
			"id": a.id, "guid": a.guid, "delivered_at": stampOf(a.at), "redelivery": a.repeated, "duration": 0.1, "status": words,
			"status_code": a.status, "event": a.event, "action": a.action, "installation_id": c.g.opt.Installation, "repository_id": nil, "throttled_at": nil,
		})
	}
	if n := len(page); n == size && page[n-1]["id"] != int64(1) {
		next := c.g.APIURL() + "/app/hook/deliveries?per_page=" + strconv.Itoa(size) + "&cursor=" + strconv.FormatInt(page[n-1]["id"].(int64), 10)
		c.w.Header().Set("Link", "<"+next+`>; rel="next"`)
	}
	return http.StatusOK, page, nil
}

// repeatAttempt sends a delivery again in the background.
func repeatAttempt(c *call) (int, any, error) {
	if err := c.appJWT(); err != nil {
		return 0, nil, err
	}
	id := int64(c.number())
	if id < 1 || id > int64(len(c.g.attempts)) {
		return 0, nil, notFound()
	}
	for _, d := range c.g.deliveries {
		if d.ID == c.g.attempts[id-1].guid {
			d.Redeliveries++
			url := c.g.hook.url
			c.g.wg.Go(func() { c.g.send(url, d) })
		}
	}
	return http.StatusAccepted, obj{}, nil
}

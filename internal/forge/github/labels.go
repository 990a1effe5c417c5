package github

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/go-github/v66/github"

	"github.com/proctor-ci/proctor/internal/forge"
)

// labelColour of labels we have to create: one neutral blue, since a maintainer may change it.
const labelColour = "1d76db"

// SetLabels adds before it removes, so that an interruption leaves one label too many rather than none.
func (c *Client) SetLabels(ctx context.Context, number int, add, remove []string) error {
	if err := c.addLabels(ctx, number, add); err != nil {
		return err
	}
	for _, name := range remove {
		k := call{what: c.in("remove label " + name + " from " + hash(number)), needs: permIssues, missing: "check the issue number"}
		err := c.do(ctx, k, func(ctx context.Context, _ int) (*github.Response, error) {
			return c.api.Issues.RemoveLabelForIssue(ctx, c.owner, c.repo, number, segment(name))
		})
		if err != nil && !notFoundLabel(err) {
			return err
		}
	}
	return nil
}

// AddLabelsToPullRequest labels a pull request, which is an issue to this API.
func (c *Client) AddLabelsToPullRequest(ctx context.Context, number int, labels []string) error {
	return c.addLabels(ctx, number, labels)
}

func (c *Client) addLabels(ctx context.Context, number int, names []string) error {
	if len(names) == 0 {
		return nil
	}
	for _, name := range names {
		if err := c.ensureLabel(ctx, name); err != nil {
			return err
		}
	}
	k := call{what: c.in("add label " + strings.Join(names, ", ") + " to " + hash(number)), needs: permIssues, missing: "check the issue number"}
	return c.do(ctx, k, func(ctx context.Context, _ int) (*github.Response, error) {
		// The library sends a bare array, which the API's description does not list; the object form is.
		req, err := c.api.NewRequest(http.MethodPost, c.repoPath("issues", strconv.Itoa(number), "labels"), map[string][]string{"labels": names})
		if err != nil {
			return nil, err
		}
		return c.api.Do(ctx, req, nil)
	})
}

// ensureLabel creates a missing label once per client, with a colour people can see.
func (c *Client) ensureLabel(ctx context.Context, name string) error {
	c.mu.Lock()
	known := c.labels[strings.ToLower(name)]
	c.mu.Unlock()
	if known {
		return nil
	}
	k := call{what: c.in("read label " + name), needs: permIssues}
	err := c.do(ctx, k, func(ctx context.Context, _ int) (*github.Response, error) {
		_, resp, err := c.api.Issues.GetLabel(ctx, c.owner, c.repo, segment(name))
		return resp, err
	})
	if errors.Is(err, forge.ErrNotFound) {
		err = c.createLabel(ctx, name)
	}
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.labels[strings.ToLower(name)] = true
	c.mu.Unlock()
	return nil
}

func (c *Client) createLabel(ctx context.Context, name string) error {
	k := call{what: c.in("create label " + name), needs: permIssues}
	err := c.do(ctx, k, func(ctx context.Context, _ int) (*github.Response, error) {
		_, resp, err := c.api.Issues.CreateLabel(ctx, c.owner, c.repo, &github.Label{Name: &name, Color: github.String(labelColour)})
		return resp, err
	})
	if errors.Is(err, forge.ErrConflict) { // made meanwhile, or by our own lost call
		return nil
	}
	return err
}

func (c *Client) repoPath(parts ...string) string {
	path := "repos/" + segment(c.owner) + "/" + segment(c.repo)
	for _, p := range parts {
		path += "/" + segment(p)
	}
	return path
}

func hash(number int) string { return "#" + strconv.Itoa(number) }

package forgetest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// glLend makes a project access token: a bot user of its own holds it. A bot makes none.
func glLend(c *glCall) (int, any, error) {
	var in struct {
		Name        string
		Scopes      []string
		AccessLevel int    `json:"access_level"`
		ExpiresAt   string `json:"expires_at"`
	}
	if err := c.decode(&in); err != nil {
		return 0, nil, err
	}
	ends, err := time.Parse(time.DateOnly, in.ExpiresAt)
	if err != nil || in.Name == "" || len(in.Scopes) == 0 || !ends.After(c.g.now()) || strings.HasPrefix(c.token.Login, "project_") {
		return 0, nil, glRefuse(http.StatusBadRequest, "400 Bad request - the token cannot be made")
	}
	role := "developer"
	if in.AccessLevel != accessLevel(role) {
		return 0, nil, glRefuse(http.StatusBadRequest, "400 Bad request - access_level")
	}
	id := c.g.id()
	login := fmt.Sprintf("project_4200_bot_%d", id)
	c.g.addAccount(login, "Bot", role)
	value := "gl" + "pat-" + secret(12)
	c.g.tokens[value] = &GitLabToken{Login: login, Scopes: slices.Clone(in.Scopes), Expires: ends}
	return http.StatusCreated, obj{"id": id, "name": in.Name, "scopes": in.Scopes, "access_level": in.AccessLevel, "active": true, "revoked": false, "expires_at": in.ExpiresAt, "token": value}, nil
}

func glRevokeSelf(c *glCall) (int, any, error) {
	c.token.revoked = true
	return http.StatusNoContent, nil, nil
}

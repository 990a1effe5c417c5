package forgetest

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/url"
)

// appManifest is a manifest that a person has confirmed and nobody has converted yet.
type appManifest struct {
	Name        string            `json:"name"`
	URL         string            `json:"url"`
	Redirect    string            `json:"redirect_url"`
	Permissions map[string]string `json:"default_permissions"`
	Events      []string          `json:"default_events"`
	Hook        struct {
		URL    string `json:"url"`
		Active bool   `json:"active"`
	} `json:"hook_attributes"`
}

// serveManifest is the page on which a person confirms an App; here everybody does at once.
// https://docs.github.com/en/apps/sharing-github-apps/registering-a-github-app-from-a-manifest
func (g *GitHub) serveManifest(mux *http.ServeMux) {
	confirm := func(w http.ResponseWriter, r *http.Request) {
		var m appManifest
		if json.Unmarshal([]byte(r.PostFormValue("manifest")), &m) != nil || m.URL == "" || m.Hook.URL == "" || m.Redirect == "" {
			writeJSON(w, http.StatusUnprocessableEntity, obj{"message": "Invalid GitHub App configuration"})
			return
		}
		g.state.Lock()
		code := secret(20)
		g.manifests[code] = m
		g.state.Unlock()
		http.Redirect(w, r, m.Redirect+"?"+url.Values{"code": {code}, "state": {r.URL.Query().Get("state")}}.Encode(), http.StatusFound)
	}
	mux.HandleFunc("POST /settings/apps/new", confirm)
	mux.HandleFunc("POST /organizations/{org}/settings/apps/new", confirm)
}

// convertManifest makes the App of a code, once. What it answers is given to nobody again.
func convertManifest(c *call) (int, any, error) {
	m, ok := c.g.manifests[c.r.PathValue("code")]
	if !ok {
		return 0, nil, notFound()
	}
	delete(c.g.manifests, c.r.PathValue("code"))
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return 0, nil, err
	}
	slug := or(m.Name, "an-app")
	c.g.app = &app{id: c.g.id(), slug: slug, key: &key.PublicKey, installation: c.g.id(), permissions: m.Permissions}
	return http.StatusCreated, obj{
		"id": c.g.app.id, "slug": slug, "node_id": nodeID("A_", c.g.app.id), "owner": c.g.userJSON(c.g.user(c.g.opt.Owner)), "name": slug, "external_url": m.URL,
		"html_url": c.g.url + "/apps/" + slug, "permissions": m.Permissions, "events": m.Events, "client_id": "Iv1." + secret(8), "client_secret": secret(20), "webhook_secret": secret(20),
		"pem": string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})),
	}, nil
}

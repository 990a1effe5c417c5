package config

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/proctor-ci/proctor/internal/pattern"
)

// Probe is a gate that is a check of ours instead of a command of the repository's. Which of the fields
// behind Timeout count is up to Kind.
type Probe struct {
	Name    string
	As      string // "iteration", "regression" or "acceptance"
	Kind    string // "http", "tcp", "boots", "env-file", "file" or "docker-build"
	Timeout time.Duration

	Start    Command       // started in the checkout before it is looked at; may be empty for http and tcp
	URL      string        // http
	Status   int           // http
	Body     string        // http: what the answer has to contain
	Address  string        // tcp: host:port on loopback
	Within   time.Duration // http, tcp: how long is tried
	For      time.Duration // boots
	Path     string        // env-file, file
	Keys     []string      // env-file
	Contains string        // file
	Absent   bool          // file
	File     string        // docker-build: the Dockerfile
	Context  string        // docker-build
}

// probeKind is one kind of probe with its keys: loading, the JSON Schema and the reference read it.
type probeKind struct {
	name, doc, example string
	fields             []probeField
}

type probeField struct {
	name, doc, example string
	required           bool
	min, max           int64
	check              func(string) error
	field              func(*Probe) any
}

func probeKinds() []probeKind {
	start := probeField{name: "start", doc: "A command that is started first and ended afterwards.", example: "npm start", field: func(p *Probe) any { return &p.Start }}
	within := probeField{name: "within", doc: "How long is tried, 30s unless set.", example: "10s", field: func(p *Probe) any { return &p.Within }}
	needed := start
	needed.required = true
	return []probeKind{
		{
			name: "http", doc: "Asks a URL on loopback until the answer is as wanted.",
			example: `{start: npm start, url: "http://127.0.0.1:3000/health", status: 200, body: ok, within: 20s}`,
			fields: []probeField{
				start,
				{name: "url", doc: "An http:// address on 127.0.0.1, ::1 or localhost.", example: "http://127.0.0.1:3000/", required: true, check: checkLoopbackURL, field: func(p *Probe) any { return &p.URL }},
				{name: "status", doc: "The wanted status, 200 unless set. Redirects are not followed.", example: "204", min: 100, max: 599, field: func(p *Probe) any { return &p.Status }},
				{name: "body", doc: "Text that the answer has to contain.", example: "ok", field: func(p *Probe) any { return &p.Body }},
				within,
			},
		},
		{
			name: "tcp", doc: "Connects to a port on loopback.", example: `{start: ./server, address: "127.0.0.1:5432", within: 10s}`,
			fields: []probeField{
				start,
				{name: "address", doc: "host:port on 127.0.0.1, ::1 or localhost.", example: "127.0.0.1:5432", required: true, check: checkLoopbackAddress, field: func(p *Probe) any { return &p.Address }},
				within,
			},
		},
		{
			name: "boots", doc: "Starts a command that has to stay up.", example: `{start: npm start, for: 5s}`,
			fields: []probeField{
				needed,
				{name: "for", doc: "How long it has to stay up, 5s unless set.", example: "10s", field: func(p *Probe) any { return &p.For }},
			},
		},
		{
			name: "env-file", doc: "Wants variables to be named in an env file. Values are not looked at.", example: `{path: .env.example, keys: [PORT, DATABASE_URL]}`,
			fields: []probeField{
				{name: "path", doc: "The file.", example: ".env.example", required: true, check: checkPath, field: func(p *Probe) any { return &p.Path }},
				{name: "keys", doc: "Variables that have to stand there.", example: "[PORT]", required: true, check: checkVariable, field: func(p *Probe) any { return &p.Keys }},
			},
		},
		{
			name: "file", doc: "Wants a file to exist, to contain a text, or to be absent.", example: `{path: docs/api.md, contains: "## Limits"}`,
			fields: []probeField{
				{name: "path", doc: "The file.", example: "docs/api.md", required: true, check: checkPath, field: func(p *Probe) any { return &p.Path }},
				{name: "contains", doc: "Text it has to contain.", example: "Limits", field: func(p *Probe) any { return &p.Contains }},
				{name: "absent", doc: "It must not exist.", example: "true", field: func(p *Probe) any { return &p.Absent }},
			},
		},
		{
			name: "docker-build", doc: "Builds an image from the candidate, by the builder that the job provides (`PROCTOR_DOCKER_HOST`); build steps get no network.", example: `{file: Dockerfile, context: .}`,
			fields: []probeField{
				{name: "file", doc: "The Dockerfile, `Dockerfile` unless set.", example: "build/Dockerfile", check: checkPath, field: func(p *Probe) any { return &p.File }},
				{name: "context", doc: "The folder that is sent, the whole checkout unless set.", example: "web", check: checkContext, field: func(p *Probe) any { return &p.Context }},
			},
		},
	}
}

func kindNames() []string {
	var names []string
	for _, k := range probeKinds() {
		names = append(names, k.name)
	}
	return names
}

func findKind(name string) (probeKind, bool) {
	kinds := probeKinds()
	i := slices.IndexFunc(kinds, func(k probeKind) bool { return k.name == name })
	if i < 0 {
		return probeKind{}, false
	}
	return kinds[i], true
}

var probeName = pattern.Of(`^[a-z0-9][a-z0-9._-]{0,39}$`)

func gateWords() []string { return []string{"iteration", "regression", "acceptance"} }

// probe reads one entry of gates.probes.
func (d *decoder) probe(node ast.Node, p *Probe) []located {
	const next = "write it like {name: serves, http: {url: \"http://127.0.0.1:3000/\"}}"
	parts, ok := mapping(node)
	if !ok {
		return at(node, wrong(next, "want a probe, got %s", describe(node)))
	}
	p.As = "iteration"
	var found []located
	seen := map[string]bool{}
	for _, e := range parts {
		name, _ := text(e.Key)
		if seen[name] {
			found = append(found, at(e.Key, wrong("remove one of them", "%q stands here twice", name))...)
			continue
		}
		seen[name] = true
		v, ok := d.resolve(e.Value)
		if !ok {
			continue
		}
		kind, isKind := findKind(name)
		switch {
		case name == "name":
			found = append(found, at(v, readString(key{example: "serves", check: checkProbeName}, v, &p.Name))...)
		case name == "as":
			found = append(found, at(v, readString(key{allowed: gateWords()}, v, &p.As))...)
		case name == "timeout":
			found = append(found, at(v, readDuration(v, &p.Timeout))...)
		case !isKind:
			found = append(found, at(e.Key, unknownPart(name, append([]string{"name", "as", "timeout"}, kindNames()...)))...)
		case p.Kind != "":
			found = append(found, at(e.Key, wrong("write two probes", "a probe is of one kind, and this one is %s already", p.Kind))...)
		default:
			p.Kind = name
			found = append(found, d.probeFields(kind, e.Key, v, p)...)
		}
	}
	switch {
	case found != nil:
	case p.Kind == "":
		found = at(node, wrong("add one of "+strings.Join(kindNames(), ", "), "a probe without a kind"))
	case p.Name == "":
		p.Name = p.Kind
	}
	return found
}

func unknownPart(name string, known []string) *fault {
	next := "write one of " + strings.Join(known, ", ")
	if near := nearest(name, known); near != "" {
		next = fmt.Sprintf("did you mean %q?", near)
	}
	return wrong(next, "unknown key %q", name)
}

func (d *decoder) probeFields(kind probeKind, head, node ast.Node, p *Probe) []located {
	parts, ok := mapping(node)
	if !ok {
		return at(node, wrong("write it like "+kind.example, "want a mapping, got %s", describe(node)))
	}
	var found []located
	seen := map[string]bool{}
	var names []string
	for _, f := range kind.fields {
		names = append(names, f.name)
	}
	for _, e := range parts {
		name, _ := text(e.Key)
		i := slices.Index(names, name)
		switch {
		case i < 0:
			found = append(found, at(e.Key, unknownPart(name, names))...)
			continue
		case seen[name]:
			found = append(found, at(e.Key, wrong("remove one of them", "%q stands here twice", name))...)
			continue
		}
		seen[name] = true
		if v, ok := d.resolve(e.Value); ok {
			f := kind.fields[i]
			found = append(found, d.value(key{path: "gates.probes", example: f.example, min: f.min, max: f.max, check: f.check}, v, f.field(p))...)
		}
	}
	for _, f := range kind.fields {
		if f.required && !seen[f.name] {
			found = append(found, at(head, wrong("write it like "+kind.example, "%s needs %s", kind.name, f.name))...)
		}
	}
	if kind.name == "file" && p.Absent && p.Contains != "" {
		found = append(found, at(head, wrong("keep one of them", "a file that is absent contains nothing"))...)
	}
	p.fill()
	return found
}

// fill puts in what a kind means when a key is left out.
func (p *Probe) fill() {
	switch p.Kind {
	case "http":
		if p.Status == 0 {
			p.Status = 200
		}
		fallthrough
	case "tcp":
		if p.Within == 0 {
			p.Within = 30 * time.Second
		}
	case "boots":
		if p.For == 0 {
			p.For = 5 * time.Second
		}
	case "docker-build":
		if p.File == "" {
			p.File = "Dockerfile"
		}
		if p.Context == "" {
			p.Context = "."
		}
	}
}

func checkProbeName(s string) error {
	if !probeName.MatchString(s) || slices.Contains(gateWords(), s) || s == "setup" {
		return wrong(`write a short name like "serves"`, "%q is not the name of a probe", s)
	}
	return nil
}

var variable = pattern.Of(`^[A-Za-z_][A-Za-z0-9_]*$`)

func checkVariable(s string) error {
	if !variable.MatchString(s) {
		return wrong("write the variable's name alone", "%q is not the name of a variable", s)
	}
	return nil
}

func checkContext(s string) error {
	if s == "." {
		return nil
	}
	return checkPath(s)
}

// checkLoopbackURL: a probe asks what the candidate serves, never a host of the network.
func checkLoopbackURL(s string) error {
	const next = `write it like "http://127.0.0.1:3000/health"`
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" || u.User != nil || u.Fragment != "":
		return wrong(next, "%q is not a plain http:// address", s)
	case !isLoopback(u.Hostname()):
		return wrong(next, "%q is not on loopback: a probe asks what the candidate itself serves", s)
	}
	return nil
}

func checkLoopbackAddress(s string) error {
	const next = `write it like "127.0.0.1:5432"`
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return wrong(next, "%q is not host:port", s)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return wrong(next, "%q: %q is not a port", s, port)
	}
	if !isLoopback(host) {
		return wrong(next, "%q is not on loopback: a probe asks what the candidate itself serves", s)
	}
	return nil
}

func isLoopback(host string) bool { return host == "127.0.0.1" || host == "::1" || host == "localhost" }

// yamlProbe writes a probe as YAML that loads as it.
func yamlProbe(p Probe) string {
	kind, _ := findKind(p.Kind)
	var parts []string
	for _, f := range kind.fields {
		value := render(f.field(&p))
		switch value {
		case `""`, "0", "false", "[]", "0s":
			continue
		}
		parts = append(parts, f.name+": "+value)
	}
	out := fmt.Sprintf("{name: %s, as: %s, ", yamlText(p.Name), p.As)
	if p.Timeout > 0 {
		out += "timeout: " + durationText(p.Timeout) + ", "
	}
	return out + fmt.Sprintf("%s: {%s}}", p.Kind, strings.Join(parts, ", "))
}

// jsonProbe is the JSON Schema of one probe.
func jsonProbe() object {
	properties := object{
		"name":    object{"type": "string", "pattern": probeName.String(), "description": "What the probe is called in the record."},
		"as":      object{"type": "string", "enum": gateWords(), "default": "iteration", "description": "With which gate it runs."},
		"timeout": object{"type": "string", "pattern": durationPattern, "description": "Instead of gates.timeout."},
	}
	var kinds []object
	for _, k := range probeKinds() {
		fields, required := object{}, []string{}
		for _, f := range k.fields {
			o := key{min: f.min, max: f.max, field: func(*Config) any { return f.field(new(Probe)) }}.jsonType()
			o["description"] = f.doc
			fields[f.name] = o
			if f.required {
				required = append(required, f.name)
			}
		}
		properties[k.name] = object{"type": "object", "additionalProperties": false, "properties": fields, "required": required, "description": k.doc}
		kinds = append(kinds, object{"required": []string{k.name}})
	}
	return object{"type": "object", "additionalProperties": false, "properties": properties, "oneOf": kinds}
}

// probeReference lists kinds and keys for people.
func probeReference(b *strings.Builder) {
	b.WriteString("\nA probe has a `name`, the gate it runs with (`as`: `iteration`, `regression` or `acceptance`), perhaps a `timeout`, and one of:\n\n")
	b.WriteString("| kind | what it does | keys |\n|---|---|---|\n")
	for _, k := range probeKinds() {
		var keys []string
		for _, f := range k.fields {
			s := "`" + f.name + "`"
			if f.required {
				s += " (needed)"
			}
			keys = append(keys, s+": "+f.doc)
		}
		fmt.Fprintf(b, "| `%s` | %s Example: `%s` | %s |\n", k.name, k.doc, k.example, strings.Join(keys, " "))
	}
}

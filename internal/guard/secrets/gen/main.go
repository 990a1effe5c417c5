// Command gen writes ../gitleaks.json, the detector's rules, from the release of gitleaks that this
// module pins. It is a module of its own: the program itself needs the rules, not the sixty
// modules that come with the tool around them. Raise the version in go.mod, run `go generate ./internal/guard/secrets`
// and read the difference.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/zricethezav/gitleaks/v8/config"
)

const source = "github.com/zricethezav/gitleaks/v8"

// leftOut are rules that name no secret or name too much, with the reason.
var leftOut = map[string]string{
	"generic-api-key":        "replaced by our own reading of assignments, which needs no list of 1,400 stop words",
	"curl-auth-user":         "fires on documentation; the generic rule and the vendors' prefixes cover real keys",
	"pkcs12-file":            "looks at names only; the detector has its own",
	"adobe-client-id":        "public",
	"asana-client-id":        "public",
	"bitbucket-client-id":    "public",
	"discord-client-id":      "public",
	"flutterwave-public-key": "public",
	"linkedin-client-id":     "public",
	"lob-pub-api-key":        "public",
	"looker-client-id":       "public",
	"mailgun-pub-key":        "public",
	"messagebird-client-id":  "public",
	"new-relic-user-api-id":  "public",
	"plaid-client-id":        "public",
	"sendbird-access-id":     "public",
	"sumologic-access-id":    "public",
}

type allow struct {
	Regexes     []string `toml:"regexes" json:"regexes,omitempty"`
	RegexTarget string   `toml:"regexTarget" json:"target,omitempty"`
	Stopwords   []string `toml:"stopwords" json:"stopwords,omitempty"`
}

type rule struct {
	ID          string   `toml:"id" json:"id"`
	Regex       string   `toml:"regex" json:"regex"`
	SecretGroup int      `toml:"secretGroup" json:"group,omitempty"`
	Entropy     float64  `toml:"entropy" json:"entropy,omitempty"`
	Keywords    []string `toml:"keywords" json:"keywords"`
	Allowlists  []allow  `toml:"allowlists" json:"allow,omitempty"`
}

type file struct {
	Source  string `toml:"-" json:"source"`
	Licence string `toml:"-" json:"licence"`
	Rules   []rule `toml:"rules" json:"rules"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run() error {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}} {{.Version}}", source).Output()
	if err != nil {
		return fmt.Errorf("find %s: %w", source, err)
	}
	root, version, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	var in file
	if err := toml.Unmarshal([]byte(config.DefaultConfig), &in); err != nil {
		return fmt.Errorf("read rules: %w", err)
	}
	in.Source = source + "@" + version
	kept := in.Rules[:0]
	for _, r := range in.Rules {
		if leftOut[r.ID] != "" {
			continue
		}
		if r.ID == "gcp-api-key" {
			r.Allowlists = nil // a list of keys that were published; scanners of our own repository would stop at it
		}
		kept = append(kept, r)
	}
	in.Rules = kept
	licence, err := os.ReadFile(filepath.Join(root, "LICENSE"))
	if err != nil {
		return err
	}
	in.Licence = string(licence) // it goes where the rules go, the binary too
	if err := os.WriteFile(filepath.Join("..", "LICENSE.gitleaks"), licence, 0o644); err != nil {
		return err
	}
	target, err := os.Create(filepath.Join("..", "gitleaks.json"))
	if err != nil {
		return err
	}
	defer target.Close()
	enc := json.NewEncoder(target)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	return enc.Encode(in)
}

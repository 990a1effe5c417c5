package meter

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/proctor-ci/proctor/internal/secureurl"
)

// API names a vendor's API. Compatible servers of others speak it too.
type API string

// The APIs that are metered.
const (
	Anthropic API = "anthropic" // POST /v1/messages
	OpenAI    API = "openai"    // POST /v1/responses and /v1/chat/completions
	Gemini    API = "gemini"    // POST /v1beta/models/MODEL:generateContent and :streamGenerateContent
)

func dialectOf(a API) (dialect, error) {
	switch a {
	case Anthropic, "":
		return anthropic{}, nil
	case OpenAI:
		return openAI{}, nil
	case Gemini:
		return gemini{}, nil
	}
	return nil, fmt.Errorf("the model API %q is not metered: %s, %s and %s are", printable(string(a)), Anthropic, OpenAI, Gemini)
}

// Provider is where an API is and what pays there.
type Provider struct {
	API API // empty: Anthropic
	// Upstream is the base URL as the vendor's own clients take it: "https://api.anthropic.com",
	// "https://api.openai.com/v1", "https://generativelanguage.googleapis.com". Plain http is allowed to
	// loopback only.
	Upstream string
	Key      Credential
}

// provider is a Provider that was checked.
type provider struct {
	api      dialect
	upstream *url.URL
	key      Credential
}

func (p Provider) check() (*provider, error) {
	api, err := dialectOf(p.API)
	if err != nil {
		return nil, err
	}
	up, err := checkUpstream(p.Upstream)
	if err != nil {
		return nil, err
	}
	if p.Key.Value == "" {
		return nil, errors.New("no model key: " + keyHint(p.API))
	}
	if p.Key.Kind == "" {
		p.Key.Kind = APIKey
	}
	return &provider{api: api, upstream: up, key: p.Key}, nil
}

func keyHint(a API) string {
	switch a {
	case OpenAI:
		return "set OPENAI_API_KEY in the job's secrets"
	case Gemini:
		return "set GEMINI_API_KEY in the job's secrets"
	}
	return "set ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN in the job's secrets"
}

func checkUpstream(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http"):
		return nil, fmt.Errorf("model base URL %q: want https://host", raw)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("model base URL for host %s: leave out user, query and fragment", u.Host)
	case u.Scheme == "http" && !secureurl.Local(u.Hostname()):
		return nil, fmt.Errorf("model base URL %q: the key would travel in clear; use https", raw)
	}
	u.Path = strings.TrimRight(u.Path, "/")
	return u, otherSigning(u.Hostname())
}

// otherSigning refuses hosts whose requests are signed or shaped in a way that the meter does not know, with the
// way round. A gateway of one's own that speaks one of the APIs is served by its base URL like any other.
func otherSigning(host string) error {
	var name string
	switch {
	case strings.HasPrefix(host, "bedrock") && strings.HasSuffix(host, ".amazonaws.com"), strings.HasPrefix(host, "bedrock") && strings.HasSuffix(host, ".amazonaws.com.cn"):
		name = "Amazon Bedrock signs each request with AWS credentials"
	case strings.HasSuffix(host, "aiplatform.googleapis.com"):
		name = "Vertex AI has paths of its own and tokens that expire within a run"
	default:
		return nil
	}
	return fmt.Errorf("model base URL for host %s: %s, which the meter does not do. Next: put a gateway in front that speaks the Anthropic, OpenAI or Gemini API and give its base URL and key", host, name)
}

// Package aws owns the webhook's calls to AWS: claims in DynamoDB, messages to SQS, secrets from SSM, signatures
// from KMS. It must
// never call anything before it is asked to (the init phase has no network), nor send a payload or a person's
// text anywhere.
package aws

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/proctor-ci/proctor/internal/clock"
)

// Config is who calls and where to. What Lambda puts into the environment is all that is needed there.
type Config struct {
	Region       string
	KeyID        string
	Secret       string
	SessionToken string // "" for a user's key
	// Endpoint stands in for every service's own address: a test's, or a VPC endpoint. "" derives them from Region.
	Endpoint string

	HTTP *http.Client
	Now  func() time.Time
	// Sleep pauses between attempts; a timer with a context when nil.
	Sleep func(ctx context.Context, d time.Duration) error
}

// Client signs and sends JSON requests. The SDK's service clients do the same and more, at 4 MB of binary and 20 ms of
// start (docs/architecture.md); its signer is what is used here. It is safe for concurrent use.
type Client struct {
	cfg    Config
	signer *v4.Signer
}

// New checks the configuration. It sends nothing.
func New(c Config) (*Client, error) {
	if c.Region == "" {
		return nil, errors.New("AWS_REGION is not set: Lambda sets it; elsewhere give the region of the table and the queue, for example eu-central-1")
	}
	if c.KeyID == "" || c.Secret == "" {
		return nil, errors.New("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set: Lambda sets them from the function's role; other sources of credentials are not read")
	}
	if u, err := url.Parse(c.Endpoint); c.Endpoint != "" && (err != nil || u.Host == "") {
		return nil, errors.New("AWS_ENDPOINT_URL is no URL: write https://HOST")
	}
	if c.HTTP == nil {
		c.HTTP = &http.Client{Timeout: callTime}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Sleep == nil {
		c.Sleep = clock.Sleep
	}
	return &Client{cfg: c, signer: v4.NewSigner()}, nil
}

// Bounds of one call: several have to fit into the time for an answer.
const (
	callTime  = 2 * time.Second
	attempts  = 3
	firstWait = 50 * time.Millisecond
	maxAnswer = 8 << 20
)

// service is one of AWS's JSON services.
type service struct {
	name    string // in the signature and the host name
	target  string // in front of the operation
	version string // of the protocol: "1.0" or "1.1"
}

// Error is what a service answered. Code is its word for it.
type Error struct {
	Op      string
	Status  int
	Code    string
	Message string
	reasons []string // of a cancelled transaction, one per item
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s: HTTP %d %s: %s", e.Op, e.Status, e.Code, e.Message)
}

// is reports whether err is a service's answer with that code.
func is(err error, code string) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == code
}

// call sends one operation and reads its answer into out. It is sent again after a fault of the service's or
// the network's: every operation that is used here may be repeated.
func (c *Client) call(ctx context.Context, s service, op string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	wait := firstWait
	for try := 1; ; try++ {
		err = c.send(ctx, s, op, body, out)
		if err == nil || try == attempts || !passing(err) {
			return err
		}
		if c.cfg.Sleep(ctx, jitter(wait)) != nil {
			return err
		}
		wait *= 2
	}
}

// passing faults may be gone at the next attempt.
func passing(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return true
	}
	return e.Status >= http.StatusInternalServerError || e.Status == http.StatusTooManyRequests ||
		strings.Contains(e.Code, "Throttl") || e.Code == "ProvisionedThroughputExceededException" || e.Code == "TransactionInProgressException"
}

// jitter is between half of d and d.
func jitter(d time.Duration) time.Duration {
	n, err := rand.Int(rand.Reader, big.NewInt(int64(d/2)+1))
	if err != nil {
		return d
	}
	return d/2 + time.Duration(n.Int64())
}

func (c *Client) send(ctx context.Context, s service, op string, body []byte, out any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.address(s), bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	r.Header.Set("Content-Type", "application/x-amz-json-"+s.version)
	r.Header.Set("X-Amz-Target", s.target+"."+op)
	sum := sha256.Sum256(body)
	who := sdk.Credentials{AccessKeyID: c.cfg.KeyID, SecretAccessKey: c.cfg.Secret, SessionToken: c.cfg.SessionToken}
	if err := c.signer.SignHTTP(ctx, who, r, hex.EncodeToString(sum[:]), s.name, c.cfg.Region, c.cfg.Now()); err != nil {
		return fmt.Errorf("%s: sign the request: %w", op, err)
	}
	resp, err := c.cfg.HTTP.Do(r)
	if err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	defer func() { _ = resp.Body.Close() }() // it was read; nothing hangs on it
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("%s: read the answer: %w", op, err)
	}
	if resp.StatusCode != http.StatusOK {
		return failure(op, resp.StatusCode, answer)
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("%s: read the answer: %w", op, err)
	}
	return nil
}

func (c *Client) address(s service) string {
	if c.cfg.Endpoint != "" {
		return strings.TrimRight(c.cfg.Endpoint, "/") + "/"
	}
	suffix := "amazonaws.com"
	if strings.HasPrefix(c.cfg.Region, "cn-") {
		suffix += ".cn"
	}
	return "https://" + s.name + "." + c.cfg.Region + "." + suffix + "/"
}

func failure(op string, status int, answer []byte) error {
	var said struct {
		Type    string `json:"__type"`
		Message string `json:"message"`
		Upper   string `json:"Message"`
		Reasons []struct {
			Code string
		} `json:"CancellationReasons"`
	}
	_ = json.Unmarshal(answer, &said) // an answer of a proxy in between is no JSON: the status says enough
	e := &Error{Op: op, Status: status, Code: said.Type[strings.LastIndexByte(said.Type, '#')+1:], Message: said.Message}
	if e.Message == "" {
		e.Message = said.Upper
	}
	for _, r := range said.Reasons {
		e.reasons = append(e.reasons, r.Code)
	}
	return e
}

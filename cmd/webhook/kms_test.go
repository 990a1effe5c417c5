package main

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rsa"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// kmsKey speaks KMS's JSON protocol for one RSA key. Signatures are real ones.
type kmsKey struct {
	*httptest.Server
	key    *rsa.PrivateKey
	signed atomic.Int64
	fault  atomic.Pointer[string] // __type of the refusal, nil for none
}

const kmsARN = "arn:aws:kms:eu-central-1:123456789012:key/app"

func newKMS(t *testing.T, key *rsa.PrivateKey) *kmsKey {
	t.Helper()
	k := &kmsKey{key: key}
	k.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			KeyID            string `json:"KeyId"`
			Message          []byte
			MessageType      string
			SigningAlgorithm string
		}
		bad := json.NewDecoder(r.Body).Decode(&in) != nil || in.MessageType != "DIGEST" || in.SigningAlgorithm != "RSASSA_PKCS1_V1_5_SHA_256" || len(in.Message) != crypto.SHA256.Size()
		refuse := func(kind string) {
			w.WriteHeader(http.StatusBadRequest)
			_ = json.NewEncoder(w).Encode(map[string]string{"__type": kind, "message": "no"})
		}
		fault := k.fault.Load()
		switch {
		case r.Header.Get("X-Amz-Target") != "TrentService.Sign" || r.Header.Get("Content-Type") != "application/x-amz-json-1.1" || bad:
			refuse("ValidationException")
		case !strings.Contains(r.Header.Get("Authorization"), "/eu-central-1/kms/aws4_request"):
			refuse("IncompleteSignatureException")
		case in.KeyID != kmsARN:
			refuse("NotFoundException")
		case fault != nil:
			refuse(*fault)
		default:
			sig, err := rsa.SignPKCS1v15(nil, k.key, crypto.SHA256, in.Message)
			if err != nil {
				refuse("KMSInternalException")
				return
			}
			k.signed.Add(1)
			_ = json.NewEncoder(w).Encode(map[string]any{"KeyId": in.KeyID, "Signature": sig, "SigningAlgorithm": in.SigningAlgorithm})
		}
	}))
	t.Cleanup(k.Close)
	return k
}

// From the label to the queued run with a key that the webhook never sees: the forge checks the App's token by the public key.
func TestAnAppsKeyInKMSIsNeverSeen(t *testing.T) {
	t.Parallel()
	key, _ := appKey(t)
	g, kms := newGitHub(t, 34), newKMS(t, key)
	g.AddUser("ann", "write")
	g.InstallApp(12, 34, "proctor-ci", &key.PublicKey, map[string]string{"metadata": "read", "issues": "write", "actions": "write"})
	url, log := startProgram(t, settings("PROCTOR_WEBHOOK_SECRET", hookSecret, "GITHUB_APP_ID", "12", "GITHUB_APP_KMS_KEY", kmsARN, "GITHUB_API_URL", g.APIURL(),
		"AWS_REGION", "eu-central-1", "AWS_ACCESS_KEY_ID", "AKIDSAMPLE", "AWS_SECRET_ACCESS_KEY", "of-no-account", "AWS_ENDPOINT_URL", kms.URL))
	g.SetHook(url+"/github", hookSecret)
	denied := "com.amazonaws.kms#AccessDeniedException"
	kms.fault.Store(&denied)
	d, err := g.LabelIssue(g.OpenIssue("One", "", "ann"), "proctor", "ann")
	if err != nil || d.Status != http.StatusServiceUnavailable || len(g.Runs()) != 0 || !strings.Contains(log.String(), "allow kms:Sign on "+kmsARN) {
		t.Fatalf("a key that may not be used: %d %s %v; log: %s", d.Status, d.Response, err, log)
	}
	kms.fault.Store(nil)
	for n := range 3 {
		if d, err := g.LabelIssue(g.OpenIssue("Round half up", "", "ann"), "proctor", "ann"); err != nil || !strings.Contains(string(d.Response), `"dispatched"`) {
			t.Fatalf("%d %s %v; log: %s", d.Status, d.Response, err, log)
		}
		if len(g.Runs()) != n+1 {
			t.Fatalf("%d runs", len(g.Runs()))
		}
	}
	if n := kms.signed.Load(); n != 1 {
		t.Errorf("%d signatures for one installation's token, want one", n)
	}
}

func TestAKeyInKMSIsSetUpWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	_, key := appKey(t)
	aws := []string{"AWS_REGION", "eu-central-1", "AWS_ACCESS_KEY_ID", "k", "AWS_SECRET_ACCESS_KEY", "s"}
	good := append([]string{"PROCTOR_WEBHOOK_SECRET", hookSecret, "GITHUB_APP_ID", "12", "GITHUB_APP_KMS_KEY", kmsARN}, aws...)
	with := func(kv ...string) []string { return append(good[:len(good):len(good)], kv...) }
	for name, c := range map[string]struct {
		set  []string
		want string
	}{
		"control":        {good, ""},
		"an id":          {with("GITHUB_APP_KMS_KEY", "1234abcd-12ab-34cd-56ef-1234567890ab"), ""},
		"an alias":       {with("GITHUB_APP_KMS_KEY", "alias/app"), ""},
		"both":           {with("GITHUB_APP_PRIVATE_KEY", key), "destroy that copy"},
		"no credentials": {good[:6], "GITHUB_APP_KMS_KEY: AWS_REGION"},
		"another region": {with("AWS_REGION", "us-east-1"), "region us-east-1"},
		"another thing":  {with("GITHUB_APP_KMS_KEY", "arn:aws:s3:::bucket"), "no key of KMS"},
	} {
		var out bytes.Buffer
		code := run(context.Background(), []string{"-check"}, settings(c.set...), &out, &out)
		if (code == exitOK) != (c.want == "") || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: exit %d, %s", name, code, out.String())
		}
	}
}

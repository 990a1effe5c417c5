package aws_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/webhook/aws"
)

const appKeyID = "1234abcd-12ab-34cd-56ef-1234567890ab"

func TestADigestIsSignedByTheOneKeyAndAlgorithm(t *testing.T) {
	t.Parallel()
	const algorithm = "RSASSA_PKCS1_V1_5_SHA_256"
	c, s := client(t, answer{500, `{"__type":"KMSInternalException"}`}, answer{200, fmt.Sprintf(`{"Signature":%q,"SigningAlgorithm":%q}`, base64.StdEncoding.EncodeToString([]byte("signed")), algorithm)})
	k, err := aws.NewSigner(c, appKeyID)
	if err != nil {
		t.Fatal(err)
	}
	digest := bytes.Repeat([]byte{7}, 32)
	sig, err := k.Sign(t.Context(), digest)
	if err != nil || string(sig) != "signed" || len(s.asked) != 2 {
		t.Fatalf("%q %v after %d calls", sig, err, len(s.asked))
	}
	a := s.asked[1]
	if a.op != "TrentService.Sign" || a.body["KeyId"] != appKeyID || a.body["MessageType"] != "DIGEST" || a.body["SigningAlgorithm"] != algorithm || a.body["Message"] != base64.StdEncoding.EncodeToString(digest) {
		t.Errorf("asked %s %v", a.op, a.body)
	}
}

func TestASignatureThatIsNotToBeHadSaysWhatMendsIt(t *testing.T) {
	t.Parallel()
	for want, a := range map[string]answer{
		"allow kms:Sign":         {400, `{"__type":"AccessDeniedException","Message":"no"}`},
		"check the key's id":     {400, `{"__type":"NotFoundException"}`},
		"import its material":    {400, `{"__type":"com.amazon.coral#KMSInvalidStateException"}`},
		"enable " + appKeyID:     {400, `{"__type":"DisabledException"}`},
		"RSA_2048":               {400, `{"__type":"InvalidKeyUsageException"}`},
		"holds no signature":     {200, `{"SigningAlgorithm":"RSASSA_PKCS1_V1_5_SHA_256"}`},
		"no signature by RSASSA": {200, `{"Signature":"c2lnbmVk","SigningAlgorithm":"RSASSA_PSS_SHA_256"}`},
	} {
		c, _ := client(t, a)
		k, err := aws.NewSigner(c, appKeyID)
		if err != nil {
			t.Fatal(err)
		}
		if sig, err := k.Sign(t.Context(), make([]byte, 32)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q %v, want %q", sig, err, want)
		}
	}
}

//go:build e2e

package webhook_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/proctor-ci/proctor/internal/webhook"
	"github.com/proctor-ci/proctor/internal/webhook/aws"
	"github.com/proctor-ci/proctor/internal/webhook/claimtest"
)

// inNamespace says that the test binary was started again in a network namespace of its own: DynamoDB Local listens on every
// interface there is.
const inNamespace = "WEBHOOK_TEST_IN_NAMESPACE"

// INV-45 and the claim store's contract on DynamoDB's own local edition, which `make e2e-deps` unpacks.
func TestDynamoDBKeepsTheContractOfAStore(t *testing.T) {
	if os.Getenv(inNamespace) == "" {
		again(t)
		return
	}
	linkUp(t)
	url := dynamoLocal(t)
	var tables atomic.Int64
	open := func(t *testing.T, clock *claimtest.Clock) webhook.Store {
		t.Helper()
		name := fmt.Sprintf("claims-%d", tables.Add(1))
		createTable(t, url, name)
		// It has one disk and eight clients here; a call may take its time.
		c, err := aws.New(aws.Config{Region: "eu-central-1", KeyID: "local", Secret: "local", Endpoint: url, HTTP: &http.Client{Timeout: time.Minute}})
		if err != nil {
			t.Fatal(err)
		}
		return table{aws.NewClaims(c, name, clock.Now), name}
	}
	spoil := func(t *testing.T, s webhook.Store, id string) bool {
		t.Helper()
		dynamoCall(t, url, "UpdateItem", `{"TableName":"`+s.(table).name+`","Key":{"pk":{"S":"`+id+`"}},
			"UpdateExpression":"SET claim = :bad","ExpressionAttributeValues":{":bad":{"S":"{"}}}`)
		return true
	}
	t.Run("contract", func(t *testing.T) { claimtest.Run(t, open, spoil) })
	t.Run("INV-46 outage", func(t *testing.T) { countsOnce(t, open) })
	t.Run("INV-45 storm", func(t *testing.T) { exactlyOnce(t, 1, 80, 240, open) })
}

// table is a store that tells its table's name.
type table struct {
	*aws.Claims
	name string
}

func again(t *testing.T) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=10m")
	cmd.Env = append(os.Environ(), inNamespace+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name())) {
		t.Errorf("in its own network namespace: %v", err)
	}
}

// linkUp brings the new namespace's loopback up.
func linkUp(t *testing.T) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	var req struct {
		name  [unix.IFNAMSIZ]byte
		flags uint16
		_     [22]byte
	}
	copy(req.name[:], "lo")
	req.flags = unix.IFF_UP | unix.IFF_RUNNING
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&req))); e != 0 {
		t.Fatal(e)
	}
	links, err := net.Interfaces()
	if err != nil || len(links) != 1 {
		t.Fatalf("this is no namespace of its own: %v %v", links, err)
	}
}

func dynamoLocal(t *testing.T) (url string) {
	t.Helper()
	dir := os.Getenv("PROCTOR_DYNAMODB_LOCAL")
	if dir == "" {
		dir = "../../bin/dynamodb"
	}
	jar, err := filepath.Abs(filepath.Join(dir, "DynamoDBLocal.jar"))
	if err == nil {
		_, err = os.Stat(jar)
	}
	if err != nil {
		t.Fatalf("%v: run make e2e-deps", err)
	}
	cmd := exec.Command("java", "-Djava.library.path="+filepath.Join(filepath.Dir(jar), "DynamoDBLocal_lib"), "-jar", jar, "-inMemory", "-port", "8000")
	var log bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = t.TempDir(), &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed: its exit says nothing
	})
	for range 600 {
		c, err := net.Dial("tcp", "127.0.0.1:8000")
		if err == nil {
			_ = c.Close()
			return "http://127.0.0.1:8000"
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("DynamoDB Local does not listen: %s", log.String())
	return ""
}

// createTable makes the table of terraform/.
func createTable(t *testing.T, url, name string) {
	t.Helper()
	dynamoCall(t, url, "CreateTable", `{"TableName":"`+name+`","BillingMode":"PAY_PER_REQUEST",
	"AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"due","AttributeType":"S"},{"AttributeName":"expires","AttributeType":"N"}],
	"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],
	"GlobalSecondaryIndexes":[{"IndexName":"due","KeySchema":[{"AttributeName":"due","KeyType":"HASH"},{"AttributeName":"expires","KeyType":"RANGE"}],"Projection":{"ProjectionType":"ALL"}}]}`)
}

// dynamoCall is an operation that the store itself has no use for.
func dynamoCall(t *testing.T, url, op, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+op)
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=local/20260101/eu-central-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		var said bytes.Buffer
		_, _ = said.ReadFrom(resp.Body)
		t.Fatalf("%s: %d %s", op, resp.StatusCode, said.String())
	}
}

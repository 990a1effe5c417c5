package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/forge/forgetest"
)

// clients is how many deliveries are under way at once.
const clients = 16

// BenchmarkLoad asks the real program, on one processor, over loopback, with signed deliveries of a label: each is verified, decoded and looked up in
// the claims, or kept in the queue's file. Its client shares the machine, so that the rate is counted by the program's own processor time.
func BenchmarkLoad(b *testing.B) {
	for name, store := range map[string]bool{"memory, duplicate": false, "file, queued": true} {
		b.Run(name, func(b *testing.B) {
			g := newGitHub(b, 0)
			g.AddUser("ann", "write")
			g.AddUser("robot", "write")
			set := []string{"GOMAXPROCS=1", "PROCTOR_WEBHOOK_SECRET=" + hookSecret, "GITHUB_TOKEN=" + g.NewToken(forgetest.Token{Login: "robot"}), "GITHUB_API_URL=" + g.APIURL()}
			if store {
				set = append(set, "PROCTOR_STORE="+filepath.Join(b.TempDir(), "webhook.db"))
			}
			p := launch(b, set...)
			g.SetHook(p.url, hookSecret)
			d, err := g.LabelIssue(g.OpenIssue("Round half up", "totals", "ann"), "proctor", "ann")
			if err != nil || d.Status != http.StatusAccepted {
				b.Fatal(d.Status, err)
			}
			load(b, p, d.Body)
		})
	}
}

func load(b *testing.B, p *process, body []byte) {
	b.Helper()
	m := hmac.New(sha256.New, []byte(hookSecret))
	m.Write(body)
	sig := "sha256=" + hex.EncodeToString(m.Sum(nil))
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}, Timeout: time.Minute}
	took := make([]time.Duration, b.N)
	var next, failed atomic.Int64
	spent := cpuOf(b, p.cmd.Process.Pid)
	b.SetBytes(int64(len(body)))
	b.ResetTimer()
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(b.N); i = next.Add(1) - 1 {
				begun := time.Now()
				if !deliver(client, p.url, sig, fmt.Sprint("d", i), body) {
					failed.Add(1)
				}
				took[i] = time.Since(begun)
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	if failed.Load() > 0 {
		b.Fatalf("%d of %d deliveries were not accepted", failed.Load(), b.N)
	}
	slices.Sort(took)
	b.ReportMetric(float64(b.N)/(cpuOf(b, p.cmd.Process.Pid)-spent).Seconds(), "deliveries/core-s")
	b.ReportMetric(took[len(took)/2].Seconds()*1000, "p50-ms")
	b.ReportMetric(took[len(took)*99/100].Seconds()*1000, "p99-ms")
	b.ReportMetric(peak(b, p.cmd.Process.Pid), "peak-MB")
}

func deliver(c *http.Client, url, sig, id string, body []byte) bool {
	r, err := http.NewRequest(http.MethodPost, url+"/github", bytes.NewReader(body))
	if err != nil {
		return false
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, "X-Github-Event": {"issues"}, "X-Github-Delivery": {id}, "X-Hub-Signature-256": {sig}}
	resp, err := c.Do(r)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return err == nil && resp.StatusCode == http.StatusAccepted
}

// cpuOf is the processor time of a process, by its kernel's ticks of a hundredth of a second.
func cpuOf(b *testing.B, pid int) time.Duration {
	b.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	ticks := 0
	for _, f := range fields[11:13] {
		n, err := strconv.Atoi(f)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// peak is the most memory that a process has had, in MB.
func peak(b *testing.B, pid int) float64 {
	b.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(raw), "VmHWM:")
	kb, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	if err != nil {
		b.Fatal(err)
	}
	return kb / 1024
}

package app

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/egress"
	"github.com/proctor-ci/proctor/internal/evidence"
)

// reachTo is an internet in which every name under example.com is one server on loopback, inside.example.net is
// loopback itself and nothing else exists.
func reachTo(server string) egress.Reach {
	public := netip.MustParseAddr("93.184.215.14")
	return egress.Reach{
		Resolve: func(_ context.Context, name string) ([]netip.Addr, error) {
			switch {
			case strings.HasSuffix(name, ".example.com"):
				return []netip.Addr{public}, nil
			case name == "inside.example.net":
				return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
			}
			return nil, fmt.Errorf("%s does not exist", name)
		},
		Dial: func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			if to.Addr() != public {
				return nil, fmt.Errorf("%s is not on this internet", to)
			}
			return (&net.Dialer{}).DialContext(ctx, "tcp", server)
		},
	}
}

// fetching asks for addresses by the proxy that the environment names and says what came.
const fetching = `import sys, urllib.request, urllib.error
for address in sys.argv[1:]:
    try:
        print(address, urllib.request.urlopen(address, timeout=20).read().decode().strip())
    except urllib.error.HTTPError as e:
        print(address, e.code)
    except OSError as e:
        print(address, 'unreachable')
`

func TestEgressGoesToTheListedHostsAndInAProofToNone(t *testing.T) {
	// INV-38: TCP to the egress proxy and nothing else; INV-27: no host that code beside the sealed files could tell.
	var mu sync.Mutex
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.Host+r.URL.Path)
		mu.Unlock()
		_, _ = io.WriteString(w, "from outside\n")
	}))
	t.Cleanup(server.Close)
	const fetch = "/usr/bin/python3 tools/fetch.py "
	direct := server.URL + "/direct"
	w := open(t, setting{
		env: map[string]string{reachVariable: server.Listener.Addr().String()},
		files: map[string]string{
			"tools/fetch.py": fetching,
			"tests/run.sh":   "#!/bin/sh\nset -e\ngrep -q 'from outside' ignored/dep\n" + fetch + "http://gate.example.com/\nhttp_proxy=$(cat ignored/proxy) " + fetch + "http://proof.example.com/visible || :\ngrep -q right app/answer.txt\n",
			// By the proxy's own address too, which the setup left here: the control is the same line in the visible gate.
			"sealed/check.sh": "# " + sealedMark + "\n" + fetch + "http://proof.example.com/ > out\n" +
				"http_proxy=$(cat ignored/proxy) " + fetch + "http://proof.example.com/held >> out\n! grep -q outside out || exit 1\ngrep -q 'from outside' ignored/dep && grep -qx 'right for sure' app/answer.txt\n",
		},
		config: map[string]string{
			"sandbox": "{mode: strict, egress: ['*.example.com:80', 'inside.example.net:80']}",
			"setup":   "['mkdir -p ignored && printf %s \"$http_proxy\" > ignored/proxy && " + fetch + "http://registry.example.com/dep > ignored/dep']",
		},
		plan: []tick{{
			sh(fetch + "http://agent.example.com/ http://agent.example.com:81/ http://evil.example.org/ http://inside.example.net/ http://169.254.169.254/latest/ " + direct + " | sed s,/latest/,/newest/, > found.txt; env | grep -i _proxy | sed 's/:[0-9]*$//' | sort >> found.txt"),
			reply(allRight),
		}},
	})
	j := w.label().ended("done", 0, "proctor:review")
	want := `http://agent.example.com/ from outside
http://agent.example.com:81/ 403
http://evil.example.org/ 403
http://inside.example.net/ 403
http://169.254.169.254/newest/ 403
` + direct + ` unreachable
HTTPS_PROXY=http://127.0.0.1
HTTP_PROXY=http://127.0.0.1
NO_PROXY=localhost,127.0.0.1,:
http_proxy=http://127.0.0.1
https_proxy=http://127.0.0.1
no_proxy=localhost,127.0.0.1,:
`
	if d := cmp.Diff(want, w.file("found.txt")); d != "" {
		t.Errorf("INV-38 what the agent reached (-want +got):\n%s", d)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, a := range asked {
		if strings.HasPrefix(a, "proof.example.com/held") || a == "proof.example.com/" || strings.Contains(a, "direct") {
			t.Errorf("INV-27 the server was asked for %s", a)
		}
	}
	if !strings.Contains(strings.Join(asked, " "), "proof.example.com/visible") {
		t.Errorf("the proxy's own address does not work at a tick either, so this shows nothing: %q", asked)
	}
	if j.rec.Egress == nil {
		t.Fatal("the record does not tell of egress")
	}
	got := map[string]string{}
	for _, h := range j.rec.Egress.Hosts {
		got[fmt.Sprintf("%s %s:%d", h.Verdict, h.Host, h.Port)] = strings.Join(h.By, ",")
	}
	if d := cmp.Diff(map[string]string{
		"allowed agent.example.com:80": "agent", "allowed gate.example.com:80": "iteration", "allowed proof.example.com:80": "iteration", "allowed registry.example.com:80": "setup 1",
		"refused agent.example.com:81": "agent", "refused evil.example.org:80": "agent", "refused inside.example.net:80": "agent", "refused 169.254.169.254:80": "agent",
	}, got); d != "" {
		t.Errorf("the record's hosts (-want +got):\n%s", d)
	}
	events := readAll(t, j.reports)
	for path, text := range events {
		if strings.Contains(text, "/latest/") {
			t.Errorf("%s holds the path of a request", path)
		}
	}
	for where, text := range map[string]string{"draft": w.hub.Pulls()[0].Body, "summary": j.Summary} {
		if !strings.Contains(text, "**Egress:** 4 hosts allowed (") || !strings.Contains(text, ", 4 refused (") {
			t.Errorf("the %s does not tell of egress:\n%s", where, text)
		}
	}
	if n := strings.Count(string(j.run.Log), "evil.example.org:80 for agent"); n != 1 {
		t.Errorf("the log tells of the refusal %d times", n)
	}
}

func TestAGateThatFetchesInAProofIsTold(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "from outside\n") }))
	t.Cleanup(server.Close)
	w := open(t, setting{
		env:    map[string]string{reachVariable: server.Listener.Addr().String()},
		files:  map[string]string{"tools/fetch.py": fetching, "tests/run.sh": "/usr/bin/python3 tools/fetch.py http://gate.example.com/ | grep outside && grep -q right app/answer.txt\n"},
		config: map[string]string{"sandbox": "{egress: ['gate.example.com:80']}", "stops": "{max_ticks: 1, max_cost_usd: 1, max_duration: 5m}"},
		plan:   []tick{{reply(allRight)}},
	})
	j := w.label().ended("tick_cap", 2, "proctor:needs-human")
	if notes := strings.Join(j.rec.Notes, "\n"); !strings.Contains(notes, "the iteration gate fetched from gate.example.com:80 at a tick, and failed in the proof") {
		t.Errorf("notes:\n%s", notes)
	}
}

func TestEgressIsShownOnceForEachHost(t *testing.T) {
	t.Parallel()
	var lines []string
	a := &account{line: func(s string) { lines = append(lines, s) }}
	for range 3 {
		for _, v := range []string{"allowed", "refused", "failed"} {
			a.egress(evidence.Event{Kind: evidence.EgressEvent, Fields: map[string]any{evidence.KeyVerdict: v, evidence.KeyHost: "a.example", evidence.KeyBy: "agent"}})
		}
	}
	if len(lines) != 2 {
		t.Errorf("shown:\n%s", strings.Join(lines, "\n"))
	}
}

package egress

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestAClientThatNeverAsksIsLetGo(t *testing.T) {
	t.Parallel()
	// Slow loris: a byte now and then keeps no place. The control is that the same proxy serves others.
	n := &internet{names: map[string][]string{}}
	p := start(t, Config{Allow: []string{"registry.example.com:80"}, Reach: n.reach(), Times: Times{Head: 50 * time.Millisecond}})
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", p.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	go func() {
		for {
			if _, err := io.WriteString(conn, "G"); err != nil {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	if b, err := io.ReadAll(conn); len(b) > 0 || err != nil && strings.Contains(err.Error(), "timeout") {
		t.Errorf("it heard %q, %v", b, err)
	}
}

func TestATunnelInWhichNothingMovesIsClosed(t *testing.T) {
	t.Parallel()
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	n := &internet{server: silent.Addr().String(), names: map[string][]string{"registry.example.com": {outside.String()}}}
	l := newTold()
	p := start(t, Config{Allow: []string{"registry.example.com:80"}, Reach: n.reach(), On: l.add, Times: Times{Idle: 50 * time.Millisecond, Answer: 50 * time.Millisecond}})
	if status, _ := get(t, client(p), "http://registry.example.com/"); status != http.StatusBadGateway {
		t.Errorf("a host that never answers gave %d", status)
	}
	if r := l.next(t); r.Verdict != Failed || r.Why == "" {
		t.Errorf("told as %+v", r)
	}
}

func TestOneClientDoesNotTakeAllPlacesForEver(t *testing.T) {
	t.Parallel()
	p, _, _ := world(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "reached") }))
	var idle []net.Conn
	for range maxConns + 10 {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", p.listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		idle = append(idle, conn)
	}
	p.mu.Lock()
	held := len(p.open)
	p.mu.Unlock()
	if held > maxConns {
		t.Errorf("%d connections are served at a time", held)
	}
	for _, c := range idle {
		_ = c.Close()
	}
	if _, body := get(t, client(p), "http://registry.example.com/"); body != "reached" {
		t.Errorf("after they went: %q", body)
	}
}

func TestWhatIsSeenIsSummedAndBounded(t *testing.T) {
	t.Parallel()
	b := &book{}
	for i := range maxSeen + 7 {
		b.add(Request{By: "agent", Host: fmt.Sprintf("h%d.example", i), Port: 443, Verdict: Refused, Why: "w"})
	}
	b.add(Request{By: "iteration", Host: "h0.example", Port: 443, Verdict: Refused, Why: "w", Sent: 2, Received: 3})
	list, left := (&Proxy{book: book{seen: b.seen, left: b.left}}).Seen()
	if len(list) != maxSeen || left != 7 {
		t.Fatalf("%d kept, %d left", len(list), left)
	}
	if s := list[0]; s.Requests != 2 || s.Sent != 2 || s.Received != 3 || strings.Join(s.By, ",") != "agent,iteration" {
		t.Errorf("the first is %+v", s)
	}
	if list, left := (*Proxy)(nil).Seen(); list != nil || left != 0 || (*Proxy)(nil).Env() != nil || (*Proxy)(nil).Ports() != nil {
		t.Error("a run without a list has a proxy")
	}
}

func TestCloseEndsWhatIsInFlight(t *testing.T) {
	t.Parallel()
	begun, release := make(chan struct{}), make(chan struct{})
	p, _, l := world(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(begun); <-release }))
	defer close(release)
	answered := make(chan int)
	go func() {
		status, _ := get(t, client(p), "http://registry.example.com/")
		answered <- status
	}()
	<-begun
	p.Close()
	if status := <-answered; status == http.StatusOK {
		t.Error("the client was told 200")
	}
	if r := l.next(t); r.Verdict != Failed {
		t.Errorf("told as %+v", r)
	}
}

// The head is all that strangers write for us to take apart.
func FuzzRequest(f *testing.F) {
	f.Add("GET http://registry.example.com/ HTTP/1.1\r\nHost: registry.example.com\r\n\r\n")
	f.Add("CONNECT registry.example.com:443 HTTP/1.1\r\nHost: registry.example.com:443\r\n\r\n")
	f.Add("CONNECT [::1]:443 HTTP/1.1\r\n\r\n")
	f.Add("POST http://127.1/ HTTP/1.1\r\nHost: 127.1\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := readRequest(strings.NewReader(text))
		if err != nil {
			return
		}
		name, addr, ok := hostOf(r.to.host)
		if !ok || name != r.to.host || addr != r.to.addr || r.to.port == 0 {
			t.Errorf("%q wants to go to %+v, which is not in the one form", text, r.to)
		}
		if !r.tunnel {
			if got := strings.ToLower(r.outgoing().URL.Hostname()); strings.TrimSuffix(got, ".") != r.to.host && !addr.IsValid() {
				t.Errorf("%q was checked for %q and goes to %q", text, r.to.host, got)
			}
		}
	})
}

package egress

import (
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A public address that the tests' dialler takes to a server on loopback. Nothing is ever sent to it.
var outside = netip.MustParseAddr("93.184.215.14")

// net is an internet of one server: names resolve as told, and connections to outside come to the server.
type internet struct {
	server string // host:port on loopback
	names  map[string][]string

	mu     sync.Mutex
	dialed []string
}

func (n *internet) reach() Reach {
	return Reach{
		Resolve: func(_ context.Context, name string) ([]netip.Addr, error) {
			var out []netip.Addr
			for _, a := range n.names[name] {
				out = append(out, netip.MustParseAddr(a))
			}
			return out, nil
		},
		Dial: func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			n.mu.Lock()
			n.dialed = append(n.dialed, to.String())
			n.mu.Unlock()
			return (&net.Dialer{}).DialContext(ctx, "tcp", n.server)
		},
	}
}

// told collects what a proxy tells.
type told struct {
	mu   sync.Mutex
	list []Request
	more chan struct{}
}

func newTold() *told { return &told{more: make(chan struct{}, 1000)} }

func (l *told) add(r Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Millis = 0
	l.list = append(l.list, r)
	l.more <- struct{}{}
}

// next waits for one more request to be told.
func (l *told) next(t *testing.T) Request {
	t.Helper()
	select {
	case <-l.more:
	case <-time.After(20 * time.Second):
		t.Fatal("the request was not told")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.list[len(l.list)-1]
}

func start(t *testing.T, c Config) *Proxy {
	t.Helper()
	p, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// world is a proxy in front of a server, with "registry.example.com:80" and ":443" and "*.cdn.example.com:80" allowed.
func world(t *testing.T, h http.Handler) (*Proxy, *internet, *told) {
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	n := &internet{server: server.Listener.Addr().String(), names: map[string][]string{
		"registry.example.com": {outside.String()}, "a.cdn.example.com": {outside.String()}, "evil.example.net": {outside.String()},
	}}
	l := newTold()
	p := start(t, Config{Allow: []string{"registry.example.com:80", "registry.example.com:443", "*.cdn.example.com:80"}, Reach: n.reach(), On: l.add})
	return p, n, l
}

func client(p *Proxy) *http.Client {
	at, err := url.Parse("http://" + p.listener.Addr().String())
	if err != nil {
		panic(err)
	}
	return &http.Client{
		Transport:     &http.Transport{Proxy: http.ProxyURL(at), DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func get(t *testing.T, c *http.Client, address string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return resp.StatusCode, err.Error()
	}
	return resp.StatusCode, string(b)
}

// raw sends bytes as they are and reads all that comes back.
func raw(t *testing.T, p *Proxy, text string) string {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", p.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(conn)
	return string(b)
}

func TestAListedHostIsReachedInClearAndNothingOfTheRequestIsLogged(t *testing.T) {
	t.Parallel()
	var got *http.Request
	p, n, l := world(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		_, _ = io.Copy(w, r.Body)
		_, _ = io.WriteString(w, "the package")
	}))
	p.For("setup 1", 3)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://Registry.Example.COM./left-pad?token=hidden", strings.NewReader("a body, "))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Proxy-Authorization", "Basic c2VjcmV0")
	req.Header.Set("Authorization", "Bearer for-the-host")
	resp, err := client(p).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, _ := io.ReadAll(resp.Body)
	if string(b) != "a body, the package" || got.URL.String() != "/left-pad?token=hidden" || got.Header.Get("Authorization") != "Bearer for-the-host" {
		t.Errorf("the server got %v and the client %q", got, b)
	}
	if h := got.Header.Get("Proxy-Authorization"); h != "" {
		t.Errorf("what was for the proxy went on to the host: %q", h)
	}
	r := l.next(t)
	if r.Sent < 20 || r.Received < 20 {
		t.Errorf("bytes were not counted: %+v", r)
	}
	r.Sent, r.Received = 0, 0
	if d := cmp.Diff(Request{Tick: 3, By: "setup 1", Host: "registry.example.com", Port: 80, Verdict: Allowed}, r); d != "" {
		t.Errorf("told (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{outside.String() + ":80"}, n.dialed); d != "" {
		t.Errorf("dialled (-want +got):\n%s", d)
	}
}

func TestTheListIsByHostAndPort(t *testing.T) {
	t.Parallel()
	p, n, l := world(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "reached") }))
	for address, want := range map[string]string{
		"http://registry.example.com/":              "reached", // the control
		"http://a.cdn.example.com/":                 "reached",
		"http://A.CDN.example.com.:80/":             "reached",
		"http://registry.example.com:8080/":         "not in sandbox.egress",
		"http://cdn.example.com/":                   "not in sandbox.egress",
		"http://acdn.example.com/":                  "not in sandbox.egress",
		"http://evil.example.net/":                  "not in sandbox.egress",
		"http://registry.example.com.evil.net/":     "not in sandbox.egress",
		"http://93.184.215.14/":                     "not in sandbox.egress",
		"http://registry.example.com@evil.net/":     "not in sandbox.egress",
		"http://evil.example.net#.cdn.example.com/": "not in sandbox.egress",
	} {
		_, body := get(t, client(p), address)
		if !strings.Contains(body, want) {
			t.Errorf("%s: %q, want %q", address, body, want)
		}
		l.next(t)
	}
	if len(n.dialed) != 3 {
		t.Errorf("dialled %q", n.dialed)
	}
	if _, err := Start(t.Context(), Config{Allow: []string{"registry.example.com"}}); err == nil {
		t.Error("an entry without a port is taken")
	}
}

// None of these is on the internet, however it is written.
var insides = []string{
	"127.0.0.1", "127.8.8.8", "0.0.0.0", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.0.1", "100.64.0.1", "100.100.100.200",
	"169.254.169.254", "169.254.170.2", "168.63.129.16", "192.0.0.192", "198.18.0.1", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255",
	"::", "::1", "fe80::1", "fec0::1", "fc00::1", "fd00:ec2::254", "fd20:ce::254", "ff02::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254",
	"::127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::7f00:1", "2002:7f00:1::", "2001:0:7f00:1::", "2001:db8::1", "100::1",
}

func TestNoNameLeadsInside(t *testing.T) {
	t.Parallel()
	for _, address := range insides {
		if Inside(netip.MustParseAddr(address)) == "" {
			t.Errorf("%s passes for an address of the internet", address)
		}
		p, n, l := world(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "reached") }))
		for _, answers := range [][]string{{address}, {outside.String(), address}} {
			n.names["registry.example.com"] = answers
			if status, body := get(t, client(p), "http://registry.example.com/"); status != http.StatusForbidden || strings.Contains(body, "reached") {
				t.Errorf("a name for %q: %d %q", answers, status, body)
			}
			if r := l.next(t); r.Verdict != Refused {
				t.Errorf("a name for %q was told as %+v", answers, r)
			}
		}
		if len(n.dialed) > 0 {
			t.Errorf("%s was dialled", address)
		}
	}
	// The controls: the internet passes, behind NAT64 too, and the same name with a public address is reached.
	for _, address := range []string{"1.1.1.1", "93.184.215.14", "2606:4700::1111", "64:ff9b::101:101", "::ffff:1.1.1.1", "172.32.0.1", "100.128.0.1"} {
		if why := Inside(netip.MustParseAddr(address)); why != "" {
			t.Errorf("%s does not pass: %s", address, why)
		}
	}
	p, _, _ := world(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "reached") }))
	if _, body := get(t, client(p), "http://registry.example.com/"); body != "reached" {
		t.Errorf("the control got %q", body)
	}
}

func TestANameThatChangesItsMindIsAskedOnce(t *testing.T) {
	t.Parallel()
	// DNS rebinding: the first answer is public, every later one loopback.
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "reached") }))
	t.Cleanup(server.Close)
	asked := 0
	n := &internet{server: server.Listener.Addr().String()}
	reach := n.reach()
	reach.Resolve = func(context.Context, string) ([]netip.Addr, error) {
		if asked++; asked > 1 {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		}
		return []netip.Addr{outside}, nil
	}
	p := start(t, Config{Allow: []string{"registry.example.com:80"}, Reach: reach})
	if _, body := get(t, client(p), "http://registry.example.com/"); body != "reached" || asked != 1 {
		t.Errorf("got %q after %d questions", body, asked)
	}
	if d := cmp.Diff([]string{outside.String() + ":80"}, n.dialed); d != "" {
		t.Errorf("dialled (-want +got):\n%s", d)
	}
	if status, _ := get(t, client(p), "http://registry.example.com/"); status != http.StatusForbidden {
		t.Errorf("the next request got %d", status)
	}
}

func TestLoopbackIsRefusedByTheRealDiallerToo(t *testing.T) {
	t.Parallel()
	// Nothing is injected here, and a server listens there.
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "reached") }))
	t.Cleanup(server.Close)
	port := server.Listener.Addr().(*net.TCPAddr).Port
	p := start(t, Config{Allow: []string{fmt.Sprintf("127.0.0.1:%d", port)}})
	for _, host := range []string{"127.0.0.1", "127.0.0.1.", "[::ffff:127.0.0.1]"} {
		at := fmt.Sprintf("%s:%d", host, port)
		answer := raw(t, p, "GET http://"+at+"/ HTTP/1.1\r\nHost: "+at+"\r\n\r\n")
		if !strings.HasPrefix(answer, "HTTP/1.1 403 ") || !strings.Contains(answer, "loopback") {
			t.Errorf("%s: %q", host, answer)
		}
	}
	if _, body := get(t, http.DefaultClient, server.URL); body != "reached" {
		t.Errorf("the control: nobody listens there: %q", body)
	}
}

func TestAddressesInDisguiseAreNoHosts(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"2130706433", "0x7f000001", "0x7f.1", "127.1", "0177.0.0.1", "127.0.0.01", "1.2.3.4.5", "fe80::1%eth0", "a..b", ".a", "-a.example", "a-.example",
		"a b", "exämple.com", "example。com", "a\tb", "a/b", "*", "", ".", strings.Repeat("a", 64) + ".example", strings.Repeat("a.", 130) + "a",
	} {
		if name, addr, ok := hostOf(s); ok {
			t.Errorf("%q is taken for %q %v", s, name, addr)
		}
	}
	for s, want := range map[string]string{"Example.COM.": "example.com", "xn--exmple-cua.com": "xn--exmple-cua.com", "::FFFF:1.2.3.4": "1.2.3.4", "a_b.example": "a_b.example"} {
		if name, _, ok := hostOf(s); !ok || name != want {
			t.Errorf("%q is read as %q, %v", s, name, ok)
		}
	}
}

func TestWhatCanBeReadInTwoWaysIsRefused(t *testing.T) {
	t.Parallel()
	const ok = "GET http://registry.example.com/ HTTP/1.1\r\nHost: registry.example.com\r\n\r\n"
	p, n, l := world(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "reached") }))
	for name, text := range map[string]string{
		"another Host than the address":  "GET http://registry.example.com/ HTTP/1.1\r\nHost: evil.example.net\r\n\r\n",
		"another port than the address":  "GET http://registry.example.com/ HTTP/1.1\r\nHost: registry.example.com:81\r\n\r\n",
		"two Hosts":                      "GET http://registry.example.com/ HTTP/1.1\r\nHost: registry.example.com\r\nHost: evil.example.net\r\n\r\n",
		"a length and chunks":            "POST http://registry.example.com/ HTTP/1.1\r\nHost: registry.example.com\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"two lengths":                    "POST http://registry.example.com/ HTTP/1.1\r\nHost: registry.example.com\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
		"a signed length":                "POST http://registry.example.com/ HTTP/1.1\r\nHost: registry.example.com\r\nContent-Length: +5\r\n\r\nhello",
		"a strange coding":               "POST http://registry.example.com/ HTTP/1.1\r\nHost: registry.example.com\r\nTransfer-Encoding: xchunked\r\n\r\n",
		"a blank before the colon":       "POST http://registry.example.com/ HTTP/1.1\r\nHost: registry.example.com\r\nContent-Length : 5\r\n\r\nhello",
		"a folded header":                "GET http://registry.example.com/ HTTP/1.1\r\nHost: registry.example.com\r\nX: a\r\n Host: evil.example.net\r\n\r\n",
		"a bare line feed":               "GET http://registry.example.com/ HTTP/1.1\nHost: registry.example.com\r\n\r\n",
		"a carriage return in a value":   "GET http://registry.example.com/ HTTP/1.1\r\nHost: registry.example.com\rX: y\r\n\r\n",
		"a zero byte":                    "GET http://registry.example.com/\x00 HTTP/1.1\r\nHost: registry.example.com\r\n\r\n",
		"blanks in the request line":     "GET http://registry.example.com/ x HTTP/1.1\r\nHost: registry.example.com\r\n\r\n",
		"the form that servers get":      "GET / HTTP/1.1\r\nHost: registry.example.com\r\n\r\n",
		"https in clear":                 "GET https://registry.example.com/ HTTP/1.1\r\nHost: registry.example.com\r\n\r\n",
		"ftp":                            "GET ftp://registry.example.com/ HTTP/1.1\r\nHost: registry.example.com\r\n\r\n",
		"a user's name":                  "GET http://registry.example.com:80@evil.example.net/ HTTP/1.1\r\nHost: registry.example.com\r\n\r\n",
		"an upgrade":                     "GET http://registry.example.com/ HTTP/1.1\r\nHost: registry.example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
		"HTTP/2 in clear":                "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"a header that never ends":       "GET http://registry.example.com/ HTTP/1.1\r\nX: " + strings.Repeat("x", maxHead) + "\r\n\r\n",
		"an end at a buffer's":           "GET http://registry.example.com/ HTTP/1.1\r\nX: " + strings.Repeat("x", 4096-len("X: ")) + "\r\nHost: evil.example.net\r\n\r\n",
		"a tunnel to a whole address":    "CONNECT http://registry.example.com:443/ HTTP/1.1\r\nHost: registry.example.com:443\r\n\r\n",
		"a tunnel without a port":        "CONNECT registry.example.com HTTP/1.1\r\nHost: registry.example.com\r\n\r\n",
		"a tunnel with another Host":     "CONNECT registry.example.com:443 HTTP/1.1\r\nHost: evil.example.net:443\r\n\r\n",
		"a tunnel with a body":           "CONNECT registry.example.com:443 HTTP/1.1\r\nHost: registry.example.com:443\r\nContent-Length: 4\r\n\r\nbody",
		"a tunnel to a user's host":      "CONNECT registry.example.com:443@evil.example.net:443 HTTP/1.1\r\n\r\n",
		"a tunnel to an IPv6 in a trice": "CONNECT ::1:443 HTTP/1.1\r\n\r\n",
		"a port with a sign":             "CONNECT registry.example.com:+443 HTTP/1.1\r\n\r\n",
		"a port with a zero in front":    "CONNECT registry.example.com:0443 HTTP/1.1\r\n\r\n",
	} {
		answer := raw(t, p, text)
		if !strings.HasPrefix(answer, "HTTP/1.1 4") || strings.Contains(answer, "reached") {
			t.Errorf("%s: %.200q", name, answer)
		}
		if r := l.next(t); r.Verdict != Refused || r.Why == "" {
			t.Errorf("%s was told as %+v", name, r)
		}
	}
	if len(n.dialed) > 0 {
		t.Errorf("dialled %q", n.dialed)
	}
	// The control, and that a second request behind the first is nobody's.
	answer := raw(t, p, ok+strings.ReplaceAll(ok, "registry", "evil"))
	if strings.Count(answer, "HTTP/1.1 ") != 1 || !strings.HasSuffix(answer, "reached") || len(n.dialed) != 1 {
		t.Errorf("two requests in a row: %q, dialled %q", answer, n.dialed)
	}
}

func TestARedirectIsTheClientsBusiness(t *testing.T) {
	t.Parallel()
	p, n, _ := world(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://169.254.169.254/latest/meta-data/", http.StatusFound)
	}))
	if status, _ := get(t, client(p), "http://registry.example.com/"); status != http.StatusFound || len(n.dialed) != 1 {
		t.Errorf("got %d, dialled %q", status, n.dialed)
	}
	if status, _ := get(t, client(p), "http://169.254.169.254/latest/meta-data/"); status != http.StatusForbidden {
		t.Errorf("the redirect's target got %d", status)
	}
}

// secure is a TLS server behind the proxy's 443, and a way to greet it with any name.
func secure(t *testing.T) (p *Proxy, l *told, roots *x509.CertPool) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "reached") }))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of the tunnels that come to nothing
	server.StartTLS()
	t.Cleanup(server.Close)
	n := &internet{server: server.Listener.Addr().String(), names: map[string][]string{"example.com": {outside.String()}, "other.example.com": {outside.String()}}}
	l = newTold()
	p = start(t, Config{Allow: []string{"example.com:443", "93.184.215.14:443"}, Reach: n.reach(), On: l.add})
	roots = x509.NewCertPool()
	roots.AddCert(server.Certificate()) // for example.com
	return p, l, roots
}

func TestATunnelCarriesTLSToTheHostThatItNames(t *testing.T) {
	t.Parallel()
	p, l, roots := secure(t)
	p.For("agent", 1)
	c := client(p)
	c.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: roots}
	if status, body := get(t, c, "https://example.com/secret-path"); status != http.StatusOK || body != "reached" {
		t.Fatalf("got %d %q", status, body)
	}
	r := l.next(t)
	if r.Sent < 200 || r.Received < 200 {
		t.Errorf("bytes were not counted: %+v", r)
	}
	r.Sent, r.Received = 0, 0
	if d := cmp.Diff(Request{Tick: 1, By: "agent", Host: "example.com", Port: 443, Verdict: Allowed}, r); d != "" {
		t.Errorf("told (-want +got):\n%s", d)
	}
}

func TestATunnelDoesNotFrontForAnotherName(t *testing.T) {
	t.Parallel()
	p, l, _ := secure(t)
	connect := func(to string) net.Conn {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", p.listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		_, _ = fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", to)
		line := make([]byte, len("HTTP/1.1 200"))
		if _, err := io.ReadFull(conn, line); err != nil || string(line) != "HTTP/1.1 200" {
			t.Fatalf("CONNECT: %q %v", line, err)
		}
		return conn
	}
	for name, hello := range map[string]string{
		"another name":    "other.example.com",
		"a longer name":   "example.com.evil.net",
		"no name at all":  "",
		"an address":      "93.184.215.14",
		"a subdomain":     "a.example.com",
		"another's ident": "evil.example.net",
	} {
		conn := connect("example.com:443")
		err := tls.Client(skip(conn), &tls.Config{ServerName: hello, InsecureSkipVerify: true}).HandshakeContext(t.Context())
		if r := l.next(t); err == nil || r.Verdict != Refused || r.Sent != 0 {
			t.Errorf("%s: %v, told as %+v", name, err, r)
		}
	}
	for name, text := range map[string]string{"clear HTTP": "GET / HTTP/1.1\r\nHost: evil.example.net\r\n\r\n", "SSH": "SSH-2.0-x\r\n", "noise": "\x16\x03\x01\x00\x05hello"} {
		conn := connect("example.com:443")
		_, _ = io.WriteString(conn, text)
		_, _ = io.Copy(io.Discard, conn)
		if r := l.next(t); r.Verdict != Refused || r.Sent != 0 {
			t.Errorf("%s: told as %+v", name, r)
		}
	}
	// The name sealed in the greeting is for the front-end alone. The control below greets without one.
	conn := connect("example.com:443")
	err := tls.Client(skip(conn), &tls.Config{
		ServerName: "evil.example.net", MinVersion: tls.VersionTLS13, InsecureSkipVerify: true,
		EncryptedClientHelloConfigList: sealedFor(t, "example.com"),
	}).HandshakeContext(t.Context())
	if r := l.next(t); err == nil || r.Verdict != Refused || r.Sent != 0 || !strings.Contains(r.Why, "ECH") {
		t.Errorf("a sealed name: %v, told as %+v", err, r)
	}
	// The controls: the name itself, in another spelling, and an address without a name where the address is listed.
	for to, hello := range map[string]string{"EXAMPLE.com.:443": "Example.COM", "93.184.215.14:443": ""} {
		conn := connect(to)
		tunnel := tls.Client(skip(conn), &tls.Config{ServerName: hello, InsecureSkipVerify: true})
		if err := tunnel.HandshakeContext(t.Context()); err != nil {
			t.Errorf("the control %s: %v", to, err)
		}
		_ = conn.Close()
		if r := l.next(t); r.Verdict != Allowed {
			t.Errorf("the control %s was told as %+v", to, r)
		}
	}
}

// sealedFor is an ECHConfigList with one X25519 key, whose outer name is front (RFC 9849, section 4).
func sealedFor(t *testing.T, front string) []byte {
	t.Helper()
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	contents := []byte{7, 0, 0x20, 0, 32} // id, DHKEM(X25519, HKDF-SHA256), length of the key
	contents = append(contents, key.PublicKey().Bytes()...)
	contents = append(contents, 0, 4, 0, 1, 0, 1, 32, byte(len(front))) // HKDF-SHA256 with AES-128-GCM; longest name
	contents = append(append(contents, front...), 0, 0)                 // no extensions
	config := append([]byte{0xfe, 0x0d, 0, byte(len(contents))}, contents...)
	return append([]byte{0, byte(len(config))}, config...)
}

// skip is a connection behind the proxy's answer.
func skip(conn net.Conn) net.Conn {
	b := make([]byte, 1)
	for end := ""; !strings.HasSuffix(end, "\r\n\r\n"); end += string(b) {
		if _, err := conn.Read(b); err != nil {
			break
		}
	}
	return conn
}

package egress

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// maxHead bounds a request's line and headers together.
const maxHead = 32 << 10

// target is where a request wants to go.
type target struct {
	host string
	addr netip.Addr // set when the host is an address
	port uint16
}

// request is what a client asked for, taken apart.
type request struct {
	tunnel bool
	to     target
	http   *http.Request // of a plain request
	rest   *bufio.Reader // what follows the head

	answered bool // the client has heard something
}

var errHangup = errors.New("the client hung up")

// readRequest reads one request's head with more care than a server needs: what two programs could read in
// two ways is refused, as both of us would act on it.
func readRequest(from io.Reader) (*request, error) {
	in := bufio.NewReaderSize(from, 4<<10)
	head, err := readHead(in)
	if err != nil {
		return nil, err
	}
	if why := unclear(head); why != "" {
		return nil, &refusal{400, why}
	}
	r, err := http.ReadRequest(bufio.NewReader(io.MultiReader(bytes.NewReader(head), in)))
	if err != nil {
		return nil, &refusal{400, "it is not a well-formed HTTP/1.1 request"}
	}
	req := &request{tunnel: r.Method == http.MethodConnect, http: r, rest: in}
	if req.tunnel {
		return req, req.toTunnel(head)
	}
	return req, req.toPlain(head)
}

// readHead reads up to and with the empty line, byte for byte as it was sent.
func readHead(in *bufio.Reader) ([]byte, error) {
	var head []byte
	for {
		line, err := in.ReadSlice('\n')
		head = append(head, line...)
		switch {
		case len(head) > maxHead:
			return nil, &refusal{431, "its headers are longer than 32 KiB"}
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			return nil, errHangup
		case bytes.HasSuffix(head, []byte("\r\n\r\n")):
			return head, nil
		}
	}
}

// unclear names what makes a head readable in more than one way.
func unclear(head []byte) string {
	lines := bytes.Split(bytes.TrimSuffix(head, []byte("\r\n\r\n")), []byte("\r\n"))
	if bytes.Count(lines[0], []byte(" ")) != 2 || !bytes.HasSuffix(lines[0], []byte(" HTTP/1.1")) && !bytes.HasSuffix(lines[0], []byte(" HTTP/1.0")) {
		return "its request line is not METHOD TARGET HTTP/1.1"
	}
	count := map[string]int{}
	for i, l := range lines {
		if bytes.ContainsAny(l, "\r\n\x00") {
			return "a line of its head ends in something else than CR LF"
		}
		if i == 0 {
			continue
		}
		name, _, ok := bytes.Cut(l, []byte(":"))
		if !ok || len(name) == 0 || bytes.ContainsAny(name, " \t") {
			return "a header has blanks in its name or goes on in the next line"
		}
		count[strings.ToLower(string(name))]++
	}
	switch {
	case count["host"] > 1:
		return "it has two Host headers"
	case count["content-length"] > 1 || count["transfer-encoding"] > 1:
		return "it says twice how long its body is"
	case count["content-length"] > 0 && count["transfer-encoding"] > 0:
		return "it says in two ways how long its body is"
	}
	return ""
}

// toTunnel reads CONNECT's target, host:port and nothing else.
func (r *request) toTunnel(head []byte) error {
	asked := r.http.RequestURI
	host, port, ok := splitPort(asked, "")
	if !ok {
		return &refusal{400, "CONNECT wants host:port"}
	}
	if r.to, ok = targetOf(host, port); !ok {
		return &refusal{400, "what it names is not a host"}
	}
	if r.http.ContentLength > 0 || len(r.http.TransferEncoding) > 0 {
		return &refusal{400, "CONNECT has no body"}
	}
	return r.sameHost(head, "443")
}

// sameHost holds the Host header, which the parser drops in favour of the target, to it. Of a tunnel's the host
// counts: clients differ about its port.
func (r *request) sameHost(head []byte, byDefault string) error {
	named, ok := hostHeader(head)
	if !ok {
		return nil
	}
	host, port, ok := splitPort(named, byDefault)
	if t, isHost := targetOf(host, port); !ok || !isHost || t.host != r.to.host || !r.tunnel && t.port != r.to.port {
		return &refusal{400, "its Host header names another host than its address"}
	}
	return nil
}

// toPlain reads the target of http://host:port/path.
func (r *request) toPlain(head []byte) error {
	u := r.http.URL
	switch {
	case u.Host == "":
		return &refusal{400, "this is a proxy: it wants the whole address, http://host/path, or CONNECT"}
	case u.Scheme != "http":
		return &refusal{400, "only http:// is asked for in clear; everything else goes through CONNECT"}
	case u.User != nil:
		return &refusal{400, "the address holds a user name"}
	}
	host, port, ok := splitPort(u.Host, "80")
	if !ok {
		return &refusal{400, "what it names is not host:port"}
	}
	if r.to, ok = targetOf(host, port); !ok {
		return &refusal{400, "what it names is not a host"}
	}
	if r.http.Header.Get("Upgrade") != "" {
		return &refusal{400, "it wants to change the protocol: use CONNECT"}
	}
	return r.sameHost(head, "80")
}

func targetOf(host string, port uint16) (target, bool) {
	name, addr, ok := hostOf(host)
	return target{name, addr, port}, ok
}

func hostHeader(head []byte) (string, bool) {
	for line := range bytes.SplitSeq(head, []byte("\r\n")) {
		if name, value, ok := bytes.Cut(line, []byte(":")); ok && strings.EqualFold(string(name), "host") {
			return strings.TrimSpace(string(value)), true
		}
	}
	return "", false
}

// outgoing is the request as it is sent on: to the address that was checked, without what concerned the way to us.
func (r *request) outgoing() *http.Request {
	out := r.http
	out.RequestURI = ""
	out.URL = &url.URL{Scheme: "http", Host: r.http.URL.Host, Path: out.URL.Path, RawPath: out.URL.RawPath, RawQuery: out.URL.RawQuery, ForceQuery: out.URL.ForceQuery}
	out.Close = true
	dropHopHeaders(out.Header)
	out.Header.Del("Expect") // the client hears 100 from nobody and sends its body all the same
	if _, set := out.Header["User-Agent"]; !set {
		out.Header.Set("User-Agent", "") // net/http would put its own
	}
	return out
}

// dropHopHeaders removes what is between two neighbours only (RFC 9110, 7.6.1).
func dropHopHeaders(h http.Header) {
	for _, list := range h.Values("Connection") {
		for name := range strings.SplitSeq(list, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range []string{"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Upgrade"} {
		h.Del(name)
	}
}

package egress

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// rule is one entry of the list.
type rule struct {
	host string     // lower case, without the "*."
	any  bool       // its subdomains, at any depth, and not itself
	addr netip.Addr // set when the host is an address
	port uint16
}

// parseRules reads host:port entries; config has checked their form, so an error names a list that did not
// come from there.
func parseRules(list []string) ([]rule, error) {
	var out []rule
	for _, entry := range list {
		host, portText, ok := strings.Cut(entry, ":")
		port, err := strconv.ParseUint(portText, 10, 16)
		if !ok || err != nil || port == 0 {
			return nil, fmt.Errorf("egress entry %q: want host:port, like \"registry.example.com:443\"", entry)
		}
		r := rule{port: uint16(port)}
		r.host, r.any = strings.CutPrefix(host, "*.")
		if r.host, r.addr, ok = hostOf(r.host); !ok || r.any && r.addr.IsValid() {
			return nil, fmt.Errorf("egress entry %q: %q is not the name of a host", entry, host)
		}
		out = append(out, r)
	}
	return out, nil
}

func (r rule) match(host string, addr netip.Addr, port uint16) bool {
	switch {
	case r.port != port || r.addr.IsValid() != addr.IsValid():
		return false
	case addr.IsValid():
		return r.addr == addr
	case r.any:
		return strings.HasSuffix(host, "."+r.host)
	}
	return host == r.host
}

// hostOf brings a host to the one form in which it is compared, resolved and logged: lower case, without the
// dot at its end; or an address. Everything that some resolver reads as an address and netip does not
// (2130706433, 0x7f.1, 0177.0.0.1, 127.1) is no host, and neither is a name outside ASCII: a client sends its
// xn-- form.
func hostOf(s string) (name string, addr netip.Addr, ok bool) {
	s = strings.ToLower(strings.TrimSuffix(s, "."))
	if a, err := netip.ParseAddr(s); err == nil {
		a = a.Unmap()
		return a.String(), a, a.Zone() == ""
	}
	if len(s) == 0 || len(s) > 253 {
		return "", addr, false
	}
	labels := strings.Split(s, ".")
	for _, l := range labels {
		if len(l) == 0 || len(l) > 63 || l[0] == '-' || l[len(l)-1] == '-' || strings.Trim(l, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return "", addr, false
		}
	}
	// No top-level domain begins with a digit; numbers in its place are an address in disguise.
	if last := labels[len(labels)-1]; last[0] >= '0' && last[0] <= '9' {
		return "", addr, false
	}
	return s, addr, true
}

// splitPort reads "host:port" as it stands in a request, an IPv6 address in brackets.
func splitPort(s, byDefault string) (host string, port uint16, ok bool) {
	host, text := s, byDefault
	if i := strings.LastIndexByte(s, ':'); i >= 0 && !strings.HasSuffix(s, "]") {
		host, text = s[:i], s[i+1:]
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 || strconv.FormatUint(n, 10) != text {
		return "", 0, false
	}
	if inner, bracketed := strings.CutPrefix(host, "["); bracketed {
		inner, bracketed = strings.CutSuffix(inner, "]")
		return inner, uint16(n), bracketed && strings.Contains(inner, ":")
	}
	return host, uint16(n), !strings.Contains(host, ":")
}

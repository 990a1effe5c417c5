package egress

import (
	"net"
	"net/netip"
)

// inner are the parts of the address space in which the runner, its network or its cloud may be met, and
// those that nobody on the internet has (IANA's special-purpose registries). Only what is left is egress.
var inner = []struct {
	prefix netip.Prefix
	what   string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "this machine's own"},
	{netip.MustParsePrefix("10.0.0.0/8"), "private"},
	{netip.MustParsePrefix("100.64.0.0/10"), "a carrier's own (CGNAT), where some clouds keep their metadata"},
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
	{netip.MustParsePrefix("168.63.129.16/32"), "Azure's platform address"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local, where clouds keep their metadata"},
	{netip.MustParsePrefix("172.16.0.0/12"), "private"},
	{netip.MustParsePrefix("192.0.0.0/24"), "reserved, where some clouds keep their metadata"},
	{netip.MustParsePrefix("192.0.2.0/24"), "reserved for documentation"},
	{netip.MustParsePrefix("192.31.196.0/24"), "reserved"},
	{netip.MustParsePrefix("192.52.193.0/24"), "reserved"},
	{netip.MustParsePrefix("192.88.99.0/24"), "reserved"},
	{netip.MustParsePrefix("192.168.0.0/16"), "private"},
	{netip.MustParsePrefix("192.175.48.0/24"), "reserved"},
	{netip.MustParsePrefix("198.18.0.0/15"), "reserved for measurements"},
	{netip.MustParsePrefix("198.51.100.0/24"), "reserved for documentation"},
	{netip.MustParsePrefix("203.0.113.0/24"), "reserved for documentation"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},
	{netip.MustParsePrefix("2001::/23"), "reserved, tunnels among it"},
	{netip.MustParsePrefix("2001:db8::/32"), "reserved for documentation"},
	{netip.MustParsePrefix("2002::/16"), "a tunnel (6to4)"},
	{netip.MustParsePrefix("2620:4f:8000::/48"), "reserved"},
	{netip.MustParsePrefix("3fff::/20"), "reserved for documentation"},
	{netip.MustParsePrefix("5f00::/16"), "reserved"},
}

var (
	global6 = netip.MustParsePrefix("2000::/3")
	// A network without IPv4 reaches IPv4 hosts by this prefix, and its own private ones just as well.
	nat64 = netip.MustParsePrefix("64:ff9b::/96")
)

// Inside says why an address is not on the public internet; "" means that it is.
func Inside(a netip.Addr) string {
	if !a.IsValid() || a.Zone() != "" {
		return "not an address of the internet"
	}
	a = a.Unmap()
	if nat64.Contains(a) {
		b := a.As16()
		return Inside(netip.AddrFrom4([4]byte(b[12:])))
	}
	for _, p := range inner {
		if p.prefix.Contains(a) {
			return p.what
		}
	}
	switch {
	case a.Is4() || global6.Contains(a):
		return ""
	case a.IsLoopback():
		return "loopback"
	case a.IsLinkLocalUnicast():
		return "link-local"
	case a.IsMulticast():
		return "multicast"
	case a.IsPrivate():
		return "private, where some clouds keep their metadata"
	}
	// IPv4 in other disguises is here too: ::a.b.c.d, ::ffff:0:a.b.c.d, 64:ff9b:1::/48.
	return "reserved"
}

// own says whether the address is one of this machine's: a public one reaches servers on the runner that
// listen everywhere.
func own(a netip.Addr) bool {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, i := range all {
		n, isNet := i.(*net.IPNet)
		if !isNet {
			continue
		}
		if b, ok := netip.AddrFromSlice(n.IP); ok && b.Unmap() == a.Unmap() {
			return true
		}
	}
	return false
}

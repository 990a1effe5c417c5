// Package secureurl says where a secret may be sent: over TLS, or to this machine. It must never resolve a name
// or open a connection.
package secureurl

import (
	"net"
	"net/url"
)

// Safe tells whether a secret may be sent to u: https to any host, http to this machine's own loopback. An address that itself holds
// credentials is not safe to repeat in a message either.
func Safe(u *url.URL) bool {
	return u.Host != "" && u.User == nil && (u.Scheme == "https" || u.Scheme == "http" && Local(u.Hostname()))
}

// Local tells whether a host, without its port, is this machine's loopback.
func Local(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

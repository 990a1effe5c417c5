// Package app owns the wiring: one constructor per command, and the one run path that every door leads
// to. It must never decide what another package decides; it hands one's answer to the next.
package app

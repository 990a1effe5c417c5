//go:build linux && !amd64

package sandbox

// deniedCallsArch are calls that only this machine has.
func deniedCallsArch() []uint32 { return nil }

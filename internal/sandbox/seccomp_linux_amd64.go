package sandbox

import "golang.org/x/sys/unix"

// deniedCallsArch are calls that only this machine has.
func deniedCallsArch() []uint32 {
	return []uint32{unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_USELIB, unix.SYS__SYSCTL}
}

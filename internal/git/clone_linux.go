package git

import (
	"os"

	"golang.org/x/sys/unix"
)

// cloneFile shares in's blocks with the empty file out, copy on write. False: the file system cannot.
func cloneFile(out, in *os.File) bool {
	return unix.IoctlFileClone(int(out.Fd()), int(in.Fd())) == nil
}

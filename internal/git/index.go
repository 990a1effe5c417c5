package git

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
)

// index renders the agent's index file (version 2): every tracked file with what the kernel says about
// it, so that the agent's first "git status" is clean without reading a file.
func (w *Worktree) index() []byte {
	var files []found
	w.want.entries("", func(path string, n *node) { files = append(files, found{path: path, node: n}) })
	slices.SortFunc(files, func(a, b found) int { return strings.Compare(a.path, b.path) })
	var b bytes.Buffer
	b.WriteString("DIRC")
	put32(&b, 2, uint32(len(files)))
	for _, f := range files {
		start := b.Len()
		seen := f.node.seen
		if f.node.want.Mode == ModeGitlink {
			seen = stamp{}
		}
		put32(&b, uint32(seen.ctime/1e9), uint32(seen.ctime%1e9), uint32(seen.mtime/1e9), uint32(seen.mtime%1e9),
			uint32(seen.dev), uint32(seen.ino), uint32(f.node.want.Mode), seen.uid, seen.gid, uint32(seen.size))
		raw, _ := hex.DecodeString(string(f.node.want.ID))
		b.Write(raw)
		_ = binary.Write(&b, binary.BigEndian, uint16(min(len(f.path), 0xfff)))
		b.WriteString(f.path)
		// One to eight NULs, up to a multiple of eight.
		b.Write(make([]byte, 8-(b.Len()-start)%8))
	}
	h := w.store.fmt.new()
	h.Write(b.Bytes())
	return h.Sum(b.Bytes())
}

func put32(b *bytes.Buffer, values ...uint32) {
	for _, v := range values {
		var raw [4]byte
		binary.BigEndian.PutUint32(raw[:], v)
		b.Write(raw[:])
	}
}

package git

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"crypto/sha1" //nolint:gosec // git's own object format
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// format is a repository's hash.
type format struct {
	name string
	size int // bytes
	new  func() hash.Hash
}

func sha1Format() format   { return format{"sha1", sha1.Size, sha1.New} }
func sha256Format() format { return format{"sha256", sha256.Size, sha256.New} }

// zero is the id that stands for "no object" on the wire.
func (f format) zero() ID { return ID(strings.Repeat("0", f.size*2)) }

// hash is the id that git gives the object.
func (f format) hash(kind string, content []byte) ID {
	h := f.new()
	h.Write(header(kind, int64(len(content))))
	h.Write(content)
	return ID(hex.EncodeToString(h.Sum(nil)))
}

func header(kind string, size int64) []byte {
	b := make([]byte, 0, 32)
	b = append(b, kind...)
	b = append(b, ' ')
	b = strconv.AppendInt(b, size, 10)
	return append(b, 0)
}

// loose is a directory of loose objects that is ours alone: it writes objects without a process each.
type loose struct {
	dir     string // …/objects
	fmt     format
	writers sync.Pool    // of *zlib.Writer: each holds over a megabyte of tables
	temps   atomic.Int64 // names of files not finished
}

func newLoose(dir string, f format) *loose {
	return &loose{dir: dir, fmt: f, writers: sync.Pool{New: func() any {
		// The level is a constant that the package knows: there is no error.
		z, _ := zlib.NewWriterLevel(nil, zlib.BestSpeed)
		return z
	}}}
}

func (l *loose) path(id ID) string { return filepath.Join(l.dir, string(id[:2]), string(id[2:])) }

func (l *loose) has(id ID) bool {
	_, err := os.Lstat(l.path(id))
	return err == nil
}

// write stores an object that fits in memory and returns its id; an object that exists is left alone.
func (l *loose) write(kind string, content []byte) (ID, error) {
	id := l.fmt.hash(kind, content)
	if l.has(id) {
		return id, nil
	}
	_, err := l.stream(kind, int64(len(content)), bytes.NewReader(content))
	if err != nil {
		return "", fmt.Errorf("store %s %s: %w", kind, id, err)
	}
	return id, nil
}

// errSizeChanged: a file grew or shrank while it was read.
var errSizeChanged = errors.New("the file changed while it was read")

// stream stores exactly size bytes of r in one pass, whatever the size: hash and compression run
// together, and the name is known at the end.
func (l *loose) stream(kind string, size int64, r io.Reader) (id ID, err error) {
	name := filepath.Join(l.dir, "tmp_obj_"+strconv.FormatInt(l.temps.Add(1), 10))
	tmp, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o444)
	if err != nil {
		return "", err
	}
	defer func() {
		tmp.Close()
		if err != nil {
			os.Remove(name)
		}
	}()
	out := bufio.NewWriterSize(tmp, int(min(size+128, 64<<10)))
	z := l.writers.Get().(*zlib.Writer)
	defer l.writers.Put(z)
	z.Reset(out)
	h := l.fmt.new()
	both := io.MultiWriter(h, z)
	if _, err = both.Write(header(kind, size)); err != nil {
		return "", err
	}
	n, err := io.Copy(both, io.LimitReader(r, size+1))
	if err != nil {
		return "", err
	}
	if n != size {
		return "", errSizeChanged
	}
	if err = errors.Join(z.Close(), out.Flush(), tmp.Close()); err != nil {
		return "", err
	}
	id = ID(hex.EncodeToString(h.Sum(nil)))
	return id, l.install(name, id)
}

func (l *loose) install(tmp string, id ID) error {
	final := l.path(id)
	err := os.Rename(tmp, final)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.Mkdir(filepath.Dir(final), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		err = os.Rename(tmp, final)
	}
	return err
}

// open reads an object of ours. fs.ErrNotExist when it is not loose here. Close the reader.
func (l *loose) open(id ID) (kind string, size int64, body io.ReadCloser, err error) {
	file, err := os.Open(l.path(id))
	if err != nil {
		return "", 0, nil, err
	}
	z, err := zlib.NewReader(bufio.NewReaderSize(file, 16<<10))
	if err != nil {
		file.Close()
		return "", 0, nil, fmt.Errorf("read object %s: %w", id, err)
	}
	buf := bufio.NewReader(z)
	head, err := buf.ReadString(0)
	if err == nil {
		kind, size, err = parseHeader(strings.TrimSuffix(head, "\x00"))
	}
	if err != nil {
		file.Close()
		return "", 0, nil, fmt.Errorf("read object %s: %w", id, err)
	}
	return kind, size, looseBody{io.LimitReader(buf, size), file}, nil
}

type looseBody struct {
	io.Reader
	io.Closer
}

func parseHeader(s string) (kind string, size int64, err error) {
	kind, digits, ok := strings.Cut(s, " ")
	size, err = strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || size < 0 {
		return "", 0, fmt.Errorf("malformed object header %q", s)
	}
	return kind, size, nil
}

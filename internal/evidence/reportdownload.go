package evidence

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"html/template"
	"strings"
)

// What a record may take of the page, in bytes as it stands there: as it is, and compressed.
const (
	maxPlainRecord  = 60_000
	maxPackedRecord = 120_000
)

// download is the record inside the page; without Href there is none.
type download struct {
	Href   template.URL
	Name   string
	Size   string
	Packed bool
}

// newDownload puts the record's file into an address that holds it: a policy that loads nothing lets it be saved, and
// nothing is run to do so. A long record is compressed, one that is too long stays beside the page.
func newDownload(r Record) (download, error) {
	b, err := encodeRecord(r)
	if err != nil {
		return download{}, err
	}
	d := download{Name: RecordFile, Size: sizeWord(int64(len(b)))}
	address := func(kind string, content []byte) {
		d.Href = template.URL("data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(content))
	}
	if address("application/json", b); d.cost() <= maxPlainRecord {
		return d, nil
	}
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return d, fmt.Errorf("compress run record: %w", err)
	}
	if _, err := z.Write(b); err != nil {
		return d, fmt.Errorf("compress run record: %w", err)
	}
	if err := z.Close(); err != nil {
		return d, fmt.Errorf("compress run record: %w", err)
	}
	d.Name, d.Packed = RecordFile+".gz", true
	if address("application/gzip", packed.Bytes()); d.cost() > maxPackedRecord {
		return download{}, nil
	}
	return d, nil
}

// cost is what it takes of the page: the template writes a plus sign as an entity of five characters.
func (d download) cost() int {
	if d.Href == "" {
		return 0
	}
	return len(d.Href) + 4*strings.Count(string(d.Href), "+") + 300
}

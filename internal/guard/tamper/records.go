package tamper

import (
	"encoding/json"
	"path"
	"strings"

	"github.com/proctor-ci/proctor/internal/pattern"
)

// caseTable is how a file is named whose records are cases of a test. Any other data may be what the product reads.
var caseTable = pattern.Of(`(?i)(?:case|test|vector|example|scenario|sample|table|expect|regress)[^/]*\.\w+$`)

// casesGone tells whether a table of cases in a file has fewer of them.
func casesGone(f File) bool {
	return caseTable.MatchString(path.Base(f.Path)) && records(f.Path, string(f.After)) < records(f.Path, string(f.Before))
}

// records counts the records of a table: lines, elements of a JSON array, items of a YAML list that stand outermost.
// 0: it is no table.
func records(p, text string) int {
	switch strings.ToLower(path.Ext(p)) {
	case ".csv", ".tsv", ".jsonl", ".ndjson":
		return len(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }))
	case ".json":
		var elements []json.RawMessage
		if json.Unmarshal([]byte(text), &elements) != nil {
			return 0
		}
		return len(elements)
	case ".yaml", ".yml":
		n := 0
		for _, line := range strings.Split(text, "\n") {
			if strings.HasPrefix(line, "- ") {
				n++
			}
		}
		return n
	}
	return 0
}

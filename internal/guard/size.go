package guard

import "fmt"

func (r Rules) checkFileSize(path string, size int64) (Finding, bool) {
	if size <= r.fileLimit() {
		return Finding{}, false
	}
	f := Finding{Rule: FileSize, Level: Block, Path: path, Next: "remove the file or make it smaller"}
	if size > ForgeFileLimit {
		f.Detail = fmt.Sprintf("%d bytes; forges refuse files over %d", size, ForgeFileLimit)
	} else {
		f.Detail = fmt.Sprintf("%d bytes; policy.max.file_bytes is %d", size, r.MaxFileBytes)
	}
	return f, true
}

func (r Rules) checkDiffSize(v Verdict) []Finding {
	var out []Finding
	if r.MaxFiles > 0 && v.Files > r.MaxFiles {
		out = append(out, Finding{Rule: DiffSize, Level: Block, Detail: fmt.Sprintf("%d files changed; policy.max.files is %d", v.Files, r.MaxFiles), Next: "change less, or split the issue"})
	}
	if lines := v.Added + v.Removed; r.MaxLines > 0 && lines > r.MaxLines {
		out = append(out, Finding{Rule: DiffSize, Level: Block, Detail: fmt.Sprintf("%d lines added and removed; policy.max.lines is %d", lines, r.MaxLines), Next: "change less, or split the issue"})
	}
	return out
}

package tamper

// Added names the tests that a changed file has and did not have before, in the file's own order. A renamed test
// counts as added. A language that is not known has no tests.
func Added(f File) []string {
	if !f.Is || len(f.Before) > maxText || len(f.After) > maxText {
		return nil
	}
	for _, d := range dialects() {
		if !d.speaks(f.Path) {
			continue
		}
		if !d.collects(f.Path, f.Was) {
			return nil
		}
		had := map[string]int{}
		if f.Was {
			for _, t := range d.read(f.Path, string(f.Before)).tests {
				had[t.name]++
			}
		}
		var out []string
		for _, t := range d.read(f.Path, string(f.After)).tests {
			if had[t.name] > 0 {
				had[t.name]--
				continue
			}
			out = append(out, t.name)
		}
		return out
	}
	return nil
}

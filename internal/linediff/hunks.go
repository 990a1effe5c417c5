package linediff

// Hunks groups edits that are shown together: those between which no more than twice around equal lines lie.
func Hunks(edits []Edit, around int) [][]Edit {
	var out [][]Edit
	for len(edits) > 0 {
		n := 1
		for n < len(edits) && edits[n].A-edits[n-1].AEnd <= 2*around {
			n++
		}
		out = append(out, edits[:n])
		edits = edits[n:]
	}
	return out
}

package git

import "strings"

// refusedName says why git or a forge would refuse a tree entry of that name, "" when neither would.
// symlink tells that the entry is one.
func refusedName(name string, symlink bool) string {
	switch {
	case looksLike(name, ".git", "git~1"):
		return "git takes it for its own directory on some file systems"
	case symlink && looksLike(name, ".gitmodules", "gitmod~1"):
		return "forges refuse a symlink called .gitmodules"
	}
	return ""
}

// looksLike compares a name with one of git's own the way HFS+ and NTFS do: letters of either case,
// characters that HFS+ skips, an 8.3 short name, trailing dots and spaces, a stream suffix. A backslash
// separates on Windows, so every part counts.
func looksLike(name, own, short string) bool {
	for part := range strings.SplitSeq(name, `\`) {
		plain := strings.ToLower(strings.Map(dropIgnorable, part))
		if plain == own {
			return true
		}
		stem, _, _ := strings.Cut(strings.ToLower(part), ":")
		stem = strings.TrimRight(stem, ". ")
		if stem == own || stem == short {
			return true
		}
	}
	return false
}

// dropIgnorable removes the code points that HFS+ ignores in names.
func dropIgnorable(r rune) rune {
	switch {
	case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
		return -1
	}
	return r
}

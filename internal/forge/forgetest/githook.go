package forgetest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// preReceive is the forge's own check of a push, run by git before any ref moves. The HTTP front tells
// it what this token may do by environment; for each refused ref it leaves the reason in a file, and
// the front puts that reason where the real forge's answer has it (git itself would only say
// "pre-receive hook declined").
//
// Workflow files without the permission: GitHub's "Scopes for OAuth apps" lets one along that stands on another branch with the same content.
const preReceive = `#!/bin/sh
set -u
refused=0
refuse() { # ref reason
	printf '%s\t%s\n' "$1" "$2" >>"$FORGE_VERDICT"
	refused=1
}
while read -r old new ref; do
	case " $FORGE_PROTECTED " in
	*" $ref "*)
		echo "$FORGE_PROTECTED_SAY" | sed "s|REF|$ref|" >&2
		refuse "$ref" "$FORGE_PROTECTED_REASON"
		continue ;;
	esac
	case "$new" in *[!0]*) ;; *) continue ;; esac
	if [ "$FORGE_WORKFLOWS" != yes ]; then
		files=$(git log --format= --name-only -m "$new" --not --all -- .github/workflows)
		file=$([ -z "$files" ] || echo "$files" | sort -u | while read -r f; do
			blob=$(git rev-parse -q --verify "$new:$f") || blob=gone
			for at in $(git for-each-ref --format='%(objectname)' refs/heads); do
				[ "$(git rev-parse -q --verify "$at:$f")" = "$blob" ] && continue 2
			done
			echo "$f"
			break
		done)
		if [ -n "$file" ]; then
			refuse "$ref" "$(printf 'refusing to allow %s to create or update workflow \140%s\140 without \140%s' "$FORGE_WHO" "$file" "$FORGE_SCOPE")"
			continue
		fi
	fi
	[ "$FORGE_SMALL" = yes ] && continue
	big=$(git rev-list --objects "$new" --not --all | git cat-file --batch-check='%(objecttype) %(objectsize) %(rest)' |
		awk -v max="$FORGE_MAX_BLOB" '$1 == "blob" && $2 > max { $1 = ""; size = $2; $2 = ""; sub(/^ +/, ""); print; exit }')
	if [ -n "$big" ]; then
		echo "error: File $big exceeds the forge's file size limit of $FORGE_MAX_BLOB bytes" >&2
		echo "error: GH001: Large files detected. You may want to try Git Large File Storage." >&2
		refuse "$ref" "pre-receive hook declined"
	fi
done
exit $refused
`

func (r *bareRepo) installHook() error {
	path := filepath.Join(r.dir, "hooks", "pre-receive")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("install hook: %w", err)
	}
	return os.WriteFile(path, []byte(preReceive), 0o755)
}

// readVerdicts gives ref → reason.
func readVerdicts(path string) map[string]string {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	out := map[string]string{}
	for line := range strings.Lines(string(data)) {
		if ref, reason, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t"); ok {
			out[ref] = reason
		}
	}
	return out
}

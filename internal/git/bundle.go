package git

import (
	"context"
	"fmt"
	"os"
	"strings"
)

// Bundle writes commit into a file that git fetches from as from a repository, where it is the branch of that name. It
// holds what came since the base, which the reader has to have, and so nothing of the base's sealed files.
func (s *Store) Bundle(ctx context.Context, file, branch string, commit ID) (err error) {
	name := "refs/heads/" + branch
	if err := checkRefName(name); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return fmt.Errorf("write bundle: %w", err)
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
		if err != nil {
			_ = os.Remove(file)
		}
	}()
	head := "# v2 git bundle\n"
	if s.fmt.name == "sha256" {
		head = "# v3 git bundle\n@object-format=sha256\n"
	}
	// The format is that of git's gitformat-bundle(5): what it needs, what it has, an empty line, a pack.
	if _, err := fmt.Fprintf(f, "%s-%s\n%s %s\n\n", head, s.base, commit, name); err != nil {
		return fmt.Errorf("write bundle: %w", err)
	}
	c := s.command("pack-objects", "-q", "--revs", "--stdout")
	c.stdin, c.stdout = strings.NewReader(string(commit)+"\n^"+string(s.base)+"\n"), f
	if err := s.git.run(ctx, c); err != nil {
		return fmt.Errorf("write bundle: %w", err)
	}
	return nil
}

package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/proctor-ci/proctor/internal/sandbox"
)

// find returns the absolute path of an agent's executable: the one that was configured, or the first
// of that name in the places where the agent's process itself would look.
func (o Options) find(name string) (string, error) {
	if o.Program != "" {
		return o.Program, errors.Join(executable(o.Program), o.reachable(o.Program))
	}
	var closed error
	dirs := append(append([]string{}, o.Path...), filepath.SplitList(sandbox.SystemPath)...)
	for _, dir := range dirs {
		if p := filepath.Join(dir, name); filepath.IsAbs(p) && executable(p) == nil {
			err := o.reachable(p)
			if err == nil {
				return p, nil
			}
			if closed == nil {
				closed = err
			}
		}
	}
	if closed != nil {
		return "", closed
	}
	return "", fmt.Errorf("%s is in no directory of PATH", name)
}

// reachable asks a runner that knows whether the agent's user could get at the program: root finds a
// CLI in a home directory that is closed to everybody else.
func (o Options) reachable(program string) error {
	if r, ok := o.Runner.(interface{ CanReach(path string) error }); ok {
		return r.CanReach(program)
	}
	return nil
}

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir() || info.Mode()&0o111 == 0:
		return fmt.Errorf("%s is not an executable file", path)
	}
	return nil
}

// programDirs are the directories that must be readable for a program to run, links followed.
func programDirs(path string) []string {
	dirs := []string{filepath.Dir(path)}
	if real, err := filepath.EvalSymlinks(path); err == nil && filepath.Dir(real) != dirs[0] {
		dirs = append(dirs, filepath.Dir(real))
	}
	return dirs
}

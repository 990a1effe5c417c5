package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// SystemPath is the PATH of every confined process unless the caller adds toolchains in front.
const SystemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// BaseEnv is the whole environment of a process that needs nothing special. home and tmp are
// directories of its own. Nothing that makes a shell, a loader or an interpreter run further code
// (BASH_ENV, ENV, LD_*, NODE_OPTIONS, PYTHON*, PERL5OPT, …) is in it, and nothing of the harness's own.
func BaseEnv(home, tmp string) []string {
	return []string{
		"PATH=" + SystemPath,
		"HOME=" + home,
		"TMPDIR=" + tmp,
		"TMP=" + tmp,
		"TEMP=" + tmp,
		"LANG=C.UTF-8",
		"LC_ALL=C.UTF-8",
		"TERM=dumb",
		"CI=true",
		"USER=proctor",
		"LOGNAME=proctor",
		"SHELL=/bin/sh",
		// Git asks nobody, and reads no system or user file that is not in HOME.
		"GIT_TERMINAL_PROMPT=0",
		"GIT_CONFIG_NOSYSTEM=1",
	}
}

// WithPath puts directories in front of the PATH of env and returns the new environment. Relative
// and empty entries are dropped: they would make the working directory a place for programs.
func WithPath(env []string, dirs ...string) []string {
	var keep []string
	for _, d := range dirs {
		if filepath.IsAbs(d) {
			keep = append(keep, filepath.Clean(d))
		}
	}
	out := make([]string, 0, len(env)+1)
	found := false
	for _, kv := range env {
		if old, ok := strings.CutPrefix(kv, "PATH="); ok && !found {
			found = true
			kv = "PATH=" + strings.Join(append(keep, filepath.SplitList(old)...), ":")
		}
		out = append(out, kv)
	}
	if !found {
		out = append(out, "PATH="+strings.Join(append(keep, SystemPath), ":"))
	}
	return out
}

// ToolDirs says which directories must be readable so that the programs of a PATH can run: CI
// runners keep toolchains outside the system's places (a tool cache in /opt, ~/.cargo, a Go root).
// For DIR/bin it names DIR, because a toolchain keeps its libraries beside its programs, but never a
// home directory, a place that holds credentials, or anything that holds or lies in one of exclude
// (the harness's own directories: checkout, store, run directory). The answer is for Policy.ReadOnly;
// entries that do not exist are left out. path is a PATH list, home the user's home directory.
func ToolDirs(path, home string, exclude ...string) []string {
	var out []string
	seen := map[string]bool{}
	add := func(dir string) {
		real, err := filepath.EvalSymlinks(dir)
		if err != nil || seen[real] || real == "/" || within(real, systemDirs()) || touches(real, exclude) {
			return
		}
		seen[real] = true
		out = append(out, real)
	}
	for _, entry := range filepath.SplitList(path) {
		if !filepath.IsAbs(entry) {
			continue
		}
		entry = filepath.Clean(entry)
		parent := filepath.Dir(entry)
		base := filepath.Base(parent)
		switch {
		case filepath.Base(entry) != "bin" && filepath.Base(entry) != "shims",
			parent == "/", parent == filepath.Clean(home):
			add(entry)
		case base == ".local" || base == ".cargo":
			// ~/.local/share holds key rings and ~/.cargo/credentials.toml a token: name only the harmless parts.
			for _, sub := range []string{"bin", "lib", "registry", "git", "env"} {
				add(filepath.Join(parent, sub))
			}
			if base == ".cargo" {
				add(filepath.Join(filepath.Dir(parent), ".rustup"))
			}
		default:
			add(parent)
		}
	}
	return out
}

// systemDirs are the places every process may read, where they exist. Sockets and state (/run, /var)
// and homes are not among them; the two stores hold nothing but published packages.
func systemDirs() []string {
	return []string{
		"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/proc", "/sys",
		"/nix/store", "/gnu/store",
	}
}

// touches says whether dir is one of others, holds one or lies in one.
func touches(dir string, others []string) bool {
	for _, o := range others {
		real, err := filepath.EvalSymlinks(o)
		if err != nil {
			real = filepath.Clean(o)
		}
		if inside(dir, real) || inside(real, dir) {
			return true
		}
	}
	return false
}

func within(dir string, roots []string) bool {
	for _, r := range roots {
		if inside(dir, r) {
			return true
		}
	}
	return false
}

// inside says whether path is root or lies below it. Both are clean and absolute.
func inside(path, root string) bool {
	return path == root || root == "/" || strings.HasPrefix(path, root+"/")
}

// lookupEnv finds a variable in an environment; the last one counts, as in a shell.
func lookupEnv(env []string, name string) (string, bool) {
	for i := len(env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(env[i], name+"="); ok {
			return v, true
		}
	}
	return "", false
}

// checkPath refuses a PATH in which a file of the workspace could stand for a system program.
func checkPath(env, readWrite []string) error {
	list, _ := lookupEnv(env, "PATH")
	for _, entry := range filepath.SplitList(list) {
		if !filepath.IsAbs(entry) {
			return fmt.Errorf("sandbox: PATH has the relative entry %q, so that a file of the repository could stand for a program: use absolute directories", entry)
		}
		real, err := filepath.EvalSymlinks(entry)
		if err != nil {
			continue // it does not exist; it may not come to exist in a writable place either
		}
		for _, rw := range readWrite {
			if inside(real, rw) || inside(filepath.Clean(entry), rw) {
				return fmt.Errorf("sandbox: PATH entry %q lies in %q, which the process may write: put programs elsewhere", entry, rw)
			}
		}
	}
	return nil
}

// findProgram is where argv[0] is looked up: a bare name in PATH, never in the working directory; a
// name with a slash is a path, relative to dir. closed says why the process's user could not get there, as a
// home directory that is its owner's alone; nil: it could.
func findProgram(name, dir, path string, closed func(string) error) (string, *failure) {
	check := func(file string) (string, *failure) {
		found, f := checkProgram(file)
		if f == nil {
			if err := closed(found); err != nil {
				return "", &failure{Kind: "denied", Program: file, Detail: err.Error()}
			}
		}
		return found, f
	}
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		return check(name)
	}
	var denied *failure
	for _, entry := range filepath.SplitList(path) {
		if !filepath.IsAbs(entry) {
			continue
		}
		found, f := check(filepath.Join(entry, name))
		if f == nil {
			return found, nil
		}
		if f.Kind == "denied" && denied == nil {
			denied = f
		}
	}
	if denied != nil {
		return "", denied
	}
	return "", &failure{Kind: "missing", Program: name, Detail: fmt.Sprintf("it is in no directory of PATH (%s): install it in the job, or add its directory", path)}
}

func checkProgram(file string) (string, *failure) {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return "", &failure{Kind: "missing", Program: file, Detail: fmt.Sprintf("%v: check the name, or install it in the job", err)}
	case info.IsDir():
		return "", &failure{Kind: "denied", Program: file, Detail: "it is a directory"}
	case info.Mode()&0o111 == 0:
		return "", &failure{Kind: "denied", Program: file, Detail: "it has no executable bit: chmod +x it and commit that"}
	}
	return file, nil
}

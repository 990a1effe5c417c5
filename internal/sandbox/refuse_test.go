//go:build linux

package sandbox_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/sandbox"
)

func names(all []sandbox.Enforced, active bool) string {
	var out []string
	for _, e := range all {
		if e.Active == active {
			out = append(out, e.Name)
		}
	}
	return strings.Join(out, " ")
}

// required are the lines that strict wants.
func required(all []sandbox.Enforced) (out []sandbox.Enforced) {
	for _, e := range all {
		if !e.Optional {
			out = append(out, e)
		}
	}
	return out
}

// without is a machine with an older Landlock and no namespaces.
func without(landlock int) sandbox.Capability {
	return sandbox.Capability{MaxLandlock: landlock, Without: sandbox.AllNamespaces()}
}

// TestOlderKernelsAreToldAndStrictRefuses: what cannot be enforced is a line with what would bring it;
// auto goes on without it and strict does not start.
func TestOlderKernelsAreToldAndStrictRefuses(t *testing.T) {
	t.Parallel()
	needRoot(t)
	ports := []uint16{9}
	user := "" // what a process namespace brings to who is not root
	if noProcesses(t) {
		user = "user "
	}
	for _, c := range []struct {
		name    string
		uid     int
		pretend sandbox.Capability
		ports   []uint16
		missing string
	}{
		{"this kernel, root", 0, sandbox.Capability{}, ports, ""},
		{"this kernel, ordinary user", ordinary, sandbox.Capability{}, ports, ""},
		{"no signal scope, root", 0, sandbox.Capability{MaxLandlock: 5}, ports, ""},
		{"no signal scope, ordinary user", ordinary, sandbox.Capability{MaxLandlock: 5}, ports, strings.TrimSpace(user)},
		{"no signal scope and no namespaces, ordinary user", ordinary, without(5), ports, "user"},
		{"no ports", 0, sandbox.Capability{MaxLandlock: 3}, ports, ""},
		{"no ports and no namespaces", 0, without(3), ports, "network-tcp"},
		{"no ports and no namespaces, and none wanted", 0, without(3), nil, ""},
		{"no namespaces, root", 0, weaker, ports, ""},
		{"no namespaces, ordinary user", ordinary, weaker, ports, ""},
		{"no truncation", 0, sandbox.Capability{MaxLandlock: 2}, nil, "filesystem"},
		{"first Landlock", 0, sandbox.Capability{MaxLandlock: 1}, nil, "filesystem"},
		{"no Landlock", 0, sandbox.Capability{MaxLandlock: -1}, nil, "filesystem"},
		{"no Landlock, ordinary user", ordinary, sandbox.Capability{MaxLandlock: -1}, ports, user + "filesystem"},
		{"no Landlock and no namespaces, ordinary user", ordinary, without(-1), ports, "user filesystem network-tcp"},
		{"a filter that asks already", 0, sandbox.Capability{Without: sandbox.AllNamespaces(), NoAsking: true}, ports, "network-tcp"},
		{"no seccomp", 0, sandbox.Capability{NoSeccomp: true}, nil, "network-tcp network-udp unix-sockets syscalls"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, sandbox.Config{})
			if c.uid != 0 {
				l = ownedLab(t, c.uid)
			}
			j := job{Root: l.root, Mode: sandbox.Auto, Argv: []string{"sh", "-c", "echo ran > ran"}, Pretend: c.pretend, Ports: c.ports}
			o := runAs(t, c.uid, j)
			if got := names(required(o.Result.Enforced), false); got != c.missing {
				t.Errorf("auto: not enforced: %q, want %q", got, c.missing)
			}
			if _, err := os.Stat(l.work + "/ran"); err != nil {
				t.Errorf("auto did not start it: %v %s", err, o.Err)
			}
			_ = os.Remove(l.work + "/ran")
			j.Mode = sandbox.Strict
			o = runAs(t, c.uid, j)
			_, err := os.Stat(l.work + "/ran")
			if started := err == nil; started != (c.missing == "") {
				t.Errorf("strict: started %v; %s", started, o.Err)
			}
			if c.missing != "" {
				for _, n := range strings.Fields(c.missing) {
					if !strings.Contains(o.Err, n+": ") {
						t.Errorf("strict does not name %s: %s", n, o.Err)
					}
				}
			}
		})
	}
}

// TestWeakerKernelsStillHoldWhatTheySay runs attempts against each pretended kernel.
func TestWeakerKernelsStillHoldWhatTheySay(t *testing.T) {
	t.Parallel()
	needRoot(t)
	tcp, _ := listen(t)
	for _, c := range []struct {
		name     string
		landlock int
		args     func(*testing.T, lab) []string
	}{
		{"ABI 1 keeps files", 1, at("write", "harness/secret")},
		{"ABI 3 keeps truncation", 3, at("truncate", "harness/secret")},
		{"ABI 3 has no internet sockets", 3, fixed("dial", "tcp4", tcp)},
		{"no Landlock has no internet sockets", -1, fixed("dial", "tcp4", tcp)},
		{"ABI 5 has no unix sockets", 5, func(t *testing.T, l lab) []string {
			return []string{"dial", "unix", listenUnix(t, l.harness+"/open.sock", 0o666)}
		}},
		{"ABI 4 keeps ports", 4, fixed("dial", "tcp4", tcp)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, sandbox.Config{Pretend: without(c.landlock)})
			if came, out := l.attack(t, sandbox.Auto, nil, c.args(t, l)...); came {
				t.Errorf("it came through: %s", out)
			}
		})
	}
}

func TestProbeAgreesWithARun(t *testing.T) {
	t.Parallel()
	for _, mode := range []sandbox.Mode{sandbox.Auto, sandbox.Off} {
		l := newLab(t, sandbox.Config{Mode: mode})
		probed, err := l.box.Probe(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		r, _ := l.shell(t, "true")
		if diff := cmp.Diff(probed, r.Enforced); diff != "" {
			t.Errorf("%s (-probe +run):\n%s", mode, diff)
		}
		want := ""
		if noProcesses(t) {
			want = "processes"
		}
		if mode == sandbox.Off {
			want = "user filesystem network-tcp network-udp unix-sockets syscalls network private-tmp processes ipc"
		}
		if got := names(probed, false); got != want {
			t.Errorf("%s: not active: %q, want %q", mode, got, want)
		}
	}
}

func TestWhatCannotStartIsNamed(t *testing.T) {
	t.Parallel()
	l := newLab(t, sandbox.Config{})
	write(t, l.work+"/plain", "no program\n")
	write(t, l.work+"/noloader", "#!/no/such/interpreter\n")
	write(t, l.work+"/garbage", "\x7fELF garbage")
	write(t, l.work+"/make", "#!/bin/sh\necho shadow\n")
	for _, f := range []string{"noloader", "garbage", "make"} {
		if err := os.Chmod(l.work+"/"+f, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, l.harness+"/tool", "#!/bin/sh\n")
	if err := os.Chmod(l.harness+"/tool", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		argv []string
		env  []string
		want error
		text string
	}{
		{"no such program", []string{"no-such-program"}, nil, sandbox.ErrProgramMissing, "it is in no directory of PATH"},
		{"a name in the working directory only", []string{"plain"}, nil, sandbox.ErrProgramMissing, "PATH"},
		{"no such path", []string{"./absent"}, nil, sandbox.ErrProgramMissing, "absent"},
		{"no executable bit", []string{"./plain"}, nil, sandbox.ErrProgramDenied, "chmod +x"},
		{"a directory", []string{"/usr"}, nil, sandbox.ErrProgramDenied, "directory"},
		{"no interpreter", []string{"./noloader"}, nil, sandbox.ErrProgramMissing, "interpreter"},
		{"no program of this machine", []string{"./garbage"}, nil, sandbox.ErrProgramDenied, "neither a program"},
		{"outside what it may read", []string{l.harness + "/tool"}, nil, sandbox.ErrProgramDenied, "add the directory of the toolchain"},
		{"an empty PATH", []string{"sh"}, []string{"HOME=/"}, sandbox.ErrProgramMissing, "PATH"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cmd := l.command(c.argv...)
			if c.env != nil {
				cmd.Env = c.env
			}
			_, err := l.box.Run(context.Background(), cmd)
			var start *sandbox.StartError
			if !errors.As(err, &start) || !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want %v with %q", err, c.want, c.text)
			}
		})
	}
}

func TestWrongCommandsAreRefused(t *testing.T) {
	t.Parallel()
	l := newLab(t, sandbox.Config{})
	if err := os.Symlink("/", l.work+"/all"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		change func(*sandbox.Command)
		text   string
	}{
		{"no program", func(c *sandbox.Command) { c.Argv = nil }, "the command is empty"},
		{"relative directory", func(c *sandbox.Command) { c.Dir = "work" }, "not an absolute path"},
		{"missing directory", func(c *sandbox.Command) { c.Dir = l.work + "/absent" }, "no such file"},
		{"a writable system", func(c *sandbox.Command) { c.Policy.ReadWrite = []string{"/usr/local"} }, "may not be writable"},
		{"a writable everything", func(c *sandbox.Command) { c.Policy.ReadWrite = []string{l.work + "/all"} }, "may not be writable"},
		{"a readable everything", func(c *sandbox.Command) { c.Policy.ReadOnly = []string{l.work + "/all"} }, "may not be readable"},
		{"unknown mode", func(c *sandbox.Command) { c.Policy.Mode = "lax" }, "unknown mode"},
		{"INV-32 relative PATH entry", func(c *sandbox.Command) { c.Env = []string{"PATH=/usr/bin:bin"} }, "relative entry"},
		{"INV-32 empty PATH entry", func(c *sandbox.Command) { c.Env = []string{"PATH=/usr/bin::/bin"} }, "relative entry"},
		{"INV-32 PATH entry in the workspace", func(c *sandbox.Command) { c.Env = []string{"PATH=" + l.work + ":/usr/bin"} }, "put programs elsewhere"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cmd := l.command("true")
			c.change(&cmd)
			if _, err := l.box.Run(context.Background(), cmd); err == nil || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want an error with %q", err, c.text)
			}
		})
	}
	if _, err := sandbox.New(sandbox.Config{Mode: "lax"}); err == nil {
		t.Error("an unknown mode was accepted")
	}
	if _, err := sandbox.New(sandbox.Config{User: sandbox.Identity{UID: 0, GID: 5}}); err == nil {
		t.Error("root was accepted as an unprivileged user")
	}
}

func TestTheEnvironmentIsExactlyWhatWasGiven(t *testing.T) {
	t.Parallel()
	l := newLab(t, sandbox.Config{})
	c := l.command("env")
	c.Env = []string{"PATH=/usr/bin:/bin", "ONLY=this"}
	if _, out := l.run(t, c); out != "PATH=/usr/bin:/bin\nONLY=this\n" {
		t.Errorf("environment %q", out)
	}
	for _, kv := range sandbox.BaseEnv("/h", "/t") {
		name, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "PYTHON") || strings.HasPrefix(name, "NODE_") || name == "BASH_ENV" || name == "ENV" {
			t.Errorf("INV-32: %s is in the base environment", name)
		}
	}
}

func TestOwnGivesATreeAwayAndNothingElse(t *testing.T) {
	t.Parallel()
	needRoot(t)
	l := newLab(t, sandbox.Config{})
	for _, d := range []string{"a", "a/b"} {
		if err := os.Mkdir(l.work+"/"+d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(t, l.work+"/a/b/file", "x")
	if err := os.Symlink(l.harness+"/secret", l.work+"/a/link"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(l.harness, l.work+"/dirlink"); err != nil {
		t.Fatal(err)
	}
	if err := l.box.Own(l.work); err != nil {
		t.Fatal(err)
	}
	r, out := l.shell(t, "echo more >> a/b/file && rm -r a && ls -A")
	if r.ExitCode != 0 || out != "dirlink\n" {
		t.Errorf("exit %d, output %q", r.ExitCode, out)
	}
	for _, p := range []string{l.harness, l.harness + "/secret"} {
		if uid := ownerOf(t, p); uid != 0 {
			t.Errorf("%s was given to user %d", p, uid)
		}
	}
	// A second name of a harness file would take the first one with it.
	if err := os.Link(l.harness+"/secret", l.work+"/hard"); err != nil {
		t.Fatal(err)
	}
	if err := l.box.Own(l.work); err == nil || !strings.Contains(err.Error(), "hard links") {
		t.Errorf("hard link: %v", err)
	}
	if uid := ownerOf(t, l.harness+"/secret"); uid != 0 {
		t.Errorf("the linked file was given to user %d", uid)
	}
	if err := l.box.Own("/usr/share"); err == nil {
		t.Error("a system directory was given away")
	}
}

func TestPrivateDirectoriesOfOursBecomePassableAndNoMore(t *testing.T) {
	t.Parallel()
	needRoot(t)
	root := t.TempDir() // private, as os.MkdirTemp makes them
	if err := os.Chmod(filepath.Dir(root), 0o700); err != nil {
		t.Fatal(err)
	}
	private := root + "/private"
	for _, d := range []string{private, private + "/work"} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	box, err := sandbox.New(sandbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	l := lab{root: root, work: private + "/work", home: private + "/work", tmp: private + "/work", box: box}
	if r, out := l.shell(t, "pwd && touch here"); r.ExitCode != 0 {
		t.Errorf("exit %d: %s", r.ExitCode, out)
	}
	info, err := os.Stat(private)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o710 {
		t.Errorf("mode %o, want 710", info.Mode().Perm())
	}
	foreign := root + "/foreign"
	for _, d := range []string{foreign, foreign + "/work"} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(foreign, ordinary, ordinary); err != nil {
		t.Fatal(err)
	}
	if err := box.Own(foreign + "/work"); err == nil || !strings.Contains(err.Error(), "cannot enter "+foreign) {
		t.Errorf("a foreign private directory: %v", err)
	}
}

func TestToolDirsNameToolchainsAndNoSecrets(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	home := root + "/home/runner"
	for _, d := range []string{"opt/go/1.26/x64/bin", "opt/plain", "home/runner/.cargo/bin", "home/runner/.cargo/registry", "home/runner/.rustup", "home/runner/.local/bin", "home/runner/bin", "run/store/bin", "home/runner/.pyenv/shims"} {
		if err := os.MkdirAll(root+"/"+d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, home+"/.cargo/credentials.toml", "x")
	path := strings.Join([]string{
		root + "/opt/go/1.26/x64/bin", root + "/opt/plain", home + "/.cargo/bin", home + "/.local/bin", home + "/bin",
		root + "/run/store/bin", home + "/.pyenv/shims", "relative/bin", "", "/usr/bin", root + "/absent/bin", root + "/opt/plain",
	}, ":")
	want := []string{
		root + "/opt/go/1.26/x64", root + "/opt/plain", home + "/.cargo/bin", home + "/.cargo/registry", home + "/.rustup",
		home + "/.local/bin", home + "/bin", home + "/.pyenv",
	}
	if diff := cmp.Diff(want, sandbox.ToolDirs(path, home, root+"/run")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got := sandbox.WithPath([]string{"A=1", "PATH=/bin"}, "/opt/x/bin", "rel", "")
	if diff := cmp.Diff([]string{"A=1", "PATH=/opt/x/bin:/bin"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAToolchainInAPrivateHomeIsNamed: root finds it there, and the user who is to run it does not.
func TestAToolchainInAPrivateHomeIsNamed(t *testing.T) {
	t.Parallel()
	needRoot(t)
	// Not below /tmp, where a private /tmp brings directories of its own.
	home, err := os.MkdirTemp("/var/tmp", "home-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	if err := os.Mkdir(home+"/bin", 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, home+"/bin/tool", "#!/bin/sh\necho from home\n")
	if err := os.Chmod(home+"/bin/tool", 0o755); err != nil {
		t.Fatal(err)
	}
	// A person's own: root may enter it, nobody else.
	if err := os.Chown(home, ordinary, ordinary); err != nil {
		t.Fatal(err)
	}
	for _, pretend := range []sandbox.Capability{{}, weaker} {
		l := newLab(t, sandbox.Config{Pretend: pretend})
		for _, name := range []string{home + "/bin/tool", "tool"} {
			c := l.command(name)
			c.Env = sandbox.WithPath(c.Env, home+"/bin")
			c.Policy.ReadOnly = append(c.Policy.ReadOnly, home+"/bin")
			_, err := l.box.Run(context.Background(), c)
			if !errors.Is(err, sandbox.ErrProgramDenied) || !strings.Contains(err.Error(), "cannot enter "+home+" (mode 0700)") {
				t.Errorf("%s: %v", name, err)
			}
			if err := l.box.CanReach(home + "/bin/tool"); err == nil || !strings.Contains(err.Error(), "chmod o+x "+home) {
				t.Errorf("CanReach: %v", err)
			}
		}
		// The next of that name in PATH is taken, as a shell would.
		if err := os.Symlink("/bin/echo", l.root+"/tool"); err != nil {
			t.Fatal(err)
		}
		c := l.command("tool", "from elsewhere")
		c.Env = sandbox.WithPath(c.Env, home+"/bin", l.root)
		c.Policy.ReadOnly = append(c.Policy.ReadOnly, l.root+"/tool")
		if pretend == weaker { // the link's own directory is not opened there; programs are found all the same
			c.Policy.ReadOnly = append(c.Policy.ReadOnly, l.root)
		}
		if _, err := l.box.Run(context.Background(), c); err != nil {
			t.Errorf("a second one: %v", err)
		}
	}
	if err := os.Chmod(home, 0o711); err != nil {
		t.Fatal(err)
	}
	l := newLab(t, sandbox.Config{})
	c := l.command(home + "/bin/tool")
	c.Policy.ReadOnly = append(c.Policy.ReadOnly, home+"/bin")
	if _, out := l.run(t, c); out != "from home\n" {
		t.Errorf("positive control: with the directory passable it printed %q", out)
	}
}

func TestASecondUserPassesAPrivateDirectoryToo(t *testing.T) {
	t.Parallel()
	needRoot(t)
	root := t.TempDir()
	if err := os.Mkdir(root+"/private", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(root+"/private/work", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, uid := range []int{65534, 65533, 65534} {
		box, err := sandbox.New(sandbox.Config{User: sandbox.Identity{UID: uid, GID: uid}, Pretend: weaker})
		if err != nil {
			t.Fatal(err)
		}
		work := root + "/private/work"
		l := lab{root: root, work: work, home: work, tmp: work, box: box}
		if r, out := l.shell(t, "pwd && touch here && ! ls .."); r.ExitCode != 0 {
			t.Errorf("user %d: exit %d: %s", uid, r.ExitCode, out)
		}
	}
}

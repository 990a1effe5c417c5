package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// restrictLandlock confines the calling thread to the files, ports and peers of the spec, as far as the
// ABI goes. With ABI 0 it does nothing; confine reports that.
func restrictLandlock(s spec, abi int, plan socketPlan) error {
	if abi == 0 {
		return nil
	}
	rules, err := fileRules(s, abi)
	if err != nil {
		return fmt.Errorf("prepare Landlock rules: %w", err)
	}
	config := configFor(abi, s.Namespaces.Network)
	if plan.asks {
		// What was bound for it stays bound.
		config.HandledAccessNet |= ll.AccessNetBindTCP
	}
	if abi >= 4 && !s.Namespaces.Network {
		for _, p := range s.Ports {
			rules = append(rules, landlock.ConnectTCP(p))
		}
	}
	fd, flags, err := config.NewRulesetFD(rules...)
	if err != nil {
		return fmt.Errorf("make a Landlock ruleset (ABI %d): %w", abi, err)
	}
	defer func() { _ = unix.Close(fd) }()
	// Only this thread: the rest of the child must stay able to signal and to look around.
	if err := ll.LandlockRestrictSelf(fd, flags); err != nil {
		return fmt.Errorf("apply Landlock (ABI %d): %w", abi, err)
	}
	return nil
}

// configFor handles everything of an ABI but the right to listen: a tree may talk to itself, and
// nobody outside is helped by a listener that dies with it. In a network namespace of its own it may
// connect to whatever is there.
func configFor(abi int, ownNetwork bool) landlock.Config {
	all := []landlock.Config{
		{}, landlock.V1, landlock.V2, landlock.V3, landlock.V4, landlock.V5,
		landlock.V6, landlock.V7, landlock.V8, landlock.V9,
	}
	c := all[min(abi, len(all)-1)]
	if abi >= 4 {
		c.HandledAccessNet = ll.AccessNetConnectTCP
		if ownNetwork {
			c.HandledAccessNet = 0
		}
	}
	return c
}

func fileRules(s spec, abi int) ([]landlock.Rule, error) {
	writable := landlock.RWDirs(slices.Concat(s.ReadWrite, s.private.places)...)
	if abi >= 2 {
		writable = writable.WithRefer() // rename across directories; ABI 1 cannot grant it
	}
	if abi >= 9 {
		writable = writable.WithResolveUnix()
	}
	devices := landlock.RWFiles("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty").IgnoreIfMissing()
	if abi >= 5 {
		devices = devices.WithIoctlDev()
	}
	rules := []landlock.Rule{writable, devices}
	var dirs, files []string
	for _, d := range append(systemDirs(), s.ReadOnly...) {
		if d == "/etc" && s.User == nil && os.Geteuid() == 0 {
			open, err := etcWithoutSecrets()
			if err != nil {
				return nil, err
			}
			files = append(files, open...)
			continue
		}
		info, err := os.Stat(d)
		switch {
		case err != nil: // not there, or not for us
		case info.IsDir():
			dirs = append(dirs, d)
		default:
			files = append(files, d)
		}
	}
	for _, f := range files {
		if info, err := os.Stat(f); err == nil && info.IsDir() {
			dirs = append(dirs, f)
		} else if err == nil {
			rules = append(rules, landlock.ROFiles(f).IgnoreIfMissing())
		}
	}
	return append(rules, landlock.RODirs(dirs...).IgnoreIfMissing()), nil
}

// etcWithoutSecrets lists what is in /etc but for what only root may read. It is needed when untrusted
// processes run as root in name: file permissions protect nothing from them.
func etcWithoutSecrets() ([]string, error) {
	entries, err := os.ReadDir("/etc")
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue
		}
		name := e.Name()
		openToAll := info.Mode()&os.ModeSymlink != 0 || info.Mode().Perm()&0o004 != 0
		// These have readable directories that hold unreadable keys.
		if !openToAll || name == "ssh" || name == "docker" || name == "kubernetes" || strings.HasPrefix(name, "sudoers") {
			continue
		}
		if name == "ssl" {
			out = append(out, "/etc/ssl/certs", "/etc/ssl/openssl.cnf")
			continue
		}
		if real, err := filepath.EvalSymlinks(filepath.Join("/etc", name)); err == nil && !inside(real, "/run") {
			out = append(out, real)
		}
	}
	return out, nil
}

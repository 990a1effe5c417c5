package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// HardenSelf keeps the harness's memory from other processes of its user: no core dumps, no tracing, and
// /proc/PID/{environ,mem,fd,…} belong to root. Call it first thing in main, after Child and Scrub.
func HardenSelf() error {
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("sandbox: switch core dumps off: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("sandbox: make the harness non-dumpable: %w", err)
	}
	return nil
}

// Scrub takes variables out of the environment, for good, and returns their values; a name that is not
// set is not in the answer. os.Unsetenv alone is not enough: /proc/PID/environ goes on showing the
// environment the process was started with, so its memory is overwritten too, and looked at afterwards.
// Names are exact. An error means that a value may still be seen there.
//
// Call it first thing in main, while nothing else runs: a package that keeps strings it got from
// os.Getenv for one of these names before would see them blanked.
func Scrub(names ...string) (map[string]string, error) {
	values := map[string]string{}
	for _, name := range names {
		if v, ok := os.LookupEnv(name); ok {
			values[name] = strings.Clone(v) // the original shares memory with what is overwritten below
			if err := os.Unsetenv(name); err != nil {
				return values, fmt.Errorf("sandbox: unset %s: %w", name, err)
			}
		}
	}
	if err := blankInitial(names); err != nil {
		return values, fmt.Errorf("sandbox: take secrets out of the initial environment: %w", err)
	}
	return values, nil
}

func blankInitial(names []string) error {
	raw, err := os.ReadFile("/proc/self/environ")
	if err != nil {
		return err
	}
	start, err := environStart()
	if err != nil {
		return err
	}
	mem, err := os.OpenFile("/proc/self/mem", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = mem.Close() }()
	offset := int64(start)
	for entry := range bytes.SplitSeq(raw, []byte{0}) {
		name, _, _ := bytes.Cut(entry, []byte("="))
		if len(entry) > 0 && slices.Contains(names, string(name)) {
			if _, err := mem.WriteAt(make([]byte, len(entry)), offset); err != nil {
				return err
			}
		}
		offset += int64(len(entry)) + 1
	}
	return checkBlank(names)
}

// environStart is field 50 of /proc/self/stat: where the initial environment lies in memory.
func environStart() (uint64, error) {
	raw, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0, err
	}
	f := bytes.Fields(raw[bytes.LastIndexByte(raw, ')')+1:])
	const envStart = 50 - 3 // the first field here is the third of the line
	if len(f) <= envStart {
		return 0, fmt.Errorf("/proc/self/stat has no field 50 (Linux before 3.5)")
	}
	return strconv.ParseUint(string(f[envStart]), 10, 64)
}

func checkBlank(names []string) error {
	raw, err := os.ReadFile("/proc/self/environ")
	if err != nil {
		return err
	}
	for entry := range bytes.SplitSeq(raw, []byte{0}) {
		if name, _, ok := bytes.Cut(entry, []byte("=")); ok && slices.Contains(names, string(name)) {
			return fmt.Errorf("%s is still in /proc/self/environ", name)
		}
	}
	return nil
}

// canBecome says whether this process may start others as the user, and give them files.
func canBecome(user Identity) bool {
	if os.Geteuid() != 0 || !mapped("/proc/self/uid_map", user.UID) || !mapped("/proc/self/gid_map", user.GID) {
		return false
	}
	return hasCapabilities(unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_KILL)
}

// hasCapabilities says whether this process may use all of them.
func hasCapabilities(wanted ...int) bool {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if unix.Capget(&head, &data[0]) != nil {
		return false
	}
	for _, c := range wanted {
		if data[c/32].Effective&(1<<(c%32)) == 0 {
			return false
		}
	}
	return true
}

// mapped says whether the id exists in this user namespace (lines of: inside, outside, count).
func mapped(file string, id int) bool {
	raw, err := os.ReadFile(file)
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(raw)) {
		var inside, outside, count int
		if n, _ := fmt.Sscan(line, &inside, &outside, &count); n == 3 && id >= inside && id < inside+count {
			return true
		}
	}
	return false
}

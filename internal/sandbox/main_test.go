//go:build linux

package sandbox_test

import (
	"os"
	"testing"

	"github.com/proctor-ci/proctor/internal/sandbox"
)

// The test binary plays three parts: the tests, the supervisor that a Box starts (Child), and the
// hostile program, which is named by its first argument.
func TestMain(m *testing.M) {
	sandbox.Child()
	if len(os.Args) > 2 && os.Args[1] == hostileArg {
		os.Exit(hostile(os.Args[2], os.Args[3:]))
	}
	code := m.Run()
	cleanBinary()
	os.Exit(code)
}

//go:build !linux

package sandbox

import (
	"context"
	"errors"
)

// Confinement, and killing a tree for certain, are made of Linux's own parts. Elsewhere the package
// compiles, so that the rest of the program does, and every start is refused by name.

const selfExe = ""

var errLinuxOnly = errors.New("sandbox: agents and gates run on Linux only: use a Linux machine, container or CI runner")

// Child does nothing here.
func Child() {}

// HardenSelf reports that it cannot.
func HardenSelf() error { return errLinuxOnly }

// Scrub reports that it cannot.
func Scrub(...string) (map[string]string, error) { return nil, errLinuxOnly }

// Own reports that it cannot.
func (b *Box) Own(...string) error { return errLinuxOnly }

// CanReach reports that it cannot.
func (b *Box) CanReach(string) error { return errLinuxOnly }

func adoptOrphans() error { return nil }

func canBecome(Identity) bool { return false }

func (b *Box) prepare(spec) error { return errLinuxOnly }

func (b *Box) probe(context.Context, spec) ([]Enforced, error) { return nil, errLinuxOnly }

func (b *Box) run(context.Context, spec, Command) (Result, error) { return Result{}, errLinuxOnly }

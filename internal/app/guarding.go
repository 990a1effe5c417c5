package app

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/guard"
	"github.com/proctor-ci/proctor/internal/loop"
	"github.com/proctor-ci/proctor/internal/prompt"
)

// Guard judges the candidate against the base tree.
func (s *session) Guard(ctx context.Context, n int, parent, candidate loop.Commit) (loop.GuardSeen, error) {
	tick := s.tick(n)
	in := guard.Input{Changes: s.snap.Changes, Problems: s.snap.Problems, Blobs: s.store}
	var err error
	if in.Tick, err = s.store.Diff(ctx, git.ID(parent.Tree), git.ID(candidate.Tree)); err != nil {
		return loop.GuardSeen{}, fmt.Errorf("compare with the last good commit: %w", err)
	}
	if in.Paths, err = s.pathsOf(ctx, git.ID(candidate.Tree)); err != nil {
		return loop.GuardSeen{}, err
	}
	if s.round != nil {
		if in.Share, err = s.shareOf(ctx, git.ID(candidate.Tree)); err != nil {
			return loop.GuardSeen{}, err
		}
		in.Theirs, in.Conflicts = s.round.byPeople, s.round.Conflicts
	}
	v, err := s.guard.Check(ctx, in)
	if err != nil {
		return loop.GuardSeen{}, fmt.Errorf("check the patch policy: %w", err)
	}
	s.verdict = v
	s.keepVerdict(tick, v)
	seen := loop.GuardSeen{Level: loop.GuardPass, Feedback: v.Feedback()}
	if worst := v.At(v.Worst()); len(worst) > 0 {
		seen.Detail = string(worst[0].Rule) + " " + prompt.Inline(worst[0].Path, 200) + ": " + prompt.Inline(worst[0].Detail, 200)
	}
	switch v.Worst() {
	case guard.Halt:
		seen.Level = loop.GuardHalt
	case guard.Block:
		seen.Level = loop.GuardBlock
	default:
		return s.conflictFree(ctx, candidate, seen)
	}
	return seen, nil
}

// conflictFree holds back a candidate that still shows both sides of a conflict.
func (s *session) conflictFree(ctx context.Context, candidate loop.Commit, seen loop.GuardSeen) (loop.GuardSeen, error) {
	path, err := s.unsettledIn(ctx, candidate)
	if err != nil || path == "" {
		return seen, err
	}
	seen.Level, seen.Detail = loop.GuardBlock, "conflict "+prompt.Inline(path, 200)
	seen.Feedback = "The file " + prompt.Inline(path, 200) + " still holds the marks of a conflict with the base. Settle it."
	return seen, nil
}

func (s *session) keepVerdict(t *evidence.Tick, v guard.Verdict) {
	s.keepFiles(t, v)
	s.emit(evidence.Snapshot, t.N, slog.String(evidence.KeyCommit, t.Commit.ID), slog.String(evidence.KeyTree, t.Commit.Tree),
		slog.Int(evidence.KeyFiles, v.Files), slog.Int(evidence.KeyAdded, v.Added), slog.Int(evidence.KeyRemoved, v.Removed))
	attrs := []slog.Attr{slog.String(evidence.KeyLevel, string(v.Worst())), slog.Int(evidence.KeyFindings, len(v.Findings))}
	for i, f := range v.Findings {
		path := prompt.Inline(f.Path, 300)
		t.Guard = append(t.Guard, evidence.Finding{Rule: string(f.Rule), Level: string(f.Level), Path: path, Line: f.Line, Detail: prompt.Inline(f.Detail, 300)})
		if i == 0 {
			attrs = append(attrs, slog.String(evidence.KeyRule, string(f.Rule)), slog.String(evidence.KeyPath, path))
		}
	}
	s.emit(evidence.Guard, t.N, attrs...)
}

// maxFiles is how many changed files a record lists for one tick.
const maxFiles = 300

func (s *session) keepFiles(t *evidence.Tick, v guard.Verdict) {
	for i, c := range s.snap.Changes {
		if i == maxFiles {
			t.FilesCut = len(s.snap.Changes) - maxFiles
			break
		}
		d := deltaOf(c)
		d.Added, d.Removed, d.Risk = v.Lines[c.Path].Added, v.Lines[c.Path].Removed, strings.Join(risks(c, v.Findings), "; ")
		t.Files = append(t.Files, d)
	}
}

// risks are what a reviewer should look at a changed file for.
func risks(c git.Change, findings []guard.Finding) []string {
	out := guard.Marks(c)
	for _, f := range findings {
		if f.Path != c.Path {
			continue
		}
		if word := string(f.Rule); !slices.Contains(out, word) {
			out = append(out, word)
		}
	}
	return out
}

// deltaOf is a changed path as the record names it, without its lines.
func deltaOf(c git.Change) evidence.FileDelta {
	d := evidence.FileDelta{Path: prompt.Inline(c.Path, 300), Status: c.Status()}
	if c.Old.Mode != 0 && c.Old.Mode != c.New.Mode {
		d.OldMode = c.Old.Mode.String()
	}
	if c.New.Mode != 0 && c.Old.Mode != c.New.Mode {
		d.NewMode = c.New.Mode.String()
	}
	return d
}

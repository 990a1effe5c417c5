// Package guard owns the patch policy: what a candidate tree may change against the base tree. It
// must never look at a working directory, an index or a message: trees and blobs only.
//
// What each rule does, and why at that level. The question is always the same: could the agent mend
// it on its next tick without anything having got out that should not? Then it blocks and is fed
// back; otherwise, or when no honest attempt would ever do it, it halts the run.
//
//	rule               level        the reason
//	protected-path     halt         whoever edits the exam, the pipeline or its own instructions is not working on the issue
//	sealed-path        halt         the agent never saw the file: a change to it is a guess or an attack
//	denied-path        halt         the maintainer said never
//	gitlink            halt         points at a commit nobody here has seen; its fetch runs other people's URLs
//	nested-repository  halt         brings hooks and config that run in whoever enters it (block for a bare one: test data can look like it)
//	escaping-symlink   halt         later reads and writes land outside the tree (flag when it stays inside but points at a protected path)
//	bad-name           halt         git, a forge or a case-insensitive checkout would refuse it or write another file
//	outside-allow      block        honest over-reach; it can be taken back
//	file-size          block        nobody would accept the push; see Discard
//	diff-size          block        can be made smaller
//	secret             block, flag  as policy.secrets says; see Discard
//	test-tampering     block, flag  as policy.test_tampering says; what may be honest (a new expectation, a snapshot) is only shown
//	unreadable         block        the commit would not be what the agent made; it can be mended
//	odd-file           flag         no commit can hold it
//	dependency         flag         shown, raises the risk
//	high-risk-path     flag         shown, raises the risk
//
// What the gates run is theirs to grow and nobody's to shrink (test-tampering too; package exam follows their commands):
//
//	a script that a gate starts    every command stays as and where it is; new ones and new rows of a table pass, shown,
//	                               unless they end the script, hide a failure, or change what the old ones mean
//	the same, by its name no test  shown only: `sh bin/total --selftest` may be what the issue is about
//	package.json                   the scripts that npm, yarn, pnpm or bun reach, with their pre- and post-scripts, as they are
//	Makefile                       the rules that the targets reach, and the variables in them, as they are
//	files runners load unasked     sitecustomize.py, a module named pytest, .npmrc with a script-shell, node_modules/, …: not new
//
// A maintainer whose agents are to change those sets policy.test_tampering to flag, or does it by hand.
//
// A Block bars `done` and, as nothing the guard has not passed is pushed, the checkpoint too. With a secret
// or an oversized file the commit itself must go: were it to become the parent of the next one, it would be
// pushed with that. [Verdict.Discard] says so.
package guard

// Package loop owns the governed loop: which step follows which, when it stops, and under which
// terminal. It must never do I/O, read a clock or hear what a model said in words: Step is a pure
// function from state and observation to the next action, and Run only carries actions out.
package loop

// Package prompt owns what untrusted text looks like once we pass it on: what a person saw of an
// issue, the prompt made of it, and one-line forms for logs, trailers and commits. It must
// never read a working tree, decide who may ask, or let text that nobody could see reach an agent.
package prompt

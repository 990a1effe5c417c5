// Package patch owns a change as text: base against candidate, path by path, hunk by hunk. It must never let an
// attribute, filter or driver of the repository decide what is seen, nor leave a path out.
package patch

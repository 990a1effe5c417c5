//go:build linux

package sandbox

// OffMainThread is how the supervisor finds the thread that it confines.
var OffMainThread = offMainThread

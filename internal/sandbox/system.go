package sandbox

// IsSystem tells whether a clean absolute path lies where every confined process may read.
func IsSystem(path string) bool { return within(path, systemDirs()) }

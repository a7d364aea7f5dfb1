//go:build !linux

package history

// remoteKind returns "": other systems have other names for file systems.
func remoteKind(string) string { return "" }

// freeSpace returns "": unknown.
func freeSpace(string) string { return "" }

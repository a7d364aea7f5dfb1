// Package fabsh is the version of the program, and its documents.
package fabsh

// Version is that of the next release, by semantic versioning: with "-dev" until the commit
// that is the release, whose tag is "v" and the version. It heads CHANGELOG.md.
const Version = "0.10.0-dev"

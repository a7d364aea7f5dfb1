// Package fabsh is the version of the program, and its documents.
package fabsh

import "embed"

// Version is that of the next release, by semantic versioning: with "-dev" until the commit
// that is the release, whose tag is "v" and the version. It heads CHANGELOG.md.
const Version = "0.10.0"

// Date is the day of the latest change of Version, for man pages.
const Date = "2026-11-29"

// Documents are the guides, which lie beside what they describe.
//
//go:embed shell/GUIDE.md builtins/LANGUAGE.md scripts/GUIDE.md fabric/routing/GUIDE.md
//go:embed fabric/change/GUIDE.md fabric/sim/README.md fabric/format/FORMATS.md
//go:embed examples/README.md examples/COMING_FROM.md examples/monitoring/README.md
var Documents embed.FS

// Schemas describes the JSON of values.
//
//go:embed builtins/SCHEMAS.md
var Schemas string

// Package scripts is the shipped library in Starlark, which scripts load from
// @std//.
package scripts

import "embed"

// FS holds the library.
//
//go:embed lib
var FS embed.FS

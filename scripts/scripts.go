// Package scripts is the shipped library in Starlark, which scripts load from
// @std//.
package scripts

import "embed"

// FS holds the library: lib, what scripts load; routing, policies of fabsh route.
//
//go:embed lib routing
var FS embed.FS

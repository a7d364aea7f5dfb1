// Package scripts is the shipped library in Starlark, which scripts load from
// @std//.
package scripts

import "embed"

// FS holds the library: lib, what scripts load; routing, policies of fabsh route;
// audit, what fabsh audit runs.
//
//go:embed audit lib routing
var FS embed.FS

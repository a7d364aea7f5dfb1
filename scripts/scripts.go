// Package scripts is the shipped library in Starlark, which scripts load from
// @std//.
package scripts

import "embed"

// FS holds the library: lib, what scripts load; routing, those policies of fabsh route
// that are no routing engine's; audit, what fabsh audit runs; report, what fabsh report
// runs; topology, what fabsh topology runs. The tests of these, in test, stay outside.
//
//go:embed audit lib report routing topology
var FS embed.FS

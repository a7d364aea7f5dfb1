// Package scripts is the shipped library in Starlark, which scripts load from
// @std//.
package scripts

import "embed"

// FS is the library: lib has the functions that scripts load; routing, the policies of
// fabsh route that are not a routing engine of OpenSM; accept, audit, remedy, report and topology,
// the scripts of these commands; scenario, the faults of a simulated fabric by their times. Their tests, in test, are not included.
//
//go:embed accept audit lib remedy report routing scenario topology
var FS embed.FS

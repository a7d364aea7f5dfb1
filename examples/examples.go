// Package examples is programs to learn from and to start with, which scripts
// load from @examples//.
package examples

import "embed"

// FS holds the programs.
//
//go:embed *.star
var FS embed.FS

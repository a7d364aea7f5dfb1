// Package format reads and writes descriptions of a fabric in files.
// FORMATS.md says what is known of each format.
//
//	format.go        which formats there are
//	ibnetdiscover.go writes what ibnetdiscover prints
//	load.go          reads that, and the net files of ibsim, which are much alike
//	record.go        their lines, scan.go what lines consist of
//	cable.go         what the lines say of a link
//	lft.go           reads forwarding tables, in three dialects; bind.go matches
//	                 them with a fabric; lftwrite.go writes them
//	tables.go        how tables name nodes
//	lines.go         reads big files line by line
package format

import (
	"fmt"
	"io"
	"strings"

	"fabsh/fabric"
)

// writers are the formats that Dump knows.
var writers = []struct {
	kind  Kind
	write func(io.Writer, *fabric.Fabric) error
}{
	{KindIbnetdiscover, dumpIbnetdiscover},
	{KindSubnet, dumpSubnet},
	{KindTopo, dumpTopo},
	{KindGUID2LID, WriteGUID2LID},
	{KindNodeNames, WriteNodeNames},
}

// Kinds are the names of the formats that Dump knows, in order.
func Kinds() []string {
	kinds := make([]string, len(writers))
	for i, w := range writers {
		kinds[i] = string(w.kind)
	}
	return kinds
}

// Dump writes f in the format named kind.
func Dump(w io.Writer, f *fabric.Fabric, kind string) error {
	for _, k := range writers {
		if string(k.kind) == kind {
			return k.write(w, f)
		}
	}
	return fmt.Errorf("no format %q; there is %s", kind, strings.Join(Kinds(), ", "))
}

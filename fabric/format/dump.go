package format

import (
	"fmt"
	"io"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/mad"
)

// Dump writes f in a format that needs no more than the fabric.
func Dump(w io.Writer, f *fabric.Fabric, kind FormatName) error {
	var kinds []string
	for _, k := range formats {
		switch {
		case k.write == nil && k.writeFiles == nil:
			continue
		case k.kind != kind:
		case k.write == nil:
			return fmt.Errorf("format %q consists of several files", kind)
		default:
			return k.write(w, f)
		}
		kinds = append(kinds, string(k.kind))
	}
	return fmt.Errorf("unknown format %q; supported: %s", kind, strings.Join(kinds, ", "))
}

// DumpHelp lists the kinds of Dump.
func DumpHelp() string {
	return dumpHelp(func(f *fileFormat) bool { return f.write != nil || f.writeFiles != nil })
}

// Tables are the tables of a routing of a fabric. A format needs some of them.
type Tables struct {
	// LFT is the forwarding table of a switch, ports by LID; nil: none.
	LFT func(sw *fabric.Node) []byte
	// Adaptive is the adaptive routing of a switch, nil where it is unknown; Adaptive itself is
	// nil where it is unknown of all.
	Adaptive func(sw *fabric.Node) *adaptive.Switch
	// Hops is called once by the formats that have numbers of hops, which
	// take long to compute.
	Hops func() (HopsFunc, error)
	// SL is the service level of the path from a port to a LID. It is false
	// without such a path.
	SL    func(src *fabric.Port, dlid mad.LID) (uint8, bool)
	SL2VL SL2VLFunc
}

// DumpTables writes those of the tables of f that a format holds.
func DumpTables(w io.Writer, f *fabric.Fabric, kind FormatName, t *Tables) error {
	for _, k := range formats {
		if k.kind == kind && k.writeTables != nil {
			return k.writeTables(w, f, t)
		}
	}
	return fmt.Errorf("unknown format %q; supported: %s", kind, TablesHelp())
}

// TablesHelp lists the kinds of DumpTables.
func TablesHelp() string {
	return dumpHelp(func(f *fileFormat) bool { return f.writeTables != nil })
}

func dumpHelp(of func(*fileFormat) bool) string {
	var help []string
	for _, f := range formats {
		if of(f) && f.dumpHelp != "" {
			help = append(help, f.dumpHelp)
		}
	}
	return strings.Join(help, "; ")
}

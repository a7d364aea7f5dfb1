package format

import (
	"io"

	"fabsh/fabric"
)

// KindCables is fabsh's own list of cables.
const KindCables FormatName = "cables"

var cables = fileFormat{
	kind:  KindCables,
	about: "a plan of cables (columns a, a_port, b, b_port)",
	file:  "fabsh's own plan of cables, as CSV: `a,a_port,b,b_port`",
	sniff: sniffPlan(planOfCables),
	load: func(r io.Reader, name string, _ Opener) (*fabric.Fabric, error) {
		return loadPlan(r, name, planOfCables)
	},
	write:    writeCables,
	dumpHelp: `"cables", a plan as CSV`,
}

// Columns of a plan, in the order of planColumns.columns.
const (
	planA = iota
	planAPort
	planB
	planBPort
	planState
	planWidth
	planSpeed
	planNeeded = planBPort + 1
)

// planOfCables are the columns of fabsh's own format; others are notes.
var planOfCables = &planColumns{
	names: []string{"a", "a_port", "b", "b_port", "state", "width", "speed"},
	clean: func(name string) string { return name },
	port:  planPort,
}

// planPort takes the number of a port.
func planPort(_, text string) (suffix string, num int, ok bool) {
	n, rest, ok := decimal([]byte(text))
	return "", n, ok && len(rest) == 0
}

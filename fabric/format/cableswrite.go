package format

import (
	"bufio"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"fabsh/fabric"
)

// writeCables writes the cables of f as a plan, each from the end that comes first,
// with the width and speed that they run at. Nodes are named, but for those whose name
// does not distinguish them from others, or does not fit in a line of text.
func writeCables(w io.Writer, f *fabric.Fabric) error {
	out := bufio.NewWriter(w)
	out.WriteString("a,a_port,b,b_port,width,speed\n")
	for i := range f.Ports() {
		p := &f.Ports()[i]
		q := p.Peer()
		if q == nil || q.ID() < p.ID() || p == q {
			continue
		}
		for _, end := range []*fabric.Port{p, q} {
			out.WriteString(planName(end.Node()) + "," + strconv.Itoa(end.Num()) + ",")
		}
		out.WriteString(p.Width() + "," + p.Speed() + "\n")
	}
	return out.Flush()
}

// planName is what a plan calls a node.
func planName(n *fabric.Node) string {
	name := n.Name()
	plain := utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl) && strings.TrimSpace(name) == name
	if !plain || name == "" || name[0] == '#' || strings.HasPrefix(name, "0x") || strings.HasPrefix(name, byteOrderMark) || len(name) > maxPlanName || len(n.Fabric().NodeByName(name)) > 1 {
		return n.GUID().String()
	}
	if strings.ContainsAny(name, `",`) {
		return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
	}
	return name
}

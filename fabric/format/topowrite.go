package format

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"fabsh/fabric"
)

// writeTopo writes a .topo file of ibdm in which each node is a system, of a type
// that WriteIBNLs defines. ibdm knows no speed above 10 Gb/s a lane and no width
// of 2x: they are left out, and ibdm assumes SDR or 4x.
func writeTopo(w io.Writer, f *fabric.Fabric) error {
	out := bufio.NewWriter(w)
	out.WriteString("# Systems and cables, written by fabsh\n")
	names := systemNames(f)
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		fmt.Fprintf(out, "\n%s %s\n", systemType(n), names[i])
		for p := range n.Ports() {
			q := p.Peer()
			if q == nil {
				continue
			}
			if _, err := fmt.Fprintf(out, "   P%d %s %s %s P%d\n", p.Num(), arrow(p), systemType(q.Node()), names[q.Node().ID()], q.Num()); err != nil {
				return err
			}
		}
	}
	return out.Flush()
}

// WriteIBNLs writes a .ibnl file for each type of system in the .topo file that
// Dump writes of f. A type is a number of ports and a device. create creates a
// file; they belong into the directory of the .topo file, or into one of ibdm's
// IBDM_IBNL_PATH.
func WriteIBNLs(f *fabric.Fabric, create func(name string) (io.WriteCloser, error)) error {
	done := map[string]bool{}
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		kind := systemType(n)
		if done[kind] {
			continue
		}
		done[kind] = true
		var b strings.Builder
		node := "CA"
		if n.IsSwitch() {
			node = "SW"
		}
		fmt.Fprintf(&b, "TOPSYSTEM %s\n\nNODE %s %d DEV%d U1\n", kind, node, n.NumPorts(), n.Info().DeviceID)
		for num := 1; num <= n.NumPorts(); num++ {
			fmt.Fprintf(&b, "   %d -> P%d\n", num, num)
		}
		w, err := create(kind + ".ibnl")
		if err != nil {
			return err
		}
		_, err = io.WriteString(w, b.String())
		if e := w.Close(); err == nil {
			err = e
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// systemType is the type of system that n is: SW36-53000, by ports and device.
func systemType(n *fabric.Node) string {
	kind := "CA"
	if n.IsSwitch() {
		kind = "SW"
	}
	return fmt.Sprintf("%s%d-%d", kind, n.NumPorts(), n.Info().DeviceID)
}

// systemNames are the nodes' names, with _ for characters that would end a word,
// and with the GUID where they are not unique.
func systemNames(f *fabric.Fabric) []string {
	names := make([]string, len(f.Nodes()))
	count := map[string]int{}
	for i := range names {
		names[i] = strings.Map(func(r rune) rune {
			if strings.ContainsRune(" /#,=>", r) {
				return '_'
			}
			return r
		}, printable(f.Nodes()[i].Name()))
		count[names[i]]++
	}
	for i, name := range names {
		if name == "" || count[name] > 1 {
			n := &f.Nodes()[i]
			if names[i] = strings.TrimPrefix(name+"_"+n.GUID().String(), "_"); len(f.NodeByGUID(n.GUID())) > 1 {
				names[i] += fmt.Sprintf("_%d", i)
			}
		}
	}
	return names
}

// arrow is -4x-10G->, without a width or speed that ibdm does not know.
func arrow(p *fabric.Port) string {
	s := "-"
	switch w := p.Width(); w {
	case "1x", "4x", "8x", "12x":
		s += w + "-"
	}
	for gbps, speed := range subnetSpeeds {
		if speed == p.Speed() && (gbps == "2.5" || gbps == "5" || gbps == "10") {
			s += gbps + "G-"
		}
	}
	return s + ">"
}

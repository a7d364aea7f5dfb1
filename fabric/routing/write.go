package routing

import (
	"context"
	"fmt"
	"io"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/mad"
)

// TableKinds says which kinds Write knows.
const TableKinds = `"opensm-lfts": what OpenSM's engine file reads; "opensm-fdbs": what ibdmchk reads; "opensm-lid-matrix": distances; "opensm-sl2vl", "ibdm-sl2vl" (for ibdmchk), "path-sl": virtual lanes and service levels`

// Write writes the tables as a file of a kind.
func (r *Routes) Write(ctx context.Context, w io.Writer, kind format.Kind) error {
	g := r.graph
	row := func(n *fabric.Node) []byte { return r.Row(g.SwitchOf(n)) }
	switch kind {
	case format.KindLFTs:
		return format.WriteLFTs(w, g.Fabric(), row)
	case format.KindFDBs, format.KindHops:
		hops, err := g.hopsFunc(ctx)
		if err != nil {
			return err
		}
		if kind == format.KindFDBs {
			return format.WriteFDBs(w, g.Fabric(), row, hops)
		}
		return format.WriteHops(w, g.Fabric(), hops)
	case format.KindPathSL:
		return format.WritePathSLs(w, g.Fabric(), r.slOf)
	case format.KindSL2VL:
		return format.WriteSL2VLs(w, g.Fabric(), r.vlsOf)
	case format.KindShortSL2VL:
		return format.WriteShortSL2VLs(w, g.Fabric(), r.vlsOf)
	}
	return fmt.Errorf("no format %q; there is %s", kind, TableKinds)
}

// slOf is the service level of the path from a port; false: no path begins there.
func (r *Routes) slOf(src *fabric.Port, dlid mad.LID) (uint8, bool) {
	t := r.graph.TerminalOf(src)
	if t < 0 {
		return 0, false
	}
	return r.SL.Of(t, dlid), true
}

// vlsOf are the virtual lanes by service level from a port of a switch to
// another. On the link of a CA, SL n has VL n.
func (r *Routes) vlsOf(in, out *fabric.Port) (vls [16]uint8, ok bool) {
	for sl := range vls {
		switch {
		case in == nil:
			vls[sl] = uint8(sl)
		default:
			vls[sl] = r.SL2VL.VL(r.graph.SwitchOf(out.Node()), uint8(in.Num()), uint8(out.Num()), uint8(sl))
		}
	}
	return vls, true
}

// hopsFunc gives the distances of switches' LIDs by port, as OpenSM's minhop
// has them.
func (g *Graph) hopsFunc(ctx context.Context) (format.HopsFunc, error) {
	h, err := g.Hops(ctx)
	if err != nil {
		return nil, err
	}
	from := make([][]Channel, len(g.switches))
	for _, ch := range g.channels {
		from[ch.From] = append(from[ch.From], ch)
	}
	return func(sw *fabric.Node, lid mad.LID, hops []byte) bool {
		t := g.TerminalByLID(lid)
		if t < 0 || g.terminals[t].Class&ClassSwitch == 0 {
			return false
		}
		s, d := g.SwitchOf(sw), g.terminals[t].Switch
		for i := range hops {
			hops[i] = format.NoPath
		}
		if s == d {
			hops[0] = 0
			return true
		}
		for _, ch := range from[s] {
			if far := h.Distance(int(ch.To), d); far >= 0 {
				hops[ch.Port] = uint8(far + 1)
				hops[0] = min(hops[0], uint8(far+1))
			}
		}
		return true
	}, nil
}

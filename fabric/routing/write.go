package routing

import (
	"context"
	"io"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/mad"
)

// Write writes the tables as a file of a kind.
func (r *Routes) Write(ctx context.Context, w io.Writer, kind format.Kind) error {
	g := r.graph
	return format.DumpTables(w, g.Fabric(), kind, &format.Tables{
		LFT:   func(n *fabric.Node) []byte { return r.Row(g.SwitchOf(n)) },
		Hops:  func() (format.HopsFunc, error) { return g.hopsFunc(ctx) },
		SL:    r.slOf,
		SL2VL: r.vlsOf,
	})
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

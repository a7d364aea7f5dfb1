package routes

import (
	"context"
	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/format"
	"fabsh/fabric/routing/graph"
	"fabsh/mad"
	"io"
)

// Write writes the tables as a file of a kind. A snapshot has the choices of adaptive routing;
// other kinds have the static ports alone.
func (r *Routes) Write(ctx context.Context, w io.Writer, kind format.FormatName) error {
	g := r.graph
	tables := &format.Tables{
		LFT:   func(n *fabric.Node) []byte { return r.Row(g.SwitchOf(n)) },
		Hops:  func() (format.HopsFunc, error) { return hopsFunc(ctx, g) },
		SL:    r.slOf,
		SL2VL: r.vlsOf,
	}
	if r.AdaptiveKnown() {
		tables.Adaptive = func(n *fabric.Node) *adaptive.Switch { return r.Adaptive(g.SwitchOf(n)) }
	}
	return format.DumpTables(stopping{ctx, w}, g.Fabric(), kind, tables)
}

// stopping is a writer that fails when ctx ends: the tables of a large fabric are
// gigabytes of text.
type stopping struct {
	ctx context.Context
	w   io.Writer
}

func (s stopping) Write(p []byte) (int, error) {
	if s.ctx.Err() != nil {
		return 0, context.Cause(s.ctx)
	}
	return s.w.Write(p)
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
func hopsFunc(ctx context.Context, g *graph.Graph) (format.HopsFunc, error) {
	h, err := graph.AllHops(ctx, g)
	if err != nil {
		return nil, err
	}
	from := make([][]graph.Channel, len(g.Switches()))
	for _, ch := range g.Channels() {
		from[ch.From] = append(from[ch.From], ch)
	}
	return func(sw *fabric.Node, lid mad.LID, hops []byte) bool {
		t := g.TerminalByLID(lid)
		if t < 0 || g.Terminals()[t].Class&graph.ClassSwitch == 0 {
			return false
		}
		s, d := g.SwitchOf(sw), g.Terminals()[t].Switch
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

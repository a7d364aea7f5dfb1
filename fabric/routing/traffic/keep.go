package traffic

import (
	"context"

	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// KeepUnused gives r the entries of old, tables of the same graph, towards each LID to which all
// packets between CAs and routers take the same paths by both: that of a switch, or of no port,
// or one with other entries only where no such packets come. Packets from no fewer switches
// arrive by the entries that stay. KeepUnused returns their number. Tables with choices of
// adaptive routing, or with virtual lanes of their own, stay unchanged.
//
// Time: O(S) for each LID.
func KeepUnused(ctx context.Context, r, old *routes.Routes) (stay int, err error) {
	if r.SL2VL != nil || r.HasChoices() || old.HasChoices() {
		return 0, nil
	}
	g := r.Graph()
	endpoints := verify.SelectEndpoints(g, 0)
	keep := make([]bool, int(r.Top())+1)
	for lid := range keep {
		keep[lid] = g.TerminalByLID(mad.LID(lid)) < 0
	}
	type memory struct {
		walk    *verify.Walk // by old
		entries []uint8      // of old
		changed []bool       // by switch: its packets leave the path by old
	}
	workers := make([]memory, g.Workers())
	err = verify.EachDest(ctx, r, len(workers), nil, func(worker int, w *verify.Walk, lid mad.LID) {
		if lid > r.Top() {
			return
		}
		m, entries := &workers[worker], w.Column(lid)
		if m.walk == nil {
			*m = memory{verify.NewWalk(g), make([]uint8, len(entries)), make([]bool, len(entries))}
		}
		m.walk.Begin()
		for s := range m.entries {
			m.entries[s] = old.Entry(int32(s), lid)
		}
		for s := range m.entries {
			w.From(int32(s), entries, int32(g.TerminalByLID(lid)))
			m.walk.From(int32(s), m.entries, int32(g.TerminalByLID(lid)))
		}
		for _, s := range w.Order { // each after its next hop, except where packets loop
			next := w.Via[s]
			m.changed[s] = entries[s] != m.entries[s] || next >= 0 && m.changed[g.ChannelTo(next)]
			used := endpoints.On[s] > 0 && endpoints.Wanted[lid]
			if w.State[s] == verify.Looping || m.changed[s] && used || w.State[s] >= 0 && m.walk.State[s] < 0 {
				return
			}
		}
		keep[lid] = true
	})
	if err != nil {
		return 0, err
	}
	for s := range g.Switches() {
		row, edited := r.Row(s), false
		for lid, kept := range keep {
			was := old.Entry(int32(s), mad.LID(lid))
			if !kept || row[lid] == was {
				continue
			}
			if !edited {
				row, edited = r.EditRow(s), true
			}
			row[lid] = was
			stay++
		}
	}
	return stay, nil
}

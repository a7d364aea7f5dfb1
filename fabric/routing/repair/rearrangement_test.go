package repair

import (
	"fmt"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/verify"
)

// TestRepairKeepsLanes: after the loss of a link, the tables of lash and dfsssp have as many lanes as
// before, where that is possible, in nearly all cases. If it is proven to be impossible when only paths
// that must change move, a few others move. A mesh has no other lane to move to: one is added, and no
// more blocks change than must.
func TestRepairKeepsLanes(t *testing.T) {
	routingtest.ResultsOnly(t)
	for _, x := range []struct {
		engine, spec  string
		step          int     // every so many links
		proven, added int     // losses that are, and with a lane more
		moved         int     // other paths in all, at most
		most          float64 // blocks that change, times the number that must
	}{
		{"lash", "torus:dims=4/4/4,hosts=1", 24, 4, 0, 10, 1.25},
		{"lash", "dragonfly:a=6,p=3,h=2", 40, 3, 1, 40, 1.1},
		{"lash", "random:n=50,degree=5,hosts=1", 10, 1, 0, 2, 1.05},
		{"lash", "mesh:dims=4/4/4,hosts=1", 24, 4, 4, 0, 1},
		{"dfsssp", "mesh:dims=5/5,hosts=1", 8, 3, 3, 0, 1},
	} {
		whole := damaged(t, x.spec)
		links := whole.switchLinks()
		old := compute(t, whole.graph(t), x.engine, engines.Options{})
		cases, proven, added, moved, blocks, least := 0, 0, 0, 0, 0, 0
		for i := 0; i < len(links); i += x.step {
			d := &damage{whole.f, map[*fabric.Port]bool{links[i]: true}, map[*fabric.Node]bool{}}
			g := d.graph(t)
			if unavoidable(t, old, g) {
				proven++
			}
			r, err := Tables(t.Context(), old, g)
			if err != nil {
				t.Fatal(err)
			}
			got := judge(t, old, r, r)
			if got.wrong != nil {
				t.Errorf("%s, %s without link %d: %q", x.engine, x.spec, i, got.wrong)
			}
			if r.Lanes() > old.Lanes() {
				added++
			}
			cases, moved, blocks, least = cases+1, moved+got.moved, blocks+got.blocks, least+got.least
		}
		t.Logf("%s, %s: %d losses, %d proven, %d with a lane more; %d other paths on other lanes; %d blocks change, %d must", x.engine, x.spec, cases, proven, added, moved, blocks, least)
		if proven != x.proven || added != x.added || moved > x.moved || float64(blocks) > x.most*float64(least) {
			t.Errorf("%s, %s: want %d losses proven, %d with a lane more, at most %d other paths on other lanes, %.2f times the blocks", x.engine, x.spec, x.proven, x.added, x.moved, x.most)
		}
	}
}

// switchLinks are the lower ports of links between switches.
func (d *damage) switchLinks() (ports []*fabric.Port) {
	for i := range d.f.Ports() {
		p := &d.f.Ports()[i]
		if q := p.Peer(); q != nil && p.ID() < q.ID() && p.Node().IsSwitch() && q.Node().IsSwitch() {
			ports = append(ports, p)
		}
	}
	return ports
}

// TestRepairOneLink: after the loss of a link, tables of nue change in no more than three times the
// blocks that must, in sum in fewer than these: paths may be detours. LIDs that must change may
// move to another lane, of which there are no more than before. Other LIDs change only where they
// leave no room; in some cases that is so whatever a repair does, for no path to a LID is left
// whose turns close no cycle with the paths that used nothing that was lost.
func TestRepairOneLink(t *testing.T) {
	for _, x := range []struct {
		spec  string
		lanes int
		step  int     // every so many links, and
		also  []int   // links after whose loss many LIDs leave each other no room
		most  float64 // blocks that change, times the number that must, in sum
		large bool
	}{
		{"torus:dims=4/4/4,hosts=1", 1, 18, nil, 1, false},
		{"torus:dims=4/4/4,hosts=1", 2, 16, nil, 1.1, false},
		{"torus:dims=4/4/4,hosts=1", 8, 16, nil, 1, false},
		{"dragonfly:a=6,p=3,h=2", 4, 44, nil, 1, false},
		{"torus:dims=6/6/6,hosts=1", 1, 256, nil, 1, true},
		{"torus:dims=6/6/6,hosts=1", 2, 216, []int{144, 252}, 1.8, true},
		{"torus:dims=6/6/6,hosts=1", 4, 648, []int{576, 594}, 2, true},
	} {
		if x.large && testing.Short() {
			continue
		}
		whole := damaged(t, x.spec)
		links := whole.switchLinks()
		old := compute(t, whole.graph(t), "nue", engines.Options{MaxVLs: x.lanes})
		blocks, least, crowded, proven := 0, 0, 0, 0
		var lost []int
		for i := 0; i < len(links); i += x.step {
			lost = append(lost, i)
		}
		if testing.Short() {
			lost = lost[:2]
		}
		for _, i := range append(lost, x.also...) {
			d := &damage{whole.f, map[*fabric.Port]bool{links[i]: true}, map[*fabric.Node]bool{}}
			r, err := Tables(t.Context(), old, d.graph(t))
			if err != nil {
				t.Fatal(err)
			}
			got := judge(t, old, r, r)
			if got.wrong != nil {
				t.Errorf("%s, %d lanes, without link %d: %q", x.spec, x.lanes, i, got.wrong)
			}
			if got.blocks > 3*got.least || r.Lanes() > x.lanes {
				t.Errorf("%s, %d lanes, without link %d: %d blocks change, %d must; %d lanes", x.spec, x.lanes, i, got.blocks, got.least, r.Lanes())
			}
			if moved, noted := movedLIDs(old, r); moved != noted {
				t.Errorf("%s, %d lanes, without link %d: %d LIDs have another service level, notes count %d", x.spec, x.lanes, i, moved, noted)
			}
			blocks, least = blocks+got.blocks, least+got.least
			if !x.large && x.lanes == 1 && got.withoutPath() > 0 {
				proven++
				if !got.crowded {
					t.Errorf("%s without link %d: paths that cannot be", x.spec, i)
				}
			}
			if got.crowded {
				crowded++
			}
		}
		t.Logf("%s, %d lanes: %d blocks change, %d must; other LIDs in %d cases, %d of which are proven to need it", x.spec, x.lanes, blocks, least, crowded, proven)
		if !testing.Short() && float64(blocks) > x.most*float64(least) {
			t.Errorf("%s, %d lanes: %d blocks change, %d must", x.spec, x.lanes, blocks, least)
		}
	}
}

// movedLIDs returns the number of LIDs of CAs with another service level, and the number in a note.
func movedLIDs(old, r *routes.Routes) (moved, noted int) {
	for _, x := range r.Graph().Terminals() {
		if x.Out > 0 && r.SL.Of(-1, x.LID) != old.SL.Of(-1, x.LID) {
			moved++
		}
	}
	for _, note := range r.Notes {
		fmt.Sscanf(note, "repair: paths to %d", &noted)
	}
	return moved, noted
}

// withoutPath counts the pairs of a switch with CAs and a LID that must change, between which
// each path has a turn that closes a cycle with the paths to LIDs that used nothing that was
// lost.
func (x *repaired) withoutPath() (pairs int) {
	g := x.old.Graph()
	stay := verify.NewDependencyGraph(g, 1)
	var change []int // homes
	for d := range g.Switches() {
		for _, dest := range g.DestsOf(d) {
			if dest.Out == 0 {
				continue
			}
			if x.used[dest.LID] {
				change = append(change, d)
				continue
			}
			entries := x.old.Column(dest.LID)
			for s, port := range entries {
				if c := g.Target(int32(s), port).Channel(); c >= 0 {
					if next := g.Target(g.ChannelTo(c), entries[g.ChannelTo(c)]).Channel(); next >= 0 {
						stay.Add(c, next)
					}
				}
			}
		}
	}
	for _, d := range change {
		reached, seen := make([]bool, len(g.Switches())), make([]bool, len(g.Channels()))
		reached[d] = true
		var queue []int32
		for c := g.FirstChannel(d); c < g.FirstChannel(d+1); c++ {
			queue = append(queue, g.Channels()[c].Reverse)
		}
		for i := 0; i < len(queue); i++ {
			c := queue[i]
			s := g.Channels()[c].From
			reached[s] = true
			for out := g.FirstChannel(int(s)); out < g.FirstChannel(int(s+1)); out++ {
				if in := g.Channels()[out].Reverse; out != c && !seen[in] && stay.Path(c, in) == nil {
					seen[in] = true
					queue = append(queue, in)
				}
			}
		}
		for s, n := range g.Endpoints() {
			if n > 0 && !reached[s] {
				pairs++
			}
		}
	}
	return pairs
}

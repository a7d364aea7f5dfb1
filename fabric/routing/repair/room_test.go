package repair

import (
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/routing/cdg"
	"fabsh/fabric/routing/engine"
	"fabsh/fabric/routing/routes"
)

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

// TestRepairOneLane: after the loss of a link, tables of nue on one lane change in no more blocks
// than have entries whose packets no longer arrived. Those of other LIDs change only where they
// leave no room: without the link of the second case that is so whatever a repair does, for no path
// to a LID whose turns close no cycle with the paths that used nothing that was lost is left.
func TestRepairOneLane(t *testing.T) {
	var whole *damage
	var links []*fabric.Port
	var old *routes.Routes
	spec := ""
	for _, x := range []struct {
		spec    string
		link    int
		most    int // blocks
		crowded bool
		without int // pairs
	}{
		{"torus:dims=4/4/4,hosts=1", 72, 49, false, 0},
		{"torus:dims=4/4/4,hosts=1", 108, 38, true, 32},
		{"torus:dims=4/4/4,hosts=1", 126, 54, false, 0},
		{"torus:dims=4/4/4,hosts=1", 189, 28, true, 0},
		{"torus:dims=6/6/6,hosts=1", 256, 82, true, 0},
	} {
		if x.spec != spec {
			if testing.Short() && spec != "" {
				return
			}
			spec, whole = x.spec, damaged(t, x.spec)
			links = whole.switchLinks()
			old = compute(t, whole.graph(t), "nue", engine.Options{})
		}
		d := &damage{whole.f, map[*fabric.Port]bool{links[x.link]: true}, map[*fabric.Node]bool{}}
		r, err := Tables(t.Context(), old, d.graph(t))
		if err != nil {
			t.Fatal(err)
		}
		got := judge(t, old, r, r)
		without := got.withoutPath()
		t.Logf("%s without link %d: %d blocks change, %d must, paths of %d are lost; notes %q, %d pairs without a path", spec, x.link, got.blocks, got.least, got.lost, r.Notes, without)
		if got.wrong != nil || got.blocks > x.most || got.crowded != x.crowded || without != x.without {
			t.Errorf("%s without link %d: %q, %d blocks change, others: %t, pairs without a path: %d; want at most %d, %t, %d", spec, x.link, got.wrong, got.blocks, got.crowded, without, x.most, x.crowded, x.without)
		}
	}
}

// withoutPath counts the pairs of a switch with CAs and a LID that must change, between which
// each path has a turn that closes a cycle with the paths to LIDs that used nothing that was
// lost.
func (x *repaired) withoutPath() (pairs int) {
	g := x.old.Graph()
	stay := cdg.New(g, 1)
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

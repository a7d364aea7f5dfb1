package suspect

import (
	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// crossing is how much of the traffic of a flow leaves by a port, or passes a switch: 1 is all
// of it.
type crossing struct {
	id     int32 // of a port; or of a node, from the number of ports on
	weight float32
}

// tracer finds the crossings of flows.
type tracer struct {
	r        *routes.Routes
	g        *graph.Graph
	ports    int                // of the fabric
	switches []*adaptive.Switch // nil: static
	choices  bool               // some flow had a choice
	weight   []float32          // by id; 0 between calls
	used     []int32
}

func newTracer(r *routes.Routes) *tracer {
	f := r.Graph().Fabric()
	n := len(f.Ports()) + len(f.Nodes())
	return &tracer{r: r, g: r.Graph(), ports: len(f.Ports()), switches: routes.ActiveSwitches(r), weight: make([]float32, n)}
}

// add adds to the weight of an id.
func (t *tracer) add(id int, part float64) {
	if t.weight[id] == 0 {
		t.used = append(t.used, int32(id))
	}
	t.weight[id] += float32(part)
}

// pass adds traffic that leaves switch s by a port.
func (t *tracer) pass(s int32, out uint8, part float64) {
	n := t.g.Switches()[s]
	t.add(n.Port(int(out)).ID(), part)
	t.add(t.ports+n.ID(), part)
}

// trace returns the crossings of a flow, or why some of its packets do not arrive.
func (t *tracer) trace(f flow, into []crossing) (list []crossing, broken string) {
	from, to := &t.g.Terminals()[f.from.terminal], &t.g.Terminals()[f.to.terminal]
	lids, first := to.Count, to.LID
	if f.to.lid != 0 {
		lids, first = 1, f.to.lid
	}
	t.add(from.Port.ID(), 1)
	switch {
	case from.Switch < 0 && from.Port.Peer() != to.Port:
		broken = "no path"
	case from.Switch >= 0:
		for i := range lids {
			if broken = t.follow(f.from.terminal, f.to.terminal, first+mad.LID(i), 1/float64(lids)); broken != "" {
				break
			}
		}
	}
	for _, id := range t.used {
		into = append(into, crossing{id, min(t.weight[id], 1)})
		t.weight[id] = 0
	}
	t.used = t.used[:0]
	return into, broken
}

// follow adds the crossings of the traffic to one LID.
func (t *tracer) follow(from, to int, lid mad.LID, part float64) (broken string) {
	term := &t.g.Terminals()[from]
	at, in, sl := int32(term.Switch), term.Out, t.r.SL.Of(from, lid)
	for range len(t.g.Switches()) + 1 {
		if t.switches[at] != nil {
			return t.spread(at, in, sl, to, lid, part)
		}
		out := t.r.Entry(at, lid)
		target := t.g.Target(at, out)
		switch {
		case target == graph.ToTerminal(int32(to)):
			t.pass(at, out, part)
			return ""
		case !target.IsChannel():
			return t.g.Switches()[at].Label() + " has no path"
		}
		t.pass(at, out, part)
		c := &t.g.Channels()[target.Channel()]
		at, in = c.To, c.PeerPort
	}
	return "packets loop"
}

// spread is follow from a switch on where switches choose: these share traffic evenly.
func (t *tracer) spread(at int32, in, sl uint8, to int, lid mad.LID, part float64) (broken string) {
	type visit struct {
		at int32
		in uint8
	}
	now, parts := []visit{{at, in}}, map[visit]float64{{at, in}: part}
	for range len(t.g.Switches()) + 1 {
		var next []visit
		more := map[visit]float64{}
		for _, v := range now {
			c := adaptive.Single(t.r.Entry(v.at, lid))
			if a := t.switches[v.at]; a != nil {
				c = a.Choose(adaptive.Packet{In: v.in, SL: sl, LID: lid, Transport: adaptive.RC}, routes.Down(t.g, int(v.at)))
			}
			n := c.Ports.Len()
			if n == 0 {
				return t.g.Switches()[v.at].Label() + " has no path"
			}
			t.choices = t.choices || n > 1
			share := parts[v] / float64(n)
			for out := range c.Ports.All() {
				target := t.g.Target(v.at, out)
				switch {
				case target == graph.ToTerminal(int32(to)):
					t.pass(v.at, out, share)
				case !target.IsChannel():
					return t.g.Switches()[v.at].Label() + " has no path"
				default:
					t.pass(v.at, out, share)
					ch := &t.g.Channels()[target.Channel()]
					w := visit{ch.To, ch.PeerPort}
					if a := t.switches[w.at]; a == nil || a.Private == nil {
						w.in = 0 // it does not matter
					}
					if more[w] == 0 {
						next = append(next, w)
					}
					more[w] += share
				}
			}
		}
		if len(next) == 0 {
			return ""
		}
		now, parts = next, more
	}
	return "packets may loop"
}

// capacity returns the nominal rate of the link of a port in Gb/s: at its best width and speed,
// so that a link that is up at a lower rate is a suspect as well; 0: unknown.
func capacity(p *fabric.Port) float64 {
	return mad.SpeedGbps(p.BestSpeed()) * float64(mad.WidthLanes(p.BestWidth()))
}

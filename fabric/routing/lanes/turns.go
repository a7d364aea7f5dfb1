package lanes

// turnWork bounds the searches of Turns, in channels met. A torus of 12x12x8 takes 6.6 million;
// thousands of long links of a network of director switches would take 50 million, and have no
// lower loads.
const turnWork = 1 << 23

// Turns are turns from one channel to another that close no cycle: paths of no other turns
// need one lane. After turnWork, no more are added.
type Turns struct {
	l *Layering
	o *order
}

// NewTurns makes an empty set of turns in n.
func NewTurns(n *Network) *Turns {
	l := &Layering{Net: n}
	l.begin()
	return &Turns{l: l, o: l.newOrder()}
}

// Admits reports whether the turn from channel c to channel d is in the set, or is known to
// close no cycle.
func (t *Turns) Admits(c, d int32) bool {
	e := t.l.edge(c, 0, d)
	return t.o.count[e] > 0 || -t.l.work < turnWork && t.o.try(e, false)
}

// Add adds the turn from channel c to channel d, unless it closes a cycle.
func (t *Turns) Add(c, d int32) {
	if e := t.l.edge(c, 0, d); t.o.count[e] == 0 && t.Admits(c, d) {
		t.o.use(e)
	}
}

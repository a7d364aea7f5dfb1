package lanes

// Turns are turns from one channel to another that close no cycle: paths of no other turns
// need one lane.
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

// Admits reports whether the turn from channel c to channel d is in the set, or would
// close no cycle.
func (t *Turns) Admits(c, d int32) bool {
	e := t.l.edge(c, 0, d)
	return t.o.count[e] > 0 || t.o.try(e, false)
}

// Add adds the turn from channel c to channel d, unless it closes a cycle.
func (t *Turns) Add(c, d int32) {
	if t.Admits(c, d) {
		t.o.count[t.l.edge(c, 0, d)] = 1
	}
}

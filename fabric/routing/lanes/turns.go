package lanes

import "slices"

// turnWork bounds the searches of Turns, in channels met. A torus of 12x12x8 takes 6.6 million;
// thousands of long links of a network of director switches would take 50 million, and have no
// lower loads.
const turnWork = 1 << 23

// Turns are turns from one channel to another that close no cycle: paths of no other turns
// need one lane. After turnWork, no more are added.
type Turns struct {
	l     *Layering
	o     *order
	trail []int32 // memory of AdmitsAll and AddAll
}

// Turn is a turn from one channel to another.
type Turn struct{ From, To int32 }

// NewTurns makes an empty set of turns in n.
func NewTurns(n *Network) *Turns {
	l := &Layering{Net: n}
	l.prepare()
	return &Turns{l: l, o: l.newOrder()}
}

// Admits reports whether the turn from channel c to channel d is in the set, or is known to
// close no cycle.
func (t *Turns) Admits(c, d int32) bool {
	e := t.l.edge(c, 0, d)
	return t.o.count[e] > 0 || -t.l.work < turnWork && t.o.try(e, false)
}

// Add adds the turn from channel c to channel d, unless it closes a cycle, and reports whether it is
// in the set.
func (t *Turns) Add(c, d int32) bool {
	e := t.l.edge(c, 0, d)
	if t.o.count[e] > 0 {
		return true
	}
	if !t.Admits(c, d) {
		return false
	}
	t.o.use(e)
	return true
}

// AdmitsAll reports whether all of list may be in the set at once: each by itself may close no
// cycle, and two together one.
func (t *Turns) AdmitsAll(list []Turn) bool {
	t.find(list)
	if -t.l.work >= turnWork && slices.ContainsFunc(t.trail, func(e int32) bool { return t.o.count[e] == 0 }) || !t.o.add(t.trail) {
		return false
	}
	t.o.remove(t.trail)
	return true
}

// AddAll adds all of list, which AdmitsAll has admitted.
func (t *Turns) AddAll(list []Turn) {
	t.find(list)
	t.o.add(t.trail)
}

// find finds the edges of list.
func (t *Turns) find(list []Turn) {
	t.trail = t.trail[:0]
	for _, x := range list {
		t.trail = append(t.trail, t.l.edge(x.From, 0, x.To))
	}
}

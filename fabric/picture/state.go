package picture

import (
	"fabsh/fabric"
	"fabsh/mad"
)

// State is what is known of a link, the worst last.
type State int

const (
	Up      State = iota
	Unknown       // of one of its ends nothing is known
	Slow          // slower than both ends could be
	Down          // an end is not active
	states
)

// String is s in words, as said of a link.
func (s State) String() string {
	return [...]string{"up", "of unknown state", "slower than both ends could be", "not active"}[s]
}

// Class is s as a class of style sheets.
func (s State) Class() string { return [...]string{"up", "unknown", "slow", "down"}[s] }

// StateOf is the state of the link at p, which has a peer.
func StateOf(p *fabric.Port) State {
	a, b := p.State(), p.Peer().State()
	down := func(s mad.PortState) bool { return s != 0 && s != mad.PortStateActive }
	switch slow, known := p.Degraded(); {
	case down(a) || down(b):
		return Down
	case slow:
		return Slow
	case !known || a == 0 || b == 0:
		return Unknown
	}
	return Up
}

// States is how many links are in each state.
type States [states]int

// Worst is the worst state that some are in.
func (s *States) Worst() State {
	for w := Down; w > Up; w-- {
		if s[w] > 0 {
			return w
		}
	}
	return Up
}

package order

import (
	"fmt"
	"strings"

	"fabsh/fabric"
	"fabsh/mad"
)

// Refusal is the error for a change that has no safe order, or for a schedule that is not
// safe.
type Refusal struct {
	// Round is the first round that is not safe, from 0; -1: no round is the reason.
	Round  int
	Reason string
	// Cycle is the credit loop link by link, if that is the reason.
	Cycle []Dependency
	// Path are the ports by which packets to LID leave switches, if the reason is that
	// they loop or do not arrive.
	Path []*fabric.Port
	LID  mad.LID
	// Hint suggests what to try next.
	Hint string
}

// Dependency is a link of a credit loop: packets to LID that are on the link out of Port,
// on virtual lane VL, may wait for the next link of the loop. Their entry at the switch
// of Port is the old one or the new one, and so is that at the next switch.
type Dependency struct {
	Port        *fabric.Port
	VL          uint8
	LID         mad.LID
	First, Next Version
}

// Version states which tables an entry belongs to.
type Version uint8

const (
	Both     Version = iota // the entry stays
	Old                     // of the old tables
	New                     // of the new tables
	Between                 // of intermediate tables
	Adaptive                // a choice of adaptive routing
)

func (v Version) String() string {
	return [...]string{"unchanged", "old", "new", "intermediate", "adaptive"}[v]
}

func (r *Refusal) Error() string {
	var b strings.Builder
	if r.Round >= 0 {
		fmt.Fprintf(&b, "round %d: ", r.Round+1)
	}
	b.WriteString(r.Reason)
	for _, d := range r.Cycle {
		fmt.Fprintf(&b, "\n  %s", d)
	}
	for _, p := range r.Path {
		fmt.Fprintf(&b, "\n  %s", hop(p))
	}
	if r.Hint != "" {
		b.WriteString("\n" + r.Hint)
	}
	return b.String()
}

func (d Dependency) String() string {
	return fmt.Sprintf("%s, VL %d, to LID %d by its %s entry, then its %s one", hop(d.Port), d.VL, d.LID, d.First, d.Next)
}

// hop returns a link as text.
func hop(p *fabric.Port) string {
	if q := p.Peer(); q != nil {
		return p.Name() + " -> " + q.Name()
	}
	return p.Name()
}

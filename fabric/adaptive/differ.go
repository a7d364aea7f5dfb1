package adaptive

import (
	"slices"

	"fabsh/mad"
)

// Differ returns what reports whether two switches, or one at two times, choose differently
// among ports for packets to a LID: by its state, its sub-groups, private LFT, service level
// or transport. Static ports do not matter. A switch that is not Active, or nil, routes
// statically. Nil: they never differ.
func Differ(a, b *Switch) func(lid mad.LID) bool {
	if !a.Active() {
		a = &Switch{}
	}
	if !b.Active() {
		b = &Switch{}
	}
	plfts := max(len(a.Tables), len(b.Tables))
	if plfts == 0 {
		return nil
	}
	d := &difference{settings: !a.Assumed && !b.Assumed && !sameSettings(a, b), pairs: make([]tablePair, plfts)}
	for i := range d.pairs {
		d.pairs[i] = tablePair{a.Table(uint8(i)), b.Table(uint8(i)), map[[2]uint16]bool{}}
	}
	return d.differ
}

// difference compares LIDs.
type difference struct {
	settings bool // those of the switches differ
	pairs    []tablePair
}

// tablePair are the tables of a private LFT; nil: static.
type tablePair struct {
	a, b *Table
	same map[[2]uint16]bool // groups that were compared
}

func (d *difference) differ(lid mad.LID) bool {
	for i := range d.pairs {
		p := &d.pairs[i]
		x, y := dropped, dropped
		if p.a != nil {
			x = p.a.Entry(lid)
		}
		if p.b != nil {
			y = p.b.Entry(lid)
		}
		switch {
		case x.State != y.State:
			return true
		case x.State == Static:
			if i > 0 && x.Port != y.Port {
				return true
			}
		case d.settings || !p.sameGroups(x.Group, y.Group):
			return true
		}
	}
	return false
}

// sameGroups reports whether two groups have the same ports in each sub-group.
func (p *tablePair) sameGroups(x, y uint16) bool {
	if p.a == p.b && x == y {
		return true
	}
	key := [2]uint16{x, y}
	same, known := p.same[key]
	if !known {
		same = slices.Equal(p.a.Groups.SubGroupsOf(int(x)), p.b.Groups.SubGroupsOf(int(y)))
		p.same[key] = same
	}
	return same
}

// sameSettings reports whether both treat service levels, transports and ports alike.
func sameSettings(a, b *Switch) bool {
	if a.Enabled != b.Enabled || a.SLs != b.SLs || a.Static != b.Static || a.HBF != b.HBF || a.HBF && a.HBFSLs != b.HBFSLs || a.FastRecovery != b.FastRecovery {
		return false
	}
	for in := range max(len(a.Private), len(b.Private)) {
		for sl := range uint8(16) {
			if a.PLFT(uint8(in), sl) != b.PLFT(uint8(in), sl) {
				return false
			}
		}
	}
	return true
}

package order

import (
	"slices"

	"fabsh/mad"
)

// Stage is when a kind of writes is made. Kinds of one stage keep their order.
type Stage uint8

const (
	// StageLanes are SL2VL and VL arbitration tables: packets that new entries
	// send must find their lanes.
	StageLanes Stage = iota
	// StageTables are the linear forwarding tables, in the rounds of a Schedule.
	StageTables
	// StageBranches are the multicast forwarding tables: see Multicast.
	StageBranches
	// StageOther is the rest, but ports.
	StageOther
	// StagePorts are ports: a link goes when no entry leads over it any more.
	StagePorts
)

// StageOf is that of an attribute.
func StageOf(a *mad.Attribute) Stage {
	switch a {
	case mad.AttrSLtoVLMappingTable, mad.AttrVLArbitrationTable:
		return StageLanes
	case mad.AttrLinearForwardingTable, mad.AttrSwitchInfo:
		return StageTables
	case mad.AttrMulticastForwardingTable:
		return StageBranches
	case mad.AttrPortInfo, mad.AttrPortInfoExtended:
		return StagePorts
	}
	return StageOther
}

// Stages are all stages in order: of a change, or of the way back from it, where a
// link comes before the entries that lead over it, and lanes go after them.
func Stages(back bool) []Stage {
	list := []Stage{StageLanes, StageTables, StageBranches, StageOther, StagePorts}
	if back {
		slices.Reverse(list)
	}
	return list
}

// Masks are a block of a multicast forwarding table, or several that follow each
// other: a mask of ports for each LID.
type Masks struct {
	Switch   int
	Modifier uint32
	Old, New []byte // as on the wire; equally long
}

// Multicast makes two rounds of a change of multicast forwarding tables: the first
// takes away the branches that are in the old tables only, the second adds those that
// are in the new ones only. Between the two no switch has a branch that is not in
// both, and so, as the old branches of a LID are a tree, no packet loops or comes
// twice, whatever the order within a round.
func Multicast(changes []Masks) (breaks, makes []Masks) {
	for _, c := range changes {
		both := make([]byte, len(c.New))
		for i := range both {
			both[i] = c.Old[i] & c.New[i]
		}
		if !slices.Equal(both, c.Old) {
			breaks = append(breaks, Masks{c.Switch, c.Modifier, c.Old, both})
		}
		if !slices.Equal(both, c.New) {
			makes = append(makes, Masks{c.Switch, c.Modifier, both, c.New})
		}
	}
	return breaks, makes
}

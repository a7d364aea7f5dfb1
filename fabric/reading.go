package fabric

import (
	"cmp"
	"slices"
	"time"

	"fabsh/fabric/adaptive"
	"fabsh/mad"
)

// Reading is what was read from nodes beyond a sweep. Fabric.With keeps its tables
// and data: they must not be modified afterwards.
type Reading struct {
	// LFTs are linear forwarding tables, by node id and LID; nil where none was
	// read.
	LFTs [][]byte
	// Adaptive is the adaptive routing of switches, by node id; nil where none was read.
	Adaptive []*adaptive.Switch
	Answers  []Answer
	// CountersRead is when reading the counters among Answers began; zero: unknown.
	CountersRead time.Time
	// Problems are requests without an answer.
	Problems []Problem
}

// Answer is an attribute as a node, or the subnet administrator, returned
// it: raw, with keys of 0 in a file.
type Answer struct {
	Node     int32 // id; NoNode: the subnet administrator, whose record it is
	Port     int16 // whose it is, or where the request came in; NoPort: the node's
	Class    mad.Class
	ID       mad.AttributeID
	Modifier uint32
	Data     []byte
}

// NoNode and NoPort mark an Answer without a node or a port.
const (
	NoNode = -1
	NoPort = -1
)

// With returns f with what was read in addition. It keeps what it had where r has
// nothing.
func (f *Fabric) With(r Reading) *Fabric {
	g := f.clone()
	if r.LFTs != nil {
		g.lfts = r.LFTs
	}
	if r.Adaptive != nil {
		g.adaptive = r.Adaptive
	}
	if r.Answers != nil {
		g.answers, g.countersRead = slices.Clone(r.Answers), r.CountersRead
		sortAnswers(g.answers)
	}
	g.problems = slices.Concat(f.problems, r.Problems)
	slices.SortStableFunc(g.problems, compareProblems)
	return g
}

// Answers are the answers that came with f, as in a snapshot, in the order of nodes,
// ports, classes, attributes, modifiers. They must not be changed.
func (f *Fabric) Answers() []Answer { return f.answers }

// CountersRead is when reading the counters among Answers began; zero: unknown.
func (f *Fabric) CountersRead() time.Time { return f.countersRead }

// AnswersOf are those of a node; of NoNode, the records of the subnet administrator.
func (f *Fabric) AnswersOf(node int) []Answer {
	of := func(node int) int {
		i, _ := slices.BinarySearchFunc(f.answers, int32(node), func(a Answer, node int32) int { return cmp.Compare(a.Node, node) })
		return i
	}
	return f.answers[of(node):of(node+1)]
}

func sortAnswers(list []Answer) {
	if !slices.IsSortedFunc(list, compareAnswers) {
		slices.SortStableFunc(list, compareAnswers)
	}
}

func compareAnswers(a, b Answer) int {
	return cmp.Or(cmp.Compare(a.Node, b.Node), a.compareKey(b))
}

// compareKey orders the answers of one node.
func (a Answer) compareKey(b Answer) int {
	return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Class, b.Class), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Modifier, b.Modifier))
}

// LFT is the linear forwarding table that came with the fabric, by LID, as in a
// snapshot; nil without one. It must not be changed.
func (n *Node) LFT() []byte {
	if n.fabric.lfts == nil {
		return nil
	}
	return n.fabric.lfts[n.id]
}

// Adaptive is the adaptive routing of a switch that came with the fabric, as in a snapshot;
// nil without any. It must not be changed.
func (n *Node) Adaptive() *adaptive.Switch {
	if n.fabric.adaptive == nil {
		return nil
	}
	return n.fabric.adaptive[n.id]
}

// HasAdaptive reports whether adaptive routing was read: it came with the fabric, of at least
// one switch.
func (f *Fabric) HasAdaptive() bool { return f.adaptive != nil }

// HasLFTs reports whether forwarding tables came with the fabric.
func (f *Fabric) HasLFTs() bool { return f.lfts != nil }

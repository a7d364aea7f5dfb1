package fabric

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"fabsh/mad"
)

// Problem is something wrong with a fabric, or with the view of it.
type Problem struct {
	Kind ProblemKind
	Text string // what, where, how often tried, what to do
	// Attribute is the one that did not arrive in a sweep; "": the problem is about
	// something else, or comes from a file.
	Attribute string
}

func compareProblems(p, q Problem) int {
	return cmp.Or(cmp.Compare(p.Kind, q.Kind), cmp.Compare(p.Text, q.Text))
}

// ProblemKind sorts problems.
type ProblemKind string

const (
	ProblemTimedOut      ProblemKind = "timed out"          // no answer
	ProblemFailed        ProblemKind = "failed"             // the answer was an error
	ProblemCut           ProblemKind = "cut short"          // the sweep ended early
	ProblemTooFar        ProblemKind = "too far"            // beyond the longest directed route
	ProblemDuplicateGUID ProblemKind = "duplicate guid"     // two nodes with one GUID
	ProblemZeroGUID      ProblemKind = "zero guid"          // a node without a GUID
	ProblemDuplicateLID  ProblemKind = "duplicate lid"      // two ports that answer to one LID
	ProblemChanged       ProblemKind = "changed"            // the fabric changed during the sweep
	ProblemLoopback      ProblemKind = "loopback"           // a port connected to its own node
	ProblemInvalid       ProblemKind = "invalid"            // an answer that is not valid
	ProblemAssignedLIDs  ProblemKind = "lids were assigned" // the file has none
	ProblemNoLIDs        ProblemKind = "lids are unknown"   // the file has a place for them, and no value
	ProblemLeftOut       ProblemKind = "left out"           // the source is not complete
	ProblemAssignedGUIDs ProblemKind = "guids were assigned"
	ProblemPlan          ProblemKind = "a plan of cables"  // the file has cables only
	ProblemNoLinks       ProblemKind = "links are unknown" // the file has nodes only
	ProblemUnrecorded    ProblemKind = "nothing was recorded then"
)

// Missing reports whether something that was requested is not in the fabric.
func (k ProblemKind) Missing() bool {
	switch k {
	case ProblemTimedOut, ProblemFailed, ProblemCut, ProblemTooFar, ProblemChanged, ProblemInvalid, ProblemNoLinks, ProblemUnrecorded:
		return true
	}
	return false
}

// Missing summarizes the requests without a result in f: "3 timed out,
// 1 failed".
func (f *Fabric) Missing() string {
	n := map[ProblemKind]int{}
	var kinds []ProblemKind
	for _, p := range f.problems {
		if p.Kind.Missing() {
			if n[p.Kind]++; n[p.Kind] == 1 {
				kinds = append(kinds, p.Kind)
			}
		}
	}
	words := make([]string, len(kinds))
	for i, k := range kinds {
		words[i] = strconv.Itoa(n[k]) + " " + string(k)
		if k == ProblemNoLinks || k == ProblemUnrecorded {
			words[i] = string(k)
		}
	}
	return strings.Join(words, ", ")
}

// FirstMissing describes the first request without a result in f, and counts the others.
func (f *Fabric) FirstMissing() string {
	text, n := "", 0
	for _, p := range f.problems {
		if p.Kind.Missing() {
			if n++; n == 1 {
				text = p.Text
			}
		}
	}
	if n > 1 {
		text += fmt.Sprintf("; and %d more", n-1)
	}
	return text
}

// inspect finds the problems that any fabric may have, whatever it was made from.
func (f *Fabric) inspect() {
	f.inspectGUIDs()
	f.inspectLIDs()
	for i := range f.ports {
		p := &f.ports[i]
		switch q := p.Peer(); {
		case q == p:
			f.problem(ProblemLoopback, "%s is connected to itself", p.Label())
		case q != nil && q.node == p.node && q.id > p.id:
			f.problem(ProblemLoopback, "%s is connected to port %d of the same node", p.Label(), q.num)
		}
	}
}

func (f *Fabric) problem(k ProblemKind, format string, args ...any) {
	f.problems = append(f.problems, Problem{Kind: k, Text: fmt.Sprintf(format, args...)})
}

// inspectGUIDs reports node GUIDs that are 0 or not unique.
func (f *Fabric) inspectGUIDs() {
	ids := make([]int32, len(f.nodes))
	for i := range ids {
		ids[i] = int32(i)
	}
	slices.SortStableFunc(ids, func(i, j int32) int { return cmp.Compare(f.nodes[i].info.NodeGUID, f.nodes[j].info.NodeGUID) })
	for len(ids) > 0 {
		guid := f.nodes[ids[0]].info.NodeGUID
		var who []string
		for len(ids) > 0 && f.nodes[ids[0]].info.NodeGUID == guid {
			n := &f.nodes[ids[0]]
			if ids = ids[1:]; guid == 0 {
				f.problem(ProblemZeroGUID, "%s has node GUID 0; set one with its vendor's tool: subnet managers cannot distinguish such nodes", n.place())
			}
			if len(who) > 0 || len(ids) > 0 && f.nodes[ids[0]].info.NodeGUID == guid {
				who = append(who, n.place())
			}
		}
		if guid != 0 && len(who) > 0 {
			f.problem(ProblemDuplicateGUID, "node GUID %s belongs to %d nodes: %s; change all but one with their vendor's tool: subnet managers treat them as one node",
				guid, len(who), strings.Join(who, ", "))
		}
	}
}

// isPlaneOf reports whether p and q are planes of one port (XDR), which has one GUID and one LID
// for all (rdma-core libibumad/umad.c umad_get_smi_gsi_pairs).
func (p *Port) isPlaneOf(q *Port) bool { return p.node == q.node && p.guid == q.guid && p.guid != 0 }

// inspectLIDs reports LIDs that two ports of one part have, once for each port.
func (f *Fabric) inspectLIDs() {
	for i := range f.ports {
		p := &f.ports[i]
		if p.management() != p || p.LID() == 0 || p.LID() > mad.MaxUnicastLID {
			continue
		}
		for lid := int(p.LID()); lid <= p.lastLID(); lid++ {
			if q := f.port(f.byLID[lid]); q != p && !p.isPlaneOf(q) && f.PartOf(p) == f.PartOf(q) {
				f.problem(ProblemDuplicateLID, "LID %d belongs to %s and to %s; have the subnet manager assign LIDs again", lid, q.Label(), p.Label())
				break
			}
		}
	}
}

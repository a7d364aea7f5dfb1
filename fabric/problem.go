package fabric

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
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
	ProblemPlan          ProblemKind = "a plan of cables" // the file has cables only
)

// Missing reports whether something that was requested is not in the fabric.
func (k ProblemKind) Missing() bool {
	switch k {
	case ProblemTimedOut, ProblemFailed, ProblemCut, ProblemTooFar, ProblemChanged, ProblemInvalid:
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

package apply

import (
	"time"

	"fabsh/fabric/sa"
	"fabsh/mad"
)

// Record is a line of a journal. Which fields it has depends on its kind.
type Record struct {
	Kind RecordKind `json:"kind"`
	At   time.Time  `json:"at"`
	// Begin is of KindBegin.
	Begin *Begin `json:"begin,omitempty"`
	// Steps and Drain are of KindRound: the cells as they will be after it.
	Steps []Step        `json:"steps,omitempty"`
	Drain time.Duration `json:"drain,omitempty"`
	// Round counts the rounds, of KindRound and KindDone.
	Round int `json:"round,omitempty"`
	// Within is of KindApplied: how long the change may wait to be confirmed.
	Within time.Duration `json:"within,omitempty"`
	// Why is of KindFailed and KindReverting, and of how it ended.
	Why string `json:"why,omitempty"`
}

// RecordKind is what a record tells.
type RecordKind string

const (
	KindBegin     RecordKind = "begin"     // the change, before anything is sent
	KindRound     RecordKind = "round"     // a round, before its first Set
	KindDone      RecordKind = "done"      // it is read back
	KindApplied   RecordKind = "applied"   // all rounds are; it waits to be confirmed
	KindFailed    RecordKind = "failed"    // it goes no further; the guard takes it back
	KindReverting RecordKind = "reverting" // it is being taken back
	KindConfirmed RecordKind = "confirmed" // the end: it stays
	KindReverted  RecordKind = "reverted"  // the end: all is as before
	KindAbandoned RecordKind = "abandoned" // the end: all stays as it is
	KindStopped   RecordKind = "stopped"   // not the end: neither way goes on by itself
)

// Begin is a change, with all that is needed to take it back.
type Begin struct {
	ID      string   `json:"id"`
	Summary string   `json:"summary"` // of the plan, for people
	By      string   `json:"by"`      // who made it
	Subnet  string   `json:"subnet"`
	Port    mad.GUID `json:"port"`   // of this host
	Prefix  uint64   `json:"prefix"` // of the subnet's GIDs
	// Within is how long it may wait to be confirmed, besides Drains times the time
	// that its rounds wait for packets under way.
	Within time.Duration `json:"within"`
	Drains int           `json:"drains"`
	// Manager is the port GUID of the subnet manager in charge; 0: there was none.
	Manager mad.GUID `json:"manager"`
	Cells   []*Cell  `json:"cells"`
	// AcceptCreditLoops: the change is made, or taken back, though packets may deadlock.
	AcceptCreditLoops bool `json:"accept_credit_loops,omitempty"`
	// Levels is the path of the file of the service levels in use; "": they are asked for.
	Levels string `json:"levels,omitempty"`
	// Links are the ports that were active before, of the switches that it writes.
	Links []Ports `json:"links,omitempty"`
	// Staged is how OpenSM is given the tables; nil: fabsh sends Sets.
	Staged *Staged `json:"staged,omitempty"`
}

// Step is what one cell is after a round.
type Step struct {
	Cell int    `json:"cell"`
	Data []byte `json:"data"`
}

// Round are Sets that go out in any order: every mixture of them is proven.
type Round struct {
	Steps []Step
	// Drain is how long packets of the old tables may be under way; 0: the next
	// round need not wait for them.
	Drain time.Duration
}

// manager is the subnet manager that was in charge; nil: there was none.
func (b *Begin) manager() *sa.SM {
	if b.Manager == 0 {
		return nil
	}
	return &sa.SM{Info: &mad.SMInfo{GUID: b.Manager}}
}

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
	// Steps and Drain are of KindRound: the states of the cells after it.
	Steps []Step        `json:"steps,omitempty"`
	Drain time.Duration `json:"drain,omitempty"`
	// Round is the number of the round, in KindRound and KindDone.
	Round int `json:"round,omitempty"`
	// Within is of KindApplied: how long the change may wait to be confirmed. Left are the
	// cells that it left unchanged, or restored, because it was stopped.
	Within time.Duration `json:"within,omitempty"`
	Left   []int         `json:"left,omitempty"`
	// Why is the reason, in KindFailed, KindReverting and the kinds that end a change.
	Why string `json:"why,omitempty"`
}

// RecordKind is the kind of a record.
type RecordKind string

const (
	KindBegin     RecordKind = "begin"     // the change, before anything is sent
	KindRound     RecordKind = "round"     // a round, before its first Set
	KindDone      RecordKind = "done"      // the round has been read back
	KindApplied   RecordKind = "applied"   // all rounds are done; the change waits to be confirmed
	KindFailed    RecordKind = "failed"    // the change cannot continue; the guard reverts it
	KindReverting RecordKind = "reverting" // the change is being reverted
	KindConfirmed RecordKind = "confirmed" // the end: the change stays
	KindReverted  RecordKind = "reverted"  // the end: all is as before
	KindAbandoned RecordKind = "abandoned" // the end: all blocks stay unchanged
	KindStopped   RecordKind = "stopped"   // not the end: neither continued nor reverted automatically
)

// Begin is a change, with all that is needed to revert it.
type Begin struct {
	ID      string   `json:"id"`
	Summary string   `json:"summary"` // of the plan, for people
	By      string   `json:"by"`      // the user who applied it
	Port    mad.GUID `json:"port"`    // of this host
	Prefix  uint64   `json:"prefix"`  // of the subnet's GIDs
	// Switches are those of the subnet, by which the journal is recognised.
	Switches []Member `json:"switches,omitempty"`
	// Within is how long it may wait to be confirmed, plus Drains times the time that its
	// rounds wait for packets under way.
	Within time.Duration `json:"within"`
	Drains int           `json:"drains"`
	// Manager is the port GUID of the subnet manager in charge; 0: there was no manager.
	Manager mad.GUID `json:"manager"`
	Cells   []*Cell  `json:"cells"`
	// AcceptCreditLoops is set if the change may be applied, or reverted, even if packets
	// may deadlock.
	AcceptCreditLoops bool `json:"accept_credit_loops,omitempty"`
	// Levels is the path of the file of the service levels in use; "": those of path
	// records.
	Levels string `json:"levels,omitempty"`
	// Links are the ports that were active before, of the switches that the change
	// writes.
	Links []Ports `json:"links,omitempty"`
	// Static are the switches whose adaptive routing the change disables. Its reversal does
	// not restore it.
	Static []mad.GUID `json:"static,omitempty"`
	// LinkByLink reports that a subnet manager is in charge that handles the changed links:
	// each is a round of its own, after which its new tables are checked.
	LinkByLink bool `json:"link_by_link,omitempty"`
	// Staged is how OpenSM receives the tables; nil: fabsh sends Sets.
	Staged *Staged `json:"staged,omitempty"`
}

// Step is the state of one cell after a round.
type Step struct {
	Cell int    `json:"cell"`
	Data []byte `json:"data"`
}

// Round is a set of Sets that are sent in any order: every mixture of them is proven.
type Round struct {
	Steps []Step
	// Drain is how long packets of the old tables may be under way; 0: the next round
	// need not wait for them.
	Drain time.Duration
}

// beside returns how the change, or its reversal, goes with a running subnet manager.
func (b *Begin) beside(back bool) beside { return besideOf(b.Cells, b.Staged != nil, back) }

// manager returns the subnet manager that was in charge; nil: there was no manager.
func (b *Begin) manager() *sa.SM {
	if b.Manager == 0 {
		return nil
	}
	return &sa.SM{Info: &mad.SMInfo{GUID: b.Manager}}
}

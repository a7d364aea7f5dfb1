// Package order finds an order for the writes of a change of forwarding tables in which
// packets do not loop, get lost or deadlock between the old tables and the new ones, and
// proves it. It only computes: it reads and writes nothing.
//
// Plan takes an Input and returns a Schedule: rounds, with drains between, and the Figures of
// the change. It tries orders, the simplest first; if none is safe the error is a *Refusal.
// A round is a set of writes in any order, all of which are read back before the next round
// begins. While a round is written, each entry of each switch may be the old or the new one,
// independently: the proofs cover all these mixtures.
//
// A proof follows the packets to each LID through all entries that may be in force: they must
// not loop or be dropped, and their channel dependencies must not close a new cycle. Plan uses
// all cores; the tables of its input must not change meanwhile.
package order

import (
	"fmt"
	"strings"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/change/certificate"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// Input is a change of forwarding tables.
type Input struct {
	// Old and New are the tables before and after, with the service levels and virtual
	// lanes of their paths if known. Both are on the graph of the current fabric, without
	// links that are down.
	Old, New *routes.Routes
	// SLs are service levels, a bit each, that packets of any path may have in addition to
	// the service levels of Old.SL and New.SL. They matter if the tables have SL2VL.
	SLs uint16
	// Last are LIDs whose entries are written last in each round: the LIDs of the subnet
	// manager, of the SA, and of this host.
	Last []mad.LID
	// Drain is, by switch, how long a packet may stay in it (HOQLife and the lifetime in
	// the switch). 0: unlimited. Nil: unknown.
	Drain []time.Duration
	// Adaptive is, by switch, adaptive routing that is on: the switch then follows Old only
	// when a write has disabled it; nil: it follows Old. No list: it is unknown which
	// switches route adaptively, and all are assumed to follow Old.
	Adaptive []*adaptive.Switch
	// Changes are what the rounds write, by number; nil: the blocks and the rows of SL2VL by
	// which New differs from Old. Only those of forwarding tables and SL2VL are written.
	Changes []certificate.Change
	// Disable are the numbers of the blocks that are written first to disable adaptive routing,
	// with their old entries. Switches of Adaptive without a block here or in the change keep it.
	Disable []int
	// Simple skips the orders that take long to find: with precedences, groups of LIDs,
	// and drains. It does not change the refusal.
	Simple bool
	// AcceptCreditLoops plans even if packets may deadlock meanwhile.
	AcceptCreditLoops bool
	// AcceptLost plans even if the new tables have no path for pairs that have one in the
	// old tables.
	AcceptLost bool

	at []place       // by number of the change
	of map[place]int // its inverse
}

// Schedule is an order of writes.
type Schedule struct {
	// Rounds are writes of Input.Changes; those with LIDs of Input.Last are at the end of each
	// round. In a proof a wait counts as a drain if packets on any link are gone after it: if
	// it is at least the sum of Input.Drain of the switches at the two ends of each link.
	Rounds  []certificate.Round
	Figures Figures
}

// Figures are the effect of a change, and what its proof does not cover. The largest load of
// a link before and after is computed by traffic.CountRerouted, which takes longer.
type Figures struct {
	// Pairs counts pairs of an endpoint and a LID of another endpoint whose packets take
	// other links in the end. Lost are pairs that have a path in the old tables and none
	// in the new ones; Gained are the reverse.
	Pairs, Lost, Gained int64
	// OldCycle reports that the old tables have a credit loop already; the change is
	// not refused for it. It remains until the end of round OldCycleUntil, from 1; 0: the
	// new tables have it, too. Cycle is one that the change may cause, and that was
	// accepted.
	OldCycle      bool
	OldCycleUntil int
	Cycle         []Dependency
	// Management is a credit loop that the change may cause with general management
	// packets (GMPs) to port 0 of switches and their answers: its links, as text; nil:
	// not found.
	Management []string
	// Unjudged lists what the proof does not cover.
	Unjudged []string
}

// Drains returns how long a packet may wait in each switch, for Input.Drain: the longest
// HOQLife of the ports with a link, in units of 4.096 us times two to its power; 0: above
// 19 it waits for ever (IBA 14.2.5.6).
func Drains(g *graph.Graph) []time.Duration {
	all := make([]time.Duration, len(g.Switches()))
	for s, n := range g.Switches() {
		longest := uint8(0)
		for port := range n.Ports() {
			switch info := port.Info(); {
			case port.Peer() == nil:
			case info == nil:
				longest = 20
			default:
				longest = max(longest, info.HOQLife)
			}
		}
		if longest <= 19 {
			all[s] = 4096 * time.Nanosecond << longest
		}
	}
	return all
}

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
// on virtual lane VL, may wait for the next link of the loop. First is the version of their
// entry at the switch of Port, and Next the version of their entry at the next switch.
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

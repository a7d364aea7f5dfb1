// Package order finds an order for the writes of a change of forwarding tables in which
// packets do not loop, get lost or deadlock between the old tables and the new ones, and
// proves it. It only computes: it reads and writes nothing.
//
//	order.go      Input, Schedule: what is asked, and the answer
//	plan.go       Plan: the orders that are tried, the simplest first
//	prove.go      Prove: is a schedule safe at each step, whoever made it?
//	refusal.go    Refusal: why there is no safe order
//	net.go        the fabric as the proofs need it
//	history.go    what entries were in force, round by round
//	forward.go    packets that loop, or do not arrive
//	choices.go    the same where switches route adaptively; mixture.go, with several ports
//	credit.go     the channel dependencies of mixed tables
//	cycle.go      cycles among them; management.go: with packets to and from switches
//	leg.go        writes placed in rounds by precedences; components.go: those in a circle
//	precedence.go credit loops broken by precedences and drains
//	groups.go     groups of LIDs, with drains between
//
// A round is a set of writes in any order, all of which are read back before the next
// round begins. While a round is written, each entry of each switch may be the old or the
// new one, independently: the proofs cover all these mixtures.
package order

import (
	"time"

	"fabsh/fabric/adaptive"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// Input is a change of forwarding tables.
type Input struct {
	// Old and New are the tables before and after, with the service levels and virtual
	// lanes of their paths if known. Both are on one graph: that of the current fabric,
	// without links that are down.
	Old, New *routes.Routes
	// SLs are service levels, a bit each, that packets of any path may have in addition
	// to those of Old.SL and New.SL. They matter if the tables have SL2VL.
	SLs uint16
	// Last are LIDs whose entries are written last in each round: those of the subnet
	// manager, of the SA, and of this host.
	Last []mad.LID
	// Drain is, by switch, how long a packet may stay in it (HOQLife and the lifetime in
	// the switch). 0: unlimited. Nil: unknown.
	Drain []time.Duration
	// OldTop and NewTop are LinearFDBTop of each switch. Nil: that of the highest LID
	// with an entry. Without NewTop it is only raised.
	OldTop, NewTop []mad.LID
	// Adaptive is, by switch, adaptive routing that is on: the switch then follows Old only
	// when a write has disabled it; nil: it follows Old. No list: it is unknown which
	// switches route adaptively, and all are assumed to follow Old.
	Adaptive []*adaptive.Switch
	// Disable has the blocks that are written first to disable adaptive routing, with their
	// old entries. Switches of Adaptive without a block here or in the change keep it.
	Disable []Place
	// MaxBlocks limits the number of blocks that may be written; 0: unlimited.
	MaxBlocks int
	// Simple skips the orders that take long to find: with precedences, groups of LIDs,
	// and drains. The refusal is the same.
	Simple bool
	// AcceptCreditLoops plans even if packets may deadlock meanwhile.
	AcceptCreditLoops bool
	// AcceptLost plans even if the new tables have no path for pairs that have one in the
	// old tables.
	AcceptLost bool
}

// Schedule is an order of writes.
type Schedule struct {
	// Raise is written before all rounds, and Lower after them.
	Raise, Lower []Top
	Rounds       []Round
	Figures      Figures
}

// Round is a set of writes in any order. It has ended when all of them are read back.
type Round struct {
	// Lanes is set if the round is the writes of SL2VL, and of related tables, which the
	// caller keeps: Blocks is empty.
	Lanes bool
	// Disables is set of the round that writes Input.Disable.
	Disables bool
	Blocks   []Block // those with LIDs of Input.Last at the end
	// Drain is how long to wait after the round before the next begins. For Prove it is a
	// drain if it is at least that of any link: the sum of the switches at its two ends.
	Drain time.Duration
}

// Block is a write of a block of a linear forwarding table.
type Block struct {
	Switch  int // in the graph
	Number  int // of the block, whose first LID is 64 * Number
	Entries [mad.LFTBlock]uint8
}

// Place is a block of a linear forwarding table.
type Place struct{ Switch, Number int }

// Top is a write of LinearFDBTop.
type Top struct {
	Switch int
	LID    mad.LID
}

// Figures are the extent of a schedule, and what the proof does not cover. The largest
// load of a link before and after is computed by routes.Routes.Rerouted, which takes
// longer.
type Figures struct {
	Blocks   int           // that are written; a block that is written twice counts twice
	Switches int           // with such blocks
	Rounds   int           // as Schedule.Rounds
	Wait     time.Duration // sum of the drains
	Entries  int           // that change
	LIDs     int           // with such entries
	// Pairs are those of an endpoint and a LID of another endpoint whose packets take
	// other links in the end. Lost are pairs that have a path in the old tables and none
	// in the new ones; Gained are the reverse.
	Pairs, Lost, Gained int64
	// OldCycle reports that the old tables have a credit loop already; the change is
	// not refused for it. Cycle is one that the change may cause, and that was accepted.
	OldCycle bool
	Cycle    []Dependency
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

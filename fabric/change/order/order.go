// Package order finds an order for the writes of a change of forwarding tables in
// which packets neither loop nor get lost nor deadlock on the way from the old tables
// to the new ones, and proves it. It reads and writes nothing: it computes.
//
//	order.go      Input, Schedule: what is asked, and the answer
//	plan.go       Plan: the orders that are tried, the simplest first
//	prove.go      Prove: is a schedule safe at each step, whoever made it?
//	refusal.go    Refusal: why there is no safe order
//	net.go        the fabric as the proofs need it
//	history.go    what entries were in force, round by round
//	forward.go    packets that loop, or do not arrive
//	credit.go     the channel dependencies of mixed tables
//	cycle.go      cycles among them; management.go: with packets to and from switches
//	leg.go        writes placed in rounds by precedences; components.go: those in a circle
//	precedence.go credit loops broken by precedences and drains
//	groups.go     groups of LIDs, with drains between
//
// A round is a set of writes in any order, all of them read back before the next
// round begins. While a round is written each of its entries may be the old one or
// the new one, each switch by itself: the proofs cover all these mixtures.
package order

import (
	"time"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// Input is a change of forwarding tables.
type Input struct {
	// Old and New are the tables before and after, with the service levels and
	// virtual lanes of their paths where they are known. Both are on one graph:
	// that of the fabric as it is now, where links that are down are none.
	Old, New *routes.Routes
	// SLs are service levels that packets of any path may have besides those of
	// Old.SL and New.SL, a bit each. They matter where the tables have SL2VL.
	SLs uint16
	// Last are LIDs whose entries are written last in each round: those of the
	// subnet manager, of the SA, and of this host.
	Last []mad.LID
	// Drain is, by switch, how long a packet may stay in it (HOQLife and the
	// lifetime in the switch). 0: there is no bound. Nil: none is known.
	Drain []time.Duration
	// OldTop and NewTop are LinearFDBTop of each switch. Nil: that of the highest
	// LID with an entry. Without NewTop it is only raised.
	OldTop, NewTop []mad.LID
	// MaxBlocks is how many blocks may be written; 0: any number.
	MaxBlocks int
	// Simple tries none of the orders that take long to find: with precedences, groups of
	// LIDs, and drains. A refusal is the same.
	Simple bool
	// AcceptCreditLoops plans even where packets may deadlock on the way.
	AcceptCreditLoops bool
	// AcceptLost plans even where the new tables have no path for pairs that have
	// one in the old.
	AcceptLost bool
}

// Schedule is an order of writes.
type Schedule struct {
	// Raise comes before all rounds, and Lower after them.
	Raise, Lower []Top
	Rounds       []Round
	Figures      Figures
}

// Round is a set of writes in any order. It has ended when all of it is read back.
type Round struct {
	// Lanes says that the round is the writes of SL2VL, and of what belongs to
	// it, which are the caller's to keep: Blocks is empty.
	Lanes  bool
	Blocks []Block // those with LIDs of Input.Last at the end
	// Drain is how long to wait after the round before the next begins. Prove takes
	// it for a drain where it is as long as the longest of any link: that of the
	// switches at both its ends.
	Drain time.Duration
}

// Block is a write of a block of a linear forwarding table.
type Block struct {
	Switch  int // in the graph
	Number  int // of the block: its first LID is 64 * Number
	Entries [mad.LFTBlock]uint8
}

// Top is a write of LinearFDBTop.
type Top struct {
	Switch int
	LID    mad.LID
}

// Figures are the extent of a schedule, and what is not known of it. The most routes on
// a link before and after are told by routes.Routes.Rerouted, which takes longer.
type Figures struct {
	Blocks   int           // that are written, each as often as it is
	Switches int           // with such blocks
	Rounds   int           // as Schedule.Rounds
	Wait     time.Duration // the drains together
	Entries  int           // that change
	LIDs     int           // with such entries
	// Pairs are those of an endpoint and a LID of another whose packets take other
	// links in the end; Lost are pairs that had a path and have none in the new
	// tables; Gained have one that had none.
	Pairs, Lost, Gained int64
	// OldCycle says that the old tables have a credit loop already: it is no
	// reason to refuse. Cycle is one that the change may bring about, which was
	// accepted.
	OldCycle bool
	Cycle    []Dependency
	// Management is a credit loop that the change may bring about with general management
	// packets (GMPs) to port 0 of switches and their answers: its links, as text; nil:
	// there is none.
	Management []string
	// Unjudged says what the proof does not cover.
	Unjudged []string
}

// Drains are how long a packet may wait in each switch, as Input.Drain has it: the
// longest HOQLife of the ports with a link, in units of 4.096 us times two to its
// power; 0: above 19 it waits for ever (IBA 14.2.5.6).
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

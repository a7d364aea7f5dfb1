// Package suspect locates slow links, switches and hosts from benchmarks of pairs.
//
// Read returns Measurements from a table or from the output of a benchmark. Find judges how
// well each part of the network explains the slow and the fast ones, along the paths of the
// tables in force; Next chooses the measurements that separate the parts that remain.
//
// The method is Bayesian tomography. Each measurement is compared with the median of its
// class. A hypothesis is a part of the network that is slow by a factor. A measurement whose
// packets cross it with weight w (1: all of them; less where switches choose, or a port has
// several LIDs) then runs at 1/(1+w(1/factor-1)) of its rate: time adds up. The deviations
// have Student's t distribution with 4 degrees of freedom (Lange, Little and Taylor, "Robust
// statistical modeling using the t distribution", 1989), whose scale is estimated from the data,
// and one of 150 measurements may have any rate: a few wild ones decide nothing. The evidence for a hypothesis
// is averaged over factors and compared with that for no fault (Kass and Raftery, "Bayes
// factors", 1995). Several faults are added greedily, and each is then judged again beside the
// others, as Flock does (Harsh et al., arXiv 2305.03348).
//
// The package has no state: its functions are safe for concurrent use.
package suspect

import (
	"fabsh/fabric"
)

// Measurement is a result of a benchmark.
type Measurement struct {
	// From and To are the ends by name, GUID or LID: From sends. A group has Group instead:
	// each member sends to the next one, and the last to the first; or to all others.
	From, To string
	Group    []string
	AllToAll bool

	Rail  int  // the ordinal of the adapter port of each host, from 1; 0: all of them at once
	Both  bool // traffic in both directions, and the value is the sum
	Time  bool // Value is a time in µs, not a bandwidth in Gb/s
	Value float64
	State State

	Class string // measurements of a class would be equal in a perfect network: test and size
	Round string // measurements of a round ran at the same time; "": alone
	Line  int    // of the file; 0: unknown
}

// State is whether a measurement has a value.
type State uint8

const (
	Measured State = iota
	Empty          // not measured yet
	Failed         // measured, without a result
)

// Kind is a kind of part.
type Kind uint8

const (
	Link Kind = iota
	Switch
	Adapter
	Host
)

func (k Kind) String() string { return [...]string{"link", "switch", "adapter", "host"}[k] }

// Part is a part of the network that may be slow.
type Part struct {
	Kind Kind
	// Port is an end of a link: the sender if OneWay. Node is the switch or adapter.
	Port   *fabric.Port
	OneWay bool
	Node   *fabric.Node
	Host   string
}

// Name returns the name of a part: "leaf-1/7 - spine-1/2", with "->" for one direction.
func (p *Part) Name() string {
	switch p.Kind {
	case Link:
		sign := " - "
		if p.OneWay {
			sign = " -> "
		}
		return p.Port.Name() + sign + p.Port.Peer().Name()
	case Host:
		return p.Host
	}
	return p.Node.Name()
}

// Candidate is a part that may be a fault.
type Candidate struct {
	Part
	// Probability is that of this part, or of one of Same, among all candidates for the fault.
	Probability float64
	Factor      float64 // the most likely rate, relative to a part without a fault
	Crossed     int     // measurements that cross it
	Slow        int     // of these, those nearer to the rate that the fault explains than to the normal one
	Same        []Part  // parts that the same measurements cross, to equal extents: nothing here separates them
}

// Fault is a part that must be slow, and the candidates for it, the most probable first.
type Fault struct {
	Probability float64 // that there is a fault
	Candidates  []Candidate
}

// Result is what measurements show.
type Result struct {
	Read, Used    int
	Empty, Failed int
	Alone         int      // those with fewer than two others of their class: their normal rate is unknown
	Unknown       []string // ends that are not in the network, each once
	NotRouted     []string // "A to B: reason" of measurements whose packets do not arrive
	Noise         float64  // relative deviation of a measurement
	Slow          int      // measurements that are far slower than those of their class
	Unexplained   int      // of these, those that no fault explains
	Faults        []Fault
	// Best are the candidates for one more fault, which is not certain, and Probability is
	// that of such a fault.
	Best        []Candidate
	Probability float64
	Adaptive    bool // switches choose paths of measured packets
}

// maxFaults is how many faults are looked for.
const maxFaults = 8

// certain is the probability from which a fault is reported.
const certain = 0.95

// maxCandidates is how many candidates a fault has.
const maxCandidates = 10

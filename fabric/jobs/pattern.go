package jobs

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/traffic"
	"fabsh/mad"
)

// Pattern is a pattern of the traffic of a job. Traffic 1 is the bandwidth of a port of a host.
type Pattern struct {
	Name   string
	Doc    string // what each port sends, to follow the name
	Source string // what defines it

	// sets are sets of ports in which each sends to all others, 1 in total. phases are its phases, one
	// after the other. One of them may be nil.
	sets   func(x *placement) [][]mad.LID
	phases func(x *placement) ([]Phase, error)
}

// Phase is a step of a collective operation: the flows that are under way at once.
type Phase struct {
	Part  float64 // of the time of the operation on links without other traffic; phases add up to 1
	Flows []traffic.Flow
}

// placement is where a job is.
type placement struct {
	g     *graph.Graph
	lids  [][]mad.LID   // by host: the LIDs of its ports by rail; 0: it has no port there
	group int           // hosts of a group of experts
	trees map[int32]int // by switch: SHARP trees whose root it is, of all jobs
}

// Names of patterns that other code names.
const (
	AllToAll = "all-to-all"
	Ring     = "ring"
	Doubling = "recursive-doubling"
	Rails    = "rails"
)

// GroupSize is the default number of hosts of a group of experts: 64 GPUs on hosts with 8.
const GroupSize = 8

const (
	nccl   = "NCCL 2.30.7, "
	deepEP = "DeepEP, "
	thakur = "Thakur, Rabenseifner, Gropp, \"Optimization of collective communication operations in MPICH\", 2005"
)

// AllPatterns are all patterns. Lists, help and errors are made from it.
func AllPatterns() []Pattern {
	return []Pattern{
		{Name: AllToAll, Doc: "each port sends to all others of the job", Source: nccl + "without PXN", sets: func(x *placement) [][]mad.LID { return [][]mad.LID{present(slices.Concat(x.lids...))} }},
		{Name: Ring, Doc: "to the same port of the next host: a ring on each rail", Source: nccl + "src/graph/connect.cc connectRings", phases: func(x *placement) ([]Phase, error) {
			return x.toPartners(func(from, n int) []int { return []int{(from + 1) % n} }), nil
		}},
		{Name: "bidirectional-ring", Doc: "half to the same port of the next host, half to that of the one before", Source: "two rings", phases: func(x *placement) ([]Phase, error) {
			return x.toPartners(func(from, n int) []int { return []int{(from + 1) % n, (from + n - 1) % n} }), nil
		}},
		{Name: Doubling, Doc: "an all-reduce in phases on each rail: all data with the hosts at distance 1, 2, 4, ..., one after the other; if the number of hosts is not a power of two, some give all to a neighbour first, and get it back at the end", Source: thakur + ", and MPICH, allreduce_intra_recursive_doubling.c", phases: func(x *placement) ([]Phase, error) {
			return x.onRails(func(n int) []exchange { return inSteps(n, recursiveDoubling) }), nil
		}},
		{Name: "halving-doubling", Doc: "an all-reduce in phases on each rail: with the hosts at distance 1, 2, 4, ... half, a quarter, ... of the data, and back; if the number of hosts is not a power of two, some give all to a neighbour first, and get it back at the end", Source: thakur + ", and MPICH, allreduce_intra_reduce_scatter_allgather.c", phases: func(x *placement) ([]Phase, error) {
			return x.onRails(func(n int) []exchange { return inSteps(n, halvingDoubling) }), nil
		}},
		{Name: "tree", Doc: "an all-reduce on two binary trees of hosts on each rail, half of the data on each: up, and down at the same time; the busiest port sends 1", Source: nccl + "src/graph/trees.cc ncclGetDtree; Sanders, Speck, Träff, \"Two-tree algorithms for full bandwidth broadcast, reduction and scan\", 2009", phases: func(x *placement) ([]Phase, error) {
			return x.onRails(doubleTree), nil
		}},
		{Name: Rails, Doc: "to that of all other hosts: traffic stays on its rail", Source: nccl + "src/graph/search.cc ncclTopoGetNetDev (PXN)", sets: func(x *placement) [][]mad.LID { return rails(x.lids) }},
		{Name: "pxn", Doc: "the same in rounds: in each, to the host at one distance, in the order of NCCL", Source: nccl + "src/init.cc ncclP2pSchedule", sets: func(x *placement) [][]mad.LID { return rails(x.lids) }, phases: func(x *placement) ([]Phase, error) {
			return x.onRails(rounds), nil
		}},
		{Name: "experts", Doc: "to that of all other hosts of its group: each group is so many hosts in order", Source: deepEP + "csrc/kernels/legacy/internode.cu", sets: func(x *placement) (sets [][]mad.LID) {
			for group := range slices.Chunk(x.lids, x.group) {
				sets = append(sets, rails(group)...)
			}
			return sets
		}},
		{Name: "experts-across", Doc: "likewise, but hosts of a group are as far apart in the order as groups allow, as across pods", Source: deepEP + "csrc/kernels/legacy/internode.cu", sets: func(x *placement) (sets [][]mad.LID) {
			if len(x.lids) == 0 {
				return nil
			}
			n := (len(x.lids)-1)/x.group + 1
			for first := range n {
				var group [][]mad.LID
				for i := first; i < len(x.lids); i += n {
					group = append(group, x.lids[i])
				}
				sets = append(sets, rails(group)...)
			}
			return sets
		}},
		{Name: "experts-direct", Doc: "to all ports of the other hosts of its group, which crosses rails", Source: deepEP + "csrc/kernels/legacy/internode_ll.cu", phases: func(x *placement) ([]Phase, error) {
			return x.direct(), nil
		}},
		{Name: "sharp", Doc: "to the aggregation node at its leaf, and that to the next one up to a root, and back: a tree for each rail. The root is the nearest switch to all leaves, of equally near ones the first of those with the fewest trees: how the manager of trees chooses is not known", Source: "NVIDIA SHARP 3.11, \"Operating Mellanox SHARP with Dynamic Trees\"", phases: func(x *placement) ([]Phase, error) {
			return x.sharp()
		}},
		{Name: "incast", Doc: "to the same port of the first host that has it, each 1", Source: "Phanishayee et al., \"Measurement and analysis of TCP throughput collapse in cluster-based storage systems\", 2008", phases: func(x *placement) ([]Phase, error) {
			return x.onRails(incast), nil
		}},
		{Name: "storage", Doc: "to all ports of I/O nodes, as a checkpoint", Source: "the classes of graph()", phases: func(x *placement) ([]Phase, error) {
			return x.storage()
		}},
	}
}

// Patterns are the names of all patterns.
func Patterns() (names []string) {
	for _, p := range AllPatterns() {
		names = append(names, p.Name)
	}
	return names
}

// patternNamed returns the pattern of that name.
func patternNamed(name string) (*Pattern, error) {
	all := AllPatterns()
	i := slices.IndexFunc(all, func(p Pattern) bool { return p.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("unknown pattern %.60q; supported: %s", name, strings.Join(Patterns(), ", "))
	}
	return &all[i], nil
}

// phasesOf returns the phases of a pattern, with at most so many flows.
func (p *Pattern) phasesOf(x *placement, most int) ([]Phase, error) {
	if p.phases != nil {
		return p.phases(x)
	}
	one := Phase{Part: 1}
	for _, set := range p.sets(x) {
		if len(one.Flows)+len(set)*(len(set)-1) > most {
			return nil, tooManyFlows(most)
		}
		for _, from := range set {
			for _, to := range set {
				if from != to {
					one.Flows = append(one.Flows, traffic.Flow{From: from, To: to, Traffic: 1 / float64(len(set)-1)})
				}
			}
		}
	}
	return []Phase{one}, nil
}

func tooManyFlows(most int) error {
	return fmt.Errorf("more than %d flows; routes.job_traffic() has no such limit", most)
}

// present are the LIDs of ports that are there.
func present(lids []mad.LID) (list []mad.LID) {
	for _, lid := range lids {
		if lid != 0 {
			list = append(list, lid)
		}
	}
	return list
}

// rails are the ports of hosts by rail.
func rails(lids [][]mad.LID) (sets [][]mad.LID) {
	most := 0
	for _, of := range lids {
		most = max(most, len(of))
	}
	sets = make([][]mad.LID, most)
	for _, of := range lids {
		for rail, lid := range of {
			if lid != 0 {
				sets[rail] = append(sets[rail], lid)
			}
		}
	}
	return sets
}

// onRails are the phases of all rails at once; of has those of so many hosts, with pairs of their numbers. A host
// without a port on a rail has no part there.
func (x *placement) onRails(of func(n int) []exchange) (list []Phase) {
	for _, set := range rails(x.lids) {
		for i, e := range of(len(set)) {
			if i == len(list) {
				list = append(list, Phase{})
			}
			p := &list[i]
			p.Part = max(p.Part, e.part)
			for _, pair := range e.pairs {
				p.Flows = append(p.Flows, traffic.Flow{From: set[pair[0]], To: set[pair[1]], Traffic: e.amount})
			}
		}
	}
	sum := 0.0
	for _, p := range list {
		sum += p.Part
	}
	for i := range list {
		list[i].Part /= sum
	}
	return list
}

// exchange is a phase of hosts: the first of a pair sends that much to the second.
type exchange struct {
	part, amount float64
	pairs        [][2]int
}

// toPartners is one phase in which each port sends to ports of its rail, 1 in total.
func (x *placement) toPartners(partners func(from, n int) []int) []Phase {
	p := Phase{Part: 1}
	for _, set := range rails(x.lids) {
		for from, lid := range set {
			list := partners(from, len(set))
			for _, to := range list {
				if to != from {
					p.Flows = append(p.Flows, traffic.Flow{From: lid, To: set[to], Traffic: 1 / float64(len(list))})
				}
			}
		}
	}
	return []Phase{p}
}

// A step is an exchange with the host at a distance, of that part of the data.
type step struct {
	distance int
	part     float64
}

// recursiveDoubling exchanges all data with the hosts at distance 1, 2, 4, ...
func recursiveDoubling(power int) (list []step) {
	for distance := 1; distance < power; distance *= 2 {
		list = append(list, step{distance, 1})
	}
	return list
}

// halvingDoubling scatters sums by halves, and gathers them.
func halvingDoubling(power int) (list []step) {
	for distance := 1; distance < power; distance *= 2 {
		list = append(list, step{distance, 1 / float64(2*distance)})
	}
	for _, s := range slices.Backward(slices.Clone(list)) {
		list = append(list, s)
	}
	return list
}

// inSteps are the exchanges of n hosts with the steps of as many as the largest power of two. Hosts are numbered as
// MPICH does: of the first 2*rest, the even ones give their data to the odd ones first.
func inSteps(n int, steps func(power int) []step) (list []exchange) {
	if n < 2 {
		return nil
	}
	power := 1
	for 2*power <= n {
		power *= 2
	}
	rest := n - power
	host := func(v int) int {
		if v < rest {
			return 2*v + 1
		}
		return v + rest
	}
	fold := func(back int) {
		if rest == 0 {
			return
		}
		e := exchange{part: 1, amount: 1}
		for v := range rest {
			e.pairs = append(e.pairs, [2]int{2*v + back, 2*v + 1 - back})
		}
		list = append(list, e)
	}
	fold(0)
	for _, s := range steps(power) {
		e := exchange{part: s.part, amount: 1}
		for v := range power {
			e.pairs = append(e.pairs, [2]int{host(v), host(v ^ s.distance)})
		}
		list = append(list, e)
	}
	fold(1)
	return list
}

// treeParent is the parent of host r of n in a binary tree, or -1: NCCL's ncclGetBtree.
func treeParent(n, r int) int {
	if r == 0 {
		return -1
	}
	bit := r & -r
	if up := r ^ bit | bit<<1; up < n {
		return up
	}
	return r ^ bit
}

// otherParent is the parent in the second tree: the first one mirrored, or shifted by one if n is odd.
func otherParent(n, r int) int {
	if n%2 == 0 {
		if p := treeParent(n, n-1-r); p >= 0 {
			return n - 1 - p
		}
		return -1
	}
	if p := treeParent(n, (r+n-1)%n); p >= 0 {
		return (p + 1) % n
	}
	return -1
}

// doubleTree is the exchange of n hosts over both trees.
func doubleTree(n int) []exchange {
	e, degree := exchange{part: 1}, make([]int, n)
	for _, parent := range []func(n, r int) int{treeParent, otherParent} {
		for r := range n {
			if p := parent(n, r); p >= 0 {
				e.pairs = append(e.pairs, [2]int{r, p}, [2]int{p, r})
				degree[r]++
				degree[p]++
			}
		}
	}
	e.amount = 1 / float64(slices.Max(append(degree, 1)))
	return []exchange{e}
}

// rounds are all distances in the order of ncclP2pSchedule.
func rounds(n int) (list []exchange) {
	power := 1
	for power < n {
		power *= 2
	}
	for q, distance := 1, 0; q <= power; q++ {
		if distance > 0 && distance < n {
			e := exchange{part: 1 / float64(n-1), amount: 1}
			for from := range n {
				e.pairs = append(e.pairs, [2]int{from, (from + distance) % n})
			}
			list = append(list, e)
		}
		distance = (distance + q) & (power - 1)
	}
	return list
}

// direct has a flow from each port to each port of the other hosts of its group.
func (x *placement) direct() []Phase {
	p := Phase{Part: 1}
	for group := range slices.Chunk(x.lids, x.group) {
		ports := len(present(slices.Concat(group...)))
		for i, from := range group {
			for k, to := range group {
				if k == i {
					continue
				}
				own := present(from)
				for _, a := range own {
					for _, b := range present(to) {
						p.Flows = append(p.Flows, traffic.Flow{From: a, To: b, Traffic: 1 / float64(ports-len(own))})
					}
				}
			}
		}
	}
	return []Phase{p}
}

// incast is the exchange of n hosts in which the first gets the data of all others.
func incast(n int) []exchange {
	e := exchange{part: 1, amount: 1}
	for from := 1; from < n; from++ {
		e.pairs = append(e.pairs, [2]int{from, 0})
	}
	return []exchange{e}
}

func (x *placement) storage() ([]Phase, error) {
	var nodes []mad.LID
	for _, t := range x.g.Terminals() {
		if t.Switch >= 0 && t.IsEndpoint(graph.ClassIO) {
			nodes = append(nodes, t.LID)
		}
	}
	if len(nodes) == 0 {
		return nil, errors.New("storage: no I/O nodes are known; in a script, graph(classes=...) names them")
	}
	p := Phase{Part: 1}
	for _, of := range x.lids {
		for _, from := range present(of) {
			for _, to := range nodes {
				if from != to {
					p.Flows = append(p.Flows, traffic.Flow{From: from, To: to, Traffic: 1 / float64(len(nodes))})
				}
			}
		}
	}
	return []Phase{p}, nil
}

// sharp has the flows of a tree of aggregation nodes for each rail: between two, 1 up and 1 down,
// however many hosts are below.
func (x *placement) sharp() ([]Phase, error) {
	nodes := map[int32]mad.LID{} // by switch
	for _, t := range x.g.Terminals() {
		if t.Switch >= 0 && t.IsEndpoint(graph.ClassAN) {
			nodes[int32(t.Switch)] = t.LID
		}
	}
	if len(nodes) == 0 {
		return nil, errors.New("sharp: the fabric has no aggregation nodes")
	}
	p := Phase{Part: 1}
	both := func(a, b mad.LID) {
		p.Flows = append(p.Flows, traffic.Flow{From: a, To: b, Traffic: 1}, traffic.Flow{From: b, To: a, Traffic: 1})
	}
	for rail, set := range rails(x.lids) {
		if len(set) < 2 {
			continue
		}
		var leaves []int32
		for _, lid := range set {
			leaves = append(leaves, int32(x.g.Terminals()[x.g.TerminalByLID(lid)].Switch))
		}
		root := x.root(leaves, nodes)
		if root < 0 {
			return nil, fmt.Errorf("sharp: no aggregation node is connected to all hosts on rail %d", rail+1)
		}
		x.trees[root]++
		distance := x.distances(root)
		// above is the nearest switch with an aggregation node on the way to the root, from s on.
		above := func(s int32) int32 {
			for nodes[s] == 0 {
				s = x.nearer(s, distance)
			}
			return s
		}
		in := map[int32]bool{}
		for i, lid := range set {
			s := above(leaves[i])
			both(lid, nodes[s])
			for s != root && !in[s] {
				in[s] = true
				up := above(x.nearer(s, distance))
				both(nodes[s], nodes[up])
				s = up
			}
		}
	}
	return []Phase{p}, nil
}

// root is the switch with an aggregation node that is nearest to the leaf the farthest from it, then nearest to
// all; -1: none is connected to all.
func (x *placement) root(leaves []int32, nodes map[int32]mad.LID) int32 {
	farthest, sum := make([]int, len(x.g.Switches())), make([]int, len(x.g.Switches()))
	for _, leaf := range slices.Compact(slices.Sorted(slices.Values(leaves))) {
		for s, d := range x.distances(leaf) {
			if d < 0 {
				farthest[s] = math.MaxInt32
				continue
			}
			farthest[s], sum[s] = max(farthest[s], d), sum[s]+d
		}
	}
	best := int32(-1)
	for s := range int32(len(farthest)) {
		if nodes[s] == 0 || farthest[s] == math.MaxInt32 {
			continue
		}
		if best < 0 || cmp.Or(cmp.Compare(farthest[s], farthest[best]), cmp.Compare(sum[s], sum[best]), cmp.Compare(x.trees[s], x.trees[best])) < 0 {
			best = s
		}
	}
	return best
}

// distances are the numbers of links from switches to one of them; -1: no path.
func (x *placement) distances(to int32) []int {
	g := x.g
	distance := slices.Repeat([]int{-1}, len(g.Switches()))
	distance[to] = 0
	queue := []int32{to}
	for i := 0; i < len(queue); i++ {
		for _, n := range g.Neighbours(int(queue[i])) {
			if distance[n.To] < 0 {
				distance[n.To] = distance[queue[i]] + 1
				queue = append(queue, n.To)
			}
		}
	}
	return distance
}

// nearer is the first neighbour of s that is nearer.
func (x *placement) nearer(s int32, distance []int) int32 {
	for _, n := range x.g.Neighbours(int(s)) {
		if distance[n.To] == distance[s]-1 {
			return n.To
		}
	}
	return s
}

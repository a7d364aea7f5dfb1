package certificate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"fabsh/fabric"
	"fabsh/mad"
)

// world is a small random network with a change of its tables. Switch s has LID 1+s, and
// its host at port 1 has LID 64+s; switch t is behind port 2+t, if there is a link.
type world struct {
	n        int
	linked   [][]bool
	old, new [][]uint8 // by switch, LID
	// Lanes by switch, port in, port out and service level, and the levels by host and LID.
	oldVL, newVL [][][][16]uint8
	sl           [][]uint16
	lanes        bool
	hoq          uint8
	// choices are the ports of adaptive routing, by switch and LID; nil: none.
	choices [][][]uint8
	first   []int // by switch: the round of the first write; -1: it has no choices
}

const worldLIDs = 128

func newWorld(random *rand.Rand, lanes bool) *world {
	n := 3 + random.IntN(3)
	w := &world{n: n, lanes: lanes, hoq: 10, linked: make([][]bool, n)}
	for s := range n {
		w.linked[s] = make([]bool, n)
	}
	link := func(a, b int) { w.linked[a][b], w.linked[b][a] = a != b, a != b }
	for s := 1; s < n; s++ {
		link(random.IntN(s), s)
	}
	for range 1 + random.IntN(2*n) {
		link(random.IntN(n), random.IntN(n))
	}
	w.old, w.new = w.tables(random), w.tables(random)
	for s := range n { // most entries stay
		for lid := range w.new[s] {
			if random.IntN(3) > 0 {
				w.new[s][lid] = w.old[s][lid]
			}
		}
	}
	if random.IntN(2) == 0 { // most destinations do
		for lid := range worldLIDs {
			if random.IntN(4) > 0 {
				for s := range n {
					w.new[s][lid] = w.old[s][lid]
				}
			}
		}
	}
	if lanes {
		w.oldVL, w.newVL = w.randomVL(random), w.randomVL(random)
		for s := range n {
			w.sl = append(w.sl, nil)
			for range worldLIDs {
				w.sl[s] = append(w.sl[s], 1<<random.IntN(2))
			}
		}
	}
	return w
}

func (w *world) randomVL(random *rand.Rand) (all [][][][16]uint8) {
	for range w.n {
		var of [][][16]uint8
		for range w.n + 2 {
			row := make([][16]uint8, w.n+2)
			for i := range row {
				for sl := range row[i] {
					row[i][sl] = uint8(random.IntN(2))
				}
			}
			of = append(of, row)
		}
		all = append(all, of)
	}
	return all
}

// tables are random trees towards each LID, with some entries at random.
func (w *world) tables(random *rand.Rand) [][]uint8 {
	t := make([][]uint8, w.n)
	for s := range t {
		t[s] = slices.Repeat([]uint8{mad.NoPort}, worldLIDs)
	}
	for end := range 2 * w.n {
		lid, root, out := 1+end, end, uint8(0)
		if end >= w.n {
			lid, root, out = 64+end-w.n, end-w.n, 1
		}
		t[root][lid] = out
		for queue, i := []int{root}, 0; i < len(queue); i++ {
			for _, s := range random.Perm(w.n) {
				if w.linked[s][queue[i]] && t[s][lid] == mad.NoPort {
					t[s][lid] = uint8(2 + queue[i])
					queue = append(queue, s)
				}
			}
		}
		if random.IntN(6) == 0 {
			t[random.IntN(w.n)][lid] = uint8(random.IntN(w.n + 3))
		}
	}
	return t
}

func (w *world) fabric(t testing.TB) *fabric.Fabric {
	b := fabric.NewBuilder()
	var handles []int
	for s := range w.n {
		h := b.AddNode(fabric.NodeSpec{Info: mad.NodeInfo{NodeType: mad.NodeTypeSwitch, NumPorts: uint8(w.n + 1), NodeGUID: mad.GUID(1 + s)}})
		b.SetPort(h, 0, &mad.PortInfo{LID: mad.LID(1 + s)})
		for p := 1; p <= w.n+1; p++ {
			b.SetPort(h, p, &mad.PortInfo{PortState: mad.PortStateActive, HOQLife: w.hoq})
		}
		handles = append(handles, h)
	}
	for s := range w.n {
		h := b.AddNode(fabric.NodeSpec{Info: mad.NodeInfo{NodeType: mad.NodeTypeCA, NumPorts: 1, NodeGUID: mad.GUID(100 + s), PortGUID: mad.GUID(200 + s), LocalPortNum: 1}})
		b.SetPort(h, 1, &mad.PortInfo{LID: mad.LID(64 + s), PortState: mad.PortStateActive})
		if err := b.Link(handles[s], 1, h, 1); err != nil {
			t.Fatal(err)
		}
		for o := range s {
			if w.linked[s][o] {
				if err := b.Link(handles[s], 2+o, handles[o], 2+s); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return b.Build()
}

// subnet is the world as Check sees it. Each block that differs is a change.
func (w *world) subnet(t testing.TB) *Subnet {
	sub := &Subnet{
		Fabric: w.fabric(t),
		Table:  func(sw *fabric.Node) []uint8 { return w.old[int(sw.GUID())-1] },
		VL:     func(sw *fabric.Node, in, out, sl uint8) uint8 { return w.oldVL[int(sw.GUID())-1][in][out][sl] },
		Levels: func(from *fabric.Port, to mad.LID) uint16 { return w.sl[int(from.LID())-64][to] },
	}
	if w.choices != nil {
		sub.Choices = func(sw *fabric.Node) func(mad.LID) []uint8 {
			if of := w.choices[int(sw.GUID())-1]; of != nil {
				return func(to mad.LID) []uint8 { return of[to] }
			}
			return nil
		}
	}
	for s := range w.n {
		for b := range worldLIDs / mad.LFTBlock {
			// Some blocks are written only to disable adaptive routing.
			if old, new := block(w.old[s], b), block(w.new[s], b); !slices.Equal(old, new) || b == 0 && w.choices != nil && w.choices[s] != nil && s%2 == 0 {
				sub.Changes = append(sub.Changes, Change{Attr: mad.AttrLinearForwardingTable, Modifier: uint32(b), Node: mad.GUID(1 + s), Old: old, New: new})
			}
		}
		for in := range 2 { // from ports 0 and 1
			if !w.lanes {
				break
			}
			for out := 2; out < w.n+2; out++ {
				old, new := mad.SLtoVLMappingTable{SLtoVL: w.oldVL[s][in][out]}, mad.SLtoVLMappingTable{SLtoVL: w.newVL[s][in][out]}
				if old != new {
					sub.Changes = append(sub.Changes, Change{Attr: mad.AttrSLtoVLMappingTable, Modifier: uint32(in<<8 | out), Node: mad.GUID(1 + s), Old: encoded(old), New: encoded(new)})
				}
			}
		}
	}
	return sub
}

func encoded(t mad.SLtoVLMappingTable) []byte {
	data := make([]byte, mad.AttrSLtoVLMappingTable.Size)
	t.Encode(data)
	return data
}

// rounds puts the changes into rounds at random, some with entries between.
func (w *world) rounds(random *rand.Rand, sub *Subnet) *Certificate {
	c := &Certificate{Lanes: 1}
	count := 1 + random.IntN(3)
	for range count {
		r := Round{}
		if random.IntN(3) == 0 {
			r.Drain = 1 << 40
		}
		c.Rounds = append(c.Rounds, r)
	}
	var lanes Round
	for i, ch := range sub.Changes {
		if ch.Attr == mad.AttrSLtoVLMappingTable {
			lanes.Writes = append(lanes.Writes, Write{i, ch.New})
			continue
		}
		last := random.IntN(count)
		for r := range last + 1 {
			if r == last {
				c.Rounds[r].Writes = append(c.Rounds[r].Writes, Write{i, ch.New})
			} else if random.IntN(3) == 0 {
				between := slices.Clone(ch.Old)
				for at := range between {
					if random.IntN(2) == 0 {
						between[at] = ch.New[at]
					}
				}
				c.Rounds[r].Writes = append(c.Rounds[r].Writes, Write{i, between})
			}
		}
	}
	if w.lanes {
		c.Lanes = mad.DropVL
	}
	if lanes.Writes != nil {
		c.Rounds = slices.Insert(c.Rounds, random.IntN(count+1), lanes)
	}
	return c
}

// next is what a port of a switch leads to: a switch, arrived with the LID, or -1.
func (w *world) next(s int, port uint8, lid int) int {
	switch {
	case port == 0 && lid == 1+s, port == 1 && lid == 64+s:
		return arrived
	case port >= 2 && int(port) < w.n+2 && w.linked[s][port-2]:
		return int(port) - 2
	}
	return -1
}

const arrived = 1 << 20

// fate follows a packet to a LID on each path in turn, of switches that send it by the
// ports of a function. loops says that a path loops, and not by ports of before alone.
func (w *world) fate(ports func(s int) []uint8, s, lid int, on []hop) (arrives, loops bool) {
	if i := slices.IndexFunc(on, func(h hop) bool { return h.s == s }); i >= 0 {
		return false, slices.ContainsFunc(on[i:], func(h hop) bool { return !slices.Contains(w.begun(h.s, lid), h.port) })
	}
	arrives = true
	for _, port := range ports(s) {
		switch next := w.next(s, port, lid); {
		case next == arrived:
		case next < 0:
			arrives = false
		default:
			a, l := w.fate(ports, next, lid, append(slices.Clone(on), hop{s: s, port: port}))
			arrives, loops = arrives && a, loops || l
		}
	}
	return arrives, loops
}

// begun are the ports before the change.
func (w *world) begun(s, lid int) []uint8 {
	if w.choices != nil && w.choices[s] != nil {
		return w.choices[s][lid]
	}
	return []uint8{w.old[s][lid]}
}

// judge tries all interleavings of the blocks of each round, each with any of the switches
// that it writes first still choosing, and says what is wrong; nil: the rounds are safe.
func (w *world) judge(sub *Subnet, c *Certificate) error {
	clone := func(t [][]uint8) (c [][]uint8) {
		for _, row := range t {
			c = append(c, slices.Clone(row))
		}
		return c
	}
	write := func(t [][]uint8, b Write) {
		if ch := &sub.Changes[b.Change]; ch.Attr == mad.AttrLinearForwardingTable {
			copy(t[ch.Node-1][ch.Modifier*64:], b.Data)
		}
	}
	w.first = w.firstWrites(sub, c)
	var lids []int
	for s := range w.n {
		lids = append(lids, 1+s, 64+s)
	}
	required := map[[2]int]bool{}
	for _, lid := range lids {
		for s := range w.n {
			before, _ := w.fate(func(s int) []uint8 { return w.begun(s, lid) }, s, lid, nil)
			after, _ := w.fate(func(s int) []uint8 {
				if w.first[s] == forever {
					return w.begun(s, lid)
				}
				return []uint8{w.new[s][lid]}
			}, s, lid, nil)
			if before && !after && lid >= 64 && lid != 64+s {
				if w.changes(lid) {
					return fmt.Errorf("lost from %d to LID %d", s, lid)
				}
			}
			required[[2]int{s, lid}] = before && after
		}
	}
	now := clone(w.old)
	states := [][][]uint8{clone(now)} // before the first round, and after each
	for r, round := range c.Rounds {
		var turning []int
		for s, first := range w.first {
			if first == r {
				turning = append(turning, s)
			}
		}
		if w.writesLanes(sub, &round) {
			round.Writes = nil // waits follows both tables
		}
		for mask := range 1 << len(round.Writes) {
			t := clone(now)
			for i, b := range round.Writes {
				if mask>>i&1 != 0 {
					write(t, b)
				}
			}
			for still := range 1 << len(turning) {
				ports := func(s, lid int) []uint8 {
					i := slices.Index(turning, s)
					if w.first[s] > r || i >= 0 && still>>i&1 != 0 {
						return w.begun(s, lid)
					}
					return []uint8{t[s][lid]}
				}
				for _, lid := range lids {
					for s := range w.n {
						arrives, loops := w.fate(func(s int) []uint8 { return ports(s, lid) }, s, lid, nil)
						if loops || required[[2]int{s, lid}] && !arrives {
							return fmt.Errorf("round %d, blocks %b, choosing %b: from %d to LID %d", r, mask, still, s, lid)
						}
					}
				}
			}
		}
		for _, b := range round.Writes {
			write(now, b)
		}
		states = append(states, clone(now))
	}
	if c.AcceptCreditLoops {
		return nil
	}
	first := 0
	for r, round := range c.Rounds {
		if round.Drain > 1 || r == len(c.Rounds)-1 { // 1 ns is too short
			if w.deadlocks(sub, c, states, first, r) {
				return fmt.Errorf("credit loop in rounds %d to %d", first, r)
			}
			first = r + 1
		}
	}
	return nil
}

// writesLanes reports whether a round writes SL2VL.
func (w *world) writesLanes(sub *Subnet, r *Round) bool {
	return slices.ContainsFunc(r.Writes, func(b Write) bool { return sub.Changes[b.Change].Attr == mad.AttrSLtoVLMappingTable })
}

// hop is a channel and its lane.
type hop struct {
	s    int
	port uint8
	vl   uint8
}

// adapt gives some switches choices: the ports of several trees, some with others at random.
func (w *world) adapt(random *rand.Rand) {
	w.choices = make([][][]uint8, w.n)
	trees := [][][]uint8{w.old}
	for range random.IntN(2) {
		trees = append(trees, w.tables(random))
	}
	for s := range w.n {
		if random.IntN(3) == 0 {
			continue
		}
		for lid := range worldLIDs {
			var ports []uint8
			for _, t := range trees {
				ports = append(ports, t[s][lid])
			}
			if random.IntN(20) == 0 {
				ports = append(ports, []uint8{mad.NoPort, uint8(2 + random.IntN(w.n))}[random.IntN(2)])
			}
			slices.Sort(ports)
			w.choices[s] = append(w.choices[s], slices.Compact(ports))
		}
		if random.IntN(4) == 0 { // its table is out of date
			w.old[s] = slices.Clone(w.new[s])
			w.old[s][1+random.IntN(w.n)] = uint8(random.IntN(w.n + 2))
		}
	}
}

// firstWrites are the rounds that first write the tables of switches with choices.
func (w *world) firstWrites(sub *Subnet, c *Certificate) []int {
	first := slices.Repeat([]int{-1}, w.n)
	for s := range w.n {
		if w.choices != nil && w.choices[s] != nil {
			first[s] = forever
		}
	}
	for r, round := range c.Rounds {
		for _, b := range round.Writes {
			if s := sub.Changes[b.Change].Node - 1; first[s] == forever && sub.Changes[b.Change].Attr == mad.AttrLinearForwardingTable {
				first[s] = r
			}
		}
	}
	return first
}

// changes reports whether packets to a LID may take other ports after the change.
func (w *world) changes(lid int) bool {
	for s := range w.n {
		if !slices.Equal(w.old[s], w.new[s]) && w.old[s][lid] != w.new[s][lid] || w.first[s] >= 0 && w.first[s] < forever && !slices.Equal(w.begun(s, lid), []uint8{w.new[s][lid]}) {
			return true
		}
	}
	return false
}

// portsIn are the ports by which a switch may send packets to a LID in a round.
func (w *world) portsIn(c *Certificate, states [][][]uint8, round, s, lid int) []uint8 {
	table := []uint8{states[round][s][lid], states[round+1][s][lid]}
	switch first := w.first[s]; {
	case first < 0 || len(c.Rounds) > 0 && first < round:
		return table
	case first > round || len(c.Rounds) == 0:
		return w.begun(s, lid)
	}
	return append(slices.Clone(w.begun(s, lid)), table...)
}

// newRing is a ring of four switches whose packets always arrive, by a shortest path: to the
// opposite switch they go either way, so only credit loops can be wrong.
func newRing(random *rand.Rand) *world {
	const n = 4
	w := &world{n: n, hoq: 10, linked: make([][]bool, n), choices: make([][][]uint8, n)}
	for s := range n {
		w.linked[s] = make([]bool, n)
		w.linked[s][(s+1)%n], w.linked[s][(s+3)%n] = true, true
	}
	shortest := func(s, lid int) (ports []uint8) {
		at := (lid - 1) % n // the switch of a LID: its own are 1 to 4, its host's 64 to 67
		if lid >= 64 {
			at = lid - 64
		}
		switch {
		case at == s && lid >= 64:
			return []uint8{1}
		case at == s:
			return []uint8{0}
		case (at-s+n)%n == 2:
			return []uint8{uint8(2 + (s+1)%n), uint8(2 + (s+3)%n)}
		}
		return []uint8{uint8(2 + at)}
	}
	for s := range n {
		old, new := slices.Repeat([]uint8{mad.NoPort}, worldLIDs), slices.Repeat([]uint8{mad.NoPort}, worldLIDs)
		var choices [][]uint8
		for lid := range worldLIDs {
			if lid == 0 || lid > n && lid < 64 || lid >= 64+n {
				choices = append(choices, []uint8{mad.NoPort})
				continue
			}
			ports := shortest(s, lid)
			old[lid], new[lid] = ports[random.IntN(len(ports))], ports[random.IntN(len(ports))]
			if random.IntN(3) > 0 {
				ports = ports[:1]
			}
			choices = append(choices, ports)
		}
		w.old, w.new = append(w.old, old), append(w.new, new)
		if random.IntN(4) > 0 {
			w.choices[s] = choices
		}
	}
	return w
}

// deadlocks reports whether a cycle with a dependency arises that the old tables do not have.
func (w *world) deadlocks(sub *Subnet, c *Certificate, states [][][]uint8, first, last int) bool {
	old := w.waits(sub, &Certificate{}, [][][]uint8{w.old, w.old}, 0, 0)
	waits := w.waits(sub, c, states, first, last)
	for a, of := range waits {
		for b := range of {
			if old[a][b] {
				continue
			}
			seen := map[hop]bool{b: true}
			for queue := []hop{b}; len(queue) > 0; queue = queue[1:] {
				for next := range waits[queue[0]] {
					if next == a {
						return true
					}
					if !seen[next] {
						seen[next] = true
						queue = append(queue, next)
					}
				}
			}
		}
	}
	return false
}

// waits follows packets through the rounds from first to last: each entry they meet is
// that before or after the round in which they meet it, and rounds only go on.
func (w *world) waits(sub *Subnet, c *Certificate, states [][][]uint8, first, last int) map[hop]map[hop]bool {
	waits := map[hop]map[hop]bool{}
	// Between two drains both lanes count throughout where SL2VL is written.
	lanesAt := slices.IndexFunc(c.Rounds, func(r Round) bool { return w.writesLanes(sub, &r) })
	within := lanesAt >= first && lanesAt <= last
	type packet struct {
		at    hop
		round int
	}
	for from := range w.n {
		for lid := 64; lid < 64+w.n; lid++ {
			if lid == 64+from {
				continue
			}
			for sl := range uint8(2) {
				if w.lanes && w.sl[from][lid]>>sl&1 == 0 {
					continue
				}
				seen := map[packet]bool{}
				var queue []packet
				forward := func(s int, in uint8, came *hop, at int) {
					for r := at; r <= last; r++ {
						for _, port := range w.portsIn(c, states, r, s, lid) {
							if next := w.next(s, port, lid); next < 0 || next == arrived {
								continue
							}
							vls := []uint8{0}
							if w.lanes {
								vls = nil
								if lanesAt < 0 || within || r < lanesAt {
									vls = append(vls, w.oldVL[s][in][port][sl])
								}
								if within || lanesAt >= 0 && r > lanesAt {
									new := w.newVL[s][in][port][sl]
									if in > 1 { // those do not change
										new = w.oldVL[s][in][port][sl]
									}
									vls = append(vls, new)
								}
							}
							for _, vl := range vls {
								to := hop{s, port, vl}
								if came != nil {
									if waits[*came] == nil {
										waits[*came] = map[hop]bool{}
									}
									waits[*came][to] = true
								}
								if p := (packet{to, r}); !seen[p] {
									seen[p] = true
									queue = append(queue, p)
								}
							}
						}
					}
				}
				forward(from, 1, nil, first)
				for i := 0; i < len(queue); i++ {
					p := queue[i]
					forward(int(p.at.port)-2, uint8(2+p.at.s), &p.at, p.round)
				}
			}
		}
	}
	return waits
}

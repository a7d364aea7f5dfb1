package verify

import (
	"cmp"
	"context"
	"hash/maphash"
	"math/bits"
	"math/rand/v2"
	"slices"

	"fabsh/fabric/adaptive"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// PacketKind stands for the packets of some service levels and transports that all switches treat
// alike: a switch that routes adaptively makes equal choices for them.
type PacketKind struct {
	SL        uint8  // one of SLs
	SLs       uint16 // a bit for each
	Transport adaptive.Transport
	// Unhashed counts the service levels as some without HBF, at switches whose settings are Assumed.
	Unhashed bool
	// Static reports that all switches send these packets by the rows of their tables.
	Static bool
	// PerPort reports that the choice depends on the port that packets come in by.
	PerPort bool
	// Expected reports that paths have the service level; packets of others are dropped
	// where SL2VL drops them.
	Expected bool
}

// PacketKinds are the kinds of the packets that r routes: of the service levels that its paths have,
// and, where its paths have none, of all others too.
func PacketKinds(r *routes.Routes) []PacketKind {
	seed := maphash.MakeSeed()
	switches := routes.ActiveSwitches(r)
	var kinds []PacketKind
	known := map[uint64]int{}
	expected := r.SL.Used()
	for sl := range uint8(16) {
		if r.SL != nil && expected>>sl&1 == 0 {
			continue
		}
		for i := range 8 {
			t := []adaptive.Transport{adaptive.RC, adaptive.UC, adaptive.UD, adaptive.DC}[i&3]
			k := PacketKind{SL: sl, SLs: 1 << sl, Transport: t, Unhashed: i > 3, Static: true, Expected: expected>>sl&1 != 0}
			var h maphash.Hash
			h.SetSeed(seed)
			for s, a := range switches {
				if a.Active() {
					k.note(&h, s, a)
				}
			}
			r.SL2VL.HashSL(&h, sl)
			sum := h.Sum64()
			i, ok := known[sum]
			if !ok {
				known[sum] = len(kinds)
				kinds = append(kinds, k)
				continue
			}
			kinds[i].SLs |= k.SLs
			kinds[i].Expected = kinds[i].Expected || k.Expected
		}
	}
	return kinds
}

// note adds what switch s does with packets of the kind.
func (k *PacketKind) note(h *maphash.Hash, s int, a *adaptive.Switch) {
	p := k.Packet(0)
	adapts, hashes := a.Adapts(p), a.Hashes(p)
	if adapts || hashes || a.FastRecovery {
		k.Static = false
	}
	flags := byte(0)
	if adapts {
		flags |= 1
	}
	if hashes {
		flags |= 2
	}
	var number [4]byte
	for i := range number {
		number[i] = byte(s >> (8 * i))
	}
	h.Write(number[:])
	h.WriteByte(flags)
	first := a.PLFT(0, k.SL)
	// Beyond the end of Private: private LFT 0.
	for in := range len(a.Private) + 1 {
		plft := a.PLFT(uint8(min(in, 255)), k.SL)
		if plft != first {
			k.PerPort = true
		}
		if plft != 0 {
			k.Static = false
		}
		h.WriteByte(plft)
	}
}

// Packet is a packet of the kind that comes in by a port.
func (k *PacketKind) Packet(in uint8) adaptive.Packet {
	return adaptive.Packet{In: in, SL: k.SL, Transport: k.Transport, Unhashed: k.Unhashed}
}

// hashPorts is a hash of a set.
func hashPorts(seed uint64, s adaptive.Ports) uint64 {
	h := seed
	for _, w := range s {
		h = mix64(h ^ w)
	}
	return h
}

// mix64 is the finalizer of SplitMix64, which maps different words to different ones.
func mix64(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// join is a hash of two, in their order.
func join(h, more uint64) uint64 { return mix64(bits.RotateLeft64(h, 23) ^ more) }

// ChoiceClasses sorts the LIDs that are wanted into classes for whose packets of a kind all switches
// have equal choices, except the last switch, of the end port: it is enough to follow packets
// to one LID of a class. Classes are in the order of their first LID, and their
// LIDs in rising order.
//
// Columns of tables are compared by hashes of 64 bits, with a random seed, among the LIDs of
// one switch.
//
// Time: O(S*L).
func ChoiceClasses(ctx context.Context, r *routes.Routes, kind PacketKind, wanted []bool) ([][]mad.LID, error) {
	g := r.Graph()
	c := &classifier{g: g, r: r, kind: kind, seed: rand.Uint64()}
	switches := routes.ActiveSwitches(r)
	c.columns = make([][]columnHash, len(switches))
	err := graph.Each(ctx, g.Workers(), len(switches), func(_, s int) { c.columns[s] = c.hashesOf(s, switches[s]) })
	if err != nil {
		return nil, err
	}
	hashes := make([]uint64, len(wanted))
	blocks := (len(wanted) + classBlock - 1) / classBlock
	if err := graph.Each(ctx, g.Workers(), blocks, func(_, b int) {
		c.block(hashes, wanted, b*classBlock, min((b+1)*classBlock, len(wanted)))
	}); err != nil {
		return nil, err
	}
	type key struct {
		home int32
		hash uint64
	}
	at := map[key]int{}
	var classes [][]mad.LID
	for lid, is := range wanted {
		t := g.TerminalByLID(mad.LID(lid))
		if !is || t < 0 {
			continue
		}
		home := int32(g.Terminals()[t].Switch)
		k := key{home, hashes[lid]}
		i, known := at[k]
		if !known || home < 0 {
			i = len(classes)
			at[k] = i
			classes = append(classes, nil)
		}
		classes[i] = append(classes[i], mad.LID(lid))
	}
	slices.SortFunc(classes, func(a, b []mad.LID) int { return cmp.Compare(a[0], b[0]) })
	return classes, nil
}

// classBlock is how many LIDs a worker hashes at a time.
const classBlock = 512

// classifier is the state of ChoiceClasses.
type classifier struct {
	g       *graph.Graph
	r       *routes.Routes
	kind    PacketKind
	seed    uint64
	columns [][]columnHash // by switch: for each private LFT that packets of the kind follow
}

// columnHash has what is needed for the hash of the choice of an entry.
type columnHash struct {
	s     *adaptive.Switch
	plft  uint8
	table *adaptive.Table
	down  func(port uint8) bool
	of    []uint16 // by group: its place in sets
	sets  []setHash
}

// setHash is the hash of the ports of a group.
type setHash struct {
	ports adaptive.Ports
	hash  uint64
}

// hashesOf are the hashes of switch s; nil: it follows its row.
func (c *classifier) hashesOf(s int, a *adaptive.Switch) []columnHash {
	if a == nil {
		return nil
	}
	var used [256]bool
	used[a.PLFT(0, c.kind.SL)] = true
	for in := range a.Private {
		used[a.PLFT(uint8(in), c.kind.SL)] = true
	}
	if len(a.Private) < 256 {
		used[0] = true
	}
	var list []columnHash
	for plft, is := range used {
		if !is {
			continue
		}
		h := columnHash{s: a, plft: uint8(plft), table: a.Table(uint8(plft)), down: routes.Down(c.g, s)}
		if h.table != nil {
			var sets []adaptive.Ports
			h.of, sets = h.table.Groups.Sets()
			h.sets = make([]setHash, len(sets))
			for i, ports := range sets {
				h.sets[i] = setHash{ports, hashPorts(c.seed, ports)}
			}
		}
		list = append(list, h)
	}
	return list
}

// block hashes the columns of some LIDs.
func (c *classifier) block(hashes []uint64, wanted []bool, from, to int) {
	g := c.g
	homes := make([]int32, to-from)
	any := false
	for lid := from; lid < to; lid++ {
		homes[lid-from] = -2
		if t := g.TerminalByLID(mad.LID(lid)); wanted[lid] && t >= 0 {
			homes[lid-from] = int32(g.Terminals()[t].Switch)
			any = true
		}
	}
	if !any {
		return
	}
	for s, columns := range c.columns {
		row := c.r.Row(s)
		for lid := from; lid < to; lid++ {
			home := homes[lid-from]
			if home == -2 {
				continue
			}
			h := uint64(0)
			if home == int32(s) {
				h = c.atHome(s, mad.LID(lid))
			} else if columns == nil {
				h = uint64(row.Port(mad.LID(lid)))
			} else {
				for i := range columns {
					h = join(h, columns[i].entry(c, mad.LID(lid)))
				}
			}
			hashes[lid] = join(hashes[lid], h)
		}
	}
}

// entry is the hash of the choice for lid.
func (h *columnHash) entry(c *classifier, lid mad.LID) uint64 {
	if h.table == nil {
		return 0
	}
	e := h.table.Entry(lid)
	grouped := h.s.FastRecovery || e.State != adaptive.Static
	hash := uint64(e.State)<<8 | uint64(e.Port)
	switch {
	case !grouped:
	case e.State == adaptive.Static: // whether the group counts depends on the link of the port
		hash = join(hash, uint64(e.Group)<<1|1)
	case int(e.Group) < len(h.of) && (e.Port == mad.NoPort || h.sets[h.of[e.Group]].ports.Has(e.Port) && !h.down(e.Port)):
		// With the static port in the group, which it is does not matter: it is taken only
		// with the others, or alone where packets of the kind do not take the group.
		hash = uint64(e.State) << 8
		if !h.takesGroup(c, e.State) {
			hash |= uint64(e.Port)
		} else {
			hash = join(hash, h.sets[h.of[e.Group]].hash)
		}
	default:
		hash = join(hash, uint64(e.Group)<<1)
	}
	return hash
}

// takesGroup reports whether packets of the kind may take the ports of groups.
func (h *columnHash) takesGroup(c *classifier, state adaptive.State) bool {
	p := c.kind.Packet(0)
	return state.Adaptive() && h.s.Adapts(p) || h.s.Hashes(p) || h.s.FastRecovery
}

// atHome is the hash of the choice at the switch of the end port: of the lanes of the link to it
// where it is the port to it.
func (c *classifier) atHome(s int, lid mad.LID) uint64 {
	out := c.g.Terminals()[c.g.TerminalByLID(lid)].Out
	columns := c.columns[s]
	if columns == nil {
		if p := c.r.Row(s).Port(lid); p != out {
			return 1<<32 | uint64(p)<<16 | uint64(lid)
		}
		return c.lanesTo(s, out)
	}
	for i := range columns {
		ports := columns[i].s.PortsOf(columns[i].plft, c.kind.Packet(0), lid, columns[i].down)
		if ports != adaptive.PortSet(out) {
			return 1<<32 | uint64(lid) // a class of its own
		}
	}
	return c.lanesTo(s, out)
}

// lanesTo is a hash of the lanes of packets to a port, by the port that they come in by; 0 without
// lanes.
func (c *classifier) lanesTo(s int, out uint8) (hash uint64) {
	if c.r.SL2VL == nil {
		return 0
	}
	for in := range c.g.Switches()[s].NumPorts() + 1 {
		hash = join(hash, uint64(c.r.SL2VL.VL(s, uint8(in), out, c.kind.SL)))
	}
	return hash
}

package opensm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"fabsh/mad"
)

// Settings are the options of OpenSM that matter for its tables.
type Settings struct {
	// Engines are the routing engines in the order in which they are tried; without one, and
	// after all, it is minhop.
	Engines []string
	// Roots are the NodeGUIDs of root_guid_file; nil: no such file.
	Roots []mad.GUID
	// Scatter is scatter_ports: the seed of random choices between equal ports; 0: none.
	Scatter uint32
	// Shifting is port_shifting.
	Shifting bool
	// ConnectRoots is connect_roots; dnup has another rule for it, which is not modelled.
	ConnectRoots bool
	// Order are the PortGUIDs of guid_routing_order_file.
	Order []mad.GUID
	// TooFewLanes reports that dfsssp and lash need more lanes than the switches have, so that
	// they fail.
	TooFewLanes bool
}

// Names of the modelled engines, as OpenSM spells them.
const (
	MinHop = "minhop"
	UpDn   = "updn"
	DnUp   = "dnup"
	DOR    = "dor"
	FTree  = "ftree"
	SSSP   = "sssp"
	DFSSSP = "dfsssp"
	LASH   = "lash"
)

// Engines returns the names of the modelled engines.
func Engines() []string { return []string{MinHop, UpDn, DnUp, DOR, FTree, SSSP, DFSSSP, LASH} }

// IsEngine reports whether the engine is modelled.
func IsEngine(name string) bool { return slices.Contains(Engines(), name) }

// notModelled are OpenSM's other engines.
var notModelled = []string{"nue", "torus-2QoS", "file"}

// NotModelled returns OpenSM's engines that are not modelled.
func NotModelled() []string { return slices.Clone(notModelled) }

// unmodelled are options that change tables and are not modelled, and the engines that read
// them (opensm osm_ucast_mgr.c, osm_ucast_ENGINE.c).
var unmodelled = []struct {
	name    string
	engines []string
}{
	{"avoid_throttled_links", []string{SSSP, DFSSSP}},
	{"cn_guid_file", []string{FTree, SSSP, DFSSSP}},
	{"connect_roots", []string{DnUp}},
	{"do_mesh_analysis", []string{LASH}},
	{"hop_weights_file", []string{MinHop, UpDn, DOR}},
	{"ids_guid_file", []string{UpDn}},
	{"io_guid_file", []string{FTree, SSSP, DFSSSP}},
	{"no_fallback", Engines()},
	{"port_prof_ignore_file", []string{MinHop, UpDn, DnUp, DOR}},
	{"port_profile_switch_nodes", []string{MinHop, UpDn, DnUp, DOR, SSSP, DFSSSP}},
	{"port_search_ordering_file", []string{MinHop, UpDn, DnUp, DOR}},
}

// Unmodelled returns the options that are set, change the tables of the engines or of minhop, which
// follows them, and are not modelled.
func Unmodelled(engines []string, isSet func(option string) bool) (options []string) {
	engines = append(slices.Clone(engines), MinHop)
	for _, o := range unmodelled {
		if isSet(o.name) && slices.ContainsFunc(engines, func(name string) bool { return slices.Contains(o.engines, name) }) {
			options = append(options, o.name)
		}
	}
	return options
}

// Result is the tables that OpenSM makes.
type Result struct {
	// Tables are the ports by switch of the network and LID; mad.NoPort: none.
	Tables [][]uint8
	// Engine made them; Failed lists the engines that were tried before it, with the reason.
	Engine string
	Failed []string
}

// noPort is the entry of a LID without a path, and the number of hops where no path exists.
const noPort = mad.NoPort

// Compute returns the tables that OpenSM makes for n, all of which it reaches. old are the tables in
// force, by switch of n and LID; nil: OpenSM has just started, or a link came up, so it ignores
// them. The error is the end of ctx, or that an engine is not modelled.
func Compute(ctx context.Context, n *Network, old [][]uint8, o Settings) (*Result, error) {
	r := newRouting(ctx, newNetwork(n), old, o)
	result := &Result{}
	for _, name := range append(slices.Clone(o.Engines), MinHop) {
		r.reset()
		err := r.run(name)
		if failed := new(engineError); errors.As(err, &failed) {
			result.Failed = append(result.Failed, name+": "+failed.reason)
			continue
		}
		if err != nil {
			return nil, err
		}
		result.Engine = name
		break
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	result.Tables = make([][]uint8, len(r.tables))
	for s, table := range r.tables {
		result.Tables[r.was[s]] = table
	}
	return result, nil
}

// Makes reports whether Compute returns these tables, for the LIDs of n. It stops at the first
// entry that differs where it can.
func Makes(ctx context.Context, n *Network, tables, old [][]uint8, o Settings) (bool, error) {
	w := newNetwork(n)
	want := make([][]uint8, len(w.was))
	for s, was := range w.was {
		want[s] = tables[was]
	}
	r := newRouting(ctx, w, old, o)
	for _, name := range append(slices.Clone(o.Engines), MinHop) {
		r.reset()
		r.want = nil
		if !o.TooFewLanes { // else an engine fails after it has made tables
			r.want = want
		}
		err := r.run(name)
		if failed := new(engineError); errors.As(err, &failed) {
			continue
		}
		if err != nil || ctx.Err() != nil {
			return false, cmp.Or(err, context.Cause(ctx))
		}
		break
	}
	for s := range r.tables {
		for lid := range w.byLID {
			if w.byLID[lid] != 0 && r.tables[s][lid] != entry(want[s], lid) {
				return false, nil
			}
		}
	}
	return true, nil
}

// differs reports whether the entries of a LID that was routed are not the wanted ones.
func (r *routing) differs(lid int) bool {
	for s := range r.want {
		if r.tables[s][lid] != entry(r.want[s], lid) {
			return true
		}
	}
	return false
}

// entry returns the entry of a LID in a table that may be short.
func entry(table []uint8, lid int) uint8 {
	if lid >= len(table) {
		return noPort
	}
	return table[lid]
}

// engineError is the reason why an engine fails, so that the next one is tried.
type engineError struct{ reason string }

func (e *engineError) Error() string { return e.reason }

func fails(format string, args ...any) error { return &engineError{fmt.Sprintf(format, args...)} }

// routing is a run of OpenSM's routing.
type routing struct {
	*network
	Settings
	ctx    context.Context
	old    [][]uint8 // by switch; nil: ignored
	tables [][]uint8
	want   [][]uint8 // by switch: stop when an entry differs; nil: do not
	counts []uint32  // LIDs of ends by port, over all switches; a failed engine leaves its own
	random *random   // nil: choices are not random
}

func newRouting(ctx context.Context, w *network, old [][]uint8, o Settings) *routing {
	r := &routing{network: w, Settings: o, ctx: ctx, counts: make([]uint32, w.base[len(w.Switches)])}
	r.tables = make([][]uint8, len(w.Switches))
	if old != nil {
		r.old = make([][]uint8, len(w.Switches))
		for s, was := range w.was {
			r.old[s] = old[was]
		}
	}
	return r
}

// reset prepares an attempt of an engine: its tables are empty, and random numbers start again.
func (r *routing) reset() {
	for s := range r.tables {
		r.tables[s] = slices.Repeat([]uint8{noPort}, int(r.top)+1)
	}
	r.random = nil
	if r.Scatter != 0 {
		r.random = newRandom(r.Scatter)
	}
}

// run runs an engine.
func (r *routing) run(name string) error {
	switch name {
	case MinHop, DOR:
		return r.chooseAll(&matrix{network: r.network}, name == DOR)
	case UpDn:
		roots, err := r.roots()
		if err != nil {
			return err
		}
		return r.chooseAll(&matrix{network: r.network, rank: r.ranks(roots), direction: r.upDown, connectRoots: r.ConnectRoots}, false)
	case DnUp:
		leaves, err := r.leaves()
		if err != nil {
			return err
		}
		return r.chooseAll(&matrix{network: r.network, rank: r.ranks(leaves), direction: downUp, downFirst: true}, false)
	case FTree:
		return r.fatTree()
	case SSSP, DFSSSP:
		if err := r.shortestPaths(); err != nil {
			return err
		}
		if name == DFSSSP && r.TooFewLanes {
			return fails("not enough virtual lanes")
		}
		return nil
	case LASH:
		if r.TooFewLanes {
			return fails("not enough virtual lanes")
		}
		return r.lash()
	}
	return fmt.Errorf("OpenSM's engine %q is not modelled", name)
}

// CacheHolds reports whether OpenSM's cache of routes (-A) is valid after a loss: only ends are
// missing, or whole switches with ends whose links lead to switches without. Then the tables
// stay, also the entries of lost LIDs (opensm osm_ucast_cache.c, ucast_cache_validate).
func CacheHolds(before, after *Network) bool {
	b, a := newNetwork(before), newNetwork(after)
	now := map[mad.GUID]int32{}
	for s := range a.Switches {
		now[a.Switches[s].GUID] = int32(s)
	}
	isGone := func(s int32) bool { _, ok := now[b.Switches[s].GUID]; return !ok }
	for s := range b.Switches {
		sw := &b.Switches[s]
		at, found := now[sw.GUID]
		if !found && b.linksToEnds(int32(s)) == 0 {
			return false
		}
		for p, l := range sw.Links {
			if l.Kind != ToSwitch {
				continue
			}
			switch {
			case !found:
				if b.linksToEnds(l.To) > 0 {
					return false
				}
			case isGone(l.To):
			case p >= len(a.Switches[at].Links) || a.Switches[at].Links[p].Kind != ToSwitch:
				return false
			}
		}
	}
	return true
}

package datagrams

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/device"
	"fabsh/fabric/plural"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// arValue is the value ar: the adaptive routing of a switch as it was read. It never changes.
type arValue struct{ a *device.AR }

var (
	_ starlark.Mapping    = (*arValue)(nil)
	_ starlark.Sequence   = (*arValue)(nil)
	_ starlark.Comparable = (*arValue)(nil)
	_ lang.Detailed       = (*arValue)(nil)
)

// ARType declares the attributes of an ar.
var ARType *lang.Type[*arValue]

func init() {
	member := func(name, typ, doc string, column bool, get func(v *arValue) starlark.Value) lang.Member[*arValue] {
		return lang.Member[*arValue]{Name: name, Type: typ, Doc: doc, Column: column, Get: get}
	}
	flag := func(name, doc string, column bool, get func(v *arValue) bool) lang.Member[*arValue] {
		return member(name, "bool", doc, column, func(v *arValue) starlark.Value { return starlark.Bool(get(v)) })
	}
	number := func(name, doc string, column bool, get func(v *arValue) int) lang.Member[*arValue] {
		return member(name, "int", doc, column, func(v *arValue) starlark.Value { return starlark.MakeInt(get(v)) })
	}
	ARType = lang.NewType("ar", "The adaptive routing of a switch: ar[lid] is an ar_entry, None if the switch drops packets to lid. It iterates over the LIDs from 0 to top. While it is off, it has no entries. Its JSON has groups, and entries by ranges of LIDs, too.",
		flag("announced", "whether the switch announces adaptive routing in GeneralInfo", false, func(v *arValue) bool { return v.a.Info != nil || v.a.Tables.Active() }),
		flag("enabled", "whether adaptive routing is on", true, func(v *arValue) bool { return v.a.Tables.Enabled }),
		number("sl_mask", "service levels that are routed adaptively, bit n for SL n", true, func(v *arValue) int { return int(v.a.Tables.SLs) }),
		member("disabled_transports", "tuple of string", `transports that are not routed adaptively: "rc", "uc", "ud", "dc"`, true, func(v *arValue) starlark.Value {
			var names []string
			for _, t := range []adaptive.Transport{adaptive.RC, adaptive.UC, adaptive.UD, adaptive.DC} {
				if v.a.Tables.Static.Has(t) {
					names = append(names, t.String())
				}
			}
			return lang.Texts(names)
		}),
		number("sub_groups", "number of sub-groups in use in each group", true, func(v *arValue) int {
			if t := v.table(); t != nil {
				return t.Groups.SubGroups()
			}
			return 0
		}),
		number("group_top", "the last group in use; -1: none", true, func(v *arValue) int {
			if t := v.table(); t != nil {
				return t.Groups.Len() - 1
			}
			return -1
		}),
		member("groups", "dict", "a dict of group to a tuple of sub-groups, the primary one first, each a tuple of ports; without groups that have no port", false, (*arValue).groups),
		number("top", "the highest LID of the table; -1: no table", true, func(v *arValue) int { return v.Len() - 1 }),
		member("lids", "tuple of int", "the LIDs that have an entry, in order", false, func(v *arValue) starlark.Value {
			var lids starlark.Tuple
			for lid := range v.Len() {
				if v.entry(lid) != starlark.None {
					lids = append(lids, starlark.MakeInt(lid))
				}
			}
			return lids
		}),
		flag("hbf", "whether packets that are not routed adaptively are distributed by a hash (HBF)", true, func(v *arValue) bool { return v.a.Tables.HBF }),
		number("hbf_sl_mask", "service levels with HBF, bit n for SL n", false, func(v *arValue) int { return int(v.a.Tables.HBFSLs) }),
		flag("weighted_hbf", "whether the sub-groups have weights for HBF", false, func(v *arValue) bool { return v.a.Tables.Weighted }),
		flag("fast_recovery", "whether the switch takes another port of the group where a link is down", true, func(v *arValue) bool { return v.a.Tables.FastRecovery }),
		member("pfrn", "p_frn_config", "pFRNConfig, the notification of neighbours by packets; None if it is not supported, or adaptive routing is off", false, func(v *arValue) starlark.Value {
			if v.a.PFRN == nil {
				return starlark.None
			}
			return records.Encoded(mad.AttrPFRNConfig, v.a.PFRN)
		}),
		member("info", "adaptive_routing_info", "AdaptiveRoutingInfo, as read last; None if the switch does not announce it, or a file does not have it", false, func(v *arValue) starlark.Value {
			if v.a.Info == nil {
				return starlark.None
			}
			return records.Encoded(mad.AttrAdaptiveRoutingInfo, v.a.Info)
		}),
		member("unknown", "string", "the reason why the tables of the switch could not be determined: they are read by inferred modifiers, and failed a check; None: they are known", true, func(v *arValue) starlark.Value { return lang.TextOrNone(v.a.Tables.Unknown) }),
	)
}

// table returns the table of the entries; nil: adaptive routing is off.
func (v *arValue) table() *adaptive.Table { return v.a.Tables.Table(0) }

// groups returns the groups that have ports.
func (v *arValue) groups() starlark.Value {
	d := new(starlark.Dict)
	t := v.table()
	if t == nil {
		return d
	}
	for group := range t.Groups.Len() {
		if !t.Groups.All(group).Empty() {
			d.SetKey(starlark.MakeInt(group), subGroupsOf(t.Groups, group))
		}
	}
	return d
}

// subGroupsOf returns the ports of the sub-groups of a group.
func subGroupsOf(g *adaptive.Groups, group int) starlark.Tuple {
	var subs starlark.Tuple
	for _, ports := range g.SubGroupsOf(group) {
		var list starlark.Tuple
		for port := range ports.All() {
			list = append(list, starlark.MakeInt(int(port)))
		}
		subs = append(subs, list)
	}
	return subs
}

func (v *arValue) String() string {
	switch t := v.table(); {
	case v.a.Info == nil:
		return "ar(not announced)"
	case t == nil:
		return "ar(off)"
	default:
		return fmt.Sprintf("ar(on, top=%d, %s)", t.Top(), plural.Count(v.used(), "group", "groups"))
	}
}

// used returns the number of groups with ports.
func (v *arValue) used() (n int) {
	g := v.table().Groups
	for group := range g.Len() {
		if !g.All(group).Empty() {
			n++
		}
	}
	return n
}

func (v *arValue) Type() string                             { return "ar" }
func (v *arValue) Freeze()                                  {}
func (v *arValue) Truth() starlark.Bool                     { return true }
func (v *arValue) Hash() (uint32, error)                    { return lang.HashBytes(v.a.Tables.Append(nil)), nil }
func (v *arValue) AttrNames() []string                      { return ARType.Names }
func (v *arValue) TypeDoc() lang.TypeDoc                    { return ARType.TypeDoc() }
func (v *arValue) Schema() string                           { return ARType.Schema() }
func (v *arValue) Facts() []lang.Fact                       { return ARType.Facts(v) }
func (v *arValue) Attr(name string) (starlark.Value, error) { return ARType.Attr(v, name) }

// CompareSameType compares all but the attributes from which the value is made.
func (v *arValue) CompareSameType(op syntax.Token, y starlark.Value, depth int) (bool, error) {
	o := y.(*arValue)
	return records.CompareEqual(op, v, string(v.a.Tables.Append(nil)) == string(o.a.Tables.Append(nil)))
}

// Len is one more than the highest LID.
func (v *arValue) Len() int {
	if t := v.table(); t != nil {
		return int(t.Top()) + 1
	}
	return 0
}

// entry returns the entry of lid; None if packets are dropped.
func (v *arValue) entry(lid int) starlark.Value {
	if t := v.table(); t != nil {
		if e := t.Entry(mad.LID(lid)); e.Port != mad.NoPort || e.State != adaptive.Static {
			return arEntry{e, t.Groups}
		}
	}
	return starlark.None
}

// Get is ar[lid].
func (v *arValue) Get(key starlark.Value) (starlark.Value, bool, error) {
	lid, err := lidKey(key)
	if err != nil {
		return nil, false, err
	}
	if lid >= v.Len() {
		return starlark.None, true, nil
	}
	return v.entry(lid), true, nil
}

// Iterate yields the entries from LID 0.
func (v *arValue) Iterate() starlark.Iterator {
	list := make([]starlark.Value, v.Len())
	for lid := range list {
		list[lid] = v.entry(lid)
	}
	return starlark.NewList(list).Iterate()
}

// Display lists the attributes, then the entries in ranges of equal ones.
func (v *arValue) Display() string {
	text := lang.Aligned(v.Facts())
	if v.table() == nil {
		return text
	}
	return text + lang.TableText("", arColumns, v.rows())
}

// Details are the groups and the entries, which Display shows as a table.
func (v *arValue) Details() []lang.Fact {
	var entries []starlark.Value
	for _, row := range v.rows() {
		d := new(starlark.Dict)
		for _, f := range row {
			d.SetKey(starlark.String(f.Name), f.Value)
		}
		entries = append(entries, d)
	}
	groups := new(starlark.Dict)
	for _, item := range v.groups().(*starlark.Dict).Items() {
		groups.SetKey(starlark.String(item[0].String()), item[1])
	}
	return []lang.Fact{{Name: "groups", Value: groups}, {Name: "entries", Value: starlark.NewList(entries)}}
}

// arColumns are the names of the facts of rows.
var arColumns = []string{"lids", "state", "port", "group", "ports"}

// rows are the entries in ranges of equal ones.
func (v *arValue) rows() (rows [][]lang.Fact) {
	t := v.table()
	if t == nil {
		return nil
	}
	for from := 0; from < v.Len(); {
		e := t.Entry(mad.LID(from))
		end := from + 1
		for end < v.Len() && t.Entry(mad.LID(end)) == e {
			end++
		}
		if v.entry(from) != starlark.None {
			lids := strconv.Itoa(from)
			if end-from > 1 {
				lids += "-" + strconv.Itoa(end-1)
			}
			rows = append(rows, []lang.Fact{{Name: "lids", Value: starlark.String(lids)}, {Name: "state", Value: starlark.String(e.State.String())}, {Name: "port", Value: topology.LFTEntry(e.Port)}, {Name: "group", Value: starlark.MakeInt(int(e.Group))}, {Name: "ports", Value: starlark.String(t.Groups.All(int(e.Group)).String())}})
		}
		from = end
	}
	return rows
}

// lidKey returns the LID that indexes a table.
func lidKey(key starlark.Value) (int, error) {
	lid, err := lang.ToInt(key)
	switch {
	case err != nil:
		return 0, fmt.Errorf("a table is indexed by LID: %w", err)
	case lid < 0 || lid > int(mad.MaxUnicastLID):
		return 0, fmt.Errorf("LID %d is out of range, 0..%d", lid, mad.MaxUnicastLID)
	}
	return lid, nil
}

// arEntry is the value ar_entry.
type arEntry struct {
	adaptive.Entry
	groups *adaptive.Groups
}

// AREntryType declares the attributes of an ar_entry.
var AREntryType *lang.Type[arEntry]

func init() {
	AREntryType = lang.NewType("ar_entry", "What a switch that routes adaptively has for a LID.",
		lang.Member[arEntry]{Name: "state", Type: "string", Column: true, Doc: `"bounded" (adaptive; a flow keeps its port while its packets follow each other), "free" (adaptive; for each packet), "static" (always port), "hbf" (by a hash)`, Words: records.WordsOf(mad.WordsARState), Get: func(e arEntry) starlark.Value { return starlark.String(e.State.String()) }},
		lang.Member[arEntry]{Name: "port", Type: "int", Column: true, Doc: "the port of packets that are not routed adaptively; None if they are dropped", Get: func(e arEntry) starlark.Value { return topology.LFTEntry(e.Port) }},
		lang.Member[arEntry]{Name: "group", Type: "int", Column: true, Doc: "the number of the group", Get: func(e arEntry) starlark.Value { return starlark.MakeInt(int(e.Group)) }},
		lang.Member[arEntry]{Name: "sub_groups", Type: "tuple", Column: true, Doc: "the sub-groups of the group, the primary one first, each a tuple of ports", Get: func(e arEntry) starlark.Value { return subGroupsOf(e.groups, int(e.Group)) }},
	)
}

func (e arEntry) String() string {
	return fmt.Sprintf("ar_entry(%s, port=%s, group=%d)", e.State, topology.LFTEntry(e.Port), e.Group)
}
func (e arEntry) Type() string         { return "ar_entry" }
func (e arEntry) Freeze()              {}
func (e arEntry) Truth() starlark.Bool { return true }
func (e arEntry) Hash() (uint32, error) {
	return uint32(e.State)<<24 | uint32(e.Port)<<16 | uint32(e.Group), nil
}
func (e arEntry) AttrNames() []string                      { return AREntryType.Names }
func (e arEntry) TypeDoc() lang.TypeDoc                    { return AREntryType.TypeDoc() }
func (e arEntry) Schema() string                           { return AREntryType.Schema() }
func (e arEntry) Facts() []lang.Fact                       { return AREntryType.Facts(e) }
func (e arEntry) Attr(name string) (starlark.Value, error) { return AREntryType.Attr(e, name) }

// CompareSameType compares state, port and the number of the group.
func (e arEntry) CompareSameType(op syntax.Token, y starlark.Value, depth int) (bool, error) {
	return records.CompareEqual(op, e, e.Entry == y.(arEntry).Entry)
}

// GetAR is get_ar, which reads the ar of each switch.
var GetAR = lang.Builtin{
	Name:    "get_ar",
	Returns: "ar",
	Group:   topology.GroupTable,
	Params:  []lang.Param{{Name: "target", Kind: topology.KindTarget, Doc: "a switch or an iterable of them"}},
	Doc: `Reads the adaptive routing of a switch: its settings, port groups and forwarding table.
It returns an ar, or a list of them for a list of switches. Adaptive routing is requested only from switches that announce it, and the tables are read where it is on: one request for 16 LIDs, and one for two sub-groups. The number of these requests is shown first. AdaptiveRoutingInfo and SwitchInfo are read again afterwards, and the tables too if these have changed. In a session on a file, the answer is from the file (fabsh snapshot --adaptive).
The modifiers by which the tables are read are an inference: no public source has them. The result is checked: groups are not above the last group, and ports exist; in ar.unknown is the reason if a check failed, or if several private LFTs are in use, of which only the first could be read.`,
	Example: `
> t = get_ar(discover().switches[0])
> t.announced, t.enabled, t[17]
(False, False, None)
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Target starlark.Value }) (starlark.Value, error) {
		return readVendor(c, a.Target, mad.AttrAdaptiveRoutingLFT, func(t *topology.Target) *device.AR {
			x := &device.AR{Dest: t.Dest(), GUID: t.GUID()}
			if stored := storedAR(c, t); stored != nil {
				return stored
			}
			if n := justSwept(c, t); n != nil && n.SwitchInfo() != nil {
				x.Known, x.Node, x.Switch = true, *n.Info(), *n.SwitchInfo()
			}
			return x
		}, func(ctx context.Context, r *vendorRead[*device.AR]) error {
			defer c.Runtime().Progress("")
			live := slices.DeleteFunc(slices.Clone(r.open), func(x *device.AR) bool { return x.Tables != nil })
			return device.ReadAR(ctx, r.engine, topology.AnnounceRequests(c), live...)
		}, func(x *device.AR) (starlark.Value, error) { return &arValue{x}, x.Err })
	}),
}

// storedAR returns the adaptive routing of a target that the file of the session has; nil
// without any.
func storedAR(c *lang.Call, t *topology.Target) *device.AR {
	if topology.EnvOf(c.Runtime()).Loaded == nil || t.Node == nil || t.Node.Adaptive() == nil {
		return nil
	}
	x := &device.AR{Tables: t.Node.Adaptive()}
	for _, a := range t.Node.Fabric().AnswersOf(t.Node.ID()) {
		if a.Class == mad.ClassSubn && a.ID == mad.AttrAdaptiveRoutingInfo.ID && len(a.Data) >= mad.AttrAdaptiveRoutingInfo.Size {
			x.Info = new(mad.AdaptiveRoutingInfo)
			x.Info.Decode(a.Data)
		}
	}
	return x
}

// plftValue is the value plft: the private forwarding tables of a switch. It never changes.
type plftValue struct{ p *device.PLFT }

// PLFTType declares the attributes of a plft.
var PLFTType *lang.Type[plftValue]

func init() {
	member := func(name, typ, doc string, column bool, get func(v plftValue) starlark.Value) lang.Member[plftValue] {
		return lang.Member[plftValue]{Name: name, Type: typ, Doc: doc, Column: column, Get: get}
	}
	PLFTType = lang.NewType("plft", "The private forwarding tables of a switch: which exist, and which packets use them. The entries of table 0 are those of get_ar.",
		member("announced", "bool", "whether the switch announces private forwarding tables in GeneralInfo", false, func(v plftValue) starlark.Value { return starlark.Bool(v.p.Info != nil) }),
		member("enabled", "bool", "whether they are on", true, func(v plftValue) starlark.Value { return starlark.Bool(v.enabled()) }),
		member("mode", "int", "the mode in use; 0: they are off", true, func(v plftValue) starlark.Value {
			if v.p.Info == nil {
				return starlark.MakeInt(0)
			}
			return starlark.MakeInt(int(v.p.Info.ActiveMode))
		}),
		member("num_tables", "int", "the number of tables that the switch can have", true, func(v plftValue) starlark.Value {
			if v.p.Info == nil {
				return starlark.MakeInt(0)
			}
			return starlark.MakeInt(v.p.Len())
		}),
		member("used", "tuple of int", "the tables that packets of some port and service level use", true, func(v plftValue) starlark.Value {
			var used [256]bool
			for _, row := range v.p.Rows() {
				for _, id := range row {
					used[id] = true
				}
			}
			var list starlark.Tuple
			for id, is := range used {
				if is {
					list = append(list, starlark.MakeInt(id))
				}
			}
			return list
		}),
		member("ports", "dict", "a dict of input port to a tuple of the tables of packets by their service level; empty while they are off", false, func(v plftValue) starlark.Value {
			d := new(starlark.Dict)
			for port, row := range v.p.Rows() {
				tables := make(starlark.Tuple, len(row))
				for sl, id := range row {
					tables[sl] = starlark.MakeInt(int(id))
				}
				d.SetKey(starlark.MakeInt(port), tables)
			}
			return d
		}),
		member("tables", "dict", "a dict of table to a dict: lid_offset and lid_space (LIDs), bank (a byte of the index of the bank and a flag, which the public source does not divide), top (the last LID, or None), ports (that are mapped to it without regard to service levels)", false, plftValue.tables),
	)
}

func (v plftValue) enabled() bool { return v.p.Info != nil && v.p.Info.ActiveMode != 0 }

// plftUnit is the unit of sizes and places of private LFTs, in LIDs (ib_types.h
// ib_plft_def_element_t).
const plftUnit = 512

// tables returns the place and the ports of each table that has a size or a map.
func (v plftValue) tables() starlark.Value {
	d := new(starlark.Dict)
	for id, m := range v.p.Maps {
		t := new(starlark.Dict)
		set := func(key string, x starlark.Value) { t.SetKey(starlark.String(key), x) }
		if id < len(v.p.Places) {
			at := v.p.Places[id]
			set("lid_offset", starlark.MakeInt(int(at.LIDOffset)*plftUnit))
			set("lid_space", starlark.MakeInt(int(at.LIDSpace)*plftUnit))
			set("bank", starlark.MakeInt(int(at.ForceSubGroup0Bank)))
		}
		set("top", starlark.None)
		if top, ok := v.p.Top(id); ok {
			set("top", starlark.MakeInt(int(top)))
		}
		ports := starlark.Tuple{}
		if m != nil && m.PortMaskEnable {
			for port := range adaptive.PortsOfMask(m.PortGroupMask).All() {
				ports = append(ports, starlark.MakeInt(int(port)))
			}
		}
		set("ports", ports)
		d.SetKey(starlark.MakeInt(id), t)
	}
	return d
}

func (v plftValue) String() string {
	switch {
	case v.p.Info == nil:
		return "plft(not announced)"
	case !v.enabled():
		return "plft(off)"
	}
	return fmt.Sprintf("plft(mode=%d, %s)", v.p.Info.ActiveMode, plural.Count(v.p.Len(), "table", "tables"))
}

func (v plftValue) Type() string                             { return "plft" }
func (v plftValue) Freeze()                                  {}
func (v plftValue) Truth() starlark.Bool                     { return true }
func (v plftValue) Hash() (uint32, error)                    { return lang.HashBytes([]byte(v.String())), nil }
func (v plftValue) AttrNames() []string                      { return PLFTType.Names }
func (v plftValue) TypeDoc() lang.TypeDoc                    { return PLFTType.TypeDoc() }
func (v plftValue) Schema() string                           { return PLFTType.Schema() }
func (v plftValue) Facts() []lang.Fact                       { return PLFTType.Facts(v) }
func (v plftValue) Attr(name string) (starlark.Value, error) { return PLFTType.Attr(v, name) }

// GetPLFT is get_plft, which reads the plft of each switch.
var GetPLFT = lang.Builtin{
	Name:    "get_plft",
	Returns: "plft",
	Group:   topology.GroupTable,
	Params:  []lang.Param{{Name: "target", Kind: topology.KindTarget, Doc: "a switch or an iterable of them"}},
	Doc: `Reads the private forwarding tables of a switch: where they are, and which packets use them, by input port and service level.
It returns a plft, or a list of them for a list of switches. They are requested only from switches that announce them. The entries of table 0 are those of get_ar; how others are read is not public.`,
	Example: `
> get_plft(discover().switches[0]).enabled
False
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Target starlark.Value }) (starlark.Value, error) {
		return readVendor(c, a.Target, mad.AttrPrivateLFTMap, func(t *topology.Target) *device.PLFT {
			x := &device.PLFT{Dest: t.Dest(), GUID: t.GUID()}
			if n := justSwept(c, t); n != nil {
				x.Known, x.Node = true, *n.Info()
			}
			return x
		}, func(ctx context.Context, r *vendorRead[*device.PLFT]) error {
			return device.ReadPLFTs(ctx, r.engine, r.open...)
		}, func(x *device.PLFT) (starlark.Value, error) { return plftValue{x}, x.Err })
	}),
}

// vendorRead is a read of several attributes of a vendor, of many nodes at once.
type vendorRead[T any] struct {
	engine *engine.Engine
	open   []T // of the targets that can be reached
}

// readVendor makes a T for each target, reads them, and returns the values, or for each
// target that failed its failure. attr is the attribute in notes on this.
func readVendor[T any](c *lang.Call, target starlark.Value, attr *mad.Attribute, begin func(*topology.Target) T, read func(context.Context, *vendorRead[T]) error, value func(T) (starlark.Value, error)) (starlark.Value, error) {
	e, err := topology.ReaderOf(c)
	if err != nil {
		return nil, err
	}
	targets, many, err := (&topology.Resolver{Call: c}).Targets(target)
	if err != nil {
		return nil, err
	}
	r := &vendorRead[T]{engine: e}
	values := make([]starlark.Value, len(targets))
	var of []int
	for i := range targets {
		if err := targets[i].Reachable(); err != nil {
			values[i] = topology.Failed(c, &targets[i], err)
			continue
		}
		r.open, of = append(r.open, begin(&targets[i])), append(of, i)
	}
	if err := c.Block(func(ctx context.Context) error { return read(ctx, r) }); err != nil {
		return nil, err
	}
	for at, i := range of {
		if values[i], err = value(r.open[at]); err != nil {
			values[i] = topology.Failed(c, &targets[i], err)
		}
	}
	topology.Observe(c, attr, targets, values)
	return topology.Results(values, many)
}

// justSwept returns the node of a target if an audit's sweep has just read it; else nil.
func justSwept(c *lang.Call, t *topology.Target) *fabric.Node {
	if n := t.Node; n != nil && n.Route() != nil && topology.JustSwept(c, n.Fabric()) {
		return n
	}
	return nil
}

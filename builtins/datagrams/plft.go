package datagrams

import (
	"context"
	"fmt"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/device"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

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
		member("enabled", "bool", "whether they are on", true, func(v plftValue) starlark.Value { return starlark.Bool(v.on()) }),
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

func (v plftValue) on() bool { return v.p.Info != nil && v.p.Info.ActiveMode != 0 }

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
	case !v.on():
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

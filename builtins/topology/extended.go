package topology

import (
	"context"
	"fmt"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/fabric"
	"fabsh/fabric/device"
	"fabsh/mad"
)

// extend returns f, which was just swept, with what NVIDIA's devices have beyond a sweep, if
// that is requested. It is then the latest fabric.
func (a *discoverArgs) extend(c *lang.Call, f *Fabric) (starlark.Value, error) {
	if !a.Extended {
		return f, nil
	}
	e, err := EngineOf(c)
	if err != nil {
		return nil, err
	}
	more := func(read func(ctx context.Context) (fabric.Reading, error)) error {
		var r fabric.Reading
		err := c.Block(func(ctx context.Context) (err error) {
			r, err = read(ctx)
			return err
		})
		for _, p := range r.Problems {
			c.Fiber().Account.Unanswered++
			c.Fiber().Warn("%s: %s", c.Name, p.Text)
		}
		if err == nil {
			f = NewFabric(f.With(r))
		}
		return err
	}
	if err := more(func(ctx context.Context) (fabric.Reading, error) { return device.ReadExtended(ctx, e, f.Fabric) }); err != nil {
		return nil, err
	}
	if a.VportModifier != nil {
		list, err := a.vports(c, f.Fabric)
		if err != nil {
			return nil, err
		}
		if err := more(func(ctx context.Context) (fabric.Reading, error) { return device.ReadVPorts(ctx, e, f.Fabric, list) }); err != nil {
			return nil, err
		}
	}
	EnvOf(c.Runtime()).Current = f
	return f, nil
}

// vports returns the virtual ports for which the script has a modifier.
func (a *discoverArgs) vports(c *lang.Call, f *fabric.Fabric) (list []device.VPort, err error) {
	for _, v := range f.VirtualPorts() {
		got, err := starlark.Call(c.Thread, a.VportModifier, starlark.Tuple{Port{v.Port}, starlark.MakeInt(v.Index)}, nil)
		if err != nil {
			return nil, err
		}
		if got == starlark.None {
			continue
		}
		n, err := lang.ToInt(got)
		if err != nil || n < 0 || n > 1<<32-1 {
			return nil, lang.ParamError("vport_modifier", "returned %s, want a modifier of 32 bits or None", got)
		}
		list = append(list, device.VPort{Port: v.Port, Modifier: uint32(n)})
	}
	return list, nil
}

// plane returns the plane of a port.
func plane(p Port) starlark.Value {
	if n := p.Plane(); n > 0 {
		return starlark.MakeInt(n)
	}
	return starlark.None
}

// unhealthy returns why a port is considered unhealthy.
func unhealthy(p Port) starlark.Value {
	if x := p.ExtendedInfo(); x != nil && x.UnhealthyReason > mad.UnhealthyReasonHealthy {
		return starlark.String(x.UnhealthyReason.String())
	}
	return starlark.None
}

// Help of the plane and the health of ports and links.
const (
	planeDoc     = "plane where adapters have several (XDR): their ports with one GUID are planes 1, 2, ..., by number, and ports of switches have the plane of the adapters that they lead to; None if there is one plane, or it is unknown"
	unhealthyDoc = `why the device considers it unhealthy: "raw_ber", "credit_watchdog", ...; None if it is healthy, or if discover() has not read it (extended=True)`
)

// virtualPort is the value `virtual_port`.
type virtualPort struct{ *fabric.VirtualPort }

// VirtualPortType declares the attributes of a virtual port.
var VirtualPortType *lang.Type[virtualPort]

func init() {
	VirtualPortType = lang.NewType("virtual_port", "A port that an adapter's port has besides its own, for a virtual machine, from discover(extended=True).",
		lang.Member[virtualPort]{Name: "port", Type: "port", Column: true, Doc: "the physical port", Get: func(v virtualPort) starlark.Value { return Port{v.Port} }},
		lang.Member[virtualPort]{Name: "index", Type: "int", Column: true, Doc: "its number; None if it was read by a modifier of the script", Get: func(v virtualPort) starlark.Value {
			if v.Index < 0 {
				return starlark.None
			}
			return starlark.MakeInt(v.Index)
		}},
		lang.Member[virtualPort]{Name: "state", Type: "string", Column: true, Doc: `"active", "down", ...`, Words: records.WordsOf(mad.WordsPortState), Get: func(v virtualPort) starlark.Value { return starlark.String(v.State.String()) }},
		lang.Member[virtualPort]{Name: "lid", Type: "int", Column: true, Doc: "its own LID; 0 if it has none, or it is unknown", Get: func(v virtualPort) starlark.Value { return starlark.MakeInt(int(v.LID())) }},
		lang.Member[virtualPort]{Name: "guid", Type: "string", Column: true, Doc: "port GUID; None if unknown", Get: func(v virtualPort) starlark.Value {
			if v.GUID() == 0 {
				return starlark.None
			}
			return GUIDValue(v.GUID())
		}},
	)
}

func (v virtualPort) String() string {
	index := "None"
	if v.Index >= 0 {
		index = fmt.Sprint(v.Index)
	}
	return fmt.Sprintf("virtual_port(%q, index=%s)", v.Port.Name(), index)
}
func (v virtualPort) Type() string                             { return "virtual_port" }
func (v virtualPort) Freeze()                                  {}
func (v virtualPort) Truth() starlark.Bool                     { return true }
func (v virtualPort) Hash() (uint32, error)                    { return lang.HashBytes([]byte(v.String())), nil }
func (v virtualPort) AttrNames() []string                      { return VirtualPortType.Names }
func (v virtualPort) TypeDoc() lang.TypeDoc                    { return VirtualPortType.TypeDoc() }
func (v virtualPort) Schema() string                           { return VirtualPortType.Schema() }
func (v virtualPort) Facts() []lang.Fact                       { return VirtualPortType.Facts(v) }
func (v virtualPort) Attr(name string) (starlark.Value, error) { return VirtualPortType.Attr(v, name) }

// virtualPortsOf returns the virtual ports that were read.
func virtualPortsOf(f *fabric.Fabric) []starlark.Value {
	all := f.VirtualPorts()
	list := make([]starlark.Value, len(all))
	for i := range all {
		list[i] = virtualPort{&all[i]}
	}
	return list
}

// routerMembers are the attributes of a node that is a router.
func routerMembers() []lang.Member[Node] {
	table := func(name, typ, doc string, rows func(t *fabric.RouterTables) []starlark.Value) lang.Member[Node] {
		return lang.Member[Node]{Name: name, Type: "list of " + typ, Doc: doc, Get: func(n Node) starlark.Value {
			if t := n.Router(); t != nil {
				return starlark.NewList(rows(t))
			}
			return starlark.None
		}}
	}
	return []lang.Member[Node]{
		{Name: "router_info", Type: "router_info", Doc: "RouterInfo of a router, with its ranges of LIDs (FLIDs); None if discover() has not read it (extended=True)", Get: func(n Node) starlark.Value {
			if t := n.Router(); t != nil {
				return layoutRecord(mad.AttrRouterInfo, &t.Info)
			}
			return starlark.None
		}},
		table("next_hops", "next_hop", "the subnets that a router leads to; None if unknown", func(t *fabric.RouterTables) (list []starlark.Value) {
			for i := range t.NextHops {
				list = append(list, layoutRecord(mad.LayoutNextHop, &t.NextHops[i]))
			}
			return list
		}),
		table("adjacent_subnets", "adj_subnet", "the subnets that a router is in; None if unknown", func(t *fabric.RouterTables) (list []starlark.Value) {
			for i := range t.Adjacent {
				list = append(list, layoutRecord(mad.LayoutAdjSubnet, &t.Adjacent[i]))
			}
			return list
		}),
		table("adjacent_lids", "adj_subnet_lids", "the ranges of LIDs of routers (FLIDs) of adjacent subnets; None if unknown", func(t *fabric.RouterTables) (list []starlark.Value) {
			for i := range t.LIDs {
				list = append(list, layoutRecord(mad.LayoutAdjSubnetLIDs, &t.LIDs[i]))
			}
			return list
		}),
	}
}

// layoutRecord returns a record of a decoded layout.
func layoutRecord(a *mad.Attribute, of interface{ Encode([]byte) }) starlark.Value {
	data := make([]byte, max(a.Size, mad.AttrPortInfo.Size))
	of.Encode(data)
	return records.New(a, data)
}

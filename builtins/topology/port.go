package topology

import (
	"fmt"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/mad"
)

// Port is the value `port`. Two are equal if they stand for one port, also in different
// snapshots.
type Port struct{ *fabric.Port }

// PortOf returns the value of p.
func PortOf(p *fabric.Port) Port { return Port{p} }

var (
	_ starlark.Comparable = Port{}
	_ lang.Factual        = Port{}
	_ lang.Named          = Port{}
)

// PortType declares the attributes of a port.
var PortType *lang.Type[Port]

func init() {
	member := func(name, typ, doc string, column bool, get func(p Port) starlark.Value) lang.Member[Port] {
		return lang.Member[Port]{Name: name, Type: typ, Doc: doc, Column: column, Get: get}
	}
	words := func(name, doc string, column bool, words []string, get func(p Port) starlark.Value) lang.Member[Port] {
		return lang.Member[Port]{Name: name, Type: "string", Doc: doc, Column: column, Words: words, Get: get}
	}
	PortType = lang.NewType("port", "A port of a node. Ports of two fabrics are equal if node GUID and number are equal.",
		member("name", "string", "name of the node and number: leaf-1/3", true, func(p Port) starlark.Value { return starlark.String(p.Name()) }),
		member("num", "int", "port number", true, func(p Port) starlark.Value { return starlark.MakeInt(p.Num()) }),
		member("node", "node", "its node", false, func(p Port) starlark.Value { return Node{p.Node()} }),
		member("lid", "int", "base LID; for all ports of a switch, that of port 0; 0 if none", true, func(p Port) starlark.Value { return starlark.MakeInt(int(p.LID())) }),
		member("lmc", "int", "number of low bits of the LID that the port ignores", false, func(p Port) starlark.Value { return starlark.MakeInt(p.LMC()) }),
		words("state", `logical state: "active", "down", ...; None if unknown`, true, records.WordsOf(mad.WordsPortState), portState),
		words("physical_state", `state of link training: "link_up", "polling", ...; None if unknown`, true, records.WordsOf(mad.WordsPortPhysicalState), func(p Port) starlark.Value { return knownState(p, p.PhysicalState()) }),
		words("width", `width in use: "4x"; None while the link is down, or if unknown`, true, mad.Widths(), portWidth),
		words("speed", `speed in use: "hdr"; None while the link is down, or if unknown; to compare speeds, use gbps`, true, mad.Speeds(), portSpeed),
		member("gbps", "float", gbpsDoc, false, portGbps),
		words("best_width", bestWidthDoc, false, mad.Widths(), portBestWidth),
		words("best_speed", bestSpeedDoc, false, mad.Speeds(), portBestSpeed),
		words("supported_width", `widest supported width: "12x"; None if unknown`, false, mad.Widths(), func(p Port) starlark.Value { return lang.TextOrNone(p.WidestWidth(false)) }),
		words("enabled_width", "widest enabled width; None if unknown or disabled", false, mad.Widths(), func(p Port) starlark.Value { return lang.TextOrNone(p.WidestWidth(true)) }),
		words("supported_speed", `fastest supported speed: "ndr"; None if unknown`, false, mad.Speeds(), func(p Port) starlark.Value { return lang.TextOrNone(p.FastestSpeed(false)) }),
		words("enabled_speed", "fastest enabled speed; None if unknown or disabled", false, mad.Speeds(), func(p Port) starlark.Value { return lang.TextOrNone(p.FastestSpeed(true)) }),
		member("peer", "port", "the port at the other end of the cable; None without a cable", true, peerGetter(func(q Port) starlark.Value { return q })),
		member("peer_unknown", "bool", "whether the link is up and the peer is unknown, although the fabric should have it: the fabric is not a part of a subnet", false, func(p Port) starlark.Value { return starlark.Bool(p.PeerUnknown()) }),
		member("part", "int", "index in fabric.parts of the part that the port is in; None without a link", false, func(p Port) starlark.Value {
			n := p.Node().Fabric().PartOf(p.Port)
			return lang.OrNone(n >= 0, starlark.MakeInt(n))
		}),
		member("link", "link", "the cable; None without a cable", false, func(p Port) starlark.Value {
			if p.Peer() == nil {
				return starlark.None
			}
			return LinkOf(p.Port)
		}),
		member("peer_num", "int", "number of the peer", true, peerGetter(func(q Port) starlark.Value { return starlark.MakeInt(q.Num()) })),
		member("guid", "string", "port GUID; for all ports of a switch, that of port 0", true, func(p Port) starlark.Value { return GUIDValue(p.GUID()) }),
		member("node_guid", "string", "GUID of its node", true, func(p Port) starlark.Value { return GUIDValue(p.Node().GUID()) }),
		member("peer_guid", "string", "GUID of the node of the peer", true, peerGetter(func(q Port) starlark.Value { return GUIDValue(q.Node().GUID()) })),
		member("label", "string", `label of the port on its device, as a file of ibdiagnet or a plan of cables has it: "1/2/1"; None if unknown`, false, func(p Port) starlark.Value { return lang.TextOrNone(p.PanelLabel()) }),
		member("plane", "int", planeDoc, false, portPlane),
		words("unhealthy", unhealthyDoc, false, records.WordsOf(mad.WordsUnhealthyReason), portUnhealthy),
		member("info", "port_info", "PortInfo, as read by the sweep; None if unknown", false, func(p Port) starlark.Value {
			if i := p.Info(); i != nil {
				return cachedRecord(p.Node().Fabric(), mad.AttrPortInfo, p.ID(), func() *records.Record {
					return encodedRecord(mad.AttrPortInfo, i, p.Node(), p.LID(), p.Num())
				})
			}
			return starlark.None
		}),
	).AtVersion(2).Important("name", "state", "speed", "width", "peer", "physical_state", "lid")
}

// Help of the best width and speed of a link.
const (
	bestWidthDoc = `widest width that is supported and enabled at both ends: "4x"; None if unknown`
	bestSpeedDoc = `fastest speed that is supported and enabled at both ends: "hdr"; None if unknown`
)

// gbpsDoc is the help of the data rate of ports and links.
const gbpsDoc = `data rate in use, in Gb/s: 200 for 4x hdr, to compare speeds in order: links.select("gbps and gbps < 200"); None while the link is down, or if unknown`

func portGbps(p Port) starlark.Value {
	width, _ := starlark.AsString(portWidth(p))
	speed, _ := starlark.AsString(portSpeed(p))
	rate := audit.LinkBits(width, speed) / 1e9
	return lang.OrNone(rate > 0, starlark.Float(rate))
}

func portState(p Port) starlark.Value     { return knownState(p, p.State()) }
func portWidth(p Port) starlark.Value     { return whileUp(p, p.Width()) }
func portSpeed(p Port) starlark.Value     { return whileUp(p, p.Speed()) }
func portBestWidth(p Port) starlark.Value { return lang.TextOrNone(p.BestWidth()) }
func portBestSpeed(p Port) starlark.Value { return lang.TextOrNone(p.BestSpeed()) }

// peerGetter returns a getter for the port at the other end; None without a cable.
func peerGetter(get func(q Port) starlark.Value) func(p Port) starlark.Value {
	return func(p Port) starlark.Value {
		if q := p.Peer(); q != nil {
			return get(Port{q})
		}
		return starlark.None
	}
}

// knownState returns the word of a state; None if no PortInfo is known: a file may have no
// states.
func knownState[T interface {
	~uint8
	fmt.Stringer
}](p Port, state T) starlark.Value {
	if p.Info() == nil || state == 0 { // 0 is "no change" of a Set: files have no states
		return starlark.None
	}
	return starlark.String(state.String())
}

// whileUp returns a width or speed in use; None while the link is down, whatever
// PortInfo contains.
func whileUp(p Port, text string) starlark.Value {
	if p.Info() == nil || p.PhysicalState() != mad.PortPhysicalStateLinkUp {
		return starlark.None
	}
	return lang.TextOrNone(text)
}

func (p Port) String() string       { return fmt.Sprintf("port(%q, %s)", p.Name(), p.Node().GUID()) }
func (p Port) Type() string         { return "port" }
func (p Port) Freeze()              {}
func (p Port) Truth() starlark.Bool { return true }
func (p Port) Hash() (uint32, error) {
	return HashUint64(uint64(p.Node().GUID()) + uint64(p.Num())), nil
}
func (p Port) AttrNames() []string   { return PortType.Names }
func (p Port) TypeDoc() lang.TypeDoc { return PortType.TypeDoc() }
func (p Port) Schema() string        { return PortType.Schema() }

func (p Port) Facts() []lang.Fact { return PortType.Facts(p) }

// CompareSameType compares node GUID and number; Hash depends only on these.
func (p Port) CompareSameType(op syntax.Token, y starlark.Value, depth int) (bool, error) {
	return records.CompareEqual(op, p, p.Same(y.(Port).Port))
}

func (p Port) Attr(name string) (starlark.Value, error) { return PortType.Attr(p, name) }

// Link is the value `link`: a cable. A is the first port in the fabric's order. Two links
// are equal if both ends are equal, also in different snapshots.
type Link struct{ A, B *fabric.Port }

// LinkOf returns the link of a port that has one.
func LinkOf(p *fabric.Port) Link {
	if q := p.Peer(); q.ID() < p.ID() {
		return Link{q, p}
	}
	return Link{p, p.Peer()}
}

var (
	_ starlark.Comparable = Link{}
	_ lang.Factual        = Link{}
)

// LinkType declares the attributes of a link.
var LinkType *lang.Type[Link]

func init() {
	end := func(name, typ, doc string, column bool, get func(l Link) starlark.Value) lang.Member[Link] {
		return lang.Member[Link]{Name: name, Type: typ, Doc: doc, Column: column, Get: get}
	}
	words := func(name, doc string, words []string, get func(p Port) starlark.Value) lang.Member[Link] {
		return lang.Member[Link]{Name: name, Type: "string", Doc: doc, Column: true, Words: words, Get: func(l Link) starlark.Value {
			if v := get(Port{l.A}); v != starlark.None {
				return v
			}
			return get(Port{l.B})
		}}
	}
	LinkType = lang.NewType("link", "A cable between two ports. Links of two fabrics are equal if both ends are equal.",
		end("a", "port", "the first port, in the fabric's order", true, func(l Link) starlark.Value { return Port{l.A} }),
		end("a_num", "int", "its number", true, func(l Link) starlark.Value { return starlark.MakeInt(l.A.Num()) }),
		end("b", "port", "the port at the other end", true, func(l Link) starlark.Value { return Port{l.B} }),
		end("b_num", "int", "its number", true, func(l Link) starlark.Value { return starlark.MakeInt(l.B.Num()) }),
		words("state", `logical state: "active", "down", ...; None if unknown`, records.WordsOf(mad.WordsPortState), portState),
		words("width", `width in use: "4x"; None while the link is down, or if unknown`, mad.Widths(), portWidth),
		words("speed", `speed in use: "hdr"; None while the link is down, or if unknown; to compare speeds, use gbps`, mad.Speeds(), portSpeed),
		end("gbps", "float", gbpsDoc, false, func(l Link) starlark.Value {
			if v := portGbps(Port{l.A}); v != starlark.None {
				return v
			}
			return portGbps(Port{l.B})
		}),
		words("best_width", bestWidthDoc, mad.Widths(), portBestWidth),
		words("best_speed", bestSpeedDoc, mad.Speeds(), portBestSpeed),
		end("degraded", "", "whether it is slower or narrower than both ends support; None while the link is down, or if unknown", true, func(l Link) starlark.Value {
			if degraded, known := l.A.Degraded(); known {
				return starlark.Bool(degraded)
			}
			return starlark.None
		}),
		end("plane", "int", planeDoc, false, func(l Link) starlark.Value { return portPlane(Port{l.A}) }),
		lang.Member[Link]{Name: "unhealthy", Type: "string", Doc: unhealthyDoc + "; of an end", Words: records.WordsOf(mad.WordsUnhealthyReason), Get: func(l Link) starlark.Value {
			if v := portUnhealthy(Port{l.A}); v != starlark.None {
				return v
			}
			return portUnhealthy(Port{l.B})
		}},
		end("label", "string", "label of the cable, by the plan that the fabric was read from; None if unknown", false, func(l Link) starlark.Value { return lang.TextOrNone(l.A.PlanCable().Label) }),
		end("source", "string", `where the plan that the fabric was read from has the cable: "sheet Links row 7", "line 7"; None if it is not from a plan`, false, func(l Link) starlark.Value { return lang.TextOrNone(l.A.PlanCable().Source) }),
		end("a_guid", "string", "GUID of the node of a", true, func(l Link) starlark.Value { return GUIDValue(l.A.Node().GUID()) }),
		end("b_guid", "string", "GUID of the node of b", true, func(l Link) starlark.Value { return GUIDValue(l.B.Node().GUID()) }),
	).AtVersion(2).Important("a", "b", "state", "speed", "width", "degraded")
}

func (l Link) String() string        { return fmt.Sprintf("link(%q, %q)", l.A.Name(), l.B.Name()) }
func (l Link) Type() string          { return "link" }
func (l Link) Freeze()               {}
func (l Link) Truth() starlark.Bool  { return true }
func (l Link) AttrNames() []string   { return LinkType.Names }
func (l Link) TypeDoc() lang.TypeDoc { return LinkType.TypeDoc() }
func (l Link) Schema() string        { return LinkType.Schema() }

func (l Link) Facts() []lang.Fact { return LinkType.Facts(l) }

// Hash does not depend on the order of the ends, and neither does CompareSameType.
func (l Link) Hash() (uint32, error) {
	a, _ := Port{l.A}.Hash()
	b, _ := Port{l.B}.Hash()
	return a + b, nil
}

func (l Link) CompareSameType(op syntax.Token, y starlark.Value, depth int) (bool, error) {
	m := y.(Link)
	return records.CompareEqual(op, l, l.A.Same(m.A) && l.B.Same(m.B) || l.A.Same(m.B) && l.B.Same(m.A))
}

func (l Link) Attr(name string) (starlark.Value, error) { return LinkType.Attr(l, name) }

// portPlane returns the plane of a port.
func portPlane(p Port) starlark.Value {
	if n := p.Plane(); n > 0 {
		return starlark.MakeInt(n)
	}
	return starlark.None
}

// portUnhealthy returns why a port is considered unhealthy.
func portUnhealthy(p Port) starlark.Value {
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
			if v.Info == nil {
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

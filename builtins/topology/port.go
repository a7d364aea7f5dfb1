package topology

import (
	"fmt"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/fabric"
	"fabsh/mad"
)

// Port is the value `port`. Two are equal if they are the same port, also in different
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
		words("physical_state", `state of link training: "link_up", "polling", ...; None if unknown`, true, records.WordsOf(mad.WordsPortPhysicalState), func(p Port) starlark.Value { return known(p, p.PhysicalState()) }),
		words("width", `width in use: "4x"; None while the link is down, or if unknown`, true, mad.Widths(), portWidth),
		words("speed", `speed in use: "hdr"; None while the link is down, or if unknown`, true, mad.Speeds(), portSpeed),
		words("best_width", bestWidthDoc, false, mad.Widths(), portBestWidth),
		words("best_speed", bestSpeedDoc, false, mad.Speeds(), portBestSpeed),
		words("supported_width", `widest supported width: "12x"; None if unknown`, false, mad.Widths(), func(p Port) starlark.Value { return lang.TextOrNone(p.WidestWidth(false)) }),
		words("enabled_width", "widest enabled width; None if unknown or disabled", false, mad.Widths(), func(p Port) starlark.Value { return lang.TextOrNone(p.WidestWidth(true)) }),
		words("supported_speed", `fastest supported speed: "ndr"; None if unknown`, false, mad.Speeds(), func(p Port) starlark.Value { return lang.TextOrNone(p.FastestSpeed(false)) }),
		words("enabled_speed", "fastest enabled speed; None if unknown or disabled", false, mad.Speeds(), func(p Port) starlark.Value { return lang.TextOrNone(p.FastestSpeed(true)) }),
		member("peer", "port", "the port at the other end of the cable; None without a cable", true, ofPeer(func(q Port) starlark.Value { return q })),
		member("link", "link", "the cable; None without a cable", false, func(p Port) starlark.Value {
			switch q := p.Peer(); {
			case q == nil:
				return starlark.None
			case q.ID() < p.ID():
				return Link{q, p.Port}
			default:
				return Link{p.Port, q}
			}
		}),
		member("peer_num", "int", "number of the peer", true, ofPeer(func(q Port) starlark.Value { return starlark.MakeInt(q.Num()) })),
		member("guid", "string", "port GUID; for all ports of a switch, that of port 0", true, func(p Port) starlark.Value { return GUIDValue(p.GUID()) }),
		member("node_guid", "string", "GUID of its node", true, func(p Port) starlark.Value { return GUIDValue(p.Node().GUID()) }),
		member("peer_guid", "string", "GUID of the node of the peer", true, ofPeer(func(q Port) starlark.Value { return GUIDValue(q.Node().GUID()) })),
		member("plane", "int", planeDoc, false, plane),
		words("unhealthy", unhealthyDoc, false, records.WordsOf(mad.WordsUnhealthyReason), unhealthy),
		member("info", "port_info", "PortInfo, as read by the sweep; None if unknown", false, func(p Port) starlark.Value {
			if i := p.Info(); i != nil {
				return once(p.Node().Fabric(), mad.AttrPortInfo, p.ID(), func() *records.Record {
					return encoded(mad.AttrPortInfo, i, p.Node(), p.LID(), p.Num())
				})
			}
			return starlark.None
		}),
	).AtVersion(2)
}

// Help of the best width and speed of a link.
const (
	bestWidthDoc = `widest width that is supported and enabled at both ends: "4x"; None if unknown`
	bestSpeedDoc = `fastest speed that is supported and enabled at both ends: "hdr"; None if unknown`
)

func portState(p Port) starlark.Value     { return known(p, p.State()) }
func portWidth(p Port) starlark.Value     { return whileUp(p, p.Width()) }
func portSpeed(p Port) starlark.Value     { return whileUp(p, p.Speed()) }
func portBestWidth(p Port) starlark.Value { return lang.TextOrNone(p.BestWidth()) }
func portBestSpeed(p Port) starlark.Value { return lang.TextOrNone(p.BestSpeed()) }

// ofPeer returns a getter for the port at the other end; None without a cable.
func ofPeer(get func(q Port) starlark.Value) func(p Port) starlark.Value {
	return func(p Port) starlark.Value {
		if q := p.Peer(); q != nil {
			return get(Port{q})
		}
		return starlark.None
	}
}

// known returns the word of a state; None if no PortInfo is known: a file may have no
// states.
func known[T interface {
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

package topology

import (
	"fmt"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/mad"
)

// Port is the value `port`.
type Port struct{ *fabric.Port }

// PortOf is the value of p.
func PortOf(p *fabric.Port) Port { return Port{p} }

var (
	_ starlark.HasAttrs = Port{}
	_ lang.Factual      = Port{}
	_ lang.Documented   = Port{}
)

// PortType is what scripts find in a port.
var PortType *lang.Type[Port]

func init() {
	PortType = lang.NewType("port", "A port of a node.",
		lang.Member[Port]{Name: "name", Type: "string", Doc: "name of the node and number: leaf-1/3", Get: func(p Port) starlark.Value { return starlark.String(p.Name()) }},
		lang.Member[Port]{Name: "num", Doc: "port number", Get: func(p Port) starlark.Value { return starlark.MakeInt(p.Num()) }},
		lang.Member[Port]{Name: "node", Type: "node", Doc: "the node it is of", Get: func(p Port) starlark.Value { return Node{p.Node()} }},
		lang.Member[Port]{Name: "peer", Type: "port", Doc: "the port at the other end of the cable, None if there is none", Get: func(p Port) starlark.Value {
			if q := p.Peer(); q != nil {
				return Port{q}
			}
			return starlark.None
		}},
		lang.Member[Port]{Name: "guid", Type: "string", Doc: "port GUID; all ports of a switch have port 0's", Get: func(p Port) starlark.Value { return GUIDValue(p.GUID()) }},
		lang.Member[Port]{Name: "lid", Doc: "base LID; all ports of a switch have port 0's; 0 if none", Get: func(p Port) starlark.Value { return starlark.MakeInt(int(p.LID())) }},
		lang.Member[Port]{Name: "lmc", Doc: "how many low bits of the LID it ignores", Get: func(p Port) starlark.Value { return starlark.MakeInt(p.LMC()) }},
		lang.Member[Port]{Name: "state", Type: "string", Doc: `logical state: "active", "down", ...; None if unknown`, Get: func(p Port) starlark.Value { return known(p, p.State()) }},
		lang.Member[Port]{Name: "physical_state", Type: "string", Doc: `state of link training: "link_up", "polling", ...; None if unknown`, Get: func(p Port) starlark.Value { return known(p, p.PhysicalState()) }},
		lang.Member[Port]{Name: "width", Type: "string", Doc: `width in use: "4x"; None while the link is down, or if unknown`, Get: func(p Port) starlark.Value { return whileUp(p, p.Width()) }},
		lang.Member[Port]{Name: "speed", Type: "string", Doc: `speed in use: "HDR"; None while the link is down, or if unknown`, Get: func(p Port) starlark.Value { return whileUp(p, p.Speed()) }},
		lang.Member[Port]{Name: "info", Type: "port_info", Doc: "PortInfo, as read by the sweep; None if unknown", Get: func(p Port) starlark.Value {
			if i := p.Info(); i != nil {
				return encoded(mad.AttrPortInfo, i)
			}
			return starlark.None
		}},
	)
}

// known is a state's word; None where no PortInfo is known: a file may not have
// states.
func known(p Port, state fmt.Stringer) starlark.Value {
	if p.Info() == nil {
		return starlark.None
	}
	return starlark.String(state.String())
}

// whileUp is a width or speed in use; None while the link is down, whatever
// PortInfo says.
func whileUp(p Port, text string) starlark.Value {
	if p.Info() == nil || p.PhysicalState() != mad.PortPhysicalStateLinkUp || text == "" {
		return starlark.None
	}
	return starlark.String(text)
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
func (p Port) Schema() string        { return "port/1" }

func (p Port) Attr(name string) (starlark.Value, error) { return PortType.Attr(p, name) }

// Facts have the peer flat, so that a row of CSV is a link.
func (p Port) Facts() []lang.Fact {
	out := []lang.Fact{{Name: "node_guid", Value: GUIDValue(p.Node().GUID())}}
	for _, name := range []string{"name", "num", "guid", "lid", "state", "physical_state", "width", "speed"} {
		v, _ := p.Attr(name)
		out = append(out, lang.Fact{Name: name, Value: v})
	}
	peer := lang.Fact{Name: "peer", Value: starlark.None}
	guid := lang.Fact{Name: "peer_guid", Value: starlark.None}
	num := lang.Fact{Name: "peer_num", Value: starlark.None}
	if q := p.Peer(); q != nil {
		peer.Value, guid.Value, num.Value = starlark.String(q.Name()), GUIDValue(q.Node().GUID()), starlark.MakeInt(q.Num())
	}
	return append(out, peer, guid, num)
}

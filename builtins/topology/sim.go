package topology

import (
	"fmt"
	"strconv"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric/sim"
	"fabsh/mad"
)

// Sim is the value `sim`: what can be done to a simulated fabric.
type Sim struct{ *sim.Subnet }

var (
	_ starlark.HasAttrs = (*Sim)(nil)
	_ lang.Documented   = (*Sim)(nil)
)

// SimType is what scripts find in the value sim.
var SimType *lang.Type[*Sim]

func init() {
	SimType = lang.NewType("sim", "What can be done to a simulated fabric, with hands as it were: there is a global sim where -F sim made one. Its subnet manager sweeps at once. With --read-only it is refused.",
		lang.Member[*Sim]{Method: &unlinkMethod},
		lang.Member[*Sim]{Method: &linkMethod},
		lang.Member[*Sim]{Method: &restartSMMethod},
	)
}

func (s *Sim) String() string        { return "sim" }
func (s *Sim) Type() string          { return "sim" }
func (s *Sim) Freeze()               {}
func (s *Sim) Truth() starlark.Bool  { return true }
func (s *Sim) Hash() (uint32, error) { return 0, lang.Unhashable(s) }
func (s *Sim) AttrNames() []string   { return SimType.Names }
func (s *Sim) TypeDoc() lang.TypeDoc { return SimType.TypeDoc() }

func (s *Sim) Attr(name string) (starlark.Value, error) { return SimType.Attr(s, name) }

// cableArgs say whose cable it is.
type cableArgs struct{ Port starlark.Value }

var cableParams = []lang.Param{{Name: "port", Kind: lang.KindAny, Doc: `a port of a fabric, or "NAME/PORT"`}}

// unlinkMethod is sim.unlink().
var unlinkMethod = lang.Builtin{
	Name:   "unlink",
	Params: cableParams,
	Doc: `Pulls the cable off a port.
The switches at its ends send trap 128; the subnet manager reports it, finds other ways for the traffic, and reports trap 65 of each port that it no longer reaches.`,
	Example: `
> f = discover()
> sim.unlink(f.switches[0].ports[2])
> discover()
fabric: 43 nodes (12 switches, 31 CAs), 63 links, complete
`,
	Run: lang.Do(func(c *lang.Call, a *cableArgs) (starlark.Value, error) {
		return changeCable(c, a.Port, (*sim.Subnet).Unlink)
	}),
}

// linkMethod is sim.link().
var linkMethod = lang.Builtin{
	Name:   "link",
	Params: cableParams,
	Doc: `Plugs in a cable that unlink has pulled.
Trap 128 tells of it, and trap 64 of each port that the subnet manager then reaches.`,
	Example: `
> sim.unlink("leaf-1/2")
> sim.link("leaf-1/2")
> discover()
fabric: 44 nodes (12 switches, 32 CAs), 64 links, complete
`,
	Run: lang.Do(func(c *lang.Call, a *cableArgs) (starlark.Value, error) {
		return changeCable(c, a.Port, (*sim.Subnet).Link)
	}),
}

// restartSMMethod is sim.restart_sm().
var restartSMMethod = lang.Builtin{
	Name:   "restart_sm",
	Params: []lang.Param{{Name: "node", Kind: lang.KindAny, Default: "None", Doc: "where the new one is: a node, or its name; None: where the old one was"}},
	Doc: `Ends the subnet manager, and starts another.
The new one knows of no subscriptions.`,
	Example: `
> sub = sa_subscribe(trap=128)
> sim.restart_sm()
> sub.next(timeout="2m").reason
"the subnet administrator had forgotten the subscription; subscribed again, but what happened in between was not told"
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Node starlark.Value }) (starlark.Value, error) {
		s := c.Recv.(*Sim)
		var guid mad.GUID
		switch v := a.Node.(type) {
		case nil:
		case Node:
			guid = v.GUID()
		case starlark.String:
			var err error
			if guid, err = s.named(string(v)); err != nil {
				return nil, lang.ParamError("node", "%w", err)
			}
		default:
			return nil, lang.ParamError("node", "got %s, want a node, or its name", v.Type())
		}
		if _, err := MayChange(c, mad.AttrSMInfo); err != nil {
			return nil, err
		}
		if err := s.RestartSM(guid); err != nil {
			return nil, lang.Errorf("%w", err)
		}
		return starlark.None, nil
	}),
}

// changeCable does something to the cable of a port.
func changeCable(c *lang.Call, at starlark.Value, do func(*sim.Subnet, mad.GUID, int) error) (starlark.Value, error) {
	s := c.Recv.(*Sim)
	var guid mad.GUID
	var num int
	switch v := at.(type) {
	case Port:
		guid, num = v.Node().GUID(), v.Num()
	case starlark.String:
		slash := strings.LastIndexByte(string(v), '/')
		n, err := strconv.ParseUint(string(v)[slash+1:], 10, 8)
		if slash < 0 || err != nil {
			return nil, lang.ParamError("port", "got %s, want NAME/PORT", v)
		}
		if guid, err = s.named(string(v)[:slash]); err != nil {
			return nil, lang.ParamError("port", "%w", err)
		}
		num = int(n)
	default:
		return nil, lang.ParamError("port", "got %s, want a port, or NAME/PORT", v.Type())
	}
	if _, err := MayChange(c, mad.AttrPortInfo); err != nil {
		return nil, err
	}
	if err := do(s.Subnet, guid, num); err != nil {
		return nil, lang.Errorf("%w", err)
	}
	return starlark.None, nil
}

// named is the GUID of the node with a name, or written as it.
func (s *Sim) named(name string) (mad.GUID, error) {
	switch guids := s.NodeGUIDs(name); len(guids) {
	case 1:
		return guids[0], nil
	case 0:
		if guid, err := strconv.ParseUint(name, 0, 64); err == nil && guid != 0 {
			return mad.GUID(guid), nil
		}
		return 0, fmt.Errorf("the simulated fabric has no node %q", name)
	default:
		return 0, fmt.Errorf("%q are %d nodes; name one by its GUID, such as %v", name, len(guids), guids[0])
	}
}

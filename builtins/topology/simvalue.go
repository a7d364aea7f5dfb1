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

// Simulation is the value `sim`: what can be done to a simulated fabric.
type Simulation struct{ *sim.Subnet }

var (
	_ starlark.HasAttrs = (*Simulation)(nil)
	_ lang.Documented   = (*Simulation)(nil)
)

var SimType *lang.Type[*Simulation]

func init() {
	SimType = lang.NewType("sim", "What can be done to a simulated fabric, with hands as it were: there is a global sim where -F sim made one. Its subnet manager sweeps at once. With --read-only it is refused.",
		lang.Member[*Simulation]{Method: &unlinkMethod},
		lang.Member[*Simulation]{Method: &linkMethod},
		lang.Member[*Simulation]{Method: &restartSMMethod},
	)
}

func (s *Simulation) String() string        { return "sim" }
func (s *Simulation) Type() string          { return "sim" }
func (s *Simulation) Freeze()               {}
func (s *Simulation) Truth() starlark.Bool  { return true }
func (s *Simulation) Hash() (uint32, error) { return 0, lang.Unhashable(s) }
func (s *Simulation) AttrNames() []string   { return SimType.Names }
func (s *Simulation) TypeDoc() lang.TypeDoc { return SimType.TypeDoc() }

func (s *Simulation) Attr(name string) (starlark.Value, error) { return SimType.Attr(s, name) }

var simPort = []lang.Param{{Name: "port", Kind: lang.KindAny, Doc: `a port of a fabric, or "NAME/PORT"`}}

var unlinkMethod = lang.Builtin{
	Name:   "unlink",
	Params: simPort,
	Doc: `Pulls the cable off a port.
The switches at its ends send trap 128; the subnet manager reports it, finds other ways for the traffic, and reports trap 65 of each port that it no longer reaches.`,
	Example: `
> f = discover()
> sim.unlink(f.switches[0].ports[2])
> discover()
fabric: 43 nodes (12 switches, 31 CAs), 63 links, complete
`,
	Run: lang.Raw(func(c *lang.Call) (starlark.Value, error) { return simCable(c, (*sim.Subnet).Unlink) }),
}

var linkMethod = lang.Builtin{
	Name:   "link",
	Params: simPort,
	Doc: `Plugs in a cable that unlink has pulled.
Trap 128 tells of it, and trap 64 of each port that the subnet manager then reaches.`,
	Example: `
> sim.unlink("leaf-1/2")
> sim.link("leaf-1/2")
> discover()
fabric: 44 nodes (12 switches, 32 CAs), 64 links, complete
`,
	Run: lang.Raw(func(c *lang.Call) (starlark.Value, error) { return simCable(c, (*sim.Subnet).Link) }),
}

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
	Run: lang.Raw(func(c *lang.Call) (starlark.Value, error) {
		s := c.Recv.(*Simulation)
		var guid mad.GUID
		switch v := c.Value("node").(type) {
		case starlark.NoneType:
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
			return nil, fmt.Errorf("%s: %w", c.Name, err)
		}
		return starlark.None, nil
	}),
}

// simCable does something to the cable of a port.
func simCable(c *lang.Call, do func(*sim.Subnet, mad.GUID, int) error) (starlark.Value, error) {
	s := c.Recv.(*Simulation)
	var guid mad.GUID
	var num int
	switch v := c.Value("port").(type) {
	case Port:
		guid, num = v.Node().GUID(), v.Num()
	case starlark.String:
		at := strings.LastIndexByte(string(v), '/')
		n, err := strconv.ParseUint(string(v)[at+1:], 10, 8)
		if at < 0 || err != nil {
			return nil, lang.ParamError("port", "got %s, want NAME/PORT", v)
		}
		if guid, err = s.named(string(v)[:at]); err != nil {
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
		return nil, fmt.Errorf("%s: %w", c.Name, err)
	}
	return starlark.None, nil
}

// named is the GUID of the node with a name, or written as it.
func (s *Simulation) named(name string) (mad.GUID, error) {
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

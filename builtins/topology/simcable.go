package topology

import (
	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric/sim"
	"fabsh/mad"
)

// unlinkMethod is sim.unlink().
var unlinkMethod = lang.Builtin{
	Name:   "unlink",
	Params: []lang.Param{{Name: "port", Kind: KindTarget, Doc: `a port of a fabric, or "NAME/PORT"`}},
	Doc: `Pulls the cable off a port.
The switches at its ends send trap 128. The subnet manager reports it, computes other routes, and reports trap 65 for each port that it no longer reaches.`,
	Example: `
> f = discover()
> sim.unlink(f.switches[0].ports[2])
> discover()
fabric: 43 nodes (12 switches, 31 CAs), 63 links, complete
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Port starlark.Value }) (starlark.Value, error) {
		s := c.Recv.(*Sim)
		at, err := s.portAt(a.Port)
		if err != nil {
			return nil, lang.ParamError("port", "%w", err)
		}
		return alter(c, func() error { return s.Cables.Unlink(at.Node, at.Num) })
	}),
}

// linkMethod is sim.link().
var linkMethod = lang.Builtin{
	Name: "link",
	Params: []lang.Param{
		{Name: "port", Kind: KindTarget, Doc: `a port of a fabric, or "NAME/PORT"`},
		{Name: "to", Kind: KindTarget, Default: "None", Doc: "the port for the other end; None: the cable that unlink has pulled is plugged in again"},
	},
	Doc: `Plugs in a cable: the cable that unlink has pulled, or a new one between two ports.
Other cables in the two ports are removed. The switches send trap 128, and the subnet manager reports trap 64 for each port that it newly reaches.`,
	Example: `
> sim.unlink("leaf-1/2")
> sim.link("leaf-1/2")
> discover()
fabric: 44 nodes (12 switches, 32 CAs), 64 links, complete
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Port, To starlark.Value }) (starlark.Value, error) {
		s := c.Recv.(*Sim)
		from, err := s.portAt(a.Port)
		if err != nil {
			return nil, lang.ParamError("port", "%w", err)
		}
		if a.To == nil {
			return alter(c, func() error { return s.Cables.Link(from.Node, from.Num) })
		}
		to, err := s.portAt(a.To)
		if err != nil {
			return nil, lang.ParamError("to", "%w", err)
		}
		return alter(c, func() error { return s.Cables.Recable([2]sim.Cable{from, to}) })
	}),
}

// swapMethod is sim.swap().
var swapMethod = lang.Builtin{
	Name: "swap",
	Params: []lang.Param{
		{Name: "port", Kind: KindTarget, Doc: `a port of a fabric, or "NAME/PORT"`},
		{Name: "other", Kind: KindTarget, Doc: "another"},
	},
	Doc: `Exchanges the cables of two ports, as in a cabling error.`,
	Example: `
> f = discover()
> sim.swap("leaf-1/5", "leaf-2/6")
> f.diff(discover())
link.swapped  leaf-1/5, leaf-2/6  swap the cables at leaf-1/5 and leaf-2/6
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Port, Other starlark.Value }) (starlark.Value, error) {
		s := c.Recv.(*Sim)
		p, err := s.portAt(a.Port)
		if err != nil {
			return nil, lang.ParamError("port", "%w", err)
		}
		q, err := s.portAt(a.Other)
		if err != nil {
			return nil, lang.ParamError("other", "%w", err)
		}
		return alter(c, func() error { return s.Cables.Swap(p, q) })
	}),
}

// speedMethod is sim.speed().
var speedMethod = lang.Builtin{
	Name: "speed",
	Params: []lang.Param{
		{Name: "port", Kind: KindTarget, Doc: `a port of a fabric, or "NAME/PORT"`},
		{Name: "speed", Kind: lang.KindText, Default: "None", Doc: `such as "edr"; None: unchanged`},
		{Name: "width", Kind: lang.KindText, Default: "None", Keyword: true, Doc: `such as "2x"; None: unchanged`},
	},
	Doc: `Sets the speed and the width of the link at a port.
The port then has only these enabled. If the two ends did not support them, they do afterwards.`,
	Example: `
> sim.speed("leaf-1/2", "edr", width="2x")
> [(p.width, p.speed) for p in discover().switches if p.name == "leaf-1" for p in p.ports if p.num == 2]
[("2x", "edr")]
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Port         starlark.Value
		Speed, Width *string
	}) (starlark.Value, error) {
		s := c.Recv.(*Sim)
		at, err := s.portAt(a.Port)
		if err != nil {
			return nil, lang.ParamError("port", "%w", err)
		}
		if a.Speed == nil && a.Width == nil {
			return nil, lang.Errorf("missing argument: speed or width")
		}
		return alter(c, func() error { return s.Cables.SetLink(at.Node, at.Num, text(a.Speed), text(a.Width)) })
	}),
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// killMethod is sim.kill().
var killMethod = lang.Builtin{
	Name:   "kill",
	Params: []lang.Param{{Name: "node", Kind: KindTarget, Doc: "a node of a fabric, or its name"}},
	Doc: `Powers a node off: its links go down and its agents do not answer.
sim.reboot() powers it on. If the subnet manager was on it, there are no sweeps until then, or until sim.restart_sm() starts one on another node.`,
	Example: `
> sim.kill("spine-1")
> discover()
fabric: 43 nodes (11 switches, 32 CAs), 56 links, complete
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Node starlark.Value }) (starlark.Value, error) {
		return powerOf(c, a.Node, (*sim.Cables).Kill)
	}),
}

// rebootMethod is sim.reboot().
var rebootMethod = lang.Builtin{
	Name:   "reboot",
	Params: []lang.Param{{Name: "node", Kind: KindTarget, Doc: "a node of a fabric, or its name"}},
	Doc: `Restarts a node: its counters are 0, and its tables have their initial values.
The subnet manager detects that it was gone and is back.`,
	Example: `
> f = discover()
> sim.set_counters("leaf-1/2", symbol_error_counter=9)
> sim.reboot("leaf-1")
> perf_get("PortCounters", "leaf-1/2").symbol_error_counter
0
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Node starlark.Value }) (starlark.Value, error) {
		return powerOf(c, a.Node, (*sim.Cables).Reboot)
	}),
}

func powerOf(c *lang.Call, node starlark.Value, do func(*sim.Cables, mad.GUID) error) (starlark.Value, error) {
	s := c.Recv.(*Sim)
	guid, err := s.nodeAt(node)
	if err != nil {
		return nil, lang.ParamError("node", "%w", err)
	}
	return alter(c, func() error { return do(s.Cables, guid) })
}

// restartSMMethod is sim.restart_sm().
var restartSMMethod = lang.Builtin{
	Name:   "restart_sm",
	Params: []lang.Param{{Name: "node", Kind: KindTarget, Default: "None", Doc: "the node of the new subnet manager, or its name; None: that of the old one"}},
	Doc: `Stops the subnet manager and starts another.
The new one has no subscriptions.`,
	Example: `
> sub = sa_subscribe(trap=128)
> sim.restart_sm()
> sub.next(timeout="2m").reason
"the subnet administrator had lost the subscription; subscribed again, but events in between were not reported"
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Node starlark.Value }) (starlark.Value, error) {
		s := c.Recv.(*Sim)
		var guid mad.GUID
		if a.Node != nil {
			var err error
			if guid, err = s.nodeAt(a.Node); err != nil {
				return nil, lang.ParamError("node", "%w", err)
			}
		}
		return alter(c, func() error { return s.SM.Restart(guid) })
	}),
}

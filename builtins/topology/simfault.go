package topology

import (
	"math"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/fabric/sim"
	"fabsh/fabric/sim/spec"
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// unlinkMethod is sim.unlink().
var unlinkMethod = lang.Builtin{
	Name:   "unlink",
	Params: []lang.Param{{Name: "port", Kind: KindTarget, Doc: `a port of a fabric, or "NAME/PORT"`}},
	Doc: `Pulls the cable off a port.
Both ends count LinkDowned, as whenever a link goes down. The switches at its ends send trap 128. The subnet manager reports it, computes other routes, and reports trap 65 for each port that it no longer reaches.`,
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
		return changeSim(c, func() error { return s.Cables.Unlink(at.Node, at.Num) })
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
			return changeSim(c, func() error { return s.Cables.Link(from.Node, from.Num) })
		}
		to, err := s.portAt(a.To)
		if err != nil {
			return nil, lang.ParamError("to", "%w", err)
		}
		return changeSim(c, func() error { return s.Cables.Recable([2]sim.Cable{from, to}) })
	}),
}

// recoverMethod is sim.recover().
var recoverMethod = lang.Builtin{
	Name:   "recover",
	Params: []lang.Param{{Name: "port", Kind: KindTarget, Doc: `a port of a fabric, or "NAME/PORT"`}},
	Doc: `Has the link at a port recover from errors without going down.
Both ends count LinkErrorRecovery; no packet is lost. For many: sim.errors(port, link_error_recovery_counter="6/m").`,
	Example: `
> f = discover()
> sim.recover("leaf-1/5")
> [perf_get("PortCounters", p).link_error_recovery_counter for p in ["leaf-1/5", "spine-1/1"]]
[1, 1]
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Port starlark.Value }) (starlark.Value, error) {
		s := c.Recv.(*Sim)
		at, err := s.portAt(a.Port)
		if err != nil {
			return nil, lang.ParamError("port", "%w", err)
		}
		return changeSim(c, func() error { return s.Cables.Recover(at.Node, at.Num) })
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
		return changeSim(c, func() error { return s.Cables.Swap(p, q) })
	}),
}

// speedMethod is sim.speed().
var speedMethod = lang.Builtin{
	Name: "speed",
	Params: []lang.Param{
		{Name: "port", Kind: KindTarget, Doc: `a port of a fabric, or "NAME/PORT"`},
		{Name: "speed", Kind: lang.KindText, Default: "None", Doc: `such as "edr"; None: unchanged`},
		{Name: "width", Kind: lang.KindText, Default: "None", Keyword: true, Doc: `such as "2x"; None: unchanged`},
		{Name: "once", Kind: lang.KindBool, Default: "False", Keyword: true, Doc: "only this time: when the link goes down and trains again, as after a reset, it has what both ends have enabled"},
	},
	Doc: `Limits the speed and the width of the link at a port, as a bad cable does.
The link goes down, which both ends count, and trains to no more than these, below what the ends have enabled. This lasts until another call, or another cable. If the two ends did not support them, they do afterwards.`,
	Example: `
> sim.speed("leaf-1/2", "edr", width="2x")
> l = discover().node("leaf-1").ports[2].link
> (l.width, l.speed, l.best_width, l.best_speed)
("2x", "edr", "4x", "hdr")
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Port         starlark.Value
		Speed, Width *string
		Once         bool
	}) (starlark.Value, error) {
		s := c.Recv.(*Sim)
		at, err := s.portAt(a.Port)
		if err != nil {
			return nil, lang.ParamError("port", "%w", err)
		}
		if a.Speed == nil && a.Width == nil {
			return nil, lang.Errorf("missing argument: speed or width")
		}
		return changeSim(c, func() error {
			return s.Cables.SetLink(at.Node, at.Num, state.Limit{Speed: textOrEmpty(a.Speed), Width: textOrEmpty(a.Width), Once: a.Once})
		})
	}),
}

func textOrEmpty(s *string) string {
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
		return changePower(c, a.Node, (*sim.Cables).Kill)
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
		return changePower(c, a.Node, (*sim.Cables).Reboot)
	}),
}

func changePower(c *lang.Call, node starlark.Value, do func(*sim.Cables, mad.GUID) error) (starlark.Value, error) {
	s := c.Recv.(*Sim)
	guid, err := s.nodeAt(node)
	if err != nil {
		return nil, lang.ParamError("node", "%w", err)
	}
	return changeSim(c, func() error { return do(s.Cables, guid) })
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
		return changeSim(c, func() error { return s.SM.Restart(guid) })
	}),
}

// lossMethod is sim.loss().
var lossMethod = lang.Builtin{
	Name: "loss",
	Params: []lang.Param{
		{Name: "probability", Kind: lang.KindAny, Doc: "probability, from 0 to 1, that a request is lost, and that its answer is lost"},
		{Name: "where", Kind: KindTarget, Default: "None", Keyword: true, Doc: "a node or a port, NAME or NAME/PORT: only MADs through it are lost; None: any MAD"},
	},
	Doc: `Loses MADs from now on; the seed of -F sim: determines which. sim.loss(0) stops it.`,
	Example: `
> sim.loss(1, where="leaf-1/2")
> catch(smp_get, "NodeInfo", dr("0,1,2")).status
"timed out"
> sim.loss(0, where="leaf-1/2")
> smp_get("NodeInfo", dr("0,1,2")).num_ports
1
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Probability, Where starlark.Value }) (starlark.Value, error) {
		s := c.Recv.(*Sim)
		p, ok := rateNumber(a.Probability)
		if !ok || p > 1 {
			return nil, lang.ParamError("probability", "got %v, want a number from 0 to 1", a.Probability)
		}
		var at sim.Cable
		if a.Where != nil {
			var err error
			if at, err = s.placeAt(a.Where, -1); err != nil {
				return nil, lang.ParamError("where", "%w", err)
			}
		}
		return changeSim(c, func() error { return s.Faults.SetLoss(p, at.Node, at.Num) })
	}),
}

// delayMethod is sim.delay().
var delayMethod = lang.Builtin{
	Name: "delay",
	Params: []lang.Param{
		{Name: "delay", Kind: lang.KindDuration, Doc: "time from a request to its answer"},
		{Name: "jitter", Kind: lang.KindDuration, Default: `"0s"`, Keyword: true, Doc: "maximum of the random time that is added"},
	},
	Doc: `Delays answers from now on. The delay is real time, also with --virtual-time.`,
	Example: `
> sim.delay("1ms")
> smp_get("NodeInfo", dr("0,1")).num_ports
8
> sim.delay(0)
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Delay, Jitter time.Duration }) (starlark.Value, error) {
		return changeSim(c, func() error { return c.Recv.(*Sim).Faults.SetDelay(a.Delay, a.Jitter) })
	}),
}

// busyMethod is sim.busy().
var busyMethod = lang.Builtin{
	Name: "busy",
	Params: []lang.Param{
		{Name: "node", Kind: KindTarget, Doc: "a node of a fabric, or its name"},
		{Name: "requests", Kind: lang.KindInt, Doc: "number of requests"},
	},
	Doc: `Makes the agents of a node answer BUSY to the next requests, which are repeated.`,
	Example: `
> sim.busy("leaf-1", 3)
> smp_get("NodeInfo", dr("0,1")).num_ports
8
> stats().busy
3
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Node     starlark.Value
		Requests int
	}) (starlark.Value, error) {
		s := c.Recv.(*Sim)
		guid, err := s.nodeAt(a.Node)
		if err != nil {
			return nil, lang.ParamError("node", "%w", err)
		}
		return changeSim(c, func() error { return s.Faults.SetBusy(guid, a.Requests) })
	}),
}

// mkeyMethod is sim.m_key().
var mkeyMethod = lang.Builtin{
	Name: "m_key",
	Params: []lang.Param{
		{Name: "node", Kind: KindTarget, Doc: "a node of a fabric, or its name"},
		{Name: "key", Kind: lang.KindAny, Doc: "a 64-bit number; 0: no key"},
		{Name: "protect", Kind: lang.KindInt, Default: "1", Keyword: true, Doc: "protection level: 0 and 1 protect against Sets, 2 and 3 also against Gets"},
		{Name: "lease", Kind: lang.KindDuration, Default: `"0s"`, Keyword: true, Doc: "lease period: if no correct key arrives within it after a wrong key, the protection ends; 0: never"},
	},
	Doc: `Protects a node with an M_Key that the session does not know; see --keys.`,
	Example: `
> sim.m_key("leaf-1", 0x1234, protect=2)
> catch(smp_get, "NodeInfo", dr("0,1")).status
"timed out"
> sim.m_key("leaf-1", 0)
> smp_get("NodeInfo", dr("0,1")).num_ports
8
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Node, Key starlark.Value
		Protect   int
		Lease     time.Duration
	}) (starlark.Value, error) {
		s := c.Recv.(*Sim)
		guid, err := s.nodeAt(a.Node)
		if err != nil {
			return nil, lang.ParamError("node", "%w", err)
		}
		n, _ := a.Key.(starlark.Int)
		key, ok := n.Uint64()
		if _, is := a.Key.(starlark.Int); !is || !ok { // the key is not shown
			return nil, lang.ParamError("key", "got %s, want a 64-bit int", a.Key.Type())
		}
		if a.Protect < 0 || a.Protect > 3 {
			return nil, lang.ParamError("protect", "got %d, want 0 to 3", a.Protect)
		}
		seconds := math.Ceil(a.Lease.Seconds())
		if seconds > math.MaxUint16 {
			return nil, lang.ParamError("lease", "got %v, want at most 65535 seconds", a.Lease)
		}
		return changeSim(c, func() error { return s.Edit.MKey(guid, key, uint8(a.Protect), uint16(seconds)) })
	}),
}

// trapMethod is sim.trap().
var trapMethod = lang.Builtin{
	Name: "trap",
	Params: []lang.Param{
		{Name: "number", Kind: lang.KindInt, Doc: "trap number: 128 to 131, 144, 145, 256 to 259"},
		{Name: "where", Kind: KindTarget, Doc: "the agent that sends it: a node or a port, NAME or NAME/PORT"},
		{Name: "**fields", Kind: records.KindFields, Doc: "fields of the notice, and of data_details for this trap number: lid_addr1=5, key=0x8001"},
	},
	Doc: `Makes an agent send a trap to its subnet manager, which reports it to subscribers.
The event itself does not happen. Traps 257 to 259 name the addresses of the agent, unless fields give others.`,
	Example: `
> sub = sa_subscribe(trap=130)
> sim.trap(130, "leaf-1/2")
> n = sub.next(timeout="10s")
> n.trap_number
130
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Number int
		Where  starlark.Value
		Fields []starlark.Tuple
	}) (starlark.Value, error) {
		s := c.Recv.(*Sim)
		at, err := s.placeAt(a.Where, 0)
		if err != nil {
			return nil, lang.ParamError("where", "%w", err)
		}
		set := func(layout *mad.Attribute, notice []byte) error {
			for _, kv := range a.Fields {
				if _, err := records.SetNamed(layout, notice, string(kv[0].(starlark.String)), kv[1]); err != nil {
					return err
				}
			}
			return nil
		}
		return changeSim(c, func() error { return s.Notices.SendTrap(a.Number, at.Node, at.Num, set) })
	}),
}

// arMethod is sim.ar().
var arMethod = lang.Builtin{
	Name: "ar",
	Params: []lang.Param{
		{Name: "engine", Kind: lang.KindText, Default: `"updn"`, Doc: "routing engine, which determines the ports that may be chosen: " + strings.Join(state.LFTEngines, ", ")},
		{Name: "options", Kind: lang.KindText, Default: `""`, Keyword: true, Doc: "several with +: " + spec.AdaptiveOptionsDoc()},
	},
	Doc: `Lets all switches of Mellanox and NVIDIA route adaptively, as with -F sim:ar=ENGINE. The subnet manager computes the tables again. Faults of adaptive routing end.`,
	Example: `
> f = discover()
> sim.ar("updn", options="hbf+pfrn")
> smp_get("AdaptiveRoutingInfo", "leaf-1").e
1
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Engine, Options string }) (starlark.Value, error) {
		set, err := spec.ParseAdaptive(a.Engine, a.Options)
		if err != nil {
			return nil, lang.ParamError("engine", "%w", err)
		}
		return changeSim(c, func() error {
			c.Recv.(*Sim).Edit.Adaptive(set)
			return nil
		})
	}),
}

// arFaultMethod is sim.ar_fault().
var arFaultMethod = lang.Builtin{
	Name: "ar_fault",
	Params: []lang.Param{
		{Name: "switch", Kind: KindTarget, Doc: "a switch, or its name"},
		{Name: "fault", Kind: lang.KindText, Doc: state.AdaptiveFaultDoc()},
	},
	Doc: `Gives a switch a fault of adaptive routing. It must have it: see sim.ar.
Faults of groups concern one group, and return when the subnet manager computes the tables again.`,
	Example: `
> f = discover()
> sim.ar()
> sim.ar_fault("leaf-1", "off")
> smp_get("AdaptiveRoutingInfo", "leaf-1").e
0
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Switch starlark.Value
		Fault  string
	}) (starlark.Value, error) {
		s := c.Recv.(*Sim)
		guid, err := s.nodeAt(a.Switch)
		if err != nil {
			return nil, lang.ParamError("switch", "%w", err)
		}
		fault, err := state.AdaptiveFaultNamed(a.Fault)
		if err != nil {
			return nil, lang.ParamError("fault", "%w", err)
		}
		return changeSim(c, func() error { return s.Edit.BreakAdaptive(guid, fault) })
	}),
}

package topology

import (
	"math"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/fabric/sim"
	"fabsh/mad"
)

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
		p, ok := number(a.Probability)
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
		return alter(c, func() error { return s.Faults.SetLoss(p, at.Node, at.Num) })
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
		return alter(c, func() error { return c.Recv.(*Sim).Faults.SetDelay(a.Delay, a.Jitter) })
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
		return alter(c, func() error { return s.Faults.SetBusy(guid, a.Requests) })
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
		return alter(c, func() error { return s.Edit.MKey(guid, key, uint8(a.Protect), uint16(seconds)) })
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
		return alter(c, func() error { return s.Notices.SendTrap(a.Number, at.Node, at.Num, set) })
	}),
}

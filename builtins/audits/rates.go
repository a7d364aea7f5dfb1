package audits

import (
	"fmt"
	"reflect"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/datagrams"
	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/audit"
	"fabsh/mad"
)

// span is the time between two reads; sinceRun: since what the run before has read.
type span time.Duration

const sinceRun span = -1

// overLast is the word for sinceRun.
const overLast = "last"

// kindOver is a duration, or "last".
var kindOver = &lang.Kind{
	Convert: toSpan,
	Type:    reflect.TypeFor[span](),
	Default: func(text string) any {
		if d, ok := lang.KindDuration.Default(text).(time.Duration); ok {
			return span(d)
		}
		return nil
	},
}

func toSpan(v starlark.Value) (any, error) {
	if s, ok := starlark.AsString(v); ok && s == overLast {
		return sinceRun, nil
	}
	d, err := lang.KindDuration.Convert(v)
	if err != nil {
		return nil, fmt.Errorf("%w; or write %q", err, overLast)
	}
	if d.(time.Duration) < audit.MinWindow {
		return nil, fmt.Errorf("got %v, want %v or more: agents do not renew counters at each read", d, audit.MinWindow)
	}
	return span(d.(time.Duration)), nil
}

// PerfRates is perf_rates: counters as rates between two reads.
var PerfRates = lang.Builtin{
	Name:  "perf_rates",
	Group: datagrams.GroupMAD,
	Params: []lang.Param{
		{Name: "target", Kind: topology.KindTarget, Doc: `one port of the fabric or an iterable of them: sw.ports, fabric.ports, "leaf-1/3"`},
		{Name: "over", Kind: kindOver, Default: `"10s"`, Keyword: true, Doc: `the time between the two reads, 2s or more; "last": since the read that the run before has kept (--state)`},
	},
	Doc: `Reads the counters of ports twice, and gives their rates: a port_rates for each port.
It reads what a port has: PortCounters and PortCountersExtended, of which the wider counters count, and PortExtendedSpeedsCounters where the agent announces them; and PortRcvErrorDetails and PortXmitDiscardDetails of ports that have counted what these are the details of. It clears none.
Of a file, which has one read, no rate is known, but what counters stand at their largest value.
A rate that is not known is absent, and unknown says why. A port that gives no PortCounters is an error.`,
	Example: `
> sw = discover().switches[0]
> r = perf_rates(sw.ports[3], over="2s")
> r.window
2.0
> r.rates["symbol_error_counter"], r.moving
(0.0, [])
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Target starlark.Value
		Over   span
	}) (starlark.Value, error) {
		r, err := newReader(c, a.Target)
		if err != nil {
			return nil, err
		}
		switch {
		case topology.EnvOf(c.Runtime()).Engine == nil:
			return onlyRead(c, r)
		case a.Over == sinceRun:
			return sinceLast(c, r)
		}
		return twice(c, r, time.Duration(a.Over))
	}),
}

// onlyRead is of a file: its counters were read once.
func onlyRead(c *lang.Call, r *reader) (starlark.Value, error) {
	ports, read, err := r.read()
	if err != nil {
		return nil, err
	}
	if run := keepingOf(c.Runtime()).run; run != nil {
		run.file = true
	}
	return r.rates(ports, read, nil)
}

// twice reads, waits, and reads again.
func twice(c *lang.Call, r *reader, over time.Duration) (starlark.Value, error) {
	before, first, err := r.read()
	if err != nil {
		return nil, err
	}
	if err := c.Sleep(over - c.Runtime().Clock.Now().Sub(first.Began)); err != nil {
		return nil, err
	}
	after, second, err := r.read()
	if err != nil {
		return nil, err
	}
	run := keepingOf(c.Runtime()).run
	run.join(second)
	return r.rates(after, second, append([]past{{before, first.Began}}, pastsOf(run.earlier(), after)...))
}

// past is an earlier read: its ports, by target.
type past struct {
	ports []*audit.PortRead
	began time.Time
}

// pastsOf are the ports of reads, the newest first.
func pastsOf(reads []*audit.Read, ports []*audit.PortRead) []past {
	list := make([]past, len(reads))
	for i, r := range reads {
		list[i] = past{make([]*audit.PortRead, len(ports)), r.Began}
		for j, p := range ports {
			if p != nil {
				list[i].ports[j] = r.Port(p.Key)
			}
		}
	}
	return list
}

// rates makes the values of all targets. Rates are since the first of earlier,
// bit error rates since any.
func (r *reader) rates(after []*audit.PortRead, read *audit.Read, earlier []past) (starlark.Value, error) {
	windows := make([][]audit.Window, len(after))
	for _, e := range earlier {
		keepingOf(r.c.Runtime()).run.rate(read.Began.Sub(e.began))
		fell := map[mad.GUID]audit.NodeFall{}
		for i, p := range after {
			if p != nil {
				audit.AddFall(fell, e.ports[i], p)
			}
		}
		for i, p := range after {
			if p != nil && e.ports[i] != nil {
				windows[i] = append(windows[i], audit.NewWindow(e.ports[i], p, read.Began.Sub(e.began), fell))
			}
		}
	}
	x := keepingOf(r.c.Runtime()).run
	for i, p := range after {
		if r.values[i] != nil || p == nil {
			x.tell(audit.PortRates{Port: r.ports[i], TimedOut: r.silent[i]})
			continue
		}
		if len(windows[i]) == 0 {
			windows[i] = []audit.Window{audit.NewWindow(nil, p, 0, nil)}
		}
		r.values[i] = &portRates{port: r.ports[i], windows: windows[i]}
		x.tell(audit.PortRates{Port: r.ports[i], Windows: windows[i]})
	}
	return topology.Results(r.values, r.many)
}

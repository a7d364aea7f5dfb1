package audits

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/datagrams"
	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/audit"
)

// span is what a read is compared with: a read some time earlier, the previous run, a file,
// or the fabric of a file.
type span struct {
	time time.Duration
	last bool
	path string
	file *topology.Fabric
}

// overLast is the word for the read of the previous run.
const overLast = "last"

// kindOver is a span.
var kindOver = &lang.Kind{
	Convert: toSpan,
	Type:    reflect.TypeFor[span](),
	Default: func(text string) any {
		if d, ok := lang.KindDuration.Default(text).(time.Duration); ok {
			return span{time: d}
		}
		return nil
	},
}

func toSpan(v starlark.Value) (any, error) {
	if f, ok := v.(*topology.Fabric); ok {
		return span{file: f}, nil
	}
	text, isText := starlark.AsString(v)
	if text == overLast {
		return span{last: true}, nil
	}
	d, err := lang.KindDuration.Convert(v)
	switch {
	case err == nil:
	case isText && strings.ContainsAny(text, "./"): // no duration has a name like that
		return span{path: text}, nil
	default:
		return nil, fmt.Errorf("%w; also valid: %q, and the path of a snapshot such as ./FILE", err, overLast)
	}
	if d.(time.Duration) < audit.MinWindow {
		return nil, fmt.Errorf("%v: too short; want %v or more, because agents do not update counters at each read", d, audit.MinWindow)
	}
	return span{time: d.(time.Duration)}, nil
}

// PerfRates is perf_rates(), which reads counters as rates.
var PerfRates = lang.Builtin{
	Name:  "perf_rates",
	Group: datagrams.GroupMAD,
	Params: []lang.Param{
		{Name: "target", Kind: topology.KindTarget, Doc: `one port of the fabric or an iterable of them: sw.ports, fabric.ports, "leaf-1/3"`},
		{Name: "over", Kind: kindOver, Default: `"10s"`, Keyword: true, Doc: `the time between the two reads, 2s or more; "last": since the previous run of the job (--state); or an earlier snapshot with counters: its path, such as "./monday.fab", or its load_fabric()`},
	},
	Doc: `Reads the counters of ports twice, and returns their rates: a port_rates for each port.
It reads the attributes that a port supports: PortCounters and PortCountersExtended, whose wider counters replace the others; PortExtendedSpeedsCounters; and PortRcvErrorDetails and PortXmitDiscardDetails of ports that have counted such errors. It clears no counters.
A file has one read, so rates need an earlier snapshot; without one, only the counters at their largest value are known.
Unknown rates are absent; unknown has the reasons. A port that did not answer PortCounters is an error.`,
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
		var known *audit.Agents
		if a.Over.last && topology.EnvOf(c.Runtime()).Engine != nil {
			var err error
			if known, err = agentsOfRun(c); err != nil {
				return nil, err
			}
		}
		r, err := newReader(c, a.Target, known)
		if err != nil {
			return nil, err
		}
		switch {
		case a.Over.path != "" || a.Over.file != nil:
			return sinceFile(c, r, a.Over)
		case topology.EnvOf(c.Runtime()).Engine == nil:
			return onlyRead(c, r)
		case a.Over.last:
			return sinceLast(c, r)
		}
		return twice(c, r, a.Over.time)
	}),
}

// sinceFile reads once, and compares with a file.
func sinceFile(c *lang.Call, r *reader, over span) (starlark.Value, error) {
	f, name := over.file, "the fabric"
	if over.path != "" {
		var err error
		if f, err = topology.OpenFabric(c, over.path); err != nil {
			return nil, err
		}
		name = strconv.Quote(over.path)
	}
	before, err := audit.ReadOf(f.Fabric)
	if err != nil {
		return nil, lang.ParamError("over", "%s: %w", name, err)
	}
	ports, read, err := r.read()
	if err != nil {
		return nil, err
	}
	switch window := read.Began.Sub(before.Began); {
	case read.Began.IsZero():
		return nil, lang.ParamError("over", "the file has no time of its counters; use a snapshot of fabsh with --all")
	case window > 0 && window < audit.MinWindow:
		return nil, lang.ParamError("over", "%s: its counters were read only %v earlier; want %v or more, because agents do not update counters at each read", name, window.Round(time.Millisecond), audit.MinWindow)
	case window <= 0:
		return nil, lang.ParamError("over", "%s: its counters were read at %s, not before those compared with it, at %s", name, before.Began.Format(time.DateTime), read.Began.Format(time.DateTime))
	}
	run := keepingOf(c.Runtime()).run
	run.join(read)
	return r.rates(ports, since(read, append([]*audit.Read{before}, run.earlier()...)...))
}

// onlyRead returns the counters of a file, which were read once.
func onlyRead(c *lang.Call, r *reader) (starlark.Value, error) {
	ports, read, err := r.read()
	if err != nil {
		return nil, err
	}
	if run := keepingOf(c.Runtime()).run; run != nil {
		run.file = true
	}
	return r.rates(ports, since(read))
}

// twice reads, waits, and reads again.
func twice(c *lang.Call, r *reader, over time.Duration) (starlark.Value, error) {
	clock := c.Runtime().Clock
	var before, after []audit.PortRead
	var first, second *audit.Read
	err := c.Block(func(ctx context.Context) (err error) { // as a whole, so that other fibers do not delay it
		if before, first, err = r.readAll(ctx); err != nil {
			return err
		}
		if err := lang.Wait(ctx, clock, remaining(clock, over, first.Began)); err != nil {
			return lang.Errorf("%w", err)
		}
		after, second, err = r.readAll(ctx)
		return err
	})
	r.settle()
	if err != nil {
		return nil, err
	}
	run := keepingOf(c.Runtime()).run
	run.join(second)
	between := new(audit.Comparison)
	between.AddPorts(second, first, after, before)
	for _, e := range run.earlier() {
		between.Add(second, e)
	}
	return r.rates(after, between)
}

// since compares a read with earlier ones, the newest first.
func since(read *audit.Read, earlier ...*audit.Read) *audit.Comparison {
	c := new(audit.Comparison)
	for _, e := range earlier {
		c.Add(read, e)
	}
	return c
}

// rates returns the values of all targets. Rates are since the first of the earlier reads, bit
// error rates since any of them.
func (r *reader) rates(after []audit.PortRead, since *audit.Comparison) (starlark.Value, error) {
	r.compare(after, since)
	return topology.Results(r.values, r.many)
}

// compare returns the rates, and stores their values in r.
func (r *reader) compare(after []audit.PortRead, since *audit.Comparison) []audit.PortRates {
	x := keepingOf(r.c.Runtime()).run
	for gap := range since.Gaps() {
		x.rate(gap)
	}
	rates := make([]audit.PortRates, len(after))
	for i, p := range after {
		rates[i] = audit.PortRates{Port: r.ports[i], TimedOut: r.silent[i]}
		if r.values[i] == nil && p.Known() {
			rates[i].Read, rates[i].Since = p, since
			r.values[i] = &portRates{PortRates: rates[i]}
		}
	}
	x.noteAll(rates)
	r.forget(rates)
	return rates
}

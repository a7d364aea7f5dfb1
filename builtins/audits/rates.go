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
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/history"
)

// span identifies the earlier read that a read is compared with: some time before, of the previous
// run, of a file, or of the fabric of a file.
type span struct {
	time time.Duration
	last bool
	path string
	file *topology.Fabric
}

// overLast is the word for the read of the previous run.
const overLast = "last"

// kindOver is the kind of the parameter over.
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

// toSpan converts a duration, the word "last", the path of a snapshot, or a fabric.
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
	case isText && strings.ContainsAny(text, "./"): // no duration contains these
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
		{Name: "over", Kind: kindOver, Default: `"10s"`, Keyword: true, Doc: `the time between the two reads, 2s or more; "last": since the previous run of the job (--state); or an earlier snapshot, data base, directory or archive with counters: its path, such as "./monday.fab", or its load_fabric()`},
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
		if topology.EnvOf(c.Runtime()).History != nil && a.Over.time >= historyWindow {
			return inHistory(c, a.Target, a.Over.time)
		}
		var known *audit.Agents
		if a.Over.last && topology.EnvOf(c.Runtime()).Engine != nil {
			var err error
			if known, err = collectorOf(c.Fiber()).job.knownAgents(c); err != nil {
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
			return readOnce(c, r)
		case a.Over.last:
			return sinceLast(c, r)
		}
		return readTwice(c, r, a.Over.time)
	}),
}

// historyWindow is the shortest window of counters of a history.
const historyWindow = 5 * time.Minute

// inHistory returns what the history recorded that counters grew by until the time of the fabric. It has
// errors, and no traffic.
func inHistory(c *lang.Call, target starlark.Value, over time.Duration) (starlark.Value, error) {
	targets, many, err := (&topology.Resolver{Call: c}).Targets(target)
	if err != nil {
		return nil, err
	}
	r := &reader{c: c, targets: targets, many: many, ports: make([]*fabric.Port, len(targets)), values: make([]starlark.Value, len(targets)), silent: make([]bool, len(targets))}
	for i, t := range targets {
		if t.Node == nil || t.Port == topology.NoPortGiven || t.Node.Port(t.Port) == nil {
			return nil, lang.ParamError("target", `%s is not a port of the fabric; use sw.ports, fabric.ports or "NAME/PORT"`, t.Label)
		}
		r.ports[i] = t.Node.Port(t.Port)
	}
	from := topology.EnvOf(c.Runtime()).History
	var grown map[history.End]map[string]uint64
	err = c.Block(func(ctx context.Context) error {
		h, err := history.Open(ctx, from.Path)
		if err != nil {
			return err
		}
		defer h.Close()
		grown, err = h.Growth(ctx, from.Time, over)
		return err
	})
	if err != nil {
		return nil, lang.ParamError("over", "%w", err)
	}
	c.Fiber().Warn("counters of the history: errors of the %v before %s; traffic is kept by hours, rounded to 10 %%, and not judged here (fabsh history plot PORT traffic)", over, from.Time.Local().Format(time.RFC3339))
	before, after := audit.GrownReads(r.ports, from.Time, over, func(p *fabric.Port) map[string]uint64 {
		return grown[history.End{Node: p.Node().GUID(), Port: p.Num()}]
	})
	ports := make([]audit.PortRead, len(r.ports))
	for i, p := range r.ports {
		if key, ok := audit.KeyOf(p); ok {
			ports[i] = after.Port(key)
		}
		if !ports[i].Known() && r.values[i] == nil {
			r.values[i] = lang.NewFailure(fmt.Errorf("perf_rates %s: not recorded", p.Name()))
		}
	}
	return r.rates(ports, compareReads(after, before))
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
	run := collectorOf(c.Fiber()).job
	run.join(read)
	return r.rates(ports, compareReads(read, append([]*audit.Read{before}, run.earlier()...)...))
}

// readOnce returns the counters of a file, which were read once.
func readOnce(c *lang.Call, r *reader) (starlark.Value, error) {
	ports, read, err := r.read()
	if err != nil {
		return nil, err
	}
	if run := collectorOf(c.Fiber()).job; run != nil {
		run.file = true
	}
	return r.rates(ports, compareReads(read))
}

// readTwice reads, waits, and reads again.
func readTwice(c *lang.Call, r *reader, over time.Duration) (starlark.Value, error) {
	clock := c.Clock()
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
	run := collectorOf(c.Fiber()).job
	run.join(second)
	between := new(audit.Comparison)
	between.AddPorts(second, first, after, before)
	for _, e := range run.earlier() {
		between.Add(second, e)
	}
	return r.rates(after, between)
}

// compareReads compares a read with earlier ones, the newest first.
func compareReads(read *audit.Read, earlier ...*audit.Read) *audit.Comparison {
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
	x := collectorOf(r.c.Fiber()).job
	for gap := range since.Gaps() {
		x.rate(gap)
	}
	rates, recorded := make([]audit.PortRates, len(after)), x.lookUp(r.c).downs
	for i, p := range after {
		rates[i] = audit.PortRates{Port: r.ports[i], TimedOut: r.silent[i]}
		if r.values[i] == nil && p.Known() {
			rates[i].Read, rates[i].Since = p, since
			r.values[i] = &portRates{PortRates: rates[i], recorded: recorded}
		}
	}
	x.noteAll(rates)
	r.forget(rates)
	return rates
}

// Poller reads the counters of ports repeatedly, and compares each read with the previous
// one. The zero value is ready to use.
type Poller struct {
	last   *audit.Read
	agents audit.Agents
}

// Last returns the counters of the previous Read; nil: none.
func (p *Poller) Last() *audit.Read { return p.last }

// Read returns the rates of the counters of ports since the previous Read. After the first
// one, and for a port that is new, the windows have no rates. A port that did not answer has
// no windows; an error is of the host or the session.
func (p *Poller) Read(c *lang.Call, ports []*fabric.Port) ([]audit.PortRates, error) {
	targets := make(starlark.Tuple, len(ports))
	for i, port := range ports {
		targets[i] = topology.PortOf(port)
	}
	r, err := newReader(c, targets, &p.agents)
	if err != nil {
		return nil, err
	}
	after, read, err := r.read()
	if err != nil {
		return nil, err
	}
	before := new(audit.Comparison)
	if p.last != nil {
		before.Add(read, p.last)
	}
	p.last = read
	return r.compare(after, before), nil
}

// ratesOver reads the counters of ports twice, and returns their rates between the reads.
func ratesOver(c *lang.Call, ports []*fabric.Port, over time.Duration) ([]audit.PortRates, error) {
	var p Poller
	if _, err := p.Read(c, ports); err != nil {
		return nil, err
	}
	if err := c.Sleep(remaining(c.Clock(), over, p.last.Began)); err != nil {
		return nil, err
	}
	return p.Read(c, ports)
}

// remaining returns the rest of a duration since began; all of it if the clock was set back
// since.
func remaining(clock lang.Clock, over time.Duration, began time.Time) time.Duration {
	return min(over, over-clock.Now().Sub(began))
}

// LoadThresholds is load_thresholds().
var LoadThresholds = lang.Builtin{
	Name:   "load_thresholds",
	Group:  GroupAudit,
	Params: []lang.Param{{Name: "path", Kind: lang.KindPath, Doc: "the file; as for fs.read"}},
	Doc: `Reads limits of counters from a file in the format of infiniband-diags' error_thresholds.
It has lines such as SymbolErrorCounter=10 or LinkErrorRecoveryCounter=5/min; # begins a comment. Returns a dict of counter names, as in port_rates.counts, to tuples: the number, and its window in seconds, None for a window of any length. infiniband-diags compares the number with the total since the counter was cleared.`,
	Example: `
> load_thresholds("error_thresholds")
{"symbol_error_counter": (10, None), "link_error_recovery_counter": (5, 60.0)}
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Path string }) (starlark.Value, error) {
		var list []audit.Threshold
		err := c.Block(func(ctx context.Context) error {
			file, err := c.Runtime().Files.Open(ctx, a.Path)
			if err != nil {
				return lang.Errorf("%w", err)
			}
			defer file.Close()
			if list, err = audit.ReadThresholds(file, a.Path); err != nil {
				return lang.Errorf("%w", err)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		d := starlark.NewDict(len(list))
		for _, t := range list {
			d.SetKey(starlark.String(t.Counter), starlark.Tuple{starlark.MakeUint64(t.Count), lang.OrNone(t.Per > 0, seconds(t.Per))})
		}
		return d, nil
	}),
}

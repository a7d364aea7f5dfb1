package audits

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/history"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// portRates is the value `port_rates`: the rates of a port's counters.
type portRates struct {
	audit.PortRates                    // rates are of the newest window
	summary         *summary           // of that window; nil: not made yet
	recorded        *history.PortDowns // in the history of the subnet; nil if unknown
}

// PortRatesType is the type of port_rates in scripts.
var PortRatesType *lang.Type[*portRates]

func init() {
	typed := func(name, typ, doc string, column bool, get func(*portRates) starlark.Value) lang.Member[*portRates] {
		return lang.Member[*portRates]{Name: name, Type: typ, Doc: doc, Column: column, Get: get}
	}
	member := func(name, doc string, column bool, get func(*portRates) starlark.Value) lang.Member[*portRates] {
		return typed(name, "", doc, column, get)
	}
	PortRatesType = lang.NewType("port_rates", "The rates of the counters of a port between two reads. Unknown rates are absent, never 0.",
		typed("port", "port", "the port", true, func(r *portRates) starlark.Value { return topology.PortOf(r.Port) }),
		typed("guid", "string", "its port GUID", true, func(r *portRates) starlark.Value { return topology.GUIDValue(r.Port.GUID()) }),
		typed("num", "int", "its number", true, func(r *portRates) starlark.Value { return starlark.MakeInt(r.Port.Num()) }),
		member("window", "seconds between the two reads, None without an earlier read", true, (*portRates).window),
		member("port_xmit_bytes", "bytes sent, per second; None if unknown", true, func(r *portRates) starlark.Value { return r.rate("port_xmit_bytes") }),
		member("port_rcv_bytes", "bytes received, per second; None if unknown", true, func(r *portRates) starlark.Value { return r.rate("port_rcv_bytes") }),
		member("port_xmit_wait", "ticks in which it had data to send but could not, per second; None if unknown", false, func(r *portRates) starlark.Value { return r.rate("port_xmit_wait") }),
		member("moving", "error counters that increased: a list of names", true, (*portRates).moving),
		member("rates", "a dict of known counters to their rates, per second. The names are those of perf_get's fields; data is port_xmit_bytes and port_rcv_bytes, in bytes", true, (*portRates).rates),
		member("counts", "a dict of the same counters to their increase in the window", true, (*portRates).counts),
		member("unknown", "a dict of reasons why rates are unknown to the names of the counters: "+whyDoc, true, (*portRates).unknown),
		member("quiet", "True if no error was counted (for symbol errors and link downs: in any window), no counter fell or is at its largest value, and all requests were answered", false, func(r *portRates) starlark.Value { return starlark.Bool(r.summed().quiet) }),
		member("saturated", "error counters at their largest value: a list of names", false, func(r *portRates) starlark.Value { return r.names(r.summed().saturated) }),
		member("groups", "groups of counters that the agent has: a tuple of words", false, (*portRates).groups),
		member("silent", "counters whose requests were not answered: a list of names", false, func(r *portRates) starlark.Value { return r.names(r.summed().silent) }),
		member("fell", "True if a counter of the port fell: it was cleared, or the node was rebooted", false, func(r *portRates) starlark.Value { return starlark.Bool(r.summed().fell) }),
		member("fec", "True if the counters of errors corrected by FEC are known", false, func(r *portRates) starlark.Value { return starlark.Bool(r.newest().FEC()) }),
		member("reset", "True if a counter fell at all ports of the node, which has several", false, func(r *portRates) starlark.Value { return starlark.Bool(r.summed().reset) }),
		lang.Member[*portRates]{Method: &countMethod},
		lang.Member[*portRates]{Method: &berMethod},
		lang.Member[*portRates]{Method: &downsMethod},
	)
}

// whyDoc explains the words of audit.Why.
const whyDoc = `"not_supported", the agent does not have the counter; "no_answer", in this read or the previous one; "no_earlier_read"; "too_short", the reads are less than a second apart, or the clock was set back in between; "replaced", another device has the port GUID now; "cleared", the counter fell, or was and is 0 while others of the port fell; "node_reset", the counters of all ports of the node fell: it was rebooted, or all were cleared; "saturated", the counter is at its largest value`

var _ lang.Factual = (*portRates)(nil)

// newest returns the newest window.
func (r *portRates) newest() *audit.Window {
	w := r.Newest()
	return &w
}

func (r *portRates) String() string        { return fmt.Sprintf("port_rates(%q)", r.Port.Name()) }
func (r *portRates) Type() string          { return "port_rates" }
func (r *portRates) Freeze()               {}
func (r *portRates) Truth() starlark.Bool  { return true }
func (r *portRates) Hash() (uint32, error) { return 0, lang.Unhashable(r) }
func (r *portRates) AttrNames() []string   { return PortRatesType.Names }
func (r *portRates) TypeDoc() lang.TypeDoc { return PortRatesType.TypeDoc() }
func (r *portRates) Schema() string        { return PortRatesType.Schema() }

func (r *portRates) Attr(name string) (starlark.Value, error) { return PortRatesType.Attr(r, name) }

// Facts returns the facts for a line of text; JSON and CSV have all.
func (r *portRates) Facts() []lang.Fact {
	facts := PortRatesType.Facts(r)
	for i := range facts {
		switch facts[i].Name {
		case "guid", "num", "rates", "counts", "unknown":
			facts[i].Code = true
		}
	}
	return facts
}

// Display returns the port, the counters that increased, and the unknown ones.
func (r *portRates) Display() string {
	facts := []lang.Fact{{Name: "port", Value: starlark.String(r.Port.Name())}, {Name: "window", Value: r.window()}}
	unknown := map[audit.Why][]string{}
	for i, c := range audit.Counters() {
		x := r.newest().Rate(i)
		switch {
		case x.Why != audit.Known:
			unknown[x.Why] = append(unknown[x.Why], c.Name)
		case x.Count > 0:
			facts = append(facts, lang.Fact{Name: c.Name, Value: starlark.String(fmt.Sprintf("%.5g/s (%d)", x.PerSecond(), x.Count))})
		}
	}
	for why := audit.NoAnswer; why <= audit.Saturated; why++ {
		if names := unknown[why]; names != nil {
			facts = append(facts, lang.Fact{Name: why.String(), Value: starlark.String(strings.Join(names, " "))})
		}
	}
	if n := len(unknown[audit.NotSupported]); n > 0 {
		facts = append(facts, lang.Fact{Name: "not_supported", Value: starlark.String(plural.Count(n, "counter", "counters"))})
	}
	return lang.Aligned(facts)
}

func (r *portRates) window() starlark.Value {
	d, ok := r.newest().Length()
	if !ok {
		return starlark.None
	}
	return seconds(d)
}

// seconds returns a duration in seconds, rounded to the millisecond: the rest is noise.
func seconds(d time.Duration) starlark.Value {
	return starlark.Float(d.Round(time.Millisecond).Seconds())
}

func (r *portRates) rate(name string) starlark.Value {
	x := r.newest().Rate(audit.CounterIndex(name))
	if x.Why != audit.Known {
		return starlark.None
	}
	return starlark.Float(x.PerSecond())
}

// groups returns a tuple, which can be a key of a dict.
func (r *portRates) groups() starlark.Value {
	var words starlark.Tuple
	for _, name := range r.newest().Groups() {
		words = append(words, starlark.String(name))
	}
	return words
}

func (r *portRates) moving() starlark.Value { return r.names(r.summed().moving) }

// known returns a dict of the counters with known rates.
func (r *portRates) known(of func(audit.Rate) starlark.Value) starlark.Value {
	d := new(starlark.Dict)
	for i, c := range audit.Counters() {
		if x := r.newest().Rate(i); x.Why == audit.Known {
			d.SetKey(starlark.String(c.Name), of(x))
		}
	}
	d.Freeze()
	return d
}

func (r *portRates) rates() starlark.Value {
	return r.known(func(x audit.Rate) starlark.Value { return starlark.Float(x.PerSecond()) })
}

func (r *portRates) counts() starlark.Value {
	return r.known(func(x audit.Rate) starlark.Value { return starlark.MakeUint64(x.Count) })
}

func (r *portRates) unknown() starlark.Value {
	names := map[audit.Why][]string{}
	for i, c := range audit.Counters() {
		if x := r.newest().Rate(i); x.Why != audit.Known {
			names[x.Why] = append(names[x.Why], c.Name)
		}
	}
	d := new(starlark.Dict)
	for why := audit.NotSupported; why <= audit.Saturated; why++ {
		if list := names[why]; list != nil {
			slices.Sort(list)
			d.SetKey(starlark.String(why.String()), lang.Texts(list))
		}
	}
	d.Freeze()
	return d
}

// summary has the counters of a port that need attention. Most ports have none.
type summary struct {
	moving, saturated, silent []int // indices of counters
	fell, reset, quiet        bool
}

// summed returns the summary, which it makes once.
func (r *portRates) summed() *summary {
	if r.summary != nil {
		return r.summary
	}
	s := new(summary)
	newest := r.newest()
	s.moving, s.saturated, s.silent = newest.Errors()
	s.fell, s.reset = newest.Fell()
	s.quiet = len(s.moving)+len(s.saturated)+len(s.silent) == 0 && !s.fell && r.quietBefore() && (r.recorded == nil || !r.recorded.Any(r.Port.Node().GUID(), r.Port.Num()))
	r.summary = s
	return s
}

// quietBefore reports whether no symbol error and no link down was counted in the windows
// other than the newest one.
func (r *portRates) quietBefore() bool {
	newest := true
	for w := range r.Windows() {
		if newest {
			newest = false
			continue
		}
		for _, counter := range longCounters() {
			if x := w.Rate(counter); x.Why == audit.Known && x.Count > 0 {
				return false
			}
		}
	}
	return true
}

// longCounters are the counters that audits compare in all windows, by index.
var longCounters = sync.OnceValue(func() []int {
	return []int{audit.CounterIndex("symbol_error_counter"), audit.CounterIndex("link_downed_counter")}
})

// names returns the names of counters as a list.
func (r *portRates) names(counters []int) starlark.Value {
	var names []string
	for _, i := range counters {
		names = append(names, audit.Counters()[i].Name)
	}
	list := lang.Texts(names)
	list.Freeze()
	return list
}

// countMethod is port_rates.count().
var countMethod = lang.Builtin{
	Name: "count",
	Params: []lang.Param{
		{Name: "counter", Kind: lang.KindText, Doc: `its name, as in counts: "link_downed_counter"`},
		{Name: "within", Kind: lang.KindDuration, Default: `"0s"`, Keyword: true, Doc: "use the longest window to a read that is kept, up to this length; 0s: use window"},
	},
	Doc: "Returns the increase of a counter, None if unknown.",
	Example: `
> perf_rates(discover().switches[0].ports[3], over="2s").count("link_downed_counter", within="12h")
0
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Counter string
		Within  time.Duration
	}) (starlark.Value, error) {
		counter := audit.CounterIndex(a.Counter)
		if counter < 0 {
			var names []string
			for _, c := range audit.Counters() {
				names = append(names, c.Name)
			}
			return nil, lang.ParamError("counter", "unknown counter %q%s", a.Counter, fabric.DidYouMean(a.Counter, names))
		}
		r := c.Recv.(*portRates)
		best := r.newest().Rate(counter)
		for w := range r.Windows() {
			if x := w.Rate(counter); x.Why == audit.Known && x.Window <= a.Within && x.Window > best.Window {
				best = x
			}
		}
		if best.Why != audit.Known {
			return starlark.None, nil
		}
		return starlark.MakeUint64(best.Count), nil
	}),
}

// LinkDownsType is the type of the result of port_rates.downs().
var LinkDownsType = &lang.ResultType{
	Name: "link_downs",
	Doc:  "How often a link went down in the last 24 hours, as far as the reads that are kept reach back.",
	Members: []lang.ResultMember{
		{Name: "count", Doc: "number of link-downs"},
		{Name: "recent", Doc: "number of link-downs since the previous read; None if that read does not have the port, as when its link was down"},
		{Name: "window", Doc: "seconds that the reads reach back, at most 24 hours; 0: unknown"},
		{Name: "flaps", Doc: "True if the link went down twice or more (NVIDIA's bring-up guide: two in 24 hours)"},
		{Name: "settled", Doc: "True if bit error rates count: the link is not known to have gone down in the last 125 minutes (NVIDIA's bring-up guide)"},
	},
}

// downsMethod is port_rates.downs().
var downsMethod = lang.Builtin{
	Name: "downs",
	Doc: `Returns how often the link went down in the last 24 hours: a link_downs.
Link-downs before the earliest read that is kept are unknown, and those between two reads count if both are in the last 24 hours. Where a history of the subnet reaches further back (fabsh history record), its link-downs count, without those of hosts and switches that restarted or of ports that were disabled.`,
	Example: `
> perf_rates(discover().switches[0].ports[3], over="2s").downs().flaps
False
`,
	Run: lang.Do(func(c *lang.Call, _ *struct{}) (starlark.Value, error) {
		r, now := c.Recv.(*portRates), c.Fiber().Clock().Now()
		list := r.Downs(now)
		d := audit.JudgeDowns(list, now)
		if r.recorded != nil { // without downs of hosts that restarted
			if recorded := audit.JudgeDowns(r.recorded.Of(r.Port.Node().GUID(), r.Port.Num()), now); recorded.Reach >= d.Reach {
				d = recorded
			}
		}
		recent := starlark.Value(starlark.None)
		if len(list) > 0 {
			recent = starlark.MakeUint64(list[0].Count)
		}
		return lang.NewResult(LinkDownsType, starlark.MakeUint64(d.Count), recent, seconds(d.Reach), starlark.Bool(d.Flaps()), starlark.Bool(d.Settled())), nil
	}),
}

// BERType is the type of the result of port_rates.ber().
var BERType = &lang.ResultType{
	Name: "bit_errors",
	Doc:  "The bit errors of a link in a window, judged by an allowed bit error rate.",
	Members: []lang.ResultMember{
		{Name: "verdict", Doc: `"ok"; "exceeded"; "window_too_short", too few bits to judge so few errors; "unknown", if the errors or the rate of the link are unknown`},
		{Name: "errors", Doc: "number of symbol errors in the window, None if unknown"},
		{Name: "allowed", Doc: "number of errors that the target allows: rate x seconds x target; None if unknown"},
		{Name: "window", Doc: "length of the window in seconds, None if unknown"},
		{Name: "needs", Doc: "length in seconds that a window needs for the verdict ok, None if unknown"},
		{Name: "target", Doc: "the allowed bit error rate"},
		{Name: "gbps", Doc: "data rate of the link in Gb/s, None if unknown"},
	},
}

// kindBER is the kind of a parameter that takes a bit error rate.
var kindBER = &lang.Kind{
	Convert: toBER,
	Type:    reflect.TypeFor[float64](),
	Default: func(text string) any {
		if f, err := strconv.ParseFloat(text, 64); err == nil {
			return f
		}
		return nil
	},
}

// toBER converts a bit error rate.
func toBER(v starlark.Value) (any, error) {
	f, ok := starlark.AsFloat(v)
	if !ok || !(f > 0) || f > 1 {
		return nil, fmt.Errorf("invalid bit error rate %s; want a number such as 1e-15", v)
	}
	return f, nil
}

// berMethod is port_rates.ber().
var berMethod = lang.Builtin{
	Name:   "ber",
	Params: []lang.Param{{Name: "target", Kind: kindBER, Default: "1e-15", Doc: "the allowed bit error rate"}},
	Doc: `Judges the symbol errors of the link by a bit error rate.
It uses the shortest window to an earlier read that is kept in which the target allows three errors, or the longest window if none does. If the target allows fewer than three errors, the verdict is exceeded if the probability of so many errors is below 1 in 1000 (Poisson); one error never exceeds the target.`,
	Example: `
> r = perf_rates(discover().switches[0].ports[3])
> r.ber(1e-11).verdict, r.ber(1e-15).verdict
("ok", "window_too_short")
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Target float64 }) (starlark.Value, error) {
		r := c.Recv.(*portRates)
		bits := 0.0 // the PortInfo of a link that is down has arbitrary values
		if r.Port.PhysicalState() == mad.PortPhysicalStateLinkUp {
			bits = audit.LinkBits(r.Port.Width(), r.Port.Speed())
		}
		return r.ber(a.Target, bits), nil
	}),
}

// ber returns the verdict of the shortest window that has one, else of the longest window.
func (r *portRates) ber(target, bits float64) starlark.Value {
	best := audit.BER{Verdict: audit.BERUnknown}
	counter := audit.CounterIndex("symbol_error_counter")
	known := false
	for w := range r.Windows() {
		x := w.Rate(counter)
		if x.Why != audit.Known || known && x.Window < best.Window {
			continue
		}
		best, known = audit.JudgeBER(x.Count, x.Window, bits, target), true
		if best.Verdict == audit.BEROK || best.Verdict == audit.BERExceeded {
			break
		}
	}
	return lang.NewResult(BERType, starlark.String(best.Verdict), lang.OrNone(known, starlark.MakeUint64(best.Errors)),
		lang.OrNone(known && bits > 0, starlark.Float(best.Allowed)), lang.OrNone(known, seconds(best.Window)), lang.OrNone(best.Needs > 0, seconds(best.Needs)),
		starlark.Float(target), lang.OrNone(bits > 0, starlark.Float(bits/1e9)))
}

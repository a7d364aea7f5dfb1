package audits

import (
	"sync"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/fabric/audit"
)

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
	s.quiet = len(s.moving)+len(s.saturated)+len(s.silent) == 0 && !s.fell && r.quietBefore()
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

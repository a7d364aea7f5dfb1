package audits

import (
	"fmt"
	"reflect"
	"strconv"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric/audit"
	"fabsh/mad"
)

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

// kindBER is a bit error rate.
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

// ber returns the verdict of the window that suits best.
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
	orNone := func(ok bool, v starlark.Value) starlark.Value {
		if !ok {
			return starlark.None
		}
		return v
	}
	return lang.NewResult(BERType, starlark.String(best.Verdict), orNone(known, starlark.MakeUint64(best.Errors)),
		orNone(known && bits > 0, starlark.Float(best.Allowed)), orNone(known, seconds(best.Window)), orNone(best.Needs > 0, seconds(best.Needs.Round(time.Millisecond))),
		starlark.Float(target), orNone(bits > 0, starlark.Float(bits/1e9)))
}

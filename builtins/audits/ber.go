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

// BERType is the type of what port_rates.ber() returns.
var BERType = &lang.ResultType{
	Name: "bit_errors",
	Doc:  "The bit errors of a link in a window, judged by a bit error rate that is allowed.",
	Members: []lang.ResultMember{
		{Name: "verdict", Doc: `"ok"; "exceeded"; "window_too_short", so that no errors, or so few, say nothing yet; "unknown", for the errors or the rate of the link are`},
		{Name: "errors", Doc: "how many symbol errors there were in the window, None if unknown"},
		{Name: "allowed", Doc: "how many the target allows: rate x seconds x target; None if unknown"},
		{Name: "window", Doc: "seconds, None if unknown"},
		{Name: "needs", Doc: "how many seconds a window must have for a verdict of ok, None if unknown"},
		{Name: "target", Doc: "the bit error rate that is allowed"},
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
		return nil, fmt.Errorf("got %s, want a bit error rate such as 1e-15", v)
	}
	return f, nil
}

// berMethod is port_rates.ber().
var berMethod = lang.Builtin{
	Name:   "ber",
	Params: []lang.Param{{Name: "target", Kind: kindBER, Default: "1e-15", Doc: "the bit error rate that is allowed"}},
	Doc: `Judges the symbol errors of the link by a bit error rate.
The window is the shortest, of those to the reads that are kept, in which the target allows three errors, else the longest. Below three, it is exceeded where so many errors are less likely than 1 in 1000 (Poisson), and never by one.`,
	Example: `
> r = perf_rates(discover().switches[0].ports[3])
> r.ber(1e-11).verdict, r.ber(1e-15).verdict
("ok", "window_too_short")
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Target float64 }) (starlark.Value, error) {
		r := c.Recv.(*portRates)
		bits := 0.0 // of a link that is down PortInfo says anything
		if r.port.PhysicalState() == mad.PortPhysicalStateLinkUp {
			bits = audit.LinkBits(r.port.Width(), r.port.Speed())
		}
		return r.ber(a.Target, bits), nil
	}),
}

// ber is the judgement by the window that suits best.
func (r *portRates) ber(target, bits float64) starlark.Value {
	best := audit.BER{Verdict: audit.BERUnknown}
	counter := audit.CounterIndex("symbol_error_counter")
	known := false
	for i := range r.windows {
		x := r.windows[i].Rate(counter)
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

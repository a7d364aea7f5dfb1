package audits

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"fabsh/builtins/lang"
	values "fabsh/builtins/routing"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/picture"
	"fabsh/fabric/routing/traffic"
	"go.starlark.net/starlark"
)

// figure is a value of ports that a matrix shows.
type figure struct {
	name, unit string
	count      bool // the number of links of a cell, which can be 0
	value      picture.Value
	scale      func(lowest, highest float64) picture.Scale
}

// counted are the figures computed from counters.
var counted = map[string]struct {
	unit  string
	scale picture.Scale
	value func(w *audit.Window, bits float64) (float64, bool)
}{
	"use":    {"% of the link's rate", picture.Scale{0, 12.5, 25, 37.5, 50, 62.5, 75, 87.5}, percent((*audit.Window).Use)},
	"wait":   {"% of the time waiting for credits", picture.Scale{0, math.SmallestNonzeroFloat64, 1, 5, 10, 25, 50, 75}, percent(func(w *audit.Window, _ float64) (float64, bool) { return w.WaitShare() })},
	"errors": {"errors a second", nil, errorsOf},
	"ber":    {"bit error rate", picture.Scale{0, math.SmallestNonzeroFloat64, 1e-15, 1e-13, 1e-11, 1e-9, 1e-7, 1e-5}, (*audit.Window).BitErrorRate},
}

func percent(share func(*audit.Window, float64) (float64, bool)) func(*audit.Window, float64) (float64, bool) {
	return func(w *audit.Window, bits float64) (float64, bool) {
		v, known := share(w, bits)
		return 100 * v, known
	}
}

func errorsOf(w *audit.Window, _ float64) (sum float64, known bool) {
	rates, known := w.ErrorRates()
	for _, r := range rates {
		sum += r.PerSecond()
	}
	return sum, known
}

// figureWords are the names of all figures.
var figureWords = []string{"ber", "errors", "lids", "links", "use", "wait"}

// figureOf returns the figure that a script requests, after reading its data.
func figureOf(c *lang.Call, f *fabric.Fabric, v starlark.Value, over time.Duration, parts []*picture.Matrix, far bool) (figure, error) {
	if fn, ok := v.(starlark.Callable); ok {
		return ofFunction(c, fn, parts, far)
	}
	name, ok := starlark.AsString(v)
	switch {
	case !ok:
		return figure{}, lang.ParamError("value", "got %s, want a word or a function", v.Type())
	case !slices.Contains(figureWords, name):
		return figure{}, lang.ParamError("value", "unknown value %q%s; supported: %s, or a function", name, fabric.DidYouMean(name, figureWords), strings.Join(figureWords, ", "))
	case name == "links":
		counted := func(*fabric.Port) (float64, bool) { return 1, true }
		return figure{name: name, unit: "links", count: true, value: counted, scale: picture.Steps}, nil
	case name == "lids":
		return lids(c, f)
	case over < audit.MinWindow:
		return figure{}, lang.ParamError("over", "got %v, want %v or more: agents do not update counters at each read", over, audit.MinWindow)
	}
	ports := portsOf(parts, far)
	read, err := ratesOver(c, ports, over)
	if err != nil {
		return figure{}, err
	}
	rates := make(map[*fabric.Port]*audit.Window, len(read))
	for i := range read {
		if !read[i].Answered() {
			continue
		}
		w := read[i].Newest()
		if _, ok := w.Length(); ok {
			rates[read[i].Port] = &w
		}
	}
	x := counted[name]
	value := func(p *fabric.Port) (float64, bool) {
		w := rates[p]
		if w == nil {
			return 0, false
		}
		return x.value(w, audit.LinkBits(p.Width(), p.Speed()))
	}
	scale := func(_, highest float64) picture.Scale { return picture.Powers(highest) }
	if x.scale != nil {
		scale = func(_, _ float64) picture.Scale { return x.scale }
	}
	return figure{name: name, unit: x.unit, value: value, scale: scale}, nil
}

// portsOf returns the ports of a matrix.
func portsOf(parts []*picture.Matrix, far bool) (list []*fabric.Port) {
	for _, m := range parts {
		for _, row := range m.Links {
			for _, cell := range row {
				for _, p := range cell {
					if far {
						p = p.Peer()
					}
					list = append(list, p)
				}
			}
		}
	}
	return list
}

// lids returns the number of LIDs whose packets leave through a port.
func lids(c *lang.Call, f *fabric.Fabric) (figure, error) {
	r, err := values.ReadRoutes(c.Thread, f, false)
	if err != nil {
		return figure{}, err
	}
	var b *traffic.Balance
	if err := c.Block(func(ctx context.Context) (err error) {
		b, err = traffic.MeasureBalance(ctx, r, 0, nil)
		return err
	}); err != nil {
		return figure{}, err
	}
	value := func(p *fabric.Port) (float64, bool) {
		n, known := b.LIDsBy(p)
		return float64(n), known
	}
	return figure{name: "lids", unit: "LIDs", value: value, scale: picture.Steps}, nil
}

// ofFunction calls a script's function for each port, in the order of the matrix.
func ofFunction(c *lang.Call, fn starlark.Callable, parts []*picture.Matrix, far bool) (figure, error) {
	type told struct {
		v     float64
		known bool
	}
	figures := map[*fabric.Port]told{}
	for _, p := range portsOf(parts, far) {
		v, err := starlark.Call(c.Thread, fn, starlark.Tuple{topology.PortOf(p)}, nil)
		if err != nil {
			return figure{}, err
		}
		x, ok := starlark.AsFloat(v)
		switch {
		case v == starlark.None:
			continue
		case v == starlark.True || v == starlark.False:
			x, ok = 0, true
			if v == starlark.True {
				x = 1
			}
		}
		if !ok || math.IsNaN(x) || math.IsInf(x, 0) {
			return figure{}, lang.ParamError("value", "%s returned %s of %s, want a number, or None where it is unknown", fn.Name(), v.Type(), p.Name())
		}
		figures[p] = told{x, true}
	}
	value := func(p *fabric.Port) (float64, bool) {
		t := figures[p]
		return t.v, t.known
	}
	return figure{name: fn.Name(), value: value, scale: linear}, nil
}

// linear returns a scale of equal steps, of integers if both ends are.
func linear(lowest, highest float64) picture.Scale {
	if lowest == math.Trunc(lowest) && highest == math.Trunc(highest) {
		return picture.Steps(lowest, highest)
	}
	return picture.Even(lowest, highest)
}

package routing

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"fabsh/fabric"
)

// TestEngineTable: each literal is whole, and the options are fields of Options,
// each of which some engine takes.
func TestEngineTable(t *testing.T) {
	var fields []string
	for f := range reflect.TypeFor[Options]().Fields() {
		fields = append(fields, strings.ToLower(f.Name))
	}
	taken := map[string]bool{}
	for i, e := range Engines() {
		if e.Name == "" || slices.Index(EngineNames(), e.Name) != i || e.compute == nil {
			t.Errorf("engine %d, %q: another has its name, or it computes nothing", i, e.Name)
		}
		if strings.Contains(e.Doc, "\n") || !strings.HasSuffix(e.Doc, ".") {
			t.Errorf("%s: the doc is no line of sentences: %q", e.Name, e.Doc)
		}
		for _, option := range e.Options {
			taken[option] = true
			if !slices.Contains(fields, option) {
				t.Errorf("%s: no option %q; there are %v", e.Name, option, fields)
			}
		}
	}
	for _, field := range fields {
		if !taken[field] {
			t.Errorf("no engine takes the option %s", field)
		}
	}
}

// TestMinimalWeights: where links have weights, the paths of minimal engines are
// those of the least weight.
func TestMinimalWeights(t *testing.T) {
	for i, spec := range small() {
		g := graph(t, spec, GraphOptions{Weight: func(p *fabric.Port) int { return 1 + (p.ID()*7+i)%4 }})
		h, err := g.Hops(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range Engines() {
			if !e.Minimal {
				continue
			}
			r := compute(t, g, e.Name, Options{})
			for s := range g.switches {
				for _, d := range g.dests {
					to := g.terminals[d.terminal].Switch
					if port := r.Row(s)[d.lid]; s != to && h.Distance(s, to) >= 0 && !h.isNextHop(s, to, port) {
						t.Fatalf("%s, %s: port %d of switch %d is not on a shortest path to LID %d", spec, e.Name, port, s, d.lid)
					}
				}
			}
		}
	}
}

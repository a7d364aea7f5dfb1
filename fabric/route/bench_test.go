package route

import (
	"testing"

	"fabsh/fabric/sim"
)

// nets are those that the figures are given for. There are 1,620 switches and
// 11,664 hosts in ft11664, the full tree of three levels of 36-port switches.
var nets = map[string]string{
	"ft648":   "pgft:m=18/36,w=1/18,p=1/1",
	"ft1728":  "pgft:m=12/12/12,w=1/12/12,p=1/1/1",
	"ft5832":  "pgft:m=18/18/18,w=1/18/18,p=1/1/1",
	"ft11664": "pgft:m=18/18/36,w=1/18/18,p=1/1/1",
}

func graph(t testing.TB, spec string, o GraphOptions) *Graph {
	t.Helper()
	if s, ok := nets[spec]; ok {
		spec = s
	}
	f, _, err := sim.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	g, err := NewGraph(f, o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func BenchmarkGraph(b *testing.B) {
	f, _, err := sim.Parse(nets["ft11664"])
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := NewGraph(f, GraphOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkHops(b *testing.B) {
	g := graph(b, "ft11664", GraphOptions{})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Hops(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEngine(b *testing.B) {
	g := graph(b, "ft11664", GraphOptions{})
	for _, e := range Engines() {
		b.Run(e.Name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Compute(b.Context(), g, e.Name, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

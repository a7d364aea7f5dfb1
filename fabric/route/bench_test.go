package route

import (
	"testing"

	"fabsh/fabric/sim"
)

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

package route

import (
	"testing"
)

func TestSmoke(t *testing.T) {
	for name := range nets {
		if name == "ft11664" {
			continue
		}
		g := graph(t, name, GraphOptions{})
		for _, e := range Engines() {
			if e.Name == "file" || e.Name == "nue" && name == "ft5832" {
				continue
			}
			r, err := Compute(t.Context(), g, e.Name, Options{})
			if err != nil {
				t.Fatal(err)
			}
			v, err := r.Verify(t.Context(), VerifyOptions{})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s %s: %v %v %v %v", name, e.Name, v.Hops, v.Detours, v.OK(), r.Notes)
			load, _ := r.load(t.Context())
			var mx, mn int64 = 0, 1 << 60
			for _, l := range load {
				mx = max(mx, l)
				mn = min(mn, l)
			}
			t.Log("load", mn, mx)
		}
	}
}

func BenchmarkVerify(b *testing.B) {
	g := graph(b, "ft11664", GraphOptions{})
	r, err := Compute(b.Context(), g, "minhop", Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Verify(b.Context(), VerifyOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

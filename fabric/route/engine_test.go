package route

import (
	"testing"
)

func TestSmoke(t *testing.T) {
	for name := range nets {
		g := graph(t, name, GraphOptions{})
		r, err := Compute(t.Context(), g, "minhop", Options{})
		if err != nil {
			t.Fatal(err)
		}
		v, err := r.Verify(t.Context(), VerifyOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %+v %v", name, v, v.OK())
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

package route

import "testing"

func TestQuality(t *testing.T) {
	g := graph(t, "ft1728", GraphOptions{})
	for _, e := range Engines() {
		if e.Name == "file" {
			continue
		}
		r, err := Compute(t.Context(), g, e.Name, Options{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := r.Congestion(t.Context(), CongestionOptions{Pattern: Shift, Samples: 2000})
		if err != nil {
			t.Fatal(err)
		}
		p, err := r.Congestion(t.Context(), CongestionOptions{Pattern: Permutation})
		if err != nil {
			t.Fatal(err)
		}
		b, _ := r.Balance(t.Context(), 0)
		t.Logf("%s: %+v\n%+v\n%+v %+v", e.Name, s, p, b.Routes, b.LIDs)
	}
}

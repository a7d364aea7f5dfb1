package route

import (
	"testing"
	"time"
)

func TestAll(t *testing.T) {
	for _, spec := range []string{"torus", "mesh", "mesh:dims=3/3/3", "hyperx:dims=4/4", "dragonfly", "random", "ring:n=7", "ring:n=2", "ring:n=1", "fattree:k=4,levels=4",
		"fattree:k=8,levels=3,remove_links=10%", "fattree:k=8,levels=3,remove_links=40%", "torus:remove_links=20%", "random:remove_switches=4,remove_links=10%", "pgft:m=4/4,w=1/2,p=1/3,remove_links=2", "dragonfly:a=8,p=4,h=4", "random:n=125,degree=10,hosts=8", "hyperx:dims=12/8,hosts=7"} {
		g := graph(t, spec, GraphOptions{})
		for _, e := range Engines() {
			if e.Name == "file" {
				continue
			}
			t0 := time.Now()
			r, err := Compute(t.Context(), g, e.Name, Options{})
			if err != nil {
				t.Log(spec, e.Name, err)
				continue
			}
			v, err := r.Verify(t.Context(), VerifyOptions{})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%v %s %s: %v detours %v unreach %d acyclic %v %v", time.Since(t0).Round(time.Millisecond), spec, e.Name, v.Hops, v.Detours, v.Unreachable, v.Acyclic, r.Notes)
			if e.Acyclic && !v.Acyclic {
				t.Error("CYCLIC")
				t.Log(Walk(v.Cycle))
			}
			if e.Minimal && len(v.Detours) > 1 {
				t.Error("DETOURS")
			}
		}
	}
}

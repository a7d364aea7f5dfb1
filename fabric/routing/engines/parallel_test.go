package engines

import (
	"slices"
	"testing"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/traffic"
	"fabsh/fabric/routing/verify"
)

// TestWorkers: any number of workers makes equal bytes.
func TestWorkers(t *testing.T) {
	specs := []string{"fattree:k=8,levels=3,remove_links=5%", "random:n=70,degree=5,hosts=3", "torus:dims=4/4/5,hosts=2,remove_switches=2"}
	if testing.Short() { // the race detector sees all accesses on small ones too
		specs = []string{"fattree:k=4,levels=3,remove_links=5%", "random:n=20,degree=4,hosts=2", "torus:dims=3/3/3,hosts=2,remove_switches=1"}
	}
	for _, spec := range specs {
		type outcome struct {
			tables  []uint8
			verdict *verify.Verdict
			balance *traffic.Balance
			traffic []*traffic.Congestion
			failure []verify.LinkFailure
		}
		want := map[string]outcome{}
		for _, workers := range []int{1, 2, 7} {
			g := routingtest.Graph(t, spec, graph.BuildOptions{Workers: workers})
			for _, e := range All() {
				for _, policy := range append([]string{""}, policies()...) {
					if policy != "" && !e.takes("policy") {
						continue
					}
					r, err := Compute(t.Context(), g, e.Name, Options{Policy: policy, Seed: 3})
					if err != nil {
						continue
					}
					o := outcome{tables: routingtest.Tables(r), verdict: routingtest.Verified(t, r, verify.Options{})}
					if o.balance, err = traffic.MeasureBalance(t.Context(), r, 0, nil); err != nil {
						t.Fatal(err)
					}
					for _, p := range traffic.Patterns() {
						c, err := traffic.MeasureCongestion(t.Context(), r, traffic.CongestionOptions{Pattern: p, Samples: 20, Seed: 5})
						if err != nil {
							t.Fatal(err)
						}
						o.traffic = append(o.traffic, c)
					}
					if o.failure, _, err = verify.FailEachLink(t.Context(), r, 0); err != nil {
						t.Fatal(err)
					}
					for i := range o.failure { // ports of another fabric
						o.failure[i].Port = nil
					}
					name := e.Name + " " + policy
					if workers == 1 {
						want[name] = o
						continue
					}
					w := want[name]
					if !slices.Equal(w.tables, o.tables) {
						t.Errorf("%s, %s: other tables from %d workers", spec, name, workers)
					}
					if !sameVerdict(w.verdict, o.verdict) {
						t.Errorf("%s, %s: other verdicts from %d workers:\n%+v\n%+v", spec, name, workers, w.verdict, o.verdict)
					}
					if w.balance.Routes != o.balance.Routes || w.balance.LIDs != o.balance.LIDs || !slices.Equal(w.balance.PerChannel, o.balance.PerChannel) {
						t.Errorf("%s, %s: other balance from %d workers", spec, name, workers)
					}
					for i := range w.traffic {
						if *w.traffic[i] != *o.traffic[i] {
							t.Errorf("%s, %s: other congestion from %d workers: %+v, %+v", spec, name, workers, w.traffic[i], o.traffic[i])
						}
					}
					if !slices.Equal(w.failure, o.failure) {
						t.Errorf("%s, %s: other failures from %d workers", spec, name, workers)
					}
				}
			}
		}
	}
}

func sameVerdict(v, w *verify.Verdict) bool {
	broken := func(v *verify.Verdict) (s []string) {
		for _, b := range v.Broken {
			s = append(s, b.From.Name()+b.Why)
		}
		return s
	}
	return v.Unreachable == w.Unreachable && v.Acyclic == w.Acyclic && verify.FormatCycle(v.Cycle) == verify.FormatCycle(w.Cycle) && v.Dependencies == w.Dependencies && v.Channels == w.Channels &&
		slices.Equal(v.Hops, w.Hops) && slices.Equal(v.Detours, w.Detours) && slices.Equal(broken(v), broken(w))
}

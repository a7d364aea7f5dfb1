package change

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/mad"
)

// tables returns the tables of an engine, as if they had been read.
func tables(t testing.TB, net, name string) *routes.Routes {
	t.Helper()
	o := engines.Options{}
	if name == engines.Scatter {
		name, o = "minhop", engines.Options{Policy: engines.Scatter, Seed: 1}
	}
	r, err := engines.Compute(t.Context(), routingtest.Graph(t, net, graph.BuildOptions{}), name, o)
	if err != nil {
		t.Fatal(err)
	}
	r.ForgetOrigin()
	return r
}

// port is the port of that name: "leaf-1/3".
func port(t testing.TB, r *routes.Routes, name string) *fabric.Port {
	t.Helper()
	f := r.Graph().Fabric()
	for i := range f.Ports() {
		if p := &f.Ports()[i]; p.Name() == name {
			return p
		}
	}
	t.Fatalf("no port %s", name)
	return nil
}

func TestEffect(t *testing.T) {
	const routed = "effect: the tables route %d pairs over links that go down: their packets are lost until the subnet manager writes new tables\nprediction: "
	for _, c := range []struct {
		name, net, engine string
		down              []string
		o                 PredictOptions
		refusal, lines    string
	}{
		{"a link between switches", "fattree:k=4", "minhop", []string{"leaf-1/3"}, PredictOptions{Managed: true}, "",
			fmt.Sprintf(routed, 12) + "12 pairs rerouted, 0 lost; largest load 6 before and 12 after; no credit loop; by minhop, whose tables are those in force"},
		{"no subnet manager", "fattree:k=4", "minhop", []string{"leaf-1/3"}, PredictOptions{}, "12 pairs would lose their path",
			"effect: the tables route 12 pairs over links that go down, and no subnet manager makes new ones"},
		{"up*/down*", "ring:n=6", "updn", []string{"switch-1/2"}, PredictOptions{Managed: true}, "",
			fmt.Sprintf(routed, 13) + "13 pairs rerouted, 0 lost; largest load 7 before and 9 after; no credit loop; by updn, whose tables are those in force"},
		{"lanes", "ring:n=6", "dfsssp", []string{"switch-1/2"}, PredictOptions{Managed: true}, "",
			fmt.Sprintf(routed, 9) + "9 pairs rerouted, 0 lost; largest load 5 before and 9 after; no credit loop; by dfsssp, whose tables are those in force"},
		{"a credit loop", "torus:dims=4/4,hosts=1", "updn", []string{"switch-1-1/2"}, PredictOptions{Managed: true, Engine: "dor"},
			"packets could deadlock: the predicted tables have a credit loop of 4 links, such as switch-1-2/2 -> switch-2-2/3",
			fmt.Sprintf(routed, 34) + "123 pairs rerouted, 0 lost; largest load 17 before and 16 after; a credit loop of 4 links, such as switch-1-2/2 -> switch-2-2/3; by dor"},
		{"lanes unknown", "torus:dims=4/4,hosts=1", "dor", []string{"switch-1-1/2"}, PredictOptions{Managed: true, Lanes: func(context.Context, *routes.Routes) error { return errors.New("timed out") }}, "",
			fmt.Sprintf(routed, 16) + "16 pairs rerouted, 0 lost; largest load 12 before and 16 after; a credit loop of 4 links, such as switch-1-2/2 -> switch-2-2/3, as now; by dor, whose tables are those in force\n" +
				"prediction: credit loops are judged as if all packets were on one virtual lane: timed out"},
		{"no engine", "fattree:k=8", engines.Scatter, []string{"leaf-1/5"}, PredictOptions{Managed: true}, "",
			fmt.Sprintf(routed, 56) + "56 pairs rerouted, 0 lost; largest load 28 before and 48 after; no credit loop; by a repair of the tables in force, which resemble those of no engine (at most 61 % of the entries agree)"},
		{"the last link of a host", "fattree:k=4", "minhop", []string{"leaf-1/1"}, PredictOptions{Managed: true},
			`"node-0001 HCA-1" (0x0002c90310000000) would lose its last link`,
			fmt.Sprintf(routed, 14) + "36 pairs rerouted, 14 lost; largest load 6 before and 6 after; no credit loop; by minhop, whose tables are those in force"},
		{"a split", "fattree:k=4", "minhop", []string{"leaf-1/3", "leaf-1/4"}, PredictOptions{Managed: true},
			`"leaf-1" (0x0002c90300100000) and "leaf-2" (0x0002c90300100010) would lose the last path between them`,
			fmt.Sprintf(routed, 24) + "0 pairs rerouted, 24 lost; largest load 6 before and 4 after; no credit loop; by minhop, whose tables are those in force"},
		{"the port of the subnet manager", "fattree:k=4", "minhop", []string{"leaf-1/1"}, PredictOptions{Managed: true, Needed: []mad.LID{1}}, "the subnet manager or this host needs node-0001 HCA-1/1",
			fmt.Sprintf(routed, 14) + "36 pairs rerouted, 14 lost; largest load 6 before and 6 after; no credit loop; by minhop, whose tables are those in force"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := tables(t, c.net, c.engine)
			var down []*fabric.Port
			for _, name := range c.down {
				down = append(down, port(t, r, name))
			}
			for i := range c.o.Needed {
				c.o.Needed[i] = r.Graph().Terminals()[r.Graph().TerminalOf(down[0].Peer())].LID
			}
			e, err := PredictEffect(t.Context(), r, down, c.o)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(e.Lines(), "\n"); got != c.lines || e.Refusal() != c.refusal {
				t.Errorf("lines:\n%s\nwant:\n%s\nrefusal: %s\nwant: %s", got, c.lines, e.Refusal(), c.refusal)
			}
		})
	}
}

// TestCounts compares Through and Lost with paths that are followed one by one.
func TestCounts(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for i, net := range []string{"fattree:k=4", "ring:n=5", "random:n=8,degree=3,hosts=2,seed=3", "torus:dims=3/3,hosts=1"} {
		t.Run(net, func(t *testing.T) {
			r := tables(t, net, "updn")
			f, g := r.Graph().Fabric(), r.Graph()
			for range 5 {
				var down []*fabric.Port
				taken := map[*fabric.Port]bool{}
				for range 1 + rnd.IntN(3) {
					p := &f.Ports()[rnd.IntN(len(f.Ports()))]
					if p.Peer() != nil && !taken[p] {
						down, taken[p], taken[p.Peer()] = append(down, p), true, true
					}
				}
				e, err := PredictEffect(t.Context(), r, down, PredictOptions{Managed: i%2 == 0})
				if err != nil {
					t.Fatal(err)
				}
				through := int64(0)
				for _, from := range g.Terminals() {
					for _, to := range g.Terminals() {
						if from.Port.Node().IsSwitch() || to.Port.Node().IsSwitch() || from.LID == to.LID {
							continue
						}
						path, err := r.Trace(from.LID, to.LID)
						if err != nil || path.Broken != "" {
							t.Fatal(err, path)
						}
						if slices.ContainsFunc(path.Ports(), func(p *fabric.Port) bool { return taken[p] }) || taken[from.Port] || taken[to.Port] {
							through++
						}
					}
				}
				if e.Through != through {
					t.Errorf("%v: %d pairs through, want %d", e.Links, e.Through, through)
				}
				if !e.Managed && e.Lost != through {
					t.Errorf("%v: %d pairs lost, want %d", e.Links, e.Lost, through)
				}
				if cut := e.Split != ""; e.Managed && cut != (e.Lost > 0) {
					t.Errorf("%v: split %q, and %d pairs lost", e.Links, e.Split, e.Lost)
				}
			}
		})
	}
}

// TestRecognise gives the engine that is recognised in the tables of each engine: where the
// tables of several agree, it is the first.
func TestRecognise(t *testing.T) {
	for net, want := range map[string]string{
		"fattree:k=4,levels=3":               "minhop: minhop, updn: minhop, dnup: minhop, ftree: minhop, dor: dor, sssp: sssp, nue: sssp, dfsssp: sssp, lash: lash",
		"torus:dims=4/4,hosts=2":             "minhop: minhop, updn: updn, dnup: dnup, dor: dor, sssp: sssp, nue: nue, dfsssp: dfsssp, lash: lash, torus-2qos: torus-2qos",
		"random:n=8,degree=3,hosts=2,seed=3": "minhop: minhop, updn: updn, dnup: dnup, dor: dor, sssp: minhop, nue: nue, dfsssp: dfsssp, lash: lash",
	} {
		var made []string
		for _, name := range engines.Names() {
			if name == routes.FromFile {
				continue
			}
			r, err := engines.Compute(t.Context(), routingtest.Graph(t, net, graph.BuildOptions{}), name, engines.Options{})
			if err != nil {
				continue // it does not apply
			}
			r.ForgetOrigin()
			p, err := NewPredictor(t.Context(), r, PredictOptions{Managed: true})
			if err != nil {
				t.Fatal(err)
			}
			made = append(made, fmt.Sprintf("%s: %s", name, p.engine))
		}
		if got := strings.Join(made, ", "); got != want {
			t.Errorf("%s: %s\nwant %s", net, got, want)
		}
	}
}

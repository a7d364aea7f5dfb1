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
	"fabsh/fabric/routing/opensm"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/mad"
)

// tables returns the tables of an engine, as if they had been read.
func tables(t testing.TB, net, name string) *routes.Routes {
	t.Helper()
	o := engines.Options{}
	name = strings.TrimPrefix(name, "own ")
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
			fmt.Sprintf(routed, 12) + "12 pairs rerouted, 0 lost; largest load 6 before and 12 after; no credit loop; by minhop, which could have made the tables in force"},
		{"no subnet manager", "fattree:k=4", "minhop", []string{"leaf-1/3"}, PredictOptions{}, "12 pairs would lose their path",
			"effect: the tables route 12 pairs over links that go down, and no subnet manager makes new ones"},
		{"up*/down*", "ring:n=6", "updn", []string{"switch-1/2"}, PredictOptions{Managed: true}, "",
			fmt.Sprintf(routed, 9) + "9 pairs rerouted, 0 lost; largest load 6 before and 9 after; no credit loop; by minhop, updn (falls back to minhop), dnup or ftree (falls back to minhop), which could have made the tables in force\nprediction: credit loops are judged as if all packets were on one virtual lane"},
		{"lanes", "torus:dims=4/4,hosts=1", "dfsssp", []string{"switch-1-1/2"}, PredictOptions{Managed: true, Lanes: func(ctx context.Context, r *routes.Routes) error { return engines.Layer(ctx, r, 0, 1) }}, "",
			fmt.Sprintf(routed, 12) + "106 pairs rerouted, 0 lost; largest load 13 before and 13 after; no credit loop; by dfsssp, which could have made the tables in force"},
		{"a credit loop", "torus:dims=4/4,hosts=1", "own updn", []string{"switch-1-1/2"}, PredictOptions{Managed: true, Manager: ManagerRouting{Engines: []string{"dor"}}}, "packets could deadlock: the predicted tables have a credit loop of 6 links, such as switch-1-1/3 -> switch-4-1/2",
			fmt.Sprintf(routed, 34) + "34 pairs rerouted, 0 lost; largest load 17 before and 18 after; a credit loop of 6 links, such as switch-1-1/3 -> switch-4-1/2; by dor; OpenSM may choose otherwise: its other options are unknown"},
		{"lanes unknown", "torus:dims=4/4,hosts=1", "dor", []string{"switch-1-1/2"}, PredictOptions{Managed: true, Lanes: func(context.Context, *routes.Routes) error { return errors.New("timed out") }}, "",
			fmt.Sprintf(routed, 16) + "16 pairs rerouted, 0 lost; largest load 12 before and 16 after; a credit loop of 4 links, such as switch-1-2/2 -> switch-2-2/3, as now; by dor, the worst of dor and lash, which could have made the tables in force\nprediction: credit loops are judged as if all packets were on one virtual lane: timed out"},
		{"spines out of use", "fattree:k=8", "updn", []string{"leaf-1/5", "leaf-2/6", "leaf-3/7"}, PredictOptions{Managed: true}, "",
			fmt.Sprintf(routed, 168) + "3 links together: 884 pairs rerouted, 0 lost; largest load 28 before and 112 after; spine-1, spine-2, spine-3 and 21 of 29 links between switches fall out of use; no credit loop; each number is the worst of updn, dnup, ftree and ftree with root_guid_file, which could have made the tables in force\nprediction: for one sweep of the subnet manager; a change takes down one link after the other, and loads may then be higher"},
		{"its engine, two possible outcomes", "fattree:k=8", "ftree", []string{"leaf-1/5", "leaf-2/6"}, PredictOptions{Managed: true, Manager: ManagerRouting{Engines: []string{"ftree"}, Source: "--manager-engine"}}, "",
			fmt.Sprintf(routed, 112) + "2 links together: 892 pairs rerouted, 0 lost; largest load 28 before and 60 after; no credit loop; by ftree with root_guid_file, the worst of ftree and ftree with root_guid_file (--manager-engine); OpenSM may choose otherwise: its other options are unknown\nprediction: for one sweep of the subnet manager; a change takes down one link after the other, and loads may then be higher"},
		{"options without a model", "fattree:k=4", "minhop", []string{"leaf-1/3"}, PredictOptions{Managed: true, Manager: ManagerRouting{Engines: []string{"minhop"}, Source: "the configuration of OpenSM", Options: &ManagerOptions{Unmodelled: []string{"hop_weights_file", "port_prof_ignore_file"}}}}, "",
			fmt.Sprintf(routed, 12) + "12 pairs rerouted, 0 lost; largest load 6 before and 12 after; no credit loop; by minhop (the configuration of OpenSM); OpenSM may choose otherwise: its options hop_weights_file and port_prof_ignore_file are not modelled"},
		{"known options", "fattree:k=4", "minhop", []string{"leaf-1/3"}, PredictOptions{Managed: true, Manager: ManagerRouting{Engines: []string{"minhop"}, Source: "the configuration of OpenSM", Options: &ManagerOptions{}}}, "",
			fmt.Sprintf(routed, 12) + "12 pairs rerouted, 0 lost; largest load 6 before and 12 after; no credit loop; by minhop (the configuration of OpenSM)"},
		{"an engine without a model", "torus:dims=4/4,hosts=1", "dor", []string{"switch-1-1/2"}, PredictOptions{Managed: true, Manager: ManagerRouting{Engines: []string{"torus-2QoS"}}}, "",
			fmt.Sprintf(routed, 16) + "16 pairs rerouted, 0 lost; largest load 12 before and 18 after; a credit loop of 4 links, such as switch-3-1/4 -> switch-3-2/5, as now; by a repair; OpenSM may choose otherwise: its engine torus-2QoS is not modelled\nprediction: credit loops are judged as if all packets were on one virtual lane"},
		{"not of OpenSM", "ring:n=6", "own updn", []string{"switch-1/2"}, PredictOptions{Managed: true}, "",
			fmt.Sprintf(routed, 13) + "13 pairs rerouted, 0 lost; largest load 7 before and 9 after; no credit loop; by a repair; OpenSM may choose otherwise: none of its engines could have made the tables in force"},
		{"no engine", "fattree:k=8", engines.Scatter, []string{"leaf-1/5"}, PredictOptions{Managed: true}, "",
			fmt.Sprintf(routed, 56) + "56 pairs rerouted, 0 lost; largest load 28 before and 56 after; no credit loop; by minhop, which could have made the tables in force after losses, or by a repair; OpenSM may choose otherwise"},
		{"the last link of a host", "fattree:k=4", "minhop", []string{"leaf-1/1"}, PredictOptions{Managed: true}, `"node-0001 HCA-1" (0x0002c90310000000) would lose its last link`,
			fmt.Sprintf(routed, 14) + "0 pairs rerouted, 14 lost, 14 out of reach of the subnet manager; largest load 6 before and 6 after; no credit loop; by minhop, which could have made the tables in force"},
		{"a split", "fattree:k=4", "minhop", []string{"leaf-1/3", "leaf-1/4"}, PredictOptions{Managed: true, Manager: ManagerRouting{LID: 7}}, `"leaf-1" (0x0002c90300100000) and "leaf-2" (0x0002c90300100010) would lose the last path between them`,
			fmt.Sprintf(routed, 24) + "2 links together: 0 pairs rerouted, 24 lost, 54 out of reach of the subnet manager; largest load 6 before and 4 after; leaf-1 falls out of use; no credit loop; by minhop, which could have made the tables in force\nprediction: for one sweep of the subnet manager; a change takes down one link after the other, and loads may then be higher"},
		{"the port of the subnet manager", "fattree:k=4", "minhop", []string{"leaf-1/1"}, PredictOptions{Managed: true, Needed: []mad.LID{1}}, "the subnet manager or this host needs node-0001 HCA-1/1",
			fmt.Sprintf(routed, 14) + "0 pairs rerouted, 14 lost, 14 out of reach of the subnet manager; largest load 6 before and 6 after; no credit loop; by minhop, which could have made the tables in force"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := tables(t, c.net, c.engine)
			if opensm.IsEngine(c.engine) {
				r = managerTables(t, r.Graph(), c.engine)
			}
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

// TestInferredEngines gives the engines that could have made the tables that OpenSM's engines make:
// where the tables of several agree, all of them.
func TestInferredEngines(t *testing.T) {
	for net, want := range map[string]string{
		"fattree:k=8":                        "minhop: minhop; updn: updn dnup ftree ftree with root_guid_file; dnup: updn dnup ftree ftree with root_guid_file; dor: dor lash; ftree: updn dnup ftree ftree with root_guid_file; sssp: sssp dfsssp; dfsssp: sssp dfsssp; lash: dor lash",
		"fattree:k=4,levels=3":               "minhop: minhop; updn: updn dnup; dnup: updn dnup; dor: dor lash; ftree: ftree ftree with root_guid_file; sssp: sssp dfsssp; dfsssp: sssp dfsssp; lash: dor lash",
		"torus:dims=4/4,hosts=2":             "minhop: minhop updn dnup ftree; updn: minhop updn dnup ftree; dnup: minhop updn dnup ftree; dor: dor lash; ftree: minhop updn dnup ftree; sssp: sssp dfsssp; dfsssp: sssp dfsssp; lash: dor lash",
		"random:n=8,degree=3,hosts=2,seed=3": "minhop: minhop updn dnup ftree; updn: minhop updn dnup ftree; dnup: minhop updn dnup ftree; dor: dor lash; ftree: minhop updn dnup ftree; sssp: sssp dfsssp; dfsssp: sssp dfsssp; lash: dor lash",
	} {
		var made []string
		for _, name := range opensm.Engines() {
			r := managerTables(t, routingtest.Graph(t, net, graph.BuildOptions{}), name)
			p, err := NewPredictor(t.Context(), r, PredictOptions{Managed: true})
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, m := range p.models {
				names = append(names, m.name)
			}
			made = append(made, fmt.Sprintf("%s: %s", name, strings.Join(names, " ")))
		}
		if got := strings.Join(made, "; "); got != want {
			t.Errorf("%s: %s\nwant %s", net, got, want)
		}
	}
}

// managerTables returns the tables that an engine of OpenSM makes at its start.
func managerTables(t testing.TB, g *graph.Graph, name string) *routes.Routes {
	t.Helper()
	r := routes.New(g, 0)
	m := managedPart(g, r, 0)
	made, err := opensm.Compute(t.Context(), m.Network, nil, opensm.Settings{Engines: []string{name}})
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range m.switches {
		copy(r.WritableRow(s), made.Tables[i])
	}
	return r
}

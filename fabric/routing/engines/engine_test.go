package engines

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// compute computes tables by an engine, and fails the test on an error.
var compute = routingtest.Computing(Compute)

// TestEngineTable: each literal is whole.
func TestEngineTable(t *testing.T) {
	for i, e := range All() {
		if e.Name == "" || slices.Index(Names(), e.Name) != i || e.compute == nil {
			t.Errorf("engine %d, %q: another has its name, or it computes nothing", i, e.Name)
		}
		if strings.Contains(e.Doc, "\n") || !strings.HasSuffix(e.Doc, ".") {
			t.Errorf("%s: the doc is no line of sentences: %q", e.Name, e.Doc)
		}
		keeps := e.takes(keepOption.Name)
		if keeps != (e.Repair == KeepEntries) {
			t.Errorf("%s: takes the option keep: %v, but its tables are repaired by %d", e.Name, keeps, e.Repair)
		}
		if e.OpenSMNeeds != "" && (!e.Lanes || e.OpenSM == "") {
			t.Errorf("%s: OpenSM's engine needs %s for lanes, which the engine or OpenSM does not make", e.Name, e.OpenSMNeeds)
		}
	}
}

// TestOptions: each field of Options is declared once, and each declaration is whole and
// some engine takes it.
func TestOptions(t *testing.T) {
	taken := map[string]bool{}
	for _, e := range All() {
		for _, o := range e.Options {
			listed := slices.ContainsFunc(AllOptions(), func(x Option) bool { return x.Name == o.Name })
			if taken[o.Name] = true; listed != (o.Field != nil) {
				t.Errorf("%s: EngineOptions has its option %s: %v", e.Name, o.Name, listed)
			}
			if o.Doc == "" {
				t.Errorf("%s: no doc of its option %s", e.Name, o.Name)
			}
		}
	}
	var o Options
	plain := func(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }
	at := map[any]string{} // pointers to fields
	declared := map[string]int{}
	for field, value := range reflect.ValueOf(&o).Elem().Fields() {
		if !field.IsExported() {
			continue
		}
		at[value.Addr().Interface()] = plain(field.Name)
		declared[plain(field.Name)] = 0
		if _, switches := value.Interface().([]int); switches && field.Name != "Roots" {
			t.Errorf("%s are numbers of switches: Compute checks those of Roots alone, and basis.on renumbers those", field.Name)
		}
	}
	for _, option := range AllOptions() {
		field := option.Field(&o)
		if _, reads := field.(OptionReader); !reads && at[field] != plain(option.Name) {
			t.Errorf("the option %s sets %s", option.Name, at[field])
		}
		if _, number := field.(*int); !number && option.Max > 0 {
			t.Errorf("the option %s has bounds and is no int", option.Name)
		}
		if declared[plain(option.Name)]++; !taken[option.Name] {
			t.Errorf("no engine takes the option %s", option.Name)
		}
	}
	for name, n := range declared {
		if n != 1 {
			t.Errorf("the field for %s is declared %d times in EngineOptions", name, n)
		}
	}
}

// TestRunInOpenSM: engines that give paths lanes say how OpenSM finds its own.
func TestRunInOpenSM(t *testing.T) {
	var got []string
	for _, e := range All() {
		if advice := e.runInOpenSM(); advice != "" {
			got = append(got, advice)
		}
	}
	want := []string{
		"opensm -Q -R nue, with nue_max_num_vls, finds lanes of its own",
		"opensm -Q -R dfsssp finds lanes of its own",
		"opensm -Q -R lash finds lanes of its own",
		"opensm -Q -R torus-2QoS, with the directions of the torus in --torus_config, finds lanes of its own",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	r := compute(t, routingtest.Graph(t, "torus:dims=4/4,hosts=1", graph.BuildOptions{}), "dfsssp", Options{})
	if got := r.Clone().RunInstead(); got != want[1] {
		t.Errorf("of tables of dfsssp: %q", got)
	}
	if got := routes.New(r.Graph(), 0).RunInstead(); !strings.Contains(got, "set_sl2vl") {
		t.Errorf("of other tables: %q", got)
	}
}

// TestMinimalWeights: where links have weights, the paths of minimal engines have the
// least weight.
func TestMinimalWeights(t *testing.T) {
	routingtest.ResultsOnly(t)
	for i, spec := range routingtest.SmallNets() {
		g := routingtest.Graph(t, spec, graph.BuildOptions{Weight: func(p *fabric.Port) int { return 1 + (p.ID()*7+i)%4 }})
		h, err := graph.AllHops(t.Context(), g)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range All() {
			if !e.Minimal {
				continue
			}
			r := compute(t, g, e.Name, Options{})
			for s := range g.Switches() {
				for _, d := range g.Dests() {
					to := g.Terminals()[d.Terminal].Switch
					if port := r.Row(s)[d.LID]; s != to && h.Distance(s, to) >= 0 && !h.IsNextHop(s, to, port) {
						t.Fatalf("%s, %s: port %d of switch %d is not on a shortest path to LID %d", spec, e.Name, port, s, d.LID)
					}
				}
			}
		}
	}
}

func TestComputeErrors(t *testing.T) {
	g := routingtest.Graph(t, "ring:n=3", graph.BuildOptions{})
	for _, x := range []struct {
		g      *graph.Graph
		engine string
		o      Options
		want   string
	}{
		{g, "fastest", Options{}, `unknown engine "fastest"; supported: ` + strings.Join(Names(), ", ")},
		{g, "file", Options{}, `file does not apply: no tables given`},
		{g, "updn", Options{Roots: []int{3}}, `updn: root 3 is not a switch; switches: 0 to 2`},
		{routingtest.Graph(t, "ring:remove_switches=100%", graph.BuildOptions{}), "minhop", Options{}, `minhop does not apply: the fabric has no switch`},
		{routingtest.Graph(t, "ring:n=3,hosts=0", graph.BuildOptions{}), "dnup", Options{}, `dnup does not apply: no switch has a CA`},
		{routingtest.Graph(t, "ring:n=3,hosts=0", graph.BuildOptions{}), "ftree", Options{}, `ftree does not apply: not a fat tree: no switch has a compute node`},
		{g, "minhop", Options{Policy: "best"}, `assign: unknown policy "best"; supported: least_loaded, scatter, round_robin, dmodk, hash, first`},
	} {
		if _, err := Compute(t.Context(), x.g, x.engine, x.o); err == nil || err.Error() != x.want {
			t.Errorf("got %v\nwant %s", err, x.want)
		}
	}
}

// TestRoots: updn and ftree take the roots given.
func TestGivenRoots(t *testing.T) {
	g := routingtest.Graph(t, "mesh:dims=4,hosts=1", graph.BuildOptions{})
	for _, root := range []int{0, 2} {
		r := compute(t, g, "updn", Options{Roots: []int{root}})
		if v := routingtest.Verified(t, r, verify.Options{}); !v.OK() || len(v.Detours) != 1 {
			t.Errorf("%+v", v)
		}
	}
	// A line of switches is a tree of any height, with a root at its end; but
	// there are compute nodes at all levels.
	r := compute(t, g, "ftree", Options{Roots: []int{3}})
	if v := routingtest.Verified(t, r, verify.Options{}); !v.OK() {
		t.Errorf("%+v", v)
	}
}

// TestEngines: every table is complete where the network is connected, for
// CAs and for the switches' own packets; minimal and without credit loops where
// its engine says so.
func TestEngines(t *testing.T) {
	routingtest.ResultsOnly(t)
	applied := map[string]int{}
	for _, spec := range routingtest.SmallNets() {
		g := routingtest.Graph(t, spec, graph.BuildOptions{})
		whole := connected(t, g)
		for _, e := range All() {
			r, err := Compute(t.Context(), g, e.Name, Options{Given: routes.New(g, 0)})
			if p := new(Precondition); errors.As(err, &p) {
				continue
			}
			if err != nil {
				t.Fatalf("%s, %s: %v", spec, e.Name, err)
			}
			if e.Name == "file" {
				continue
			}
			applied[e.Name]++
			if lanes := r.SL.Any() || r.Lanes() > 1; lanes && !e.Lanes {
				t.Errorf("%s, %s: paths have lanes, which the literal does not say", spec, e.Name)
			}
			v := routingtest.Verified(t, r, verify.Options{})
			if whole && v.Unreachable > 0 || v.Loops > 0 {
				t.Errorf("%s, %s: %d pairs do not reach each other, %d of them in loops: %+v", spec, e.Name, v.Unreachable, v.Loops, v.Broken)
			}
			if e.Minimal && len(v.Detours) > 1 {
				t.Errorf("%s, %s: detours %v", spec, e.Name, v.Detours)
			}
			if e.Acyclic && !v.Acyclic {
				t.Errorf("%s, %s: a credit loop:\n%s", spec, e.Name, verify.FormatCycle(v.Cycle))
			}
			if all := routingtest.Verified(t, r, verify.Options{Endpoints: ^graph.Class(0)}); whole && all.Unreachable > 0 && len(r.Notes) == 0 || all.Loops > 0 {
				t.Errorf("%s, %s: with switches, %d pairs do not reach each other, %d of them in loops: %+v", spec, e.Name, all.Unreachable, all.Loops, all.Broken)
			}
		}
	}
	for _, e := range All() {
		least := 15
		switch e.Name {
		case "dragonfly": // see TestDragonfly
			least = 2
		case "torus-2qos": // see TestTorus
			least = 6
		}
		if e.Name != "file" && applied[e.Name] < least {
			t.Errorf("%s applied to %d nets only", e.Name, applied[e.Name])
		}
	}
}

// connected reports whether all CAs of g are in one part.
func connected(t testing.TB, g *graph.Graph) bool {
	t.Helper()
	h, err := graph.AllHops(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	on, first := g.Endpoints(), -1
	for s := range g.Switches() {
		if on[s] > 0 {
			if first < 0 {
				first = s
			}
			if h.Distance(first, s) < 0 {
				return false
			}
		}
	}
	return true
}

// endsLater is a context that ends when it has been asked so many times.
type endsLater struct {
	context.Context
	left atomic.Int64
}

func (c *endsLater) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// TestCancelled: an engine that is stopped, at any point, reports it, and not that it
// does not apply.
func TestCancelled(t *testing.T) {
	for _, net := range []string{"fattree:k=4,levels=3,remove_links=2,seed=1", "torus:dims=3/4,hosts=1"} {
		g := routingtest.Graph(t, net, graph.BuildOptions{Workers: 1})
		for _, e := range All() {
			if _, err := Compute(t.Context(), g, e.Name, Options{}); err != nil {
				continue // it does not apply
			}
			stopped := 0
			for after := range int64(40) {
				ctx := &endsLater{Context: context.Background()}
				ctx.left.Store(after)
				if _, err := Compute(ctx, g, e.Name, Options{}); err != nil {
					if stopped++; err != context.Canceled {
						t.Errorf("%s, %s, stopped when asked %d times: %v", net, e.Name, after, err)
					}
				}
			}
			if stopped < 2 {
				t.Errorf("%s, %s: stopped %d times", net, e.Name, stopped)
			}
		}
	}
}

// TestHostsWithoutLIDs: hosts without a LID, all of a switch and some of others, change no tables and
// lanes of any engine.
func TestHostsWithoutLIDs(t *testing.T) {
	for _, net := range []string{
		"pgft:m=3/4/2,w=1/2/3,p=1/1/2", "fattree:k=6,levels=3,remove_links=10%,seed=3", "torus:dims=3/4,hosts=2",
		"hyperx:dims=3/4,hosts=2", "dragonfly:a=4,p=2,h=1", "random:n=20,degree=4,hosts=2",
	} {
		without := func(p *fabric.Port) bool {
			return !p.Node().IsSwitch() && p.Peer() != nil && (p.Peer().Node().ID()%5 == 1 || p.Node().ID()%7 == 2)
		}
		o := graph.BuildOptions{LIDs: func(p *fabric.Port) (mad.LID, int) {
			if without(p) {
				return 0, 0
			}
			return mad.LID(p.ID() + 1), 0
		}}
		with := routingtest.Graph(t, net, o)
		o.Exclude = without
		bare := routingtest.Graph(t, net, o)
		for _, e := range All() {
			r, err := Compute(t.Context(), with, e.Name, Options{})
			want, other := Compute(t.Context(), bare, e.Name, Options{})
			if p := new(Precondition); errors.As(err, &p) || errors.As(other, &p) {
				if err == nil || other == nil || err.Error() != other.Error() {
					t.Errorf("%s, %s: %v, without the hosts: %v", net, e.Name, err, other)
				}
				continue
			} else if err = errors.Join(err, other); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(routingtest.Tables(r), routingtest.Tables(want)) || !slices.Equal(levelsOf(r), levelsOf(want)) {
				t.Errorf("%s, %s: other tables than without the hosts", net, e.Name)
			}
			if v := routingtest.Verified(t, r, verify.Options{}); v.Unreachable > 0 || v.Loops > 0 || e.Acyclic && !v.Acyclic {
				t.Errorf("%s, %s: %+v", net, e.Name, v)
			}
		}
	}
}

// levelsOf are the service levels of all paths between endpoints.
func levelsOf(r *routes.Routes) (list []uint8) {
	g := r.Graph()
	for i := range g.Terminals() {
		for _, lid := range g.LIDs(graph.ClassCN) {
			if g.Terminals()[i].IsEndpoint(0) {
				list = append(list, r.SL.Of(i, lid))
			}
		}
	}
	return list
}

func BenchmarkEngine(b *testing.B) {
	for _, x := range []struct {
		engine, policy string
		maxVLs         int
		nets           []string
	}{
		{"minhop", "", 0, []string{"ft11664", "ft11664-400", "wide"}},
		{"minhop", LeastLoaded, 0, []string{"ft11664"}},
		{"updn", "", 0, []string{"ft11664", "ft11664-400", "wide"}},
		{"dnup", "", 0, []string{"ft11664", "ft11664-400"}},
		{"ftree", "", 0, []string{"ft11664", "ft11664-400", "wide"}},
		{"sssp", "", 0, []string{"ft11664"}},
		{"nue", "", 0, []string{"ft5832", "ft11664", "wide", "dragonfly:a=8,p=4,h=4"}},
		{"nue", "", 8, []string{"dragonfly:a=8,p=4,h=4", "torus:dims=12/12/8,hosts=1", "random:n=1000,degree=10,hosts=2"}},
		{"dfsssp", "", 0, []string{"ft5832", "ft11664", "dragonfly:a=8,p=4,h=4"}},
		{"lash", "", 0, []string{"ft5832", "dragonfly:a=8,p=4,h=4", "torus:dims=16/16/16,hosts=1"}},
		{"torus-2qos", "", 0, []string{"torus:dims=8/8/8,hosts=1", "torus:dims=16/16/16,hosts=1"}},
	} {
		name := x.engine
		if x.policy != "" {
			name += "-" + x.policy
		}
		if x.maxVLs > 0 {
			name += fmt.Sprintf("-%dlanes", x.maxVLs)
		}
		b.Run(name, func(b *testing.B) {
			for _, net := range x.nets {
				routingtest.Bench(b, net, func(b *testing.B, g *graph.Graph) error {
					_, err := Compute(b.Context(), g, x.engine, Options{Policy: x.policy, MaxVLs: x.maxVLs})
					return err
				})
			}
		})
	}
}

// takes reports whether e has an option of that name.
func (e *Engine) takes(option string) bool {
	return slices.ContainsFunc(e.Options, func(o Option) bool { return o.Name == option })
}

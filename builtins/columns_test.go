package builtins

import (
	"context"
	"maps"
	"slices"
	"testing"

	"go.starlark.net/starlark"

	"fabsh/builtins/check"
	"fabsh/builtins/datagrams"
	"fabsh/builtins/lang"
)

// columnValues make a value of each type that shows as columns.
var columnValues = map[string]string{
	"fabric": "f", "node": "sw", "port": "sw.ports[1]", "link": "f.links[0]", "problem": "None",
	"lft": "get_lft(sw)", "mft": "get_mft(sw)", "sl2vl": "get_sl2vl(sw)", "vlarb": "get_vlarb(sw.ports[1])", "pkeys": "get_pkeys(ca)", "guids": "get_guids(ca)",
	"choices": "f.graph().route('updn', adaptive=True).choices(sw, ca.lid)", "ar": "get_ar(sw)", "ar_entry": "get_ar(sw)[ca.lid]", "plft": "get_plft(sw)",
	"graph": "f.graph()", "routes": "r", "row": "r[sw]", "verdict": "r.verify()", "link_failure": "r.fail_each_link()[0]", "path": "r.trace(ca, f.cas[1])", "graph_path": "f.graph().paths(sw, f.switches[1])[0]", "congestion": "r.congestion()", "balance": "r.balance()", "adaptive_load": "f.graph().route(\"updn\", adaptive=True).balance().adaptive",
	"finding": `finding("a.b", sw, "x")`,
	"metric":  `metric("a", 1)`,
	"matrix":  "f.matrix()", "matrix_part": "f.matrix().parts[0]",
	"host_groups": "f.host_groups()", "host_group": "f.host_groups().roots[0]",
	"virtual_port": "discover(extended=True).virtual_ports[0]",
	"job":          `load_jobs("jobs.csv")[0]`, "job_traffic": "r.job_traffic({})", "job_load": `r.job_traffic({"a": "node-0001"}).jobs[0]`, "shared_link": `r.job_traffic({"a": "node-000[1,3]", "b": "node-000[1,3]"}).shared[0]`,
	"fabric_diff": "f.diff(f)", "change": `[sim.unlink("leaf-1/3"), f.diff(discover()), sim.link("leaf-1/3")][1].changes[0]`,
	"plan": "plan(lambda: set_lft(discover().switches[0], {9: 1}), static=True)", "link_effect": "plan(lambda: port_disable(discover().switches[0].ports[3])).effect", "plan_round": "plan(lambda: set_lft(discover().switches[0], {5: None}), static=True).rounds[0]", "planned_set": "plan(lambda: set_lft(discover().switches[0], {9: 1}), static=True).sets[0]",
	"routes_diff": "r.diff(r)", "tree": "f.graph().tree()", "stats": "stats()", "error": `catch(fail, "x")`, "node_info": `smp_get("NodeInfo", sw)`, "node_record": `sa_gettable("NodeRecord")[0]`, "port_rates": "perf_rates(sw.ports[1])", "bit_errors": "perf_rates(sw.ports[1]).ber()", "port_counters": `perf_get("PortCounters", sw.ports[1])`,
}

// checkSchema: the JSON of v has the members, in their order, that SCHEMAS.md says.
func checkSchema(t *testing.T, v starlark.Value) {
	i := slices.IndexFunc(append(check.Types(), datagrams.StatsDoc()), func(d lang.TypeDoc) bool { return d.Name == v.Type() })
	if i < 0 {
		return // a record
	}
	d := append(check.Types(), datagrams.StatsDoc())[i]
	var got, want []string
	for _, f := range v.(lang.Factual).Facts() {
		got = append(got, f.Name)
	}
	for _, m := range d.Members {
		if m.Column {
			want = append(want, m.Name)
		}
	}
	if !slices.Equal(got, want) || d.Schema != v.(lang.Factual).Schema() {
		t.Errorf("%s has %v, documented is %s with %v", v.(lang.Factual).Schema(), got, d.Schema, want)
	}
}

// TestColumns: every column that a value shows is an attribute of it, and says
// the same.
func TestColumns(t *testing.T) {
	onSim(t, "fattree:k=4,levels=2,ar=updn,vports=1", nil, func(t *testing.T, f *fixture) {
		env := maps.Clone(f.Interpreter.Globals)
		run := func(code string) starlark.StringDict {
			globals, err := starlark.ExecFileOptions(&lang.Dialect, f.newThread(context.Background(), "test"), "test", code, env)
			if err != nil {
				t.Fatalf("%s: %v", code, err)
			}
			return globals
		}
		write(t, f.fs, "/work/jobs.csv", "id,nodes\n7,a\n")
		for name, v := range run("f = discover()\nsw, ca = f.switches[0], f.cas[0]\nr = f.graph().route('ftree')") {
			env[name] = v
		}
		for want, code := range columnValues {
			v := run("x = " + code)["x"]
			if want == "problem" { // there is none in a fabric that is well
				continue
			}
			if v.Type() != want {
				t.Errorf("%s: got %s", want, v.Type())
			}
			checkSchema(t, v)
			names := v.(starlark.HasAttrs).AttrNames()
			for _, fact := range v.(lang.Factual).Facts() {
				x, err := v.(starlark.HasAttrs).Attr(fact.Name)
				if x == nil || err != nil || !slices.Contains(names, fact.Name) {
					t.Errorf("%s shows %s, which is no attribute: %v", want, fact.Name, err)
					continue
				}
				if n, ok := x.(lang.Named); ok && fact.Value.Type() == "string" {
					x = starlark.String(n.Name())
				}
				if equal, err := starlark.Equal(x, fact.Value); !equal || err != nil {
					t.Errorf("%s.%s is %v, and shows as %v (%v)", want, fact.Name, x, fact.Value, err)
				}
			}
		}
		for _, d := range check.Types() {
			if _, ok := columnValues[d.Name]; !ok && !slices.Contains([]string{"lost", "audit_run", "action", "remedy_past", "remedy_link", "this_host", "own_port"}, d.Name) && // which take a fabric that loses reports, an audit, a remedy, and ports of the host
				slices.ContainsFunc(d.Members, func(m lang.MemberDoc) bool { return m.Column }) {
				t.Errorf("no value of type %s is looked at", d.Name)
			}
		}
	})
}

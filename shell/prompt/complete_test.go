package prompt

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.starlark.net/starlark"
	"go.uber.org/goleak"

	"fabsh/builtins/check"
	"fabsh/builtins/topology"
)

// TestComplete: commands and reports at the prompt. Variables hide them.
func TestComplete(t *testing.T) {
	globals := starlark.StringDict{"d": starlark.None, "discover": starlark.NewBuiltin("discover", nil)}
	c := &completer{
		Completer: check.Completer{
			Globals: func() starlark.StringDict { return globals },
			Lead:    func() []string { return []string{"iblinkinfo", "ibtracert", "audit"} },
			Files: func(prefix string) []string {
				return check.Matching([]string{"examples/", "notes.star"}, prefix)
			},
		},
		reports:  func() []string { return []string{"iblinkinfo", "ibtracert", "d"} },
		options:  func(report string) []string { return []string{"--" + report, "--down"} },
		commands: Commands{Names: map[string]bool{"audit": true, "sim": false}},
		follow: func(words []string, typed string) ([]string, bool) {
			if slices.Contains(words, "--baseline") {
				return nil, true
			}
			return []string{"config", "counters", "--deep"}[len(words)-1:], false
		},
		own: func(name string) bool { return globals.Has(name) },
	}
	tests := []struct {
		text  string
		want  []string // whole words
		typed string   // what they replace
	}{
		{"", []string{indentUnit}, ""},
		{"def f():\n  ", []string{indentUnit}, ""},
		{"ib", []string{"iblinkinfo", "ibtracert"}, "ib"},
		{"x = ib", nil, "ib"},
		{"iblinkinfo --", []string{"--iblinkinfo", "--down"}, "--"},
		{"iblinkinfo 'a b' --d", []string{"--down"}, "--d"},
		{"iblinkinfo lea", nil, "lea"},
		{"iblinkinfo = disc", []string{"discover"}, "disc"},
		{"d --", nil, ""}, // a variable has that name

		{"audit c", []string{"config", "counters"}, "c"},
		{"audit config c", []string{"counters"}, "c"},
		{"audit --baseline no", []string{"notes.star"}, "no"},
		{"fabsh audit c", []string{"config", "counters"}, "c"},
		{"audi", []string{"audit"}, "audi"},
		{"audit = disc", []string{"discover"}, "disc"},
	}
	for _, tt := range tests {
		words, start := c.Complete(tt.text, "")
		if diff := cmp.Diff(tt.want, words); diff != "" || tt.text[start:] != tt.typed {
			t.Errorf("%q: replaces %q, want %q; -want +got:\n%s", tt.text, tt.text[start:], tt.typed, diff)
		}
	}
}

func TestSuffixes(t *testing.T) {
	words := []string{"leaf 1", "leaf 2"}
	s := &suffixes{complete: func(text, _ string) ([]string, int) { return words, strings.LastIndexByte(text, '"') + 1 }, size: func() (int, int) { return 80, 24 }}
	tests := []struct {
		words      []string
		line       string
		want       []string
		wantLength int
	}{
		{[]string{"leaf 1", "leaf 2"}, `f("le`, []string{"af 1", "af 2"}, 2},
		{[]string{"leaf 1", "Lear"}, `f("le`, []string{"af 1"}, 2},
		{[]string{"größe", "größer"}, `f("grö`, []string{"ße", "ßer"}, 3},
		{[]string{strings.Repeat("x", 100) + "1", strings.Repeat("x", 100) + "2"}, `f("x`, []string{strings.Repeat("x", 99)}, 1}, // wider than the screen
		{[]string{strings.Repeat("x", 100), "y"}, `f("`, nil, 0},
		{manyWords(5000), `f("n`, []string{"ode"}, 1}, // more than a screen
	}
	for _, tt := range tests {
		words = tt.words
		tails, length := s.Do([]rune(tt.line), len([]rune(tt.line)))
		var got []string
		for _, tail := range tails {
			got = append(got, string(tail))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || length != tt.wantLength {
			t.Errorf("%q: length %d, want %d; -want +got:\n%s", tt.line, length, tt.wantLength, diff)
		}
	}
}

func manyWords(n int) []string {
	var words []string
	for i := range n {
		words = append(words, "node"+strings.Repeat("i", i%7)+string(rune('a'+i%26)))
	}
	slices.Sort(words)
	return words
}

// TestCompleteServed: methods of sim that are refused on a fabric that another process serves
// are not proposed there.
func TestCompleteServed(t *testing.T) {
	for _, x := range []struct {
		sim  *topology.Sim
		want string
	}{
		{&topology.Sim{Remote: func(string, []byte) ([]byte, error) { return nil, nil }}, ""},
		{&topology.Sim{}, "actions play"},
	} {
		c := &check.Completer{Globals: func() starlark.StringDict { return starlark.StringDict{"sim": x.sim} }}
		names, _ := c.Complete("sim.", "")
		if !slices.Contains(names, "unlink") {
			t.Errorf("no unlink in %v", names)
		}
		names = slices.DeleteFunc(names, func(n string) bool { return n != "play" && n != "actions" })
		if got := strings.Join(names, " "); got != x.want {
			t.Errorf("got %q, want %q", got, x.want)
		}
	}
}

func TestProposals(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	t.Chdir(t.TempDir())
	for _, name := range []string{"topo.net", ".hidden"} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir("tables", 0o700); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	p := testProgram(t, &out, "-F", "sim:ring:n=2")
	r := newRepl(p, openSession(t, p), Commands{})
	r.read(&typist{[]string{"f = discover()", "def mine(first, *rest, second=2, **others): pass", ""}, &out}, true)
	if status := r.loop(); status != 0 {
		t.Fatal(out.String())
	}
	c := r.completer()
	tests := []struct {
		text string
		want []string
	}{
		{"disc", []string{"discover"}},
		{"smp_get('PortI", []string{"PortInfo", "PortInfoExtended"}},
		{"smp_get('NodeI", []string{"NodeInfo'"}},
		{"smp_get('NodeInfo', 'switch", []string{"switch-1", "switch-2"}},
		{"smp_get('NodeInfo', target='node-0001", []string{"node-0001 HCA-1'"}},
		{"sim.unlink('switch-1/", []string{"switch-1/0", "switch-1/1", "switch-1/2", "switch-1/3"}},
		{"sim.kill('swi", []string{"switch-1", "switch-2"}},
		{"sim.loss(0.1, where='node-0002", []string{"node-0002 HCA-1'"}},
		{"smp_get('PortInfo', f.switches[0], por", []string{"port=", "port_disable", "port_enable", "port_reset", "port_set"}},
		{"smp_get('PortInfo', f.switches[0], po", []string{"port=", "position=", "port_disable", "port_enable", "port_reset", "port_set"}},
		{"perf_get('PortCounters'", nil},
		{"perf_get('PortCountersE", []string{"PortCountersExtended'"}},
		{"sa_gettable('Path", []string{"PathRecord'"}},
		{"sa_gettable('NodeRecord', node_t", []string{"node_type="}},
		{"sa_gettable('NodeRecord', node_type='s", []string{"switch'"}},
		{"sa_gettable('NodeRecord', lid='", nil},
		{"sa_gettable('Nonsense', node_t", nil},
		{"f.switches[0].ports[1].peer.node.na", []string{"name"}},
		{"f.du", []string{"dump", "dump_mfts"}},
		{"json.en", []string{"encode", "encode_indent"}},
		{"help('PortInfo", []string{"PortInfo", "PortInfoExtended", "PortInfoExtendedRecord", "PortInfoRecord"}},
		{"help('smp_g", []string{"smp_get'"}},
		{"help('PortInfo.MKeyL", nil},
		{"help('PortInfo.M_KeyL", []string{"PortInfo.M_KeyLeasePeriod'"}},
		{"help('node.po", []string{"node.ports'"}},
		{"help('fabric.d", []string{"fabric.diff", "fabric.dump", "fabric.dump_mfts"}},
		{"help('json.enc", []string{"json.encode", "json.encode_indent"}},
		{"mine(", []string{"first=", "second="}},
		{"mine(1, seco", []string{"second="}},
		{"load_fabric('t", []string{"tables/", "topo.net"}},
		{"load_fabric('.h", []string{".hidden"}},
		{"load('@examples//l", []string{"@examples//links.star", "@examples//links_test.star"}},
		{"load('@examples//links.star', '", []string{"main", "row"}},
		{"load('@examples//links.star', 'main', mine='ro", []string{"row'"}},
		{"load('@examples//nosuch.star', '", nil},
		{"load('topo.net', '", nil},

		// What a call returns, as it is declared: nothing is called.
		{"discover().swi", []string{"switches"}},
		{"discover().switches[0].num", []string{"num_ports"}},
		{"discover().links[i].a.peer.node.gu", []string{"guid"}},
		{"discover().graph().ro", []string{"route", "routes"}},
		{"discover().graph().route(\"ftree\").ver", []string{"verify"}},
		{"discover().switches.app", []string{"append"}},
		{"load_fabric(\"x\").ca", []string{"cas"}},
		{"smp_get(\"NodeInfo\", f.switches[0]).num", []string{"num_ports"}},
		{"smp_get(attr=\"NodeInfo\", target=1).num", []string{"num_ports"}},
		{"smp_get(\"NodeInfo\", f.nodes)[3].num", []string{"num_ports"}},
		{"sa_gettable(\"NodeRecord\")[0].node_g", []string{"node_guid"}},
		{"sa_gettable(\"NodeRecord\").app", []string{"append"}},
		{"sorted(discover().nodes)[0].na", []string{"name"}},
		{"get_routes().tr", []string{"trace"}},
		{"get_routes().graph.switches[0].num", []string{"num_ports"}},
		{"get_routes().trace(1, 2).source.peer_", []string{"peer_guid", "peer_num", "peer_unknown"}},
		{"discover().links[0].best_", []string{"best_speed", "best_width"}},
		{"discover().links[0].best_speed.sta", []string{"startswith"}},
		{"discover().node(1).num", []string{"num_ports"}},
		{"discover().nodes[0].ports[1:3].app", []string{"append"}},
		{"f.nodes[0].ports[1:3][0].peer_", []string{"peer_guid", "peer_num", "peer_unknown"}},
		{"f.nodes[0].name[1:].sta", []string{"startswith"}},
		{"smp_get(\"SwitchInfo\", 1).da", []string{"data"}},
		{"smp_get(\"SwitchInfo\", 1).data.el", []string{"elems"}},
		{"smp_get(\"NodeInfo\", 1).o", []string{"of"}},
		{"sa_gettable(\"NodeRecord\")[0].of", nil},
		{"smp_get(name, 1).num", nil},
		{"mine(1).na", nil},

		// Variables of loops, comprehensions and blocks.
		{"[n.na| for n in f.nodes]", []string{"name"}},
		{"[p.sta| for n in f.nodes for p in n.ports if p.peer]", []string{"state"}},
		{"[p.num for n in discover().nodes for p in n.po", []string{"ports"}},
		{"[p.peer_g| for p in get_routes().trace(1, 2)]", []string{"peer_guid"}},
		{"for n in f.switches: n.num", []string{"num_ports"}},
		{"for i, n in enumerate(f.switches):\n    n.num", []string{"num_ports"}},
		{"def g():\n    sw = discover().switches[0]\n    for p in sw.ports:\n        p.peer_n", []string{"peer_num"}},
		{"for x in x.y: x.", nil},
		{"[x. | for x in x.y]", nil},
		{"[r.num| for r in smp_get('NodeInfo', f.nodes) if r]", []string{"num_ports"}},

		// Fields, names of nodes and ports, choices, methods of Starlark's types.
		{"smp_set(\"PortInfo\", f.switches[0], link_width_e", []string{"link_width_enabled="}},
		{"help(\"PortInfo.LM", []string{"PortInfo.LMC\""}},
		{"smp_get('PortInfo', \"switch-1/", []string{"switch-1/0", "switch-1/1", "switch-1/2", "switch-1/3"}},
		{"smp_get('PortInfo', \"node-0001 HCA-1/", []string{"node-0001 HCA-1/1\""}},
		{"f.select(\"switch-1", []string{"switch-1\""}},
		{"f.node(\"switch-1", []string{"switch-1\""}},
		{"f.graph().route(\"ft", []string{"ftree\""}},
		{"f.graph().route(engine=\"min", []string{"minhop\""}},
		{"f.graph().route(\"ftree\", sc", []string{"scope="}},
		{"discover(via=\"s", []string{"smp", "sa"}},
		{"\"abc\".sta", []string{"startswith"}},
		{"f.nodes[0].name.sta", []string{"startswith"}},
		{"f.nodes.in", []string{"index", "insert"}},
		{"{}.ke", []string{"keys"}},
		{"load(\"@std//lib/re", []string{"@std//lib/registers.star", "@std//lib/remedy.star", "@std//lib/report.star"}},
	}
	for _, tt := range tests {
		before, after, _ := strings.Cut(tt.text, "|")
		words, _ := c.Complete(before, after)
		if diff := cmp.Diff(tt.want, words); diff != "" {
			t.Errorf("%q: -want +got:\n%s", tt.text, diff)
		}
	}
}

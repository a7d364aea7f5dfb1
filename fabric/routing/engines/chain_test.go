package engines

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/verify"
)

func read(t testing.TB, text string) *ChainPolicy {
	t.Helper()
	p := &ChainPolicy{}
	if err := p.Read(strings.NewReader(text), "x"); err != nil {
		t.Fatal(err)
	}
	return p
}

// computeText computes the chain of text on g, with files by name.
func computeText(t testing.TB, g *graph.Graph, text string, files map[string]string) (*routes.Routes, error) {
	t.Helper()
	return ComputeChain(t.Context(), g, read(t, text), func(name string) (io.ReadCloser, error) {
		if content, ok := files[name]; ok {
			return io.NopCloser(strings.NewReader(content)), nil
		}
		return nil, fmt.Errorf("%s: no such file", name)
	})
}

const tenants = `
port-group
name: tenant-hosts
use: first tenant
port-regexp: node-000[1-4].*
end-port-group
port-group
name: switches
subtract-rule: ALL_SWITCHES, spine-4
end-port-group
port-group
name: spine-4
obj_list:
   name=spine-4/U1 pmask=0x1ff;
end-port-group
topology
id: 7
sw-grp: switches
hca-grp: tenant-hosts
end-topology
unicast-step
id: 2
engine: updn
topology: 7
end-unicast-step
unicast-step
id: 1
engine: ftree
path-bit: 0
end-unicast-step
`

// TestChain: LIDs of a topology are reached over its links alone; all others as the
// first step has it.
func TestChain(t *testing.T) {
	t.Parallel()
	g := routingtest.Graph(t, "fattree:k=8", graph.BuildOptions{})
	r, err := computeText(t, g, tenants, nil)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := Compute(t.Context(), g, "ftree", Options{})
	if err != nil {
		t.Fatal(err)
	}
	over := map[bool]int{}
	for _, to := range g.Terminals() {
		tenant := strings.HasPrefix(to.Port.Node().Name(), "node-000") && to.Port.Node().Name() < "node-0005"
		for s, n := range g.Switches() {
			out := r.Row(s).Port(to.LID)
			if to.Out > 0 && !tenant && out != whole.Row(s).Port(to.LID) {
				t.Errorf("%s to %s: port %d is not that of the first step", n.Name(), to.Port.Name(), out)
			}
			if strings.HasPrefix(n.Name(), "leaf") && to.Out > 0 && s != to.Switch {
				spine4 := n.Port(int(out)).Peer().Node().Name() == "spine-4"
				if tenant && spine4 {
					t.Errorf("%s to %s goes over spine-4", n.Name(), to.Port.Name())
				}
				over[spine4]++
			}
		}
	}
	if over[true] == 0 {
		t.Error("nothing goes over spine-4")
	}
	v, err := verify.Tables(t.Context(), r, verify.Options{})
	if err != nil || !v.OK() {
		t.Errorf("verdict %+v, %v", v, err)
	}
}

// TestFallback: a step whose engine does not apply is replaced by its fallback.
func TestFallback(t *testing.T) {
	t.Parallel()
	g := routingtest.Graph(t, "ring:n=5", graph.BuildOptions{})
	step := "unicast-step\nid: 1\nengine: ftree\nend-unicast-step\n"
	_, err := computeText(t, g, step, nil)
	if not := new(Precondition); !errors.As(err, &not) || !strings.Contains(err.Error(), "x:1: step 1: ftree does not apply") {
		t.Errorf("without a fallback: %v", err)
	}
	r, err := computeText(t, g, step+"unicast-step\nid: 2\nengine: updn\nfallback-to: 1\nend-unicast-step\n"+
		"unicast-step\nid: 3\nengine: minhop\nfallback-to: 9\nend-unicast-step\nunicast-step\nid: 4\nengine: minhop\nfallback-to: 2\nend-unicast-step\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := verify.Tables(t.Context(), r, verify.Options{}); err != nil || !v.OK() {
		t.Errorf("verdict %+v, %v", v, err)
	}
	for i, want := range []string{"step 2 takes its place", "step 3 is left out: its fallback, step 9, does not exist", "step 4 is left out: its fallback, step 2, is itself a fallback"} {
		if !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, want) }) {
			t.Errorf("note %d: none of %q says %q", i, r.Notes, want)
		}
	}
}

// TestConfig: a step takes its roots from its own file.
func TestConfig(t *testing.T) {
	t.Parallel()
	g := routingtest.Graph(t, "torus:dims=3/3,hosts=1", graph.BuildOptions{})
	text := "unicast-step\nid: 1\nengine: updn\nconfig: updn.conf\nend-unicast-step\n"
	root := g.Switches()[4]
	files := map[string]string{"updn.conf": "# options\nroot_guid_file roots\nlog_file /tmp/x\ncn_guid_file (null)\n", "roots": root.GUID().String() + "\n"}
	r, err := computeText(t, g, text, files)
	if err != nil {
		t.Fatal(err)
	}
	want, err := Compute(t.Context(), g, "updn", Options{Roots: []int{4}})
	if err != nil {
		t.Fatal(err)
	}
	if n := r.Diff(want).Entries; n != 0 {
		t.Errorf("%d entries are not those of updn from %s", n, root.Name())
	}
	files["roots"] = "0x1\n"
	if _, err := computeText(t, g, text, files); err == nil || !strings.Contains(err.Error(), "roots: none of its GUIDs") {
		t.Errorf("roots that are not there: %v", err)
	}
}

func group(rules ...string) string {
	return "port-group\nname: a\n" + strings.Join(rules, "\n") + "\nend-port-group\n"
}

// TestGroups: which ports are in a group, by the names of nodes and ports.
func TestGroups(t *testing.T) {
	t.Parallel()
	f := routingtest.Graph(t, "ring:n=2,hosts=2", graph.BuildOptions{}).Fabric()
	guids := map[string]string{}
	for i := range f.Nodes() {
		guids[f.Nodes()[i].Name()] = f.Nodes()[i].GUID().String()
	}
	one := guids["switch-1"]
	for _, x := range []struct {
		rule string
		want string
	}{
		{"port-guid: " + one, "switch-1/0 switch-1/1 switch-1/2 switch-1/3 switch-1/4"},
		{"port-guid: " + one + "@2-3/1, " + guids["node-0001 HCA-1"], "node-0001 HCA-1/1 switch-1/0 switch-1/1 switch-1/2 switch-1/3"},
		{"port-guid-range: " + one + " - " + one, "switch-1/0 switch-1/1 switch-1/2 switch-1/3 switch-1/4"},
		{"port-name: hostname=node-0001; hca_idx=1, hostname=node-0002; port=1, hostname=node-0003; port=2, hostname=node-0004; hca_idx=2", "node-0001 HCA-1/1 node-0002 HCA-1/1"},
		{"port-regexp: ^node-000[12]", "node-0001 HCA-1/1 node-0002 HCA-1/1"},
		{"port-regexp: switch-2:1", "switch-2/0 switch-2/1"},
		{"obj_list:\n name=switch-1 pmask=0x4;\n name=node-0002 HCA-1/U1:P1\n;", "node-0002 HCA-1/1 switch-1/0 switch-1/2"},
		{"subtract-rule: ALL_CAS, b\nend-port-group\nport-group\nname: b\nport-regexp: -000[123]", "node-0004 HCA-1/1"},
		{"union-rule: b, b\nend-port-group\nport-group\nname: b\nport-regexp: -0003", "node-0003 HCA-1/1"},
	} {
		g := newPortGroups(t.Context(), f, read(t, group(x.rule)))
		m, err := g.of("a")
		if err != nil {
			t.Errorf("%s: %v", x.rule, err)
			continue
		}
		var names []string
		for i, is := range m {
			if is {
				names = append(names, f.Ports()[i].Name())
			}
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); got != x.want {
			t.Errorf("%s: %s, want %s", x.rule, got, x.want)
		}
	}
	for _, rules := range [][2]string{
		{"port-guid: x", "expected a GUID"}, {"port-guid: 0x1@300", "expected ports"}, {"port-guid: 0x1@5-2", "expected ports"},
		{"port-guid-range: 0x9-0x1", "expected one range"}, {"port-guid-range: 0x1-0x2, 0x3-0x4", "expected one range"},
		{"port-name: port=1", "expected hostname=NAME"}, {"port-name: hostname=a; port=0", "expected port=1..254"}, {"port-name: a", "expected hostname=, port= and hca_idx="},
		{"port-regexp: (", "missing"}, {"port-regexp: a:0", "expected a port"}, {"union-rule: ALL", "expected two groups"},
		{"union-rule: ALL, a", "contains itself"}, {"union-rule: ALL, c", "unknown port-group"}, {"obj_list: x", "expected name=NAME"}, {"use: nothing", "has no rule"},
	} {
		_, err := newPortGroups(t.Context(), f, read(t, group(rules[0]))).of("a")
		if err == nil || !strings.Contains(err.Error(), rules[1]) {
			t.Errorf("%s: %v, want %q", rules[0], err, rules[1])
		}
	}
	chain := ""
	for i := range 200 {
		chain += fmt.Sprintf("port-group\nname: g%d\nunion-rule: ALL, g%d\nend-port-group\n", i, i+1)
	}
	if _, err := newPortGroups(t.Context(), f, read(t, chain)).of("g0"); err == nil || !strings.Contains(err.Error(), "more than 100 deep") {
		t.Errorf("groups of groups: %v", err)
	}
}

// TestReadErrors: errors of a file name the line.
func TestReadErrors(t *testing.T) {
	t.Parallel()
	for _, x := range [][2]string{
		{"bla\n", `x:1: expected port-group, topology or unicast-step, not "bla"`},
		{"\nport-group\nname: a\n", "x:2: expected end-port-group before the end of the file"},
		{"port-group\nsl: a\n", `x:2: expected end-port-group or one of name, use,`},
		{"port-group\nport-guid: 1\nend-port-group\n", "x:1: port-group: expected a line name: with a value"},
		{"port-group\nname: ALL\nend-port-group\n", "ALL is predefined"},
		{group("use: x") + group("use: x"), "two have the name"},
		{"topology\nid: 0\n", "expected end-topology"},
		{"topology\nid: 0\nend-topology\n", "expected a number from 1 to"},
		{"topology\nid: 1\nsw-grp: a\nend-topology\n", "expected a line hca-grp:"},
		{"unicast-step\nid: 99999999999999999999\nend-unicast-step\n", "expected a number"},
		{"unicast-step\nid: 1\nid: 2\nend-unicast-step\n", "id is given twice"},
		{"unicast-step\nid: 1\nend-unicast-step\n", "expected a line engine:"},
		{"unicast-step\nid: 1\nengine: updn\npath-bit: 128\nend-unicast-step\n", "expected a number from 0 to 127"},
		{"port-group\n" + strings.Repeat("use: x\n", 17), "expected at most 16 lines"},
		{strings.Repeat("port-group\nend-port-group\n", maxParagraphs+1), "expected at most 4096 paragraphs"},
		{strings.Repeat("x", 2<<20), "the line is longer"},
	} {
		err := (&ChainPolicy{}).Read(strings.NewReader(x[0]), "x")
		if err == nil || !strings.Contains(err.Error(), x[1]) || len(err.Error()) > 300 {
			t.Errorf("%.60q: %v, want %q", x[0], err, x[1])
		}
	}
	g := routingtest.Graph(t, "ring:n=2", graph.BuildOptions{})
	for _, x := range [][2]string{
		{"", "no unicast-step"},
		{"unicast-step\nid: 1\nengine: updn\ntopology: 3\nend-unicast-step\n", "the first step must route the whole fabric"},
		{"unicast-step\nid: 1\nengine: pqft\nend-unicast-step\n", `unknown engine "pqft"`},
		{"unicast-step\nid: 1\nengine: updn\nend-unicast-step\nunicast-step\nid: 2\nengine: updn\ntopology: 3\nend-unicast-step\n", "unknown topology 3"},
		{"unicast-step\nid: 1\nengine: updn\nconfig: none\nend-unicast-step\n", "none: no such file"},
	} {
		if _, err := computeText(t, g, x[0], nil); err == nil || !strings.Contains(err.Error(), x[1]) {
			t.Errorf("%q: %v, want %q", x[0], err, x[1])
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(tenants)
	f.Add(group("port-name: hostname=a; port=1, hostname=b", "port-guid: 1@2-3", "obj_list: name=a pmask=1; name=b:P2"))
	b := fabric.NewBuilder()
	empty := b.Build()
	f.Fuzz(func(t *testing.T, text string) {
		p := &ChainPolicy{}
		if p.Read(strings.NewReader(text), "x") != nil {
			return
		}
		g := newPortGroups(t.Context(), empty, p)
		for _, x := range p.Groups {
			g.of(x.Name)
		}
	})
}

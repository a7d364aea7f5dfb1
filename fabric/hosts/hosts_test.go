package hosts

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/sim"
	"fabsh/mad"
)

// draft is a fabric to be: switches, whose names have no blank before a slash, and
// adapters. GUIDs are in the order of their first mention.
type draft struct {
	types map[string]mad.NodeType
	order []string
	cable map[string]string // "node/port" both ways
}

// net reads lines "A - B C D": switch or adapter A has cables to B, C and D. What begins
// with a capital, or ?, is a switch. A name may be written as NAME#2, for a second node of it.
func net(lines ...string) *draft {
	d := &draft{types: map[string]mad.NodeType{}, cable: map[string]string{}}
	for _, line := range lines {
		a, others, _ := strings.Cut(line, " - ")
		a = strings.ReplaceAll(a, "~", " ")
		d.node(a)
		for b := range strings.SplitSeq(others, " ") {
			b = strings.ReplaceAll(b, "~", " ")
			d.node(b)
			x, y := d.free(a), d.free(b)
			d.cable[x], d.cable[y] = y, x
		}
	}
	return d
}

func (d *draft) node(name string) {
	if _, ok := d.types[name]; !ok {
		d.order = append(d.order, name)
		d.types[name] = mad.NodeTypeCA
		if name != "" && '?' <= name[0] && name[0] <= 'Z' {
			d.types[name] = mad.NodeTypeSwitch
		}
	}
}

func (d *draft) free(name string) string {
	for i := 1; ; i++ {
		if p := fmt.Sprintf("%s\x00%d", name, i); d.cable[p] == "" {
			return p
		}
	}
}

// drop takes nodes away.
func (d *draft) drop(names ...string) *draft {
	for _, name := range names {
		delete(d.types, name)
		for p, q := range d.cable {
			if strings.HasPrefix(p, name+"\x00") || strings.HasPrefix(q, name+"\x00") {
				delete(d.cable, p)
			}
		}
	}
	return d
}

func (d *draft) build(t *testing.T) *fabric.Fabric {
	t.Helper()
	b := fabric.NewBuilder()
	ids := map[string]int{}
	for i, name := range d.order {
		if d.types[name] != 0 {
			plain, _, _ := strings.Cut(name, "#")
			ids[name] = b.AddNode(fabric.NodeSpec{Name: plain, Info: mad.NodeInfo{NodeType: d.types[name], NumPorts: 40, NodeGUID: mad.GUID(0x100 + i)}})
		}
	}
	for p, q := range d.cable {
		if p > q {
			continue
		}
		var num [2]int
		var node [2]int
		for i, end := range []string{p, q} {
			at := strings.LastIndex(end, "\x00")
			fmt.Sscan(end[at+1:], &num[i])
			node[i] = ids[end[:at]]
		}
		if err := b.Link(node[0], num[0], node[1], num[1]); err != nil {
			t.Fatal(err)
		}
	}
	return b.Build()
}

// text is groups in one line each, indented, and the notes.
func text(g *Groups) string {
	var b strings.Builder
	var visit func(list []*Group, indent string)
	visit = func(list []*Group, indent string) {
		for _, x := range list {
			b.WriteString(indent + x.Name)
			if x.Level == 0 {
				b.WriteString(" " + Fold(x.Hosts))
			}
			b.WriteString("\n")
			visit(x.Groups, indent+" ")
		}
	}
	visit(g.Roots, "")
	for _, note := range append([]string{g.NoTree}, g.Notes...) {
		if note != "" {
			b.WriteString("! " + note + "\n")
		}
	}
	return b.String()
}

var (
	tree  = []string{"L1 - n1 n2 S1 S2", "L2 - n3 n4 S1 S2", "L10 - n5 S1 S2"}
	rails = []string{ // 2 units of 2 hosts with 3 rails
		"A1 - n1~r0 n2~r0 S1", "A2 - n1~r1 n2~r1 S2", "A3 - n1~r2 n2~r2 S3",
		"B1 - n3~r0 n4~r0 S1", "B2 - n3~r1 n4~r1 S2", "B3 - n3~r2 n4~r2 S3",
		"Core - S1 S2 S3",
	}
)

// storageBeside has two adapters of each host at one of two leaves, and one at a leaf for all.
var storageBeside = []string{
	"L1 - n1~r0 n1~r1 n2~r0 n2~r1 n3~r0 n3~r1 S", "L2 - n4~r0 n4~r1 n5~r0 n5~r1 S", "X - n1~r2 n2~r2 n3~r2 n4~r2 n5~r2 n9~r2 S",
}

// TestRefused: hosts of the same name, and leaves whose role is ambiguous, are errors that name both.
func TestRefused(t *testing.T) {
	for _, test := range []struct {
		name  string
		lines []string
		want  string
	}{
		{"a name twice", []string{"L1 - n1 n2~mlx5_0 S1", "L2 - n3 n2~mlx5_0#2 S1", "L3 - n4 S1"},
			`several hosts have the same name: "n2 mlx5_0" (0x0000000000000102 at "L1/2", 0x0000000000000106 at "L2/2"); give them names of their own (--node-name-map FILE), or leave them out (--class 'GUID=io')`},
		{"a name twice at a leaf", []string{"L1 - n1~mlx5_0 n1~mlx5_0#2"},
			`several hosts have the same name: "n1 mlx5_0" (0x0000000000000101 at "L1/1", 0x0000000000000102 at "L1/2"); give them names of their own (--node-name-map FILE), or leave them out (--class 'GUID=io')`},
		{"as many adapters at a leaf for all", []string{"L1 - n1~r0 n2~r0 S", "L2 - n3~r0 n4~r0 S", "X - n1~r1 n2~r1 n3~r1 n4~r1 S"},
			`leaf "X": its role is ambiguous: 4 of its hosts have as many adapters at other leaves; name the leaves of storage or management, such as --class 'X=io'`},
		{"as many at a leaf for parts of groups", []string{"X - n1~r1 n4~r1 n2~r1 n5~r1 S", "L1 - n1~r0 n2~r0 n3~r0 n6~r0 n8~r0 S", "L2 - n4~r0 n5~r0 n7~r0 n10~r0 n11~r0 S"},
			`leaf "X": its role is ambiguous: 4 of its hosts have as many adapters at other leaves; name the leaves of storage or management, such as --class 'X=io'`},
	} {
		g, err := Find(net(test.lines...).build(t), GroupOptions{})
		if err == nil {
			t.Errorf("%s: got\n%s", test.name, text(g))
		} else if diff := cmp.Diff(test.want, err.Error()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// TestPlanes: links between planes do not count for the tree.
func TestPlanes(t *testing.T) {
	for _, spec := range []string{"fattree:k=4,levels=2", "fattree:k=4,levels=3", "pgft:m=4/4/4,w=1/2/2,p=1/1/1"} {
		one, _, err := sim.Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		four, _, err := sim.Parse(spec + ",generation=xdr,planes=4")
		if err != nil {
			t.Fatal(err)
		}
		want, err := Find(one, GroupOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := Find(four, GroupOptions{})
		if err != nil {
			t.Fatal(err)
		}
		strip := strings.NewReplacer("unit-", "", "-plane-1", "")
		if diff := cmp.Diff(text(want), strip.Replace(text(got))); diff != "" {
			t.Errorf("%s (-one plane +four):\n%s", spec, diff)
		}
	}
}

func TestFind(t *testing.T) {
	storage := append([]graph.Rule{{Class: graph.ClassIO, Name: "n5*"}}, graph.DefaultRules()...)
	for _, test := range []struct {
		name  string
		lines []string
		o     GroupOptions
		want  string
	}{
		{"a tree of two levels", tree, GroupOptions{}, "root\n L1 n[1-2]\n L2 n[3-4]\n L10 n5\n"},
		{"storage left out", tree, GroupOptions{Rules: storage}, "root\n L1 n[1-2]\n L2 n[3-4]\n"},
		{"one leaf", []string{"Leaf - n1 n2"}, GroupOptions{}, "Leaf n[1-2]\n"},
		{"two subnets", append([]string{"X1 - m1 Y", "X2 - m2 m3 Y"}, tree...), GroupOptions{}, "root\n L1 n[1-2]\n L2 n[3-4]\n L10 n5\nroot-X1\n X1 m1\n X2 m[2-3]\n"},
		{"pods", []string{"L1 - n1 S1", "L2 - n2 S1", "L3 - n3 S2", "L4 - n4 S2", "Core - S1 S2"}, GroupOptions{}, "root\n pod-L1\n  L1 n1\n  L2 n2\n pod-L3\n  L3 n3\n  L4 n4\n"},
		{"pods, one level", []string{"L1 - n1 S1", "L2 - n2 S1", "L3 - n3 S2", "L4 - n4 S2", "Core - S1 S2"}, GroupOptions{Levels: 1}, "root\n L1 n1\n L2 n2\n L3 n3\n L4 n4\n"},
		{"a pod cut off is as deep as others", []string{"L1 - n1 S1", "L2 - n2 S1", "L3 - n3 S2", "L4 - n4 S2", "L5 - n5 S3", "Core - S1 S2"}, GroupOptions{}, "root\n pod-L1\n  L1 n1\n  L2 n2\n pod-L3\n  L3 n3\n  L4 n4\nroot-L5\n pod-L5\n  L5 n5\n"},
		{"rails are one unit", rails, GroupOptions{}, "root\n unit-A1 n[1-2]\n unit-B1 n[3-4]\n"},
		{"rails in subnets of their own", []string{"A1 - n1~r0 n2~r0", "A2 - n1~r1 n2~r1", "B1 - n3~r0 n4~r0 S1", "B2 - n3~r1 n4~r1 S2", "A1 - S1", "A2 - S2"}, GroupOptions{}, "root\n unit-A1 n[1-2]\n unit-B1 n[3-4]\n"},
		{"one cable at another unit", append([]string{"A1 - n5~r0 n6~r0 n7~r0", "B2 - n5~r1", "A2 - n6~r1 n7~r1", "A3 - n5~r2 n6~r2 n7~r2"}, rails...), GroupOptions{},
			"root\n unit-A1 n[1-2,5-7]\n unit-B1 n[3-4]\n! adapters at leaves of several units: host placed where most of them are, or at the first: \"n5\"\n"},
		{"one host at two leaves", append([]string{"L1 - n9~r0", "L2 - n9~r1"}, tree...), GroupOptions{},
			"root\n L1 n[1-2,9]\n L2 n[3-4]\n L10 n5\n! adapters at leaves of several units: host placed where most of them are, or at the first: \"n9\"\n"},
		{"placeholders", []string{"L1 - localhost~mlx5_0 n1 localhost~mlx5_0#2 (none)~mlx5_0 S1", "L2 - n2 localhost.localdomain~HCA-1 node mlx5_0 S1"}, GroupOptions{},
			"root\n L1 n1\n L2 n2\n! not identified by name; left out: \"(none) mlx5_0\" (0x0000000000000104 at \"L1/4\"), \"localhost mlx5_0\" (0x0000000000000101 at \"L1/1\"), \"localhost mlx5_0\" (0x0000000000000103 at \"L1/3\"), \"localhost.localdomain HCA-1\" (0x0000000000000108 at \"L2/2\"), \"mlx5_0\" (0x000000000000010a at \"L2/4\"), \"node\" (0x0000000000000109 at \"L2/3\")\n"},
		{"a leaf of storage beside rails", storageBeside, GroupOptions{},
			"root\n L1 n[1-3]\n L2 n[4-5]\n! role inferred: the leaf serves hosts of several groups, as storage and management do, and groups none (--class 'LEAF=cn' if it does): \"X\"\n! all adapters are at leaves of storage or management; left out: \"n9\"\n"},
		{"the same, by its class", storageBeside, GroupOptions{Rules: append([]graph.Rule{{Class: graph.ClassIO, Name: "x*", Leaf: true}}, graph.DefaultRules()...)}, "root\n L1 n[1-3]\n L2 n[4-5]\n"},
		{"the same, for jobs", storageBeside, GroupOptions{Rules: append([]graph.Rule{{Class: graph.ClassCN, GUIDs: []mad.GUID{0x10d}, Leaf: true}}, graph.DefaultRules()...)}, "unit-L1 n[1-5,9]\n"},
		{"two leaves of storage, by name", []string{"Storage1 - n1~r1 n2~r1 n3~r1 n4~r1 S", "Storage2 - n1~r2 n2~r2 n3~r2 n4~r2 S", "L1 - n1~r0 n2~r0 S", "L2 - n3~r0 n4~r0 S"}, GroupOptions{},
			"root\n L1 n[1-2]\n L2 n[3-4]\n! role inferred: the leaf serves hosts of several groups, as storage and management do, and groups none (--class 'LEAF=cn' if it does): \"Storage1\", \"Storage2\"\n"},
		{"a leaf of storage for parts of groups, by its targets", []string{"X - n1~r1 n4~r1 n2~r1 n5~r1 storage-1 S", "L1 - n1~r0 n2~r0 n3~r0 n6~r0 n8~r0 S", "L2 - n4~r0 n5~r0 n7~r0 n10~r0 n11~r0 S"}, GroupOptions{},
			"root\n L1 n[1-3,6,8]\n L2 n[4-5,7,10-11]\n! role inferred: the leaf serves hosts of several groups, as storage and management do, and groups none (--class 'LEAF=cn' if it does): \"X\"\n"},
		{"names that are no hosts'", []string{"L1 - n1 n~a~b a[1] x,y q\"r -f _ üb n2~\x1b[31m \xff S1", "L2 - n2 S1"}, GroupOptions{},
			"root\n L1 n1\n L2 n2\n! name is not that of a host and its adapter; left out: \"-f\", \"\\xff\", \"_\" and 6 more\n"},
		{"names of Kubernetes", []string{"L1 - n_1 S1", "L2 - nODE-7 n1.EXAMPLE n1.a_b S1"}, GroupOptions{DNS: true},
			"L2 n1.example,node-7\n! name is not that of a Kubernetes node and its adapter; left out: \"n1.a_b\", \"n_1\"\n"},
		{"switches of the same name, or none to speak of", []string{"L - n1 S1", "L#2 - n2 S1", "L_1 - n3 S1", "L-1 - n4 S1", "LEAF\x00 - n5 S1", "?/é - n6 S1", "S2 - S1", "Leaf~of~a~name~that~is~longer~than~forty~characters~is - n7"}, GroupOptions{},
			"root\n L-1-0000000000000107 n4\n L-0000000000000100 n1\n L-0000000000000103 n2\n LEAF n5\n L_1-0000000000000105 n3\n switch-000000000000010b n6\nroot-Leaf-of-a-name-that-is-000000000000010e\n Leaf-of-a-name-that-is-000000000000010e n7\n"},
		{"no tree", []string{"L1 - n1 L2 L3", "L2 - n2 L3", "L3 - n3"}, GroupOptions{}, "root\n L1 n1\n L2 n2\n L3 n3\n! the switches do not form a tree: L1/2 and L2/1 are linked, and both switches have hosts\n"},
		{"no tree is needed", []string{"L1 - n1 L2 L3", "L2 - n2 L3", "L3 - n3"}, GroupOptions{Levels: 1}, "root\n L1 n1\n L2 n2\n L3 n3\n"},
		{"no tree above", []string{"L1 - n1 S1", "L2 - n2 S2", "S1 - S2"}, GroupOptions{}, "root\n L1 n1\n L2 n2\n! the switches do not form a tree: S1/2 and S2/2 are linked, and both switches are 1 link away from hosts\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g, err := Find(net(test.lines...).build(t), test.o)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, text(g)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestBaseline: what is absent is where it was, and what has moved is where it is.
func TestBaseline(t *testing.T) {
	for _, test := range []struct {
		name string
		now  func() *draft
		want string
	}{
		{"a host", func() *draft { return net(tree...).drop("n1") }, "root\n L1 n[1-2]\n L2 n[3-4]\n L10 n5\n"},
		{"a leaf and its hosts", func() *draft { return net(tree...).drop("L1", "n1", "n2") }, "root\n L1 n[1-2]\n L2 n[3-4]\n L10 n5\n"},
		{"a leaf, and one of its hosts is elsewhere", func() *draft {
			return net(append(slices.Clone(tree), "L10 - n1#x")...).drop("L1", "n1", "n2")
		}, "root\n L1 n2\n L2 n[3-4]\n L10 n[1,5]\n"},
		{"all spines", func() *draft { return net(tree...).drop("S1", "S2") }, "root\n L1 n[1-2]\n L2 n[3-4]\n L10 n5\n"},
		{"another host at the port", func() *draft { return net("L1 - n9 n2 S1 S2", "L2 - n3 n4 S1 S2", "L10 - n5 S1 S2") }, "root\n L1 n[2,9]\n L2 n[3-4]\n L10 n5\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g, err := Find(test.now().build(t), GroupOptions{Baseline: net(tree...).build(t)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, text(g)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestNoHosts: that there are none is an error, which says why.
func TestNoHosts(t *testing.T) {
	for want, lines := range map[string][]string{
		`no hosts: no adapter of a compute node (class cn) is at a switch`:                                                                                            {"L1 - storage-1 S1"},
		`no host can be identified: not identified by name; left out: "MT4123 ConnectX6 by V" (0x0000000000000101 at "L1/1"); --node-name-map FILE gives nodes names`: {"L1 - MT4123~ConnectX6~by~V"},
	} {
		d := net(lines...)
		d.types["MT4123 ConnectX6 by V"] = mad.NodeTypeCA
		if _, err := Find(d.build(t), GroupOptions{}); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestDamage: of whatever is left of networks each host that has a leaf is in one group
// of each level, and no two groups have one name.
func TestDamage(t *testing.T) {
	for _, spec := range []string{"fattree:k=8,levels=3,remove_links=%d%%,seed=%d", "pgft:m=4/4/4,w=1/2/2,p=1/1/1,remove_links=%d%%,seed=%d", "torus:dims=4/4,hosts=2,remove_links=%d%%,seed=%d"} {
		for seed := range 4 {
			f, _, err := sim.Parse(fmt.Sprintf(spec, 15*seed, seed))
			if err != nil {
				t.Fatal(err)
			}
			g, err := Find(f, GroupOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for _, n := range f.OfType(mad.NodeTypeCA) {
				if q := n.Port(1).Peer(); q != nil {
					host, _, _ := strings.Cut(n.Name(), " ")
					want = append(want, host)
				}
			}
			slices.Sort(want)
			names := map[string]bool{}
			level := g.Roots
			for depth := g.Roots[0].Level; len(level) > 0; depth-- {
				var got []string
				var next []*Group
				for _, x := range level {
					if x.Level != depth || names[x.Name] || len(x.Hosts) == 0 {
						t.Errorf("%s seed %d: %q is on level %d of %d, with %d hosts", spec, seed, x.Name, x.Level, depth, len(x.Hosts))
					}
					names[x.Name] = true
					got = append(got, x.Hosts...)
					next = append(next, x.Groups...)
				}
				slices.Sort(got)
				if !slices.Equal(got, want) {
					t.Errorf("%s seed %d: level %d has %d hosts of %d", spec, seed, depth, len(got), len(want))
				}
				level = next
			}
		}
	}
}

func BenchmarkFind11664(b *testing.B) {
	f, _, err := sim.Parse("pgft:m=18/18/36,w=1/18/18,p=1/1/1")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := Find(f, GroupOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

// TestMisplaced: hosts at spines are named with the options that leave them out, which do;
// login and management hosts are left out.
func TestMisplaced(t *testing.T) {
	spines := []string{"L1 - n1 n2 n3 n4 S1 S2", "L2 - n5 n6 n7 n8 S1 S2", "L3 - n9 n10 n11 n12 S1 S2"}
	two := append(slices.Clone(spines), "S1 - x1~HCA-1", "S2 - boss")
	const noTree = "the switches do not form a tree: "
	const whole = "root\n L1 n[1-4]\n L2 n[5-8]\n L3 n[9-12]\n"
	class := func(names ...string) (rules []graph.Rule) {
		for _, name := range names {
			rules = append(rules, graph.Rule{Class: graph.ClassIO, Name: name})
		}
		return append(rules, graph.DefaultRules()...)
	}
	service := append(ServiceRules(), graph.DefaultRules()...)
	for _, c := range []struct {
		name  string
		lines []string
		o     GroupOptions
		want  string
	}{
		{"named", two, GroupOptions{}, "root\n L1 n[1-4]\n L2 n[5-8]\n L3 n[9-12]\n S1 x1\n S2 boss\n! " + noTree +
			"L1/5 and S1/1 are linked, and both switches have hosts; hosts attached to spines: boss, x1; leave them out with --skip-misplaced, or --class 'boss=io' --class 'x1 *=io'\n"},
		{"skipped", two, GroupOptions{SkipMisplaced: true}, whole + "! attached to a spine; left out: \"boss\", \"x1\"\n"},
		{"by class", two, GroupOptions{Rules: class("boss", "x1 *")}, whole},
		{"management", append(slices.Clone(spines), "S1 - ufm1~HCA-1", "L1 - login01~HCA-1"), GroupOptions{Rules: service},
			whole + "! login or management host, which runs no jobs; left out (--class 'NAME=cn' includes it): \"login01 HCA-1\", \"ufm1 HCA-1\"\n"},
		{"requested", append(slices.Clone(spines), "L1 - login01~HCA-1"), GroupOptions{Rules: append([]graph.Rule{{Class: graph.ClassCN, Name: "login*"}}, service...)},
			"root\n L1 login01,n[1-4]\n L2 n[5-8]\n L3 n[9-12]\n"},
		{"no spine", []string{"L1 - n1 n2 n3 n4 L2", "L2 - n5"}, GroupOptions{SkipMisplaced: true}, "root\n L1 n[1-4]\n L2 n5\n! " + noTree + "L1/5 and L2/1 are linked, and both switches have hosts\n"},
	} {
		g, err := Find(net(c.lines...).build(t), c.o)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if d := cmp.Diff(c.want, text(g)); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}

// TestMisplacedOfRack: on a published dump, the management hosts at spines are named, and with
// SkipMisplaced the other hosts are a tree without them.
func TestMisplacedOfRack(t *testing.T) {
	const name = "rack-lab.topo.gz"
	in, err := os.Open(filepath.Join("../../../shared/fabrics", name))
	if os.IsNotExist(err) && os.Getenv("CI") == "" {
		t.Skipf("%s is not in ../shared/fabrics", name)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	f, err := format.Load(in, name, nil)
	if err != nil {
		t.Fatal(err)
	}
	rules := slices.Concat(ServiceRules(), graph.DefaultRules())
	const named = "hosts attached to spines: tank1, tank2; leave them out with --skip-misplaced, or --class 'tank1 *=io' --class 'tank2 *=io'"
	without, err := Find(f, GroupOptions{Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(without.NoTree, named) {
		t.Errorf("NoTree %q, want the end %q", without.NoTree, named)
	}
	g, err := Find(f, GroupOptions{Rules: rules, SkipMisplaced: true})
	if err != nil {
		t.Fatal(err)
	}
	const want = `root
 MF0-ib1-SX6036-U1 stage[1-24]
 MF0-ib2-SX6036-U1 stage[25-48]
 MF0-ib3-SX6036-U1 stage[49-72]
 MF0-ib4-SX6036-U1 stage[73-96]
 MF0-ib5-SX6036-U1 stage[97-120]
 MF0-ib6-SX6036-U1 atlas,booster[1-4],rocket,sputnik1,stage[121-135]
! attached to a spine; left out: "tank1", "tank2"
`
	if d := cmp.Diff(want, text(g)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

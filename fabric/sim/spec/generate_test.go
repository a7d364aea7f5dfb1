package spec

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/mad"
)

// TestCables: which port leads where.
func TestCables(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func() (*fabric.Fabric, error)
		want  map[string]string
	}{
		{"fat tree", fatTree(4, 3).Build, map[string]string{
			"leaf-1/1":          "node-0001 HCA-1/1",
			"leaf-1/3":          "spine-1/1",
			"leaf-2/4":          "spine-2/2",
			"leaf-8/2":          "node-0016 HCA-1/1",
			"spine-1/3":         "core-1/1",
			"spine-2/4":         "core-4/1",
			"spine-8/4":         "core-4/4",
			"node-0003 HCA-1/1": "leaf-2/1",
			"core-1/2":          "spine-3/3",
		}},
		{"fat tree with rails", tree{M: []int{2, 4}, W: []int{1, 2}, P: []int{1, 1}, Rails: 2}.Build, map[string]string{
			"node-0001 HCA-1/1": "leaf-1/1", "node-0001 HCA-2/1": "leaf-2/1",
			"node-0002 HCA-1/1": "leaf-1/2", "node-0002 HCA-2/1": "leaf-2/2",
			"node-0003 HCA-1/1": "leaf-3/1", "node-0003 HCA-2/1": "leaf-4/1",
			"node-0004 HCA-1/1": "leaf-3/2", "node-0004 HCA-2/1": "leaf-4/2",
		}},
		{"torus", lattice{Dims: []int{3, 4}, Hosts: 1, Links: 1, Shape: torus}.Build, map[string]string{
			"switch-1-1/1": "node-0001 HCA-1/1",
			"switch-1-1/2": "switch-2-1/3", "switch-1-1/3": "switch-3-1/2",
			"switch-1-1/4": "switch-1-2/5", "switch-1-1/5": "switch-1-4/4",
			"switch-3-4/2": "switch-1-4/3", "switch-3-4/4": "switch-3-1/5",
		}},
		{"torus with two cables", lattice{Dims: []int{2, 3}, Links: 2, Shape: torus}.Build, map[string]string{
			"switch-1-1/1": "switch-2-1/3", "switch-1-1/2": "switch-2-1/4", "switch-1-1/3": "", "switch-1-1/4": "",
			"switch-1-1/5": "switch-1-2/7", "switch-1-1/6": "switch-1-2/8", "switch-1-1/7": "switch-1-3/5",
		}},
		{"mesh", lattice{Dims: []int{3, 2}, Links: 1, Shape: mesh}.Build, map[string]string{
			"switch-1-1/1": "switch-2-1/2", "switch-1-1/2": "", "switch-1-1/3": "switch-1-2/4", "switch-1-1/4": "",
			"switch-3-2/1": "", "switch-3-2/2": "switch-2-2/1",
		}},
		{"HyperX", lattice{Dims: []int{4, 2}, Links: 1, Shape: hyperX}.Build, map[string]string{
			"switch-1-1/1": "switch-2-1/1", "switch-1-1/2": "switch-3-1/1", "switch-1-1/3": "switch-4-1/1", "switch-1-1/4": "switch-1-2/4",
			"switch-3-1/2": "switch-2-1/2", "switch-3-1/3": "switch-4-1/3",
		}},
		{"dragonfly", func() (*fabric.Fabric, error) { return dragonfly(2, 1, 1, 0, arrangements[0], 1) }, map[string]string{
			"group-1 switch-1/2": "group-1 switch-2/2", "group-1 switch-1/3": "group-2 switch-1/3",
			"group-1 switch-2/3": "group-3 switch-1/3", "group-2 switch-2/3": "group-3 switch-2/3",
		}},
		{"dragonfly+", func() (*fabric.Fabric, error) { return dragonflyPlus(2, 2, 1, 1, 0) }, map[string]string{
			"group-1 leaf-1/1": "node-0001 HCA-1/1", "group-1 leaf-1/2": "group-1 spine-1/1", "group-1 leaf-1/3": "group-1 spine-2/1",
			"group-1 leaf-2/3": "group-1 spine-2/2", "group-1 spine-1/3": "group-2 spine-1/3", "group-1 spine-2/3": "group-3 spine-1/3",
			"group-3 spine-2/3": "group-2 spine-2/3",
		}},
	} {
		if diff := cmp.Diff(c.want, peersOf(must(t)(c.build()), c.want)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.name, diff)
		}
	}
}

// TestSlimFly: all switches have as many links to others, no two of which are parallel, and any two
// switches are at most two links apart.
func TestSlimFly(t *testing.T) {
	for q, degree := range map[int]int{3: 5, 5: 7, 7: 11, 11: 17, 13: 19} {
		f := must(t)(slimFly(q, 1))
		switches := f.OfType(mad.NodeTypeSwitch)
		near := map[mad.GUID]map[mad.GUID]bool{}
		for i := range switches {
			set := map[mad.GUID]bool{}
			for p := range switches[i].Ports() {
				if x := p.Peer(); x != nil && x.Node().IsSwitch() {
					set[x.Node().GUID()] = true
				}
			}
			near[switches[i].GUID()] = set
			if len(set) != degree || set[switches[i].GUID()] {
				t.Fatalf("q=%d: %s has links to %d switches, want %d", q, switches[i].Name(), len(set), degree)
			}
		}
		for a := range near {
			reached := map[mad.GUID]bool{a: true}
			for b := range near[a] {
				reached[b] = true
				maps.Copy(reached, near[b])
			}
			if len(reached) != 2*q*q {
				t.Fatalf("q=%d: %d of %d switches are at most two links apart from one", q, len(reached), 2*q*q)
			}
		}
	}
	for _, q := range []int{1, 2, 4, 9, 15} {
		if _, err := slimFly(q, 1); err == nil {
			t.Errorf("q=%d is accepted", q)
		}
	}
}

// TestRails: the adapters of a host follow each other, and share a SystemImageGUID, which no
// other host has.
func TestRails(t *testing.T) {
	tree := fatTree(8, 3)
	tree.Rails = 4
	f := must(t)(tree.Build())
	cas := f.OfType(mad.NodeTypeCA)
	if len(cas) != 128 {
		t.Fatalf("%d adapters, want 128", len(cas))
	}
	for i, n := range cas {
		want := fmt.Sprintf("node-%04d HCA-%d of %v", i/4+1, i%4+1, cas[i/4*4].GUID())
		if got := fmt.Sprintf("%s of %v", n.Name(), n.Info().SystemImageGUID); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// peersOf are the ports at the other ends of the cables of f's ports that want
// names, "" without a cable.
func peersOf(f *fabric.Fabric, want map[string]string) map[string]string {
	got := map[string]string{}
	for i := range f.Ports() {
		p := &f.Ports()[i]
		if _, ok := want[p.Name()]; ok {
			got[p.Name()] = ""
			if p.Peer() != nil {
				got[p.Name()] = p.Peer().Name()
			}
		}
	}
	return got
}

// TestLimits: what a subnet has no room for is an error.
func TestLimits(t *testing.T) {
	for _, c := range []struct {
		build func() (*fabric.Fabric, error)
		want  string
	}{
		{fatTree(64, 3).Build, "more than the 49151 LIDs of a subnet"},
		{tree{M: []int{2, 4}, W: []int{1, 2}, P: []int{1, 1}, Rails: 3}.Build, "4 leaves, but each host needs a group of 3, one for each rail"},
		{tree{M: []int{4}, W: []int{1}, P: []int{1}, Rails: 2}.Build, "1 leaf, but each host needs a group of 2, one for each rail"},
		{tree{M: []int{200, 2}, W: []int{1, 60}, P: []int{1, 1}}.Build, "nodes with 260 ports, more than 254"},
		{func() (*fabric.Fabric, error) { return ring(40000, 1) }, "more than the 49151 LIDs of a subnet"},
		{func() (*fabric.Fabric, error) { return ring(3, 253) }, "switches with 255 ports, more than 254"},
		{func() (*fabric.Fabric, error) { return ring(124, 1) }, "hosts 64 hops apart, more than the 63 of a directed route"},
		{lattice{Dims: []int{300, 300}, Links: 1, Shape: torus}.Build, "more than the 49151 LIDs of a subnet"},
		{lattice{Dims: []int{32, 32}, Links: 1, Shape: mesh}.Build, "hosts 64 hops apart, more than the 63 of a directed route"},
		{lattice{Dims: []int{252}, Hosts: 4, Links: 1, Shape: hyperX}.Build, "switches with 255 ports, more than 254"},
		{func() (*fabric.Fabric, error) { return dragonfly(4, 2, 2, 10, arrangements[0], 1) }, "10 groups, but the 8 cables of one lead to no more than 8"},
		{func() (*fabric.Fabric, error) { return dragonflyPlus(2, 2, 2, 2, 6) }, "6 groups, but the 4 cables of one lead to no more than 4"},
		{func() (*fabric.Fabric, error) { return dragonflyPlus(4, 200, 55, 1, 1) }, "switches with 255 ports, more than 254"},
		{func() (*fabric.Fabric, error) { return dragonflyPlus(200, 200, 50, 4, 0) }, "more than the 49151 LIDs of a subnet"},
		{func() (*fabric.Fabric, error) { return randomRegular(4, 4, 0, 1) }, "4 switches, but cables from each to 4 others"},
		{func() (*fabric.Fabric, error) { return randomRegular(5, 3, 0, 1) }, "5 switches with 3 cables each: the product must be even"},
		{func() (*fabric.Fabric, error) { return randomRegular(2, 0, 0, 1) }, "switches without ports"},
		{lattice{Dims: []int{1, 1}, Links: 1, Shape: torus}.Build, "switches without ports"},
		{func() (*fabric.Fabric, error) { return dragonfly(1, 0, 0, 0, arrangements[0], 1) }, "switches without ports"},
	} {
		if _, err := c.build(); err == nil || err.Error() != c.want {
			t.Errorf("got %v\nwant %s", err, c.want)
		}
	}
}

// must is the fabric that a generator returns.
func must(t *testing.T) func(*fabric.Fabric, error) *fabric.Fabric {
	t.Helper()
	return func(f *fabric.Fabric, err error) *fabric.Fabric {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
}

// TestDragonflyGroups: any two groups have as many cables as any other two, or
// one more.
func TestDragonflyGroups(t *testing.T) {
	for groups, want := range map[int][]int{
		9: {1},
		5: {2},
		4: {2, 3},
	} {
		f := must(t)(dragonfly(4, 1, 2, groups, arrangements[0], 1))
		cables := map[[2]string]int{}
		for i := range f.Ports() {
			p := &f.Ports()[i]
			if p.Peer() == nil || !p.Node().IsSwitch() || !p.Peer().Node().IsSwitch() {
				continue
			}
			g, _, _ := strings.Cut(p.Node().Name(), " ")
			h, _, _ := strings.Cut(p.Peer().Node().Name(), " ")
			if g < h {
				cables[[2]string{g, h}]++
			}
		}
		seen := map[int]bool{}
		for _, n := range cables {
			seen[n] = true
		}
		for _, n := range want {
			if !seen[n] {
				t.Errorf("%d groups: none with %d cables", groups, n)
			}
			delete(seen, n)
		}
		if len(seen) > 0 {
			t.Errorf("%d groups: also %v", groups, seen)
		}
	}
}

// TestArrangements: the cables of a group lead to the groups that the paper has (Hastings et
// al., 2015; 9 groups of 4 switches with 2 cables), and in each arrangement to each group equally often.
func TestArrangements(t *testing.T) {
	want := map[string]string{
		"absolute":  "group 1: 2 3 4 5 6 7 8 9; group 4: 1 2 3 5 6 7 8 9",
		"relative":  "group 1: 2 3 4 5 6 7 8 9; group 4: 5 6 7 8 9 1 2 3",
		"circulant": "group 1: 2 9 3 8 4 7 5 6; group 4: 5 3 6 2 7 1 8 9",
		"random":    "",
	}
	for _, x := range arrangements {
		f := must(t)(dragonfly(4, 1, 2, 0, x, 3))
		groupOf := func(n *fabric.Node) string {
			name, _, _ := strings.Cut(strings.TrimPrefix(n.Name(), "group-"), " ")
			return name
		}
		lead := map[string][]string{}
		for i := range f.Ports() {
			p := &f.Ports()[i]
			if p.Peer() != nil && p.Node().IsSwitch() && p.Peer().Node().IsSwitch() && groupOf(p.Node()) != groupOf(p.Peer().Node()) {
				lead[groupOf(p.Node())] = append(lead[groupOf(p.Node())], groupOf(p.Peer().Node()))
			}
		}
		got := "group 1: " + strings.Join(lead["1"], " ") + "; group 4: " + strings.Join(lead["4"], " ")
		if w, listed := want[x.name]; !listed || w != "" && got != w {
			t.Errorf("%s: %s", x.name, got)
		}
		for g, list := range lead {
			if slices.Sort(list); len(list) != 8 || len(slices.Compact(list)) != 8 {
				t.Errorf("%s: cables of group %s lead to %v", x.name, g, list)
			}
		}
		five := must(t)(dragonfly(4, 1, 2, 5, x, 3)) // two cables between any two groups
		if n := five.Links(); n != 5*(4+6+4) {
			t.Errorf("%s: %d links", x.name, n)
		}
		if _, err := dragonfly(4, 1, 2, 4, x, 3); (err != nil) != (x.offset != nil) {
			t.Errorf("%s, 4 groups: %v", x.name, err)
		}
	}
}

// TestRegular: every switch has its cables, to different switches, and
// the seed decides to which.
func TestRegular(t *testing.T) {
	links := func(seed int64) (list []string) {
		f := must(t)(randomRegular(20, 5, 4, seed))
		for _, n := range f.OfType(mad.NodeTypeSwitch) {
			others := map[*fabric.Node]bool{}
			for p := range n.Ports() {
				if q := p.Peer(); q != nil && q.Node().IsSwitch() {
					others[q.Node()] = true
					list = append(list, p.Name()+" "+q.Name())
				}
			}
			if len(others) != 5 || others[&n] {
				t.Errorf("seed %d: %s has cables to %d others", seed, n.Label(), len(others))
			}
		}
		return list
	}
	if got, want := must(t)(randomRegular(3, 0, 2, 1)).String(), "fabric: 9 nodes (3 switches, 6 CAs), 6 links, complete; 3 parts that are not connected: 3 nodes with \"switch-1\", 3 nodes with \"switch-2\", 3 nodes with \"switch-3\""; got != want {
		t.Errorf("without cables between switches: %s, want %s", got, want)
	}
	one := links(1)
	if !cmp.Equal(one, links(1)) || cmp.Equal(one, links(2)) {
		t.Error("the seed does not decide")
	}
}

// TestNumbering: a network in random numbers is the same network: nodes with the same names are linked.
func TestNumbering(t *testing.T) {
	for _, spec := range []string{"dragonfly:a=4,p=2,h=2", "fattree:k=4,levels=3,rails=2", "torus:dims=3/4,hosts=2,links=2"} {
		links := func(f *fabric.Fabric) (list []string) {
			for i := range f.Ports() {
				if p := &f.Ports()[i]; p.Peer() != nil {
					list = append(list, p.Node().Name()+" - "+p.Peer().Node().Name())
				}
			}
			slices.Sort(list)
			return list
		}
		labels := func(f *fabric.Fabric) (list []string) {
			for i := range f.Ports() {
				if p := &f.Ports()[i]; p.Peer() != nil {
					list = append(list, fmt.Sprint(p.Node().GUID(), p.Num(), p.GUID(), p.Peer().Node().GUID(), p.Peer().Num(), p.Node().Name()))
				}
			}
			return list
		}
		parse := func(spec string) *fabric.Fabric {
			f, _, err := Parse(spec)
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
		own, random, again, other := parse(spec), parse(spec+",numbering=random"), parse(spec+",numbering=random"), parse(spec+",numbering=random,seed=2")
		if !slices.Equal(links(own), links(random)) {
			t.Errorf("%s: other links", spec)
		}
		if a := labels(random); slices.Equal(a, labels(own)) || slices.Equal(a, labels(other)) || !slices.Equal(a, labels(again)) {
			t.Errorf("%s: numbers of the own order, of another seed, or not the same again", spec)
		}
		guids, kept := map[mad.GUID]bool{}, 0
		for i := range random.Nodes() {
			n := &random.Nodes()[i]
			guids[n.GUID()] = true
			if own.NodeByGUID(n.GUID())[0].Name() == n.Name() {
				kept++
			}
		}
		if len(guids) != len(random.Nodes()) || kept > len(guids)/2 {
			t.Errorf("%s: %d GUIDs of %d nodes, %d at their place", spec, len(guids), len(random.Nodes()), kept)
		}
	}
	if _, _, err := Parse("fattree:numbering=x"); err == nil || !strings.Contains(err.Error(), "order, random") {
		t.Error(err)
	}
}

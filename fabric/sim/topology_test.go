package sim

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
)

// TestLatticeCables: which port leads where.
func TestLatticeCables(t *testing.T) {
	for spec, want := range map[string]map[string]string{
		"torus:dims=3/4,hosts=1": {
			"switch-1-1/1": "node-0001 HCA-1/1",
			"switch-1-1/2": "switch-2-1/3", "switch-1-1/3": "switch-3-1/2",
			"switch-1-1/4": "switch-1-2/5", "switch-1-1/5": "switch-1-4/4",
			"switch-3-4/2": "switch-1-4/3", "switch-3-4/4": "switch-3-1/5",
		},
		"torus:dims=2/3,hosts=0,links=2": {
			"switch-1-1/1": "switch-2-1/3", "switch-1-1/2": "switch-2-1/4", "switch-1-1/3": "", "switch-1-1/4": "",
			"switch-1-1/5": "switch-1-2/7", "switch-1-1/6": "switch-1-2/8", "switch-1-1/7": "switch-1-3/5",
		},
		"mesh:dims=3/2,hosts=0": {
			"switch-1-1/1": "switch-2-1/2", "switch-1-1/2": "", "switch-1-1/3": "switch-1-2/4", "switch-1-1/4": "",
			"switch-3-2/1": "", "switch-3-2/2": "switch-2-2/1",
		},
		"hyperx:dims=4/2,hosts=0": {
			"switch-1-1/1": "switch-2-1/1", "switch-1-1/2": "switch-3-1/1", "switch-1-1/3": "switch-4-1/1", "switch-1-1/4": "switch-1-2/4",
			"switch-3-1/2": "switch-2-1/2", "switch-3-1/3": "switch-4-1/3",
		},
		"dragonfly:a=2,p=1,h=1": {
			"group-1 switch-1/2": "group-1 switch-2/2", "group-1 switch-1/3": "group-2 switch-1/3",
			"group-1 switch-2/3": "group-3 switch-1/3", "group-2 switch-2/3": "group-3 switch-2/3",
		},
	} {
		f, _ := mustParse(t, spec)
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
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", spec, diff)
		}
	}
}

// TestDragonflyGroups: any two groups have as many cables as any other two, or
// one more.
func TestDragonflyGroups(t *testing.T) {
	for spec, want := range map[string][]int{
		"dragonfly:a=4,p=1,h=2":          {1},
		"dragonfly:a=4,p=1,h=2,groups=5": {2},
		"dragonfly:a=4,p=1,h=2,groups=4": {2, 3},
	} {
		f, _ := mustParse(t, spec)
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
				t.Errorf("%s: no groups with %d cables", spec, n)
			}
			delete(seen, n)
		}
		if len(seen) > 0 {
			t.Errorf("%s: also %v", spec, seen)
		}
	}
}

// TestRandomRegular: every switch has its cables, to different switches, and
// the seed decides to which.
func TestRandomRegular(t *testing.T) {
	links := func(spec string) (list []string) {
		f, _ := mustParse(t, spec)
		for _, n := range f.OfType(2) {
			others := map[*fabric.Node]bool{}
			for p := range n.Ports() {
				if q := p.Peer(); q != nil && q.Node().IsSwitch() {
					others[q.Node()] = true
					list = append(list, p.Name()+" "+q.Name())
				}
			}
			if len(others) != 5 || others[&n] {
				t.Errorf("%s: %s has cables to %d others", spec, n.Label(), len(others))
			}
		}
		return list
	}
	one := links("random:n=20,degree=5")
	if !cmp.Equal(one, links("random:n=20,degree=5,seed=1")) || cmp.Equal(one, links("random:n=20,degree=5,seed=2")) {
		t.Error("the seed does not decide")
	}
}

// TestRemove: what is left is as it was.
func TestRemove(t *testing.T) {
	whole, _ := mustParse(t, "torus:dims=4/4,hosts=2")
	f, _ := mustParse(t, "torus:dims=4/4,hosts=2,remove_links=5,remove_switches=2")
	if got, want := f.String(), "fabric: 42 nodes (14 switches, 28 CAs), 47 links, complete"; got != want {
		// 16 switches of 4 cables; 2 switches take 8 or, as neighbours, 7 with them.
		t.Errorf("got %s\nwant %s", got, want)
	}
	for i := range f.Ports() {
		p := &f.Ports()[i]
		was := whole.NodeByGUID(p.Node().GUID())[0].Port(p.Num())
		if p.Name() != was.Name() || p.GUID() != was.GUID() || p.Peer() != nil && p.Peer().Name() != was.Peer().Name() {
			t.Errorf("%s was %s", p.Label(), was.Label())
		}
	}
	again, _ := mustParse(t, "torus:dims=4/4,hosts=2,remove_links=5,remove_switches=2,seed=2")
	same := true
	for i := range f.Nodes() {
		same = same && f.Nodes()[i].GUID() == again.Nodes()[i].GUID()
	}
	if same {
		t.Error("the seed does not matter")
	}
	s := New(f, Options{})
	if s.topLID() != 42 {
		t.Errorf("highest LID %d", s.topLID())
	}
}

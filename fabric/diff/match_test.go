package diff

import (
	"strings"
	"testing"

	"fabsh/fabric"
	"fabsh/mad"
)

// TestUnread: what a side did not read is neither gone nor new, nor changed.
func TestUnread(t *testing.T) {
	silent := fabric.Problem{Kind: fabric.ProblemTimedOut, Text: "what is behind a port is unknown"}
	for _, test := range []struct {
		name string
		edit func(d *draft)
		want string
	}{
		{"a silent host", func(d *draft) { d.drop("node-0003") },
			"unread: node-0003 (0x0002c90310000020): unread in the newer fabric\nunread: the newer fabric is incomplete: 1 timed out\n"},
		{"a silent leaf, and all behind it", func(d *draft) { d.drop("leaf-2"); d.drop("node-0003"); d.drop("node-0004") }, "" +
			"unread: leaf-2 (0x0002c90300100010): unread in the newer fabric\n" +
			"unread: node-0003 (0x0002c90310000020): unread in the newer fabric\n" +
			"unread: node-0004 (0x0002c90310000030): unread in the newer fabric\n" +
			"unread: the newer fabric is incomplete: 1 timed out\n"},
		{"a name that did not come", func(d *draft) { d.node("node-0003").name = "" },
			"unread: name of node-0003: unread in the newer fabric\nunread: the newer fabric is incomplete: 1 timed out\n"},
		{"a silent link", func(d *draft) { d.unlink("leaf-1/3") },
			"unread: link leaf-1/3 - spine-1/1: unread in the newer fabric\nunread: the newer fabric is incomplete: 1 timed out\n"},
		{"a link that is down, another node silent", func(d *draft) {
			d.down("leaf-1/3")
			d.drop("node-0003")
		}, "link.gone leaf-1/3 - spine-1/1 [4x hdr > ]\n" +
			"unread: node-0003 (0x0002c90310000020): unread in the newer fabric\nunread: the newer fabric is incomplete: 1 timed out\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := tree(t)
			d := draftOf(f)
			d.problems = append(d.problems, silent)
			test.edit(d)
			check(t, f, d.build(), test.want)
			back := strings.NewReplacer("newer", "older", "link.gone", "link.new", "[4x hdr > ]", "[ > 4x hdr]").Replace(test.want)
			check(t, d.build(), f, back)
		})
	}
}

// down pulls a cable, and both ends see it.
func (d *draft) down(port string) {
	x := d.end(port)
	y := x.node.peers[x.num]
	d.unlink(port)
	for _, e := range []end{x, y} {
		e.node.ports[e.num].PortState, e.node.ports[e.num].PortPhysicalState = mad.PortStateDown, mad.PortPhysicalStatePolling
	}
}

// TestDuplicates: nodes that share a GUID, or have none, are known again by their
// cables alone.
func TestDuplicates(t *testing.T) {
	f := tree(t)
	d := draftOf(f)
	d.node("node-0003").info.NodeGUID = d.node("node-0004").info.NodeGUID
	d.node("node-0005").info.NodeGUID = 0
	g := d.build()
	check(t, g, g, "")
	check(t, g, d.build(), "")
	d.drop("node-0003")
	check(t, g, d.build(), "node.gone node-0003 [ca, 1 port > ] 1 link\n  link.gone leaf-2/1 - node-0003/1 [4x hdr > ]\n")
}

// TestNothingInCommon: all of one fabric went, all of the other came.
func TestNothingInCommon(t *testing.T) {
	f := tree(t)
	d := draftOf(generated(t, "ring:n=3"))
	for _, n := range d.nodes {
		n.info.NodeGUID += 1 << 50
	}
	r, err := Compare(t.Context(), f, d.build())
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	var count func(list []*Change)
	count = func(list []*Change) {
		for _, x := range list {
			kinds[x.Kind]++
			count(x.Effects)
		}
	}
	count(r.Changes)
	if kinds[NodeGone] != 14 || kinds[NodeNew] != 6 || kinds[LinkGone] != 16 || kinds[LinkNew] != 6 || len(kinds) != 4 || !r.Complete() {
		t.Errorf("%v", kinds)
	}
}

// differing2 counts the links of f that g has not.
func differing2(f, g *fabric.Fabric) int {
	links := func(f *fabric.Fabric) map[string]bool {
		m := map[string]bool{}
		for i := range f.Ports() {
			if p := &f.Ports()[i]; p.Peer() != nil {
				m[p.Name()+" "+p.Peer().Name()] = true
			}
		}
		return m
	}
	n, has := 0, links(g)
	for l := range links(f) {
		if !has[l] {
			n++
		}
	}
	return n / 2
}

func portOf(n *draftNode, num int) string { return n.name + "/" + string(rune('0'+num)) }

package format

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"fabsh/fabric"
	"fabsh/mad"
)

// part is a node of a random fabric.
type part struct {
	spec  fabric.NodeSpec
	state []mad.PortState // by port
	guid  mad.GUID        // of the last port, of a CA; 0: unknown
}

// randomParts are the nodes and links of a network, which mutate changes.
type randomParts struct {
	nodes []*part
	links map[[2]int][2]int // by node and port, both directions
	next  mad.GUID
}

func (p *randomParts) add(r *rand.Rand) {
	p.next += mad.GUID(1 + r.IntN(3))
	n := &part{spec: fabric.NodeSpec{Name: fmt.Sprintf("node %d", p.next)}}
	n.spec.Info.NodeType, n.spec.Info.NumPorts = mad.NodeTypeCA, uint8(1+r.IntN(2))
	if r.IntN(2) == 0 {
		n.spec.Info.NodeType, n.spec.Info.NumPorts = mad.NodeTypeSwitch, uint8(2+r.IntN(6))
		n.spec.Switch = &mad.SwitchInfo{LinearFDBCap: uint16(r.IntN(9))}
	}
	n.spec.Info.NodeGUID, n.spec.Info.PortGUID = p.next, p.next+100
	if r.IntN(8) == 0 && len(p.nodes) > 0 {
		n.spec.Info.NodeGUID = p.nodes[r.IntN(len(p.nodes))].spec.Info.NodeGUID // a duplicate
	}
	n.spec.Route = mad.DirectedRoute{0, byte(r.IntN(250)), byte(len(p.nodes))}
	n.state = make([]mad.PortState, int(n.spec.Info.NumPorts)+1)
	p.nodes = append(p.nodes, n)
}

// mutate changes something at random.
func (p *randomParts) mutate(r *rand.Rand) {
	i := r.IntN(len(p.nodes))
	n := p.nodes[i]
	port := 1 + r.IntN(int(n.spec.Info.NumPorts))
	switch r.IntN(10) {
	case 0:
		p.add(r)
	case 1: // a node is gone: the last one takes its place
		if len(p.nodes) < 3 {
			return
		}
		last := len(p.nodes) - 1
		p.nodes[i] = p.nodes[last]
		p.nodes = p.nodes[:last]
		for end, other := range p.links {
			if end[0] == i || end[0] == last || other[0] == i || other[0] == last {
				delete(p.links, end)
			}
		}
	case 2:
		n.spec.Name += "x"
	case 3:
		n.state[port] = mad.PortState(r.IntN(5))
	case 4:
		n.spec.Info.Revision = uint32(r.IntN(3))
		if n.spec.Switch != nil {
			n.spec.Switch = &mad.SwitchInfo{LinearFDBTop: uint16(r.IntN(100))}
		}
	case 5:
		delete(p.links, p.links[[2]int{i, port}])
		delete(p.links, [2]int{i, port})
	case 6:
		n.guid = mad.GUID(r.IntN(4))
	case 7: // a cable moves to another port of its node
		a := [2]int{i, 1 + r.IntN(int(n.spec.Info.NumPorts))}
		far, linked := p.links[[2]int{i, port}]
		if _, taken := p.links[a]; linked && !taken && far[0] != i {
			delete(p.links, [2]int{i, port})
			p.links[a], p.links[far] = far, a
		}
	default:
		j := r.IntN(len(p.nodes))
		a, b := [2]int{i, port}, [2]int{j, 1 + r.IntN(int(p.nodes[j].spec.Info.NumPorts))}
		_, linked := p.links[a]
		if _, other := p.links[b]; !linked && !other {
			p.links[a], p.links[b] = b, a
		}
	}
}

func (p *randomParts) fabric(t *testing.T, problem string) *fabric.Fabric {
	b := fabric.NewBuilder()
	for h, n := range p.nodes {
		b.AddNode(n.spec)
		if n.guid > 0 && n.spec.Info.NodeType == mad.NodeTypeCA {
			b.SetPortGUID(h, int(n.spec.Info.NumPorts), n.guid)
		}
		for num, state := range n.state {
			if state > 0 {
				b.SetPort(h, num, &mad.PortInfo{PortState: state, MKey: 7})
			}
		}
	}
	for a, c := range p.links {
		if err := b.Link(a[0], a[1], c[0], c[1]); err != nil {
			t.Fatal(err)
		}
	}
	b.SetFrom(0, 1)
	b.SetScope(problem)
	b.AddProblem(fabric.Problem{Kind: fabric.ProblemLeftOut, Text: problem})
	return b.Build()
}

func snapshotOf(t *testing.T, f *fabric.Fabric) []byte {
	var out bytes.Buffer
	if err := WriteSnapshot(&out, f); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestDelta: of random fabrics, the base and the delta give the fabric again, byte for byte.
func TestDelta(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(1, seed))
		p := &randomParts{links: map[[2]int][2]int{}}
		for range 2 + r.IntN(20) {
			p.add(r)
		}
		for range 40 {
			p.mutate(r)
		}
		base := p.fabric(t, "before")
		for range r.IntN(12) {
			p.mutate(r)
		}
		f := p.fabric(t, "after")
		var out bytes.Buffer
		if err := WriteDelta(&out, base, f); err != nil {
			t.Fatal(err)
		}
		kept, err := ReadSnapshot(bytes.NewReader(snapshotOf(t, base)), "base")
		if err != nil {
			t.Fatal(err)
		}
		got, err := ReadDelta(bytes.NewReader(out.Bytes()), "delta", kept)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if !bytes.Equal(snapshotOf(t, got), snapshotOf(t, f)) {
			t.Fatalf("seed %d: another fabric: %v, want %v", seed, got, f)
		}
		for _, cut := range []int{0, 5, len(deltaMagic), out.Len() / 2, out.Len() - 1} {
			if _, err := ReadDelta(bytes.NewReader(out.Bytes()[:cut]), "delta", kept); err == nil || !strings.HasPrefix(err.Error(), "delta: ") {
				t.Fatalf("seed %d: %d of %d bytes: %v", seed, cut, out.Len(), err)
			}
		}
	}
}

// FuzzReadDelta: damaged deltas are refused, and take no memory beyond their size.
func FuzzReadDelta(f *testing.F) {
	p := &randomParts{links: map[[2]int][2]int{}}
	r := rand.New(rand.NewPCG(1, 1))
	for range 6 {
		p.add(r)
	}
	b := fabric.NewBuilder()
	for _, n := range p.nodes {
		b.AddNode(n.spec)
	}
	base := b.Build()
	b = fabric.NewBuilder()
	for _, n := range p.nodes[1:] {
		b.AddNode(n.spec)
	}
	var out bytes.Buffer
	if err := WriteDelta(&out, base, b.Build()); err != nil {
		f.Fatal(err)
	}
	f.Add(out.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		if got, err := ReadDelta(bytes.NewReader(data), "delta", base); (got == nil) == (err == nil) {
			t.Fatal(got, err)
		}
	})
}

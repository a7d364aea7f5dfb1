package format

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"fabsh/fabric"
	"fabsh/mad"
)

// A delta is what a fabric has that another, its base, has not, without tables and answers: a line
// with the magic and the version, and a zstd frame with a checksum. The frame has
//
//   - the nodes, in their order, as steps, each of which begins with a letter: K and S keep and leave out
//     the next nodes of the base, as many as the number that follows; C has another NodeInfo, name,
//     SwitchInfo or route of the next one, whose ports are kept; N has a node that the base lacks; E ends
//     them,
//   - the ports that differ from those of the base, each as the number of ports since the last, and the
//     port as in a snapshot; links between ports that remain are kept. The number after all ports ends them,
//   - the scope, the port that the sweep began at, and the problems, as in a snapshot.
const deltaMagic = "fabsh delta 1\n"

// Steps of a delta.
const (
	deltaKeep    = 'K'
	deltaSkip    = 'S'
	deltaChanged = 'C'
	deltaNew     = 'N'
	deltaEnd     = 'E'
)

// WriteDelta writes f as a delta of base, which ReadDelta needs. Of both, tables and answers are left
// out, and keys are 0. The output is deterministic.
func WriteDelta(w io.Writer, base, f *fabric.Fabric) error {
	if _, err := io.WriteString(w, deltaMagic); err != nil {
		return err
	}
	z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true))
	if err != nil {
		return err
	}
	out := snapshotWriter{Writer: bufio.NewWriterSize(z, 1<<16)}
	from := out.steps(base, f)
	out.ports(from, f)
	out.text(f.Scope())
	out.rest(f)
	if err := out.Flush(); err != nil {
		z.Close()
		return err
	}
	return z.Close()
}

// steps writes the nodes of f, and returns the node of base whose ports each has; nil: none.
func (w *snapshotWriter) steps(base, f *fabric.Fabric) []*fabric.Node {
	from := make([]*fabric.Node, len(f.Nodes()))
	step, count := byte(deltaKeep), 0
	flush := func(next byte) {
		if count > 0 && next != step {
			w.WriteByte(step)
			w.uint(count)
			count = 0
		}
		step = next
	}
	was, is := base.Nodes(), f.Nodes()
	for i, j := 0, 0; i < len(was) || j < len(is); {
		order := 0
		switch {
		case i == len(was):
			order = 1
		case j == len(is):
			order = -1
		default:
			order = compareNodes(&was[i], &is[j])
		}
		switch {
		case order < 0:
			flush(deltaSkip)
			count++
			i++
		case order > 0:
			flush(deltaNew)
			w.WriteByte(deltaNew)
			w.node(&is[j])
			j++
		default:
			from[j] = &was[i]
			if sameNode(&was[i], &is[j]) {
				flush(deltaKeep)
				count++
			} else {
				flush(deltaChanged)
				w.WriteByte(deltaChanged)
				w.node(&is[j])
			}
			i++
			j++
		}
	}
	flush(deltaEnd)
	w.WriteByte(deltaEnd)
	return from
}

// compareNodes orders nodes as a fabric does, but for the routes. Nodes that are equal have the same ports.
func compareNodes(a, b *fabric.Node) int {
	return cmp.Or(fabric.CompareTypes(a.Type(), b.Type()), cmp.Compare(a.GUID(), b.GUID()), cmp.Compare(a.NumPorts(), b.NumPorts()))
}

// sameNode reports whether a delta need not have b, which is at the place of a.
func sameNode(a, b *fabric.Node) bool {
	i, j := a.SwitchInfo(), b.SwitchInfo()
	return *a.Info() == *b.Info() && a.Name() == b.Name() && (i == nil) == (j == nil) && (i == nil || *i == *j) &&
		(a.Route() == nil) == (b.Route() == nil) && bytes.Equal(a.Route(), b.Route())
}

// ports writes the ports of f that differ from those of the nodes of from.
func (w *snapshotWriter) ports(from []*fabric.Node, f *fabric.Fabric) {
	now := make([]int32, 0) // by id of a node of the base, the id of the node in f, plus 1
	for id, n := range from {
		if n == nil {
			continue
		}
		if len(now) == 0 {
			now = make([]int32, len(n.Fabric().Nodes()))
		}
		now[n.ID()] = int32(id + 1)
	}
	gap := 0
	for i := range f.Ports() {
		p := &f.Ports()[i]
		if n := from[p.Node().ID()]; n != nil && samePort(n.Port(p.Num()), p, now) {
			gap++
			continue
		}
		w.uint(gap)
		w.port(p)
		gap = 0
	}
	w.uint(gap)
}

// samePort reports whether a delta need not have q, which is at the place of p.
func samePort(p, q *fabric.Port, now []int32) bool {
	i, j := p.Info(), q.Info()
	if (i == nil) != (j == nil) || p.GUID() != q.GUID() || (p.Speed() == "fdr10") != (q.Speed() == "fdr10") {
		return false
	}
	if i != nil && *i != *j {
		was, is := *i, *j
		was.MKey, is.MKey = 0, 0
		if was != is {
			return false
		}
	}
	// The end with the lower id has the link: the order of nodes that remain is the same.
	a, b := p.Peer(), q.Peer()
	wasLinked, isLinked := a != nil && a.ID() >= p.ID() && now[a.Node().ID()] > 0, b != nil && b.ID() >= q.ID()
	return wasLinked == isLinked && (!isLinked || now[a.Node().ID()] == int32(b.Node().ID()+1) && a.Num() == b.Num())
}

// ReadDelta returns the fabric of which r is a delta of base.
func ReadDelta(r io.Reader, name string, base *fabric.Fabric) (*fabric.Fabric, error) {
	packed := &counted{Reader: io.LimitReader(r, maxTopology)}
	in := bufio.NewReader(packed)
	head, _ := in.Peek(len(deltaMagic))
	if string(head) != deltaMagic {
		return nil, fmt.Errorf("%s: expected a delta of fabsh, which begins with %q", name, deltaMagic)
	}
	in.Discard(len(head))
	if head, _ := in.Peek(zstd.HeaderMaxSize); lacksChecksum(head) {
		return nil, fmt.Errorf("%s: the delta is damaged: it has no checksum", name)
	}
	z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxSnapshotWindow))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	d := deltaReader{snapshotReader{Reader: bufio.NewReaderSize(z, 1<<16), name: name, packed: packed, what: "delta"}, base, fabric.NewBuilder(), nil, nil}
	d.steps()
	d.ports()
	d.b.SetScope(d.text("a scope"))
	if d.rest(d.b, d.places); d.err != nil {
		return nil, d.err
	}
	if _, err := d.ReadByte(); err != io.EOF {
		d.fail("the end after the problems")
		return nil, d.err
	}
	return d.b.Build(), nil
}

type deltaReader struct {
	snapshotReader
	base   *fabric.Fabric
	b      *fabric.Builder
	from   []*fabric.Node // by handle of b, the node of base whose ports it has; nil: none
	places []portPlace
}

// steps reads the nodes.
func (r *deltaReader) steps() {
	next := 0 // node of the base
	for r.err == nil {
		switch step := r.byte(); step {
		case deltaKeep, deltaSkip:
			count := r.uint("a number of nodes of the base", len(r.base.Nodes())-next)
			for ; step == deltaKeep && count > 0 && r.err == nil; count-- {
				n := &r.base.Nodes()[next]
				next++
				r.b.AddNode(fabric.NodeSpec{Info: *n.Info(), Name: n.Name(), Switch: n.SwitchInfo(), Route: n.Route()})
				r.add(n.Type(), n.NumPorts(), n)
			}
			next += count
		case deltaChanged:
			if next == len(r.base.Nodes()) {
				r.fail("a node of the base to be changed")
				return
			}
			n := &r.base.Nodes()[next]
			next++
			if info := r.node(r.b); info.NodeType != n.Type() || int(info.NumPorts) != n.NumPorts() {
				r.fail("a node with the ports of %s", n.GUID())
			}
			r.add(n.Type(), n.NumPorts(), n)
		case deltaNew:
			info := r.node(r.b)
			r.add(info.NodeType, int(info.NumPorts), nil)
		case deltaEnd:
			if r.nodes = len(r.from); next != len(r.base.Nodes()) {
				r.fail("all nodes of the base")
			}
			return
		default:
			r.fail("a step K, S, C, N or E, not %q", step)
		}
	}
}

// add notes the ports of the node that was just added.
func (r *deltaReader) add(t mad.NodeType, ports int, base *fabric.Node) {
	if len(r.from) == maxNodes {
		r.fail("at most %d nodes", maxNodes)
	}
	num := 1
	if t == mad.NodeTypeSwitch {
		num = 0
	}
	for ; num <= ports; num++ {
		r.places = append(r.places, portPlace{len(r.from), num})
	}
	if r.from = append(r.from, base); len(r.places) > maxTotalPorts {
		r.fail("nodes of at most %d ports in all", maxTotalPorts)
	}
}

// ports reads the ports that differ, and takes the others from the base.
func (r *deltaReader) ports() {
	if r.err != nil {
		return
	}
	now := make([]int, len(r.base.Nodes())) // by id in the base, the handle plus 1
	for h, n := range r.from {
		if n != nil {
			now[n.ID()] = h + 1
		}
	}
	// Links last: those of the delta are of ports that a link of the base may have had.
	type kept struct {
		p  *fabric.Port
		at portPlace
	}
	var links []kept
	for at := 0; r.err == nil; at++ {
		gap := r.uint("a number of ports", len(r.places)-at)
		for ; gap > 0 && r.err == nil; gap-- {
			place := r.places[at]
			at++
			n := r.from[place.node]
			if n == nil {
				r.fail("port %d of a new node", place.num)
				return
			}
			p := n.Port(place.num)
			if i := p.Info(); i != nil {
				info := *i
				info.MKey = 0
				r.b.SetPort(place.node, place.num, &info)
			}
			r.b.SetFDR10(place.node, place.num, p.Speed() == "fdr10")
			if !n.IsSwitch() || place.num == 0 {
				r.b.SetPortGUID(place.node, place.num, p.GUID())
			}
			if q := p.Peer(); q != nil && q.ID() >= p.ID() && now[q.Node().ID()] > 0 {
				links = append(links, kept{q, place})
			}
		}
		if at == len(r.places) {
			break
		}
		r.port(r.b, r.places[at].node, r.places[at].num)
	}
	for _, l := range links {
		if err := r.b.Link(l.at.node, l.at.num, now[l.p.Node().ID()]-1, l.p.Num()); err != nil && r.err == nil {
			r.fail("links between ports that are free: %v", err)
		}
	}
}

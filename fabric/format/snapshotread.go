package format

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"fabsh/fabric"
	"fabsh/mad"
)

// loadSnapshot reads the fabric of a snapshot.
func loadSnapshot(r io.Reader, name string, _ Opener) (*fabric.Fabric, error) {
	s, err := ReadSnapshot(r, name)
	if err != nil {
		return nil, err
	}
	return s.Fabric, nil
}

// ReadSnapshot reads a snapshot.
func ReadSnapshot(r io.Reader, name string) (*Snapshot, error) {
	in := bufio.NewReader(r)
	head, _ := in.Peek(len(snapshotMagic) + len(snapshotVersion))
	switch {
	case !bytes.HasPrefix(head, []byte(snapshotMagic)):
		return nil, fmt.Errorf("%s: expected a snapshot of fabsh, which begins with %q", name, snapshotMagic+snapshotVersion)
	case string(head) != snapshotMagic+snapshotVersion:
		return nil, fmt.Errorf("%s: expected a snapshot of version 1: a later fabsh wrote this one", name)
	}
	in.Discard(len(head))
	z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxSnapshotWindow))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	s := snapshotReader{Reader: bufio.NewReaderSize(z, 1<<16), name: name}
	all := s.read()
	if s.err != nil {
		return nil, s.err
	}
	return all, nil
}

// Limits of a snapshot, so that a count in a damaged file does not make the
// reader allocate without bound.
const (
	maxSnapshotWindow = 8 << 20 // bytes
	maxSnapshotNodes  = 1 << 16
	maxSnapshotText   = 1 << 16 // bytes
	maxSnapshotTables = 1 << 30 // bytes, of tables and answers
)

// snapshotReader keeps the first error, and then reads zeros.
type snapshotReader struct {
	*bufio.Reader
	name   string
	nodes  int
	tables int // bytes of tables and answers so far
	err    error
}

// read reads all sections.
func (r *snapshotReader) read() *Snapshot {
	s := new(Snapshot)
	for r.err == nil {
		switch section := r.byte(); {
		case r.err != nil:
		case section == 'F' && s.Fabric == nil:
			s.Fabric = r.fabric()
		case s.Fabric == nil:
			r.fail("the fabric first")
		case section == 'L':
			id := r.uint("a node", r.nodes-1)
			row := r.bytes("a forwarding table", unicastLIDCount)
			if s.LFTs == nil {
				s.LFTs = make([][]byte, r.nodes)
			}
			if r.err == nil {
				s.LFTs[id] = row
			}
		case section == 'A':
			a := Answer{Node: r.uint("a node", r.nodes-1), Class: mad.Class(r.byte())}
			a.ID = mad.AttributeID(r.uint("an attribute", 1<<16-1))
			a.Modifier = uint32(r.uint("a modifier", 1<<32-1))
			a.Data = r.bytes("data of an attribute", maxSnapshotText)
			s.Answers = append(s.Answers, a)
		case section == 'E':
			if _, err := r.ReadByte(); !errors.Is(err, io.EOF) {
				r.fail("the end after the last section")
			}
			return s
		default:
			r.fail("a section F, L, A or E, not %q", section)
		}
	}
	return nil
}

func (r *snapshotReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%s: expected %s: the snapshot is damaged", r.name, fmt.Sprintf(format, args...))
	}
}

// failed keeps an error of reading or of zstd.
func (r *snapshotReader) failed(err error) {
	switch {
	case r.err != nil:
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		r.err = fmt.Errorf("%s: expected more: the snapshot is cut short", r.name)
	default:
		r.err = fmt.Errorf("%s: the snapshot is damaged: %w", r.name, err)
	}
}

func (r *snapshotReader) byte() byte {
	if r.err != nil {
		return 0
	}
	b, err := r.ReadByte()
	if err != nil {
		r.failed(err)
	}
	return b
}

// uint reads a number, which is at most limit; what is for messages.
func (r *snapshotReader) uint(what string, limit int) int {
	if r.err != nil {
		return 0
	}
	v, err := binary.ReadUvarint(r.Reader)
	if err != nil {
		r.failed(err)
		return 0
	}
	if limit < 0 || v > uint64(limit) {
		r.fail("%s up to %d, not %d", what, limit, v)
		return 0
	}
	return int(v)
}

func (r *snapshotReader) guid() mad.GUID {
	var b [8]byte
	r.full(b[:])
	return mad.GUID(binary.BigEndian.Uint64(b[:]))
}

// full fills b.
func (r *snapshotReader) full(b []byte) {
	if r.err != nil {
		return
	}
	if _, err := io.ReadFull(r.Reader, b); err != nil {
		r.failed(err)
	}
}

func (r *snapshotReader) bytes(what string, limit int) []byte {
	n := r.uint("the length of "+what, limit)
	if r.tables += n; r.tables > maxSnapshotTables {
		r.fail("less than %d bytes of tables", maxSnapshotTables)
		return nil
	}
	b := make([]byte, n)
	r.full(b)
	return b
}

func (r *snapshotReader) text(what string) string {
	b := make([]byte, r.uint("the length of "+what, maxSnapshotText))
	r.full(b)
	return string(b)
}

func (r *snapshotReader) attribute(decode func([]byte), size int) {
	var data [smpDataSize]byte
	r.full(data[:size])
	decode(data[:])
}

func (r *snapshotReader) fabric() *fabric.Fabric {
	b := fabric.NewBuilder()
	b.SetScope(r.text("a scope"))
	r.nodes = r.uint("a number of nodes", maxSnapshotNodes)
	type place struct{ node, num int }
	var places []place
	for id := 0; id < r.nodes && r.err == nil; id++ {
		info := r.node(b)
		num := 1
		if info.NodeType == mad.NodeTypeSwitch {
			num = 0
		}
		for ; num <= int(info.NumPorts); num++ {
			places = append(places, place{id, num})
		}
		if len(places) > maxTotalPorts {
			r.fail("nodes of at most %d ports in all", maxTotalPorts)
		}
	}
	for _, p := range places {
		if r.err != nil {
			return nil
		}
		r.port(b, p.node, p.num)
	}
	if from := r.uint("a port", len(places)); from > 0 {
		b.SetFrom(places[from-1].node, places[from-1].num)
	}
	for range r.uint("a number of problems", 1<<20) {
		if r.err != nil {
			return nil
		}
		b.AddProblem(fabric.Problem{Kind: fabric.ProblemKind(r.text("a kind of problem")), Text: r.text("a problem")})
	}
	if r.err != nil {
		return nil
	}
	return b.Build()
}

func (r *snapshotReader) node(b *fabric.Builder) mad.NodeInfo {
	var s fabric.NodeSpec
	r.attribute(s.Info.Decode, nodeInfoSize)
	s.Name = r.text("a name")
	bits := r.byte()
	if bits&snapshotSwitch != 0 {
		s.Switch = new(mad.SwitchInfo)
		r.attribute(s.Switch.Decode, smpDataSize)
	}
	if bits&snapshotRoute != 0 {
		s.Route = make(mad.DirectedRoute, r.uint("the length of a route", mad.MaxHops+1))
		r.full(s.Route)
	}
	b.AddNode(s)
	return s.Info
}

func (r *snapshotReader) port(b *fabric.Builder, node, num int) {
	bits := r.byte()
	if bits&snapshotKnown != 0 {
		var info mad.PortInfo
		r.attribute(info.Decode, smpDataSize)
		b.SetPort(node, num, &info)
	}
	b.SetFDR10(node, num, bits&snapshotFDR10 != 0)
	if bits&snapshotGUID != 0 {
		b.SetPortGUID(node, num, r.guid())
	}
	if bits&snapshotPeer != 0 {
		peer, peerNum := r.uint("a node", r.nodes-1), r.uint("a port", 255)
		if r.err != nil {
			return
		}
		if err := b.Link(node, num, peer, peerNum); err != nil {
			r.fail("links between ports that are free: %v", err)
		}
	}
}

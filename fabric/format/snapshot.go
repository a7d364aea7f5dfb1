package format

import (
	"bufio"
	"encoding/binary"
	"io"
	"slices"

	"github.com/klauspost/compress/zstd"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/mad"
)

// KindSnapshot is a snapshot of fabsh.
const KindSnapshot FormatName = "snapshot"

var snapshot = fileFormat{
	kind:     KindSnapshot,
	about:    "a snapshot of fabsh",
	file:     "fabsh's own: all that was read",
	sniff:    beginsFile(snapshotMagic),
	load:     func(r io.Reader, name string, _ Opener) (*fabric.Fabric, error) { return ReadSnapshot(r, name) },
	write:    WriteSnapshot,
	dumpHelp: `"snapshot", of fabsh`,
	writeTables: func(w io.Writer, f *fabric.Fabric, t *Tables) error {
		reading := fabric.Reading{LFTs: make([][]byte, len(f.Nodes()))}
		if t.Adaptive != nil || f.HasAdaptive() { // not what came with f
			reading.Adaptive = make([]*adaptive.Switch, len(f.Nodes()))
		}
		for id := range f.Nodes() {
			n := &f.Nodes()[id]
			if !n.IsSwitch() {
				continue
			}
			reading.LFTs[id] = t.LFT(n)
			if t.Adaptive != nil {
				reading.Adaptive[id] = t.Adaptive(n)
			}
		}
		return WriteSnapshot(w, f.With(reading))
	},
}

// A snapshot is a line with the magic and the version, and a zstd frame with a
// checksum. The frame consists of sections, each of which begins with a letter:
//
//	F  the fabric: nodes, ports, where the sweep began, problems
//	L  one forwarding table
//	R  the adaptive routing of one switch, as package adaptive encodes it (version 4)
//	A  one answer of a node (version 1)
//	P  one answer of a node or of one of its ports, or one record of the subnet
//	   administrator (version 2)
//	T  when the counters among the answers were read, in milliseconds since 1970 (version 3)
//	E  the end
//
// Numbers are unsigned varints (LEB128), texts and tables follow their length,
// attributes are encoded as in a MAD. Keys are 0. The version is the lowest that has
// the sections which are there, for older programs.
const (
	snapshotMagic    = "fabsh snapshot "
	snapshotPlain    = "1\n"
	snapshotAnswers  = "2\n"
	snapshotTimed    = "3\n"
	snapshotAdaptive = "4\n"
)

// Bits of a node and of a port in a snapshot.
const (
	snapshotSwitch = 1 << iota // SwitchInfo follows
	snapshotRoute              // a route follows
)
const (
	snapshotKnown = 1 << iota // PortInfo follows
	snapshotFDR10
	snapshotGUID // the port GUID follows
	snapshotPeer // node and port at the other end follow; only at the end with the lower id
)

const (
	nodeInfoSize = 40
	smpDataSize  = 64
)

// WriteSnapshot writes f with all that came with it. The same fabric always gives the
// same bytes.
func WriteSnapshot(w io.Writer, f *fabric.Fabric) error {
	version := snapshotPlain
	if len(f.Answers()) > 0 {
		version = snapshotAnswers
	}
	timed := f.CountersRead().UnixMilli() > 0
	if timed {
		version = snapshotTimed
	}
	if f.HasAdaptive() {
		version = snapshotAdaptive
	}
	if _, err := io.WriteString(w, snapshotMagic+version); err != nil {
		return err
	}
	// With more than one goroutine the bytes would differ from run to run.
	z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true))
	if err != nil {
		return err
	}
	out := snapshotWriter{Writer: bufio.NewWriterSize(z, 1<<16)}
	out.fabric(f)
	for id := range f.Nodes() {
		if row := f.Nodes()[id].LFT(); row != nil {
			out.WriteByte('L')
			out.uint(id)
			out.bytes(row)
		}
	}
	var encoded []byte
	for id := range f.Nodes() {
		if s := f.Nodes()[id].Adaptive(); s != nil {
			out.WriteByte('R')
			out.uint(id)
			encoded = s.Append(encoded[:0])
			out.bytes(encoded)
		}
	}
	for _, a := range f.Answers() {
		out.WriteByte('P')
		out.uint(int(a.Node) + 1)
		out.uint(int(a.Port) + 1)
		out.WriteByte(byte(a.Class))
		out.uint(int(a.ID))
		out.uint(int(a.Modifier))
		out.bytes(withoutKeys(a))
	}
	if timed {
		out.WriteByte('T')
		out.uint(int(f.CountersRead().UnixMilli()))
	}
	out.WriteByte('E')
	if err := out.Flush(); err != nil {
		z.Close()
		return err
	}
	return z.Close()
}

// withoutKeys is the data of a with 0 in all fields that are keys.
func withoutKeys(a fabric.Answer) []byte {
	attr := mad.Lookup(a.Class, a.ID)
	if attr == nil {
		return a.Data
	}
	data := slices.Clone(a.Data)
	for i := range attr.Flat() {
		if f := &attr.Flat()[i]; f.Key {
			at, end := f.Offset/8, (f.Offset+(f.Count-1)*f.Stride+f.Bits+7)/8
			clear(data[min(at, len(data)):min(end, len(data))])
		}
	}
	return data
}

// snapshotWriter writes the parts of sections. It leaves errors to Flush.
type snapshotWriter struct {
	*bufio.Writer
	scratch []byte
}

func (w *snapshotWriter) uint(v int) {
	w.scratch = binary.AppendUvarint(w.scratch[:0], uint64(v))
	w.Write(w.scratch)
}

func (w *snapshotWriter) guid(g mad.GUID) {
	w.scratch = binary.BigEndian.AppendUint64(w.scratch[:0], uint64(g))
	w.Write(w.scratch)
}

func (w *snapshotWriter) bytes(b []byte) {
	w.uint(len(b))
	w.Write(b)
}

func (w *snapshotWriter) text(s string) {
	w.uint(len(s))
	w.WriteString(s)
}

// attribute writes the first size bytes of what encode makes.
func (w *snapshotWriter) attribute(encode func([]byte), size int) {
	var data [smpDataSize]byte
	encode(data[:])
	w.Write(data[:size])
}

func (w *snapshotWriter) fabric(f *fabric.Fabric) {
	w.WriteByte('F')
	w.text(f.Scope())
	w.uint(len(f.Nodes()))
	for i := range f.Nodes() {
		w.node(&f.Nodes()[i])
	}
	for i := range f.Ports() {
		w.port(&f.Ports()[i])
	}
	if p := f.From(); p != nil {
		w.uint(p.ID() + 1)
	} else {
		w.uint(0)
	}
	w.uint(len(f.Problems()))
	for _, p := range f.Problems() {
		w.text(string(p.Kind))
		w.text(p.Text)
	}
}

func (w *snapshotWriter) node(n *fabric.Node) {
	w.attribute(n.Info().Encode, nodeInfoSize)
	w.text(n.Name())
	bits := byte(0)
	if n.SwitchInfo() != nil {
		bits |= snapshotSwitch
	}
	if n.Route() != nil {
		bits |= snapshotRoute
	}
	w.WriteByte(bits)
	if n.SwitchInfo() != nil {
		w.attribute(n.SwitchInfo().Encode, smpDataSize)
	}
	if n.Route() != nil {
		w.bytes(n.Route())
	}
}

func (w *snapshotWriter) port(p *fabric.Port) {
	bits := byte(0)
	external := p.Node().IsSwitch() && p.Num() > 0
	if p.Info() != nil {
		bits |= snapshotKnown
	}
	if p.Speed() == "fdr10" {
		bits |= snapshotFDR10
	}
	if p.GUID() != 0 && !external {
		bits |= snapshotGUID
	}
	q := p.Peer()
	if q != nil && q.ID() >= p.ID() {
		bits |= snapshotPeer
	}
	w.WriteByte(bits)
	if i := p.Info(); i != nil {
		info := *i
		info.MKey = 0
		w.attribute(info.Encode, smpDataSize)
	}
	if bits&snapshotGUID != 0 {
		w.guid(p.GUID())
	}
	if bits&snapshotPeer != 0 {
		w.uint(q.Node().ID())
		w.uint(q.Num())
	}
}

package format

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"time"

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
		reading := fabric.Reading{LFTs: make([][]byte, len(f.Nodes())), Tops: make([]mad.LID, len(f.Nodes()))}
		if t.Adaptive != nil || f.HasAdaptive() { // not what came with f
			reading.Adaptive = make([]*adaptive.Switch, len(f.Nodes()))
		}
		for id := range f.Nodes() {
			n := &f.Nodes()[id]
			if !n.IsSwitch() {
				continue
			}
			reading.LFTs[id] = t.LFT(n)
			reading.Tops[id] = topOf(n, reading.LFTs[id])
			if t.Adaptive != nil {
				reading.Adaptive[id] = t.Adaptive(n)
			}
		}
		return WriteSnapshot(w, f.With(reading))
	},
}

// topOf is the LinearFDBTop with which a switch forwards by a table: its own, raised where the table
// has entries above it.
func topOf(n *fabric.Node, lft []byte) mad.LID {
	top := mad.LID(0)
	if sw := n.SwitchInfo(); sw != nil {
		top = mad.LID(sw.LinearFDBTop)
	}
	for lid := len(lft) - 1; lid > int(top); lid-- {
		if lft[lid] != mad.NoPort {
			return mad.LID(lid)
		}
	}
	return top
}

// snapshotEndUnknown is the problem as which a snapshot has EndUnknown.
const snapshotEndUnknown fabric.ProblemKind = "end unknown"

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

// IsSnapshot reports whether the begin of a file is that of a snapshot.
func IsSnapshot(begin []byte) bool { return bytes.HasPrefix(begin, []byte(snapshotMagic)) }

// WriteSnapshot writes f with its tables and answers. The output is deterministic: a fabric always
// gives equal bytes.
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

// withoutKeys returns the data of a with 0 in all fields that are keys. That of a register is its content,
// without the attribute around it, which has the key.
func withoutKeys(a fabric.Answer) []byte {
	attr := mad.Lookup(a.Class, a.ID)
	if attr == mad.AttrAccessRegister {
		attr = mad.LookupRegister(uint16(a.Modifier))
	}
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
	w.rest(f)
}

// rest writes what follows the ports.
func (w *snapshotWriter) rest(f *fabric.Fabric) {
	if p := f.From(); p != nil {
		w.uint(p.ID() + 1)
	} else {
		w.uint(0)
	}
	problems := f.Problems()
	if f.EndUnknown() {
		problems = append(slices.Clip(problems), fabric.Problem{Kind: snapshotEndUnknown, Text: "the file that the fabric comes from does not state that it is whole"})
	}
	w.uint(len(problems))
	for _, p := range problems {
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

// ReadSnapshot reads a snapshot, with the tables and answers that are in it.
func ReadSnapshot(r io.Reader, name string) (*fabric.Fabric, error) {
	r, err := Bounded(r, name, maxTopology)
	if err != nil {
		return nil, err
	}
	packed := &counted{Reader: r}
	in := bufio.NewReader(packed)
	head, _ := in.Peek(len(snapshotMagic) + len(snapshotPlain))
	switch {
	case !bytes.HasPrefix(head, []byte(snapshotMagic)):
		return nil, fmt.Errorf("%s: expected a snapshot of fabsh, which begins with %q", name, snapshotMagic+snapshotPlain)
	case !slices.Contains([]string{snapshotPlain, snapshotAnswers, snapshotTimed, snapshotAdaptive}, string(head[len(snapshotMagic):])):
		return nil, fmt.Errorf("%s: expected a snapshot of version 1 to 4; this one is of a later fabsh", name)
	}
	in.Discard(len(head))
	if head, _ := in.Peek(zstd.HeaderMaxSize); lacksChecksum(head) {
		return nil, fmt.Errorf("%s: the snapshot is damaged: it has no checksum", name)
	}
	z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxSnapshotWindow))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	s := snapshotReader{Reader: bufio.NewReaderSize(z, 1<<16), name: name, packed: packed, what: "snapshot"}
	all := s.read()
	if s.err != nil {
		return nil, s.err
	}
	return all, nil
}

// lacksChecksum reports whether the zstd frame that b begins has no checksum: damage could
// have cleared the bit that says so.
func lacksChecksum(b []byte) bool {
	var h zstd.Header
	return h.Decode(b) == nil && !h.HasCheckSum
}

// Limits of a snapshot. zstd packs up to 30,000 to one, so what a snapshot may
// take in memory depends on the bytes of its file: a hostile file of a few
// kilobytes gets the base, and the file of a large subnet, whose GUIDs
// differ, in proportion to its size.
const (
	maxSnapshotWindow = 8 << 20  // bytes
	maxSnapshotText   = 1 << 16  // bytes
	snapshotBase      = 64 << 20 // bytes in memory
	snapshotRatio     = 192      // bytes in memory by byte of the file
	maxMilliseconds   = 1 << 48  // since 1970: the year 10889
)

// The memory of the parts while a fabric is built, in bytes: parts of the
// Builder, parts of the Fabric, and the old copies of lists that grow.
var (
	nodeMemory     = 2 * (sizeOf[fabric.NodeSpec]() + sizeOf[fabric.Node]())
	portMemory     = 2 * (sizeOf[mad.PortInfo]() + sizeOf[fabric.Port]())
	problemMemory  = 4 * sizeOf[fabric.Problem]()
	adaptiveMemory = 8                           // bytes a byte of its encoding: runs of LIDs take one
	answerMemory   = 2 * sizeOf[fabric.Answer]() // their list grows by a quarter, and there are millions
)

func sizeOf[T any]() int { return int(reflect.TypeFor[T]().Size()) }

// snapshotReader keeps the first error, and then reads zeros.
type snapshotReader struct {
	*bufio.Reader
	name   string
	packed *counted // the file
	what   string   // snapshot
	nodes  int
	kept   int // bytes in memory
	err    error
}

// keep counts what is about to be kept in memory, which has a limit.
func (r *snapshotReader) keep(bytes int) {
	if r.kept += bytes; r.kept > snapshotBase+snapshotRatio*r.packed.n {
		r.fail("less in %d bytes of a file than %d MB", r.packed.n, r.kept>>20)
	}
}

// counted counts the bytes read.
type counted struct {
	io.Reader
	n int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += n
	return n, err
}

// read reads all sections.
func (r *snapshotReader) read() *fabric.Fabric {
	var b *fabric.Builder
	for r.err == nil {
		switch section := r.byte(); {
		case r.err != nil:
		case section == 'F' && b == nil:
			b = r.fabric()
		case b == nil:
			r.fail("the fabric first")
		case section == 'L':
			id := r.uint("a node", r.nodes-1)
			row := r.bytes("a forwarding table", unicastLIDCount)
			if r.err != nil {
				return nil
			}
			b.SetLFT(id, row)
		case section == 'R':
			r.adaptive(b)
		case section == 'A', section == 'P':
			if a := r.answer(section); r.err == nil {
				b.AddAnswer(a)
			}
		case section == 'T':
			b.SetCountersRead(time.UnixMilli(int64(r.uint("a time in milliseconds", maxMilliseconds))))
		case section == 'E':
			if _, err := r.ReadByte(); !errors.Is(err, io.EOF) {
				r.fail("the end after the last section")
				return nil
			}
			return b.Build()
		default:
			r.fail("a section F, L, R, A, P, T or E, not %q", section)
		}
	}
	return nil
}

// maxAdaptive limits the encoded adaptive routing of a switch: 16 private LFTs of all LIDs,
// without runs.
const maxAdaptive = 8 << 20

// adaptive reads a section R.
func (r *snapshotReader) adaptive(b *fabric.Builder) {
	id := r.uint("a node", r.nodes-1)
	data := r.bytes("adaptive routing", maxAdaptive)
	if r.keep(adaptiveMemory * len(data)); r.err != nil {
		return
	}
	s, rest, err := adaptive.Decode(data)
	if err != nil || len(rest) > 0 {
		r.fail("the adaptive routing of a switch, and nothing more: %v, %d bytes more", err, len(rest))
		return
	}
	b.SetAdaptive(id, s)
}

// answer reads a section A, or P, which has a port and may be a record of the subnet
// administrator.
func (r *snapshotReader) answer(section byte) fabric.Answer {
	r.keep(answerMemory)
	a := fabric.Answer{Port: fabric.NoPort}
	if section == 'P' {
		a.Node = int32(r.uint("a node", r.nodes) - 1)
		a.Port = int16(r.uint("a port", 255) - 1)
	} else {
		a.Node = int32(r.uint("a node", r.nodes-1))
	}
	a.Class = mad.Class(r.byte())
	a.ID = mad.AttributeID(r.uint("an attribute", 1<<16-1))
	a.Modifier = uint32(r.uint("a modifier", 1<<32-1))
	a.Data = r.bytes("data of an attribute", maxSnapshotText)
	a.Data = withoutKeys(a)
	return a
}

func (r *snapshotReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%s: expected %s: the %s is damaged", r.name, fmt.Sprintf(format, args...), r.what)
	}
}

// failed keeps an error of reading or of zstd.
func (r *snapshotReader) failed(err error) {
	switch {
	case r.err != nil:
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		r.err = fmt.Errorf("%s: expected more: the %s is cut short", r.name, r.what)
	default:
		r.err = fmt.Errorf("%s: the %s is damaged: %w", r.name, r.what, err)
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
	if r.keep(n); r.err != nil {
		return nil
	}
	b := make([]byte, n)
	r.full(b)
	return b
}

func (r *snapshotReader) text(what string) string { return string(r.bytes(what, maxSnapshotText)) }

func (r *snapshotReader) attribute(decode func([]byte), size int) {
	var data [smpDataSize]byte
	r.full(data[:size])
	decode(data[:])
}

func (r *snapshotReader) fabric() *fabric.Builder {
	b := fabric.NewBuilder()
	b.SetScope(r.text("a scope"))
	r.nodes = r.uint("a number of nodes", maxNodes)
	var places []portPlace
	for id := 0; id < r.nodes && r.err == nil; id++ {
		info := r.node(b)
		num := 1
		if info.NodeType == mad.NodeTypeSwitch {
			num = 0
		}
		for ; num <= int(info.NumPorts); num++ {
			places = append(places, portPlace{id, num})
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
	r.rest(b, places)
	if r.err != nil {
		return nil
	}
	return b
}

// portPlace is the place of a port: the handle of its node, and its number.
type portPlace struct{ node, num int }

// rest reads what follows the ports.
func (r *snapshotReader) rest(b *fabric.Builder, places []portPlace) {
	if from := r.uint("a port", len(places)); from > 0 {
		b.SetFrom(places[from-1].node, places[from-1].num)
	}
	for range r.uint("a number of problems", maxTotalPorts) {
		if r.keep(problemMemory); r.err != nil {
			return
		}
		p := fabric.Problem{Kind: fabric.ProblemKind(r.text("a kind of problem")), Text: r.text("a problem")}
		if p.Kind == snapshotEndUnknown {
			b.SetEndUnknown()
			continue
		}
		b.AddProblem(p)
	}
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
	if r.keep(nodeMemory + (int(s.Info.NumPorts)+1)*portMemory); r.err == nil {
		b.AddNode(s)
	}
	return s.Info
}

func (r *snapshotReader) port(b *fabric.Builder, node, num int) {
	bits := r.byte()
	if bits&snapshotKnown != 0 {
		var info mad.PortInfo
		r.attribute(info.Decode, smpDataSize)
		info.MKey = 0 // no writer of ours puts one there
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

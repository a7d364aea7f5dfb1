package capture

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"fabsh/mad"
	"fabsh/mad/engine"
	"fabsh/mad/internal/erf"
)

// Recording is the content of a recording.
type Recording struct {
	name      string
	simulated bool
	began     time.Time
	ports     []portFacts
	requests  map[string]*request
	reports   [][]byte      // received, each once
	cut       *erf.CutError // nil: the file is complete
}

// Incomplete returns an error if the end of the file is missing; nil if it is complete.
func (r *Recording) Incomplete() error {
	if r.cut == nil {
		return nil
	}
	return fmt.Errorf("%s: %w; those before it are used", r.name, r.cut)
}

// portFacts are the facts of the local port after n outcomes.
type portFacts struct {
	engine.Port
	packet int // the first
	n      int
}

// request is the outcomes of one request, each time that it was made.
type request struct{ outcomes []*outcome }

// outcome is the outcome of one call: its attempts, and the received answers.
type outcome struct {
	request     *request
	id          uint32 // engine.CallOf
	attempts    int
	first, last time.Time // attempts
	tid         uint32    // of the last
	header      [mad.HeaderSize]byte
	to          engine.Address
	answers     []answer
	gaveUp      bool // the requester, at the end
	ended       time.Time
	packet      int // the last of it
	place       int // among all outcomes, in the order of their ends
}

// answer is one MAD received, without trailing zeros.
type answer struct {
	tid     uint32
	at      time.Time
	packet  int
	from    engine.Address
	mad     []byte
	segment bool // a part of a table
}

// Load reads a recording; name is its name in messages.
func Load(r io.Reader, name string) (*Recording, error) {
	l := &loader{
		Recording: Recording{name: name, requests: map[string]*request{}},
		open:      map[uint32]*outcome{},
		joining:   map[uint32]*partialRequest{},
	}
	if err := l.read(r); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	l.order()
	return &l.Recording, nil
}

// loader is a Recording being read.
type loader struct {
	Recording
	packet   int                 // the number of the one being read
	open     map[uint32]*outcome // the latest of each id
	outcomes []*outcome
	joining  map[uint32]*partialRequest // by transaction ID
}

func (l *loader) read(r io.Reader) error {
	file, err := erf.NewReader(r, erf.LinkNone)
	if err != nil {
		return err
	}
	for {
		var p erf.Packet
		switch err := file.Read(&p); {
		case err == io.EOF:
			if len(l.ports) == 0 {
				return errNoFacts
			}
			return nil
		case len(l.outcomes) > 0 && errors.As(err, &l.cut):
			return nil // complete packets are used
		case err != nil:
			return err
		}
		if len(p.Payload) != mad.Size {
			return fmt.Errorf("packet %d: %d bytes are not a MAD", file.Number(), len(p.Payload))
		}
		l.packet = file.Number()
		if err := l.add(&p); err != nil {
			return fmt.Errorf("packet %d: %w", l.packet, err)
		}
	}
}

// errNoFacts is the error of a capture that is not a recording of fabsh.
var errNoFacts = errors.New("not a recording of fabsh --record: the facts of the local port are missing")

// add processes one packet.
func (l *loader) add(p *erf.Packet) error {
	if l.began.IsZero() {
		l.began = p.Time
	}
	switch p.Interface {
	case ifaceLocal, ifaceSimulated:
		if p.Error {
			l.addEnd(p)
			return nil
		}
		return l.addPort(p)
	case ifaceReceived:
		l.addAnswer(p)
	default:
		l.addRequest(p)
	}
	return nil
}

func (l *loader) addPort(p *erf.Packet) error {
	l.simulated = p.Interface == ifaceSimulated
	var facts portFacts
	if n := len(l.ports); n > 0 {
		facts = l.ports[n-1]
	}
	first, ok := addPortMAD(&facts.Port, p.Payload)
	switch {
	case !ok, !first && len(l.ports) == 0:
		return errNoFacts
	case first:
		facts.packet = l.packet
		l.ports = append(l.ports, facts)
	default:
		l.ports[len(l.ports)-1] = facts
	}
	return nil
}

func (l *loader) addRequest(p *erf.Packet) {
	m := p.Payload
	if s := segmentOf(m); s != nil {
		if s.RMPPType != mad.RMPPTypeData {
			return // our ACK of a table
		}
		if m = l.join(s, m); m == nil {
			return
		}
	}
	h := mad.ParseHeader(m)
	if h.IsAnswer() || h.Method == mad.MethodTrapRepress {
		return // the answer to a request of others
	}
	to := farEnd(p)
	key := keyOf(&to, m)
	req := l.requests[key]
	if req == nil {
		req = new(request)
		l.requests[key] = req
	}
	id := engine.CallOf(h.TID)
	o := l.open[id]
	if o == nil || o.request != req {
		o = &outcome{request: req, id: id, first: p.Time, header: [mad.HeaderSize]byte(m), to: to}
		l.open[id] = o
		req.outcomes = append(req.outcomes, o)
		l.outcomes = append(l.outcomes, o)
	}
	o.attempts++
	o.last, o.tid = p.Time, uint32(h.TID)
}

// keyOf returns a key that is equal for equal requests: they have one destination
// (including the queue pair, but not service level and partition) and one content
// except for the transaction ID.
func keyOf(to *engine.Address, m []byte) string {
	b := make([]byte, 0, 7+16+len(m))
	b = binary.BigEndian.AppendUint16(b, uint16(to.LID))
	b = binary.BigEndian.AppendUint32(b, to.QP)
	if to.HasGRH {
		b = append(b, 1)
		b = append(b, to.GID[:]...)
	} else {
		b = append(b, 0)
	}
	b = append(b, m[:mad.TIDOffset]...)
	b = append(b, m[mad.TIDOffset+8:]...)
	return string(bytes.TrimRight(b, "\x00"))
}

// addAnswer adds p to the call that it answers, which it finds as an engine does.
func (l *loader) addAnswer(p *erf.Packet) {
	h := mad.ParseHeader(p.Payload)
	if h.Class == mad.ClassSubnAdm && h.Method == mad.MethodReport {
		l.addReport(p.Payload)
		return
	}
	o := l.open[engine.CallOf(h.TID)]
	from := farEnd(p)
	if o == nil || !h.IsAnswer() || !engine.Answers(o.header[:], p.Payload, &o.to, &from, engine.MaxLMC) {
		return
	}
	s := segmentOf(p.Payload)
	if s != nil && s.RMPPType == mad.RMPPTypeACK {
		return // part of a long request
	}
	o.answers = append(o.answers, answer{
		tid:     uint32(h.TID),
		at:      p.Time,
		packet:  l.packet,
		from:    from,
		mad:     bytes.Clone(bytes.TrimRight(p.Payload, "\x00")),
		segment: s != nil,
	})
}

// addReport keeps a Report of the subnet administrator, unless it is a repetition.
func (l *loader) addReport(m []byte) {
	if len(l.reports) < maxReports && !slices.ContainsFunc(l.reports, func(r []byte) bool { return bytes.Equal(r, m) }) {
		l.reports = append(l.reports, bytes.Clone(m))
	}
}

// maxReports bounds the comparison of Reports with each other.
const maxReports = 1024

// addEnd ends the call that p was an attempt of: later answers are too late.
func (l *loader) addEnd(p *erf.Packet) {
	id := engine.CallOf(tidOf(p.Payload))
	if o := l.open[id]; o != nil {
		o.gaveUp = true
		o.ended, o.packet = p.Time, l.packet
		delete(l.open, id)
	}
}

// order ends the reading: it computes the outcome of each call, and their order.
func (l *loader) order() {
	for _, o := range l.outcomes {
		o.keepAnswers()
	}
	slices.SortStableFunc(l.outcomes, func(a, b *outcome) int { return cmp.Compare(a.packet, b.packet) })
	for i, o := range l.outcomes {
		o.place = i
	}
	for i := range l.ports {
		f := &l.ports[i]
		f.n, _ = slices.BinarySearchFunc(l.outcomes, f.packet, func(o *outcome, packet int) int { return cmp.Compare(o.packet, packet) })
	}
}

// keepAnswers keeps, of all answers to o, the answers that the requester used: the answers
// to one attempt, and if possible a complete one that was not BUSY.
func (o *outcome) keepAnswers() {
	if o.gaveUp { // then only the received part of a table counted
		o.answers = slices.DeleteFunc(o.answers, func(a answer) bool { return !a.segment || a.tid != o.tid })
		return
	}
	var best []answer
	worth := nothing
	seen := map[uint32]bool{} // tables, by transaction ID
	for i, a := range o.answers {
		if a.segment && seen[a.tid] {
			continue
		}
		seen[a.tid] = seen[a.tid] || a.segment
		if list, w := o.from(i); w > worth || w == worth && w < whole {
			best, worth = list, w
		}
	}
	o.answers = best
	if n := len(best); n > 0 {
		o.ended, o.packet = best[n-1].at, best[n-1].packet
	} else { // the recording ended, or the requester cancelled the call
		o.ended, o.packet = o.last, math.MaxInt
	}
}

// The completeness of an answer.
const (
	nothing = iota
	partial // some segments of a table
	busy    // the request was to be repeated
	whole   // complete
)

// from returns the answer that answers[i] is or begins, and its completeness.
func (o *outcome) from(i int) (list []answer, worth int) {
	a := &o.answers[i]
	switch {
	case !a.segment && mad.ParseHeader(padded(a.mad)).Status&mad.StatusBusy != 0:
		return []answer{*a}, busy
	case !a.segment:
		return []answer{*a}, whole
	}
	have := map[uint32]bool{}
	last := uint32(0)
	for _, b := range o.answers[i:] {
		if b.tid != a.tid || !b.segment {
			continue
		}
		list = append(list, b)
		s := segmentOf(padded(b.mad))
		if s.RMPPType != mad.RMPPTypeData {
			return list, whole // stopped or aborted
		}
		have[s.SegmentNumber] = true
		if s.RMPPFlags&mad.RMPPFlagsLast != 0 {
			last = s.SegmentNumber
		}
		if last > 0 && len(have) == int(last) {
			return list, whole
		}
	}
	return list, partial
}

// padded returns m with its trailing zeros.
func padded(m []byte) []byte { return append(m[:len(m):len(m)], make([]byte, mad.Size-len(m))...) }

// Datagram is a packet of a capture.
type Datagram struct {
	Packet     int       // its number, from 1, as in Wireshark
	Time       time.Time // zero: the file does not have it
	SLID, DLID uint16    // 0 in packets that are not read
	Direction  string    // sent, received; "": the file does not have it
	MAD        []byte    // valid until the next one is read; nil: the packet is not a MAD
	Other      string    // the kind of a packet that is not a MAD
	Problems   []string  // errors in the headers before the MAD
}

// LinkTypes are the names of the kinds of packets that captures of InfiniBand have, as in editcap
// -T, and by which Datagrams reads packets of other link types.
func LinkTypes() []string { return []string{"erf", "infiniband"} }

// linkTypes are the numbers of LinkTypes.
var linkTypes = map[string]erf.LinkType{"": erf.LinkNone, "erf": erf.LinkERF, "infiniband": erf.LinkInfiniBand}

// IsCapture reports whether a file with this beginning is a capture: pcap, pcapng, or ERF records.
func IsCapture(head []byte) bool { return erf.KindOf(head) != "" }

// IsLinkType reports whether err is about packets of a link type that is not of InfiniBand.
func IsLinkType(err error) bool {
	_, ok := errors.AsType[*erf.LinkTypeError](err)
	return ok
}

// Datagrams calls each with the sent and received packets of a recording, or of another
// capture of InfiniBand, in order. name is the name of the file in messages. other, one of
// LinkTypes, is how packets of other link types are read; "": they are refused. It ends
// at the first error of each; incomplete, if not nil, means that the recording breaks off
// after these packets.
func Datagrams(r io.Reader, name, other string, each func(d Datagram) error) (incomplete, err error) {
	file, err := erf.NewReader(r, linkTypes[other])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	own := false // recorded by fabsh: the facts of the local port are packets of separate interfaces
	for n := 0; ; n++ {
		var p erf.Packet
		var cut *erf.CutError
		var otherKind *erf.OtherError
		d := Datagram{}
		switch err := file.Read(&p); {
		case err == io.EOF:
			return nil, nil
		case n > 0 && errors.As(err, &cut): // complete packets are used
			return fmt.Errorf("%s: %w", name, cut), nil
		case errors.As(err, &otherKind):
			d.Other = otherKind.Err.Error()
		case err != nil:
			return nil, fmt.Errorf("%s: %w", name, err)
		case !isMAD(&p):
			d.Other = fmt.Sprintf("not a management datagram: %d bytes from LID %d to LID %d, queue pair %#x", len(p.Payload), p.SLID, p.DLID, p.DestQP)
		default:
			d.MAD, d.Problems = p.Payload, wrongHeaders(&p)
		}
		d.Packet, d.Time, d.SLID, d.DLID = file.Number(), p.Time, p.SLID, p.DLID
		isLocal := p.Interface == ifaceLocal || p.Interface == ifaceSimulated
		if n == 0 && isLocal && d.MAD != nil {
			_, own = addPortMAD(new(engine.Port), p.Payload)
		}
		if own && isLocal && d.MAD != nil {
			continue
		}
		d.Direction = directionOf(&p, own)
		if err := each(d); err != nil {
			return nil, err
		}
	}
}

// directionOf returns the direction of a packet. own: the capture is a recording of fabsh, whose
// interfaces show it.
func directionOf(p *erf.Packet, own bool) string {
	switch {
	case p.Direction == erf.DirectionSent, own && p.Interface == ifaceSent:
		return "sent"
	case p.Direction == erf.DirectionReceived, own && p.Interface == ifaceReceived:
		return "received"
	}
	return ""
}

// isMAD reports whether a datagram is a MAD: it has queue pair 0 or 1 at either end, or,
// for a queue pair of a redirection, it begins like a MAD.
func isMAD(p *erf.Packet) bool {
	m := p.Payload
	if len(m) < mad.HeaderSize {
		return false
	}
	_, known := mad.Class(m[mad.ClassOffset]).Info()
	return p.DestQP <= 1 || p.SrcQP <= 1 || len(m) == mad.Size && m[mad.BaseVersionOffset] == 1 && known
}

// wrongHeaders lists the values in the headers of link and transport that are invalid for
// a MAD (IBA 9.2.3, 10.9.1, 13.5.3, 14.2.1; Shanley, InfiniBand Network Architecture, "SMP
// Validation").
func wrongHeaders(p *erf.Packet) (list []string) {
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	smp := mad.Class(p.Payload[mad.ClassOffset]).Family() == mad.ClassSubn
	switch {
	case smp && p.VL != managementVL:
		add("LRH:VL is %d, want %d in an SMP", p.VL, managementVL)
	case !smp && p.VL == managementVL:
		add("LRH:VL is %d, valid only in SMPs", p.VL)
	}
	switch {
	case smp && p.DestQP != 0:
		add("BTH:DestQP is %#x, want 0 in an SMP", p.DestQP)
	case !smp && p.DestQP == 0:
		add("BTH:DestQP is 0, valid only in SMPs")
	case !smp && p.DestQP != 1 && p.SrcQP != 1:
		add("BTH:DestQP is %#x, want 1 in a MAD other than an SMP without redirection", p.DestQP)
	}
	if !smp && p.PKey&0x7fff == 0 {
		add("BTH:P_Key is %#04x, invalid", p.PKey)
	}
	if p.DestQP == 1 && !smp && p.QKey != mad.GeneralQKey {
		add("DETH:Q_Key is 0x%08x, want 0x%08x for queue pair 1", p.QKey, uint32(mad.GeneralQKey))
	}
	return list
}

// partialRequest is a request of which some segments are missing.
type partialRequest struct {
	parts map[uint32][]byte // by number
	last  uint32            // 0: not seen
}

// join adds a segment of a request and returns the whole request if it is complete,
// as an engine passes it to a replay.
func (l *loader) join(s *mad.RMPPHeader, m []byte) []byte {
	tid := uint32(tidOf(m))
	j := l.joining[tid]
	if j == nil {
		j = &partialRequest{parts: map[uint32][]byte{}}
		l.joining[tid] = j
	}
	if j.parts == nil || s.SegmentNumber == 0 || j.parts[s.SegmentNumber] != nil {
		return nil // repeated
	}
	data := m[mad.SADataOffset:]
	if s.RMPPFlags&mad.RMPPFlagsLast != 0 {
		j.last = s.SegmentNumber
		data = data[:min(max(int(s.PayloadLength)-mad.SegmentHeader, 0), mad.SegmentData)]
	}
	j.parts[s.SegmentNumber] = bytes.Clone(data)
	if len(j.parts) != int(j.last) {
		return nil
	}
	whole := bytes.Clone(m[:mad.SADataOffset])
	forgetSegments(whole)
	for n := range j.last {
		whole = append(whole, j.parts[n+1]...)
	}
	j.parts = nil
	return append(whole, make([]byte, max(0, mad.Size-len(whole)))...)
}

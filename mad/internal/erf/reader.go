package erf

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"
)

// LinkType is the kind of packets in a capture, by its number in pcap and pcapng
// (tcpdump.org/linktypes.html).
type LinkType uint32

const (
	// LinkNone stands for packets that are not of InfiniBand.
	LinkNone LinkType = 0
	// LinkERF is ERF records.
	LinkERF LinkType = 197
	// LinkInfiniBand is packets from the LRH on.
	LinkInfiniBand LinkType = 247
)

// Reader reads a capture file.
type Reader struct {
	file  file
	other LinkType // how packets of other link types are read
	n     int      // packets read
	known bool     // an interface has a link type of InfiniBand
	seals bool     // packets have seals
}

// frame is a packet as the file has it.
type frame struct {
	link      LinkType
	data      []byte // valid until the next one is read
	length    int    // of the packet, which may be longer than data
	time      time.Time
	direction Direction
	head      []byte // of pcap, which the seal covers; nil in other files
}

// file is a capture file of one kind. next returns io.EOF at the end, and io.ErrUnexpectedEOF
// within a packet.
type file interface {
	next(f *frame) error
}

// NewReader begins to read the capture file r. other is the link type as which packets of link
// types that are not of InfiniBand are read; LinkNone: they are refused.
func NewReader(r io.Reader, other LinkType) (*Reader, error) {
	in := bufio.NewReaderSize(r, 1<<16)
	head, err := in.Peek(fileHead)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	f := &Reader{other: other}
	switch KindOf(head) {
	case "pcap":
		if f.file, err = newPcap(in); err != nil {
			return nil, err
		}
		if l := f.file.(*pcap).link; f.linkOf(l) == LinkNone {
			return nil, &LinkTypeError{l}
		}
	case "pcapng":
		f.file = &pcapng{in: in}
	case "erf":
		f.file = &records{in: in}
	default:
		if len(head) < fileHead {
			return nil, errors.New("not a capture file: it is too short")
		}
		return nil, fmt.Errorf("not a capture file (pcap, pcapng, ERF): it begins with the bytes % x", head[:4])
	}
	return f, nil
}

// KindOf returns the kind of a capture file by its first bytes: pcap, pcapng, erf; "": it is not
// one. A file of ERF records has no head: it is one if its first record is of InfiniBand, or
// describes the capture, and another follows if the bytes have its place.
func KindOf(head []byte) string {
	if len(head) < 4 {
		return ""
	}
	switch binary.BigEndian.Uint32(head) {
	case microseconds, nanoseconds, 0xd4c3b2a1, 0x4d3cb2a1:
		return "pcap"
	case sectionBlock:
		return "pcapng"
	}
	if isRecord(head) {
		if next := int(binary.BigEndian.Uint16(head[recordLength:])); next+recordSize > len(head) || isRecord(head[next:]) {
			return "erf"
		}
	}
	return ""
}

// isRecord reports whether b begins with the header of an ERF record as captures of InfiniBand
// have it. The record has a packet, so a MAD, which begins with the version 1 too, is not one:
// its length would be part of the transaction ID.
func isRecord(b []byte) bool {
	if len(b) < recordSize {
		return false
	}
	length, wire := int(binary.BigEndian.Uint16(b[recordLength:])), int(binary.BigEndian.Uint16(b[wireLength:]))
	switch b[8] &^ moreHeaders {
	case typeInfiniBand:
		return length > recordSize && wire > 0 && wire <= length
	case typeMeta:
		return length >= recordSize
	}
	return false
}

// linkOf returns the link type as which packets of link type l are read.
func (f *Reader) linkOf(l LinkType) LinkType {
	if l == LinkERF || l == LinkInfiniBand {
		f.known = true
		return l
	}
	return f.other
}

// Read reads the next packet; it returns io.EOF at the end. The payload is valid
// until the next Read.
func (f *Reader) Read(p *Packet) error {
	var x frame
	err := f.file.next(&x)
	if err == io.EOF {
		return io.EOF
	}
	f.n++
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &CutError{f.n}
	case err != nil:
		return fmt.Errorf("packet %d: %w", f.n, err)
	}
	if x.head != nil {
		if err := f.checkSeal(x.head, x.data); err != nil {
			return fmt.Errorf("packet %d: %w", f.n, err)
		}
	}
	*p = Packet{Time: x.time, Direction: x.direction}
	link := f.linkOf(x.link)
	switch {
	case link == LinkNone && !f.known:
		return fmt.Errorf("packet %d: %w", f.n, &LinkTypeError{x.link})
	case link == LinkNone:
		err = &LinkTypeError{x.link}
	case link == LinkERF:
		err = Parse(x.data, p)
	case x.length > len(x.data):
		err = fmt.Errorf("%d bytes of a packet of %d bytes", len(x.data), x.length)
	default:
		err = p.parse(x.data, hasVCRC(x.data))
	}
	if err != nil {
		return &OtherError{f.n, err}
	}
	return nil
}

// hasVCRC reports whether packet b is longer than its LRH states, which does not count the
// variant CRC.
func hasVCRC(b []byte) bool {
	return len(b) >= lrhSize && len(b) >= 4*int(binary.BigEndian.Uint16(b[4:])&0x7ff)+vcrcSize
}

// Number returns the number of the latest packet, from 1, as in Wireshark.
func (f *Reader) Number() int { return f.n }

// LinkTypeError is the error of packets of a link type that is not of InfiniBand.
type LinkTypeError struct{ Type LinkType }

func (e *LinkTypeError) Error() string {
	name := ""
	switch e.Type {
	case 1:
		name = " (Ethernet)"
	case 113, 276:
		name = " (Linux cooked capture)"
	}
	return fmt.Sprintf("packets of link type %d%s, want %d (ERF) or %d (InfiniBand)", e.Type, name, LinkERF, LinkInfiniBand)
}

// OtherError is the error of a packet that Packet cannot hold. The next one can be
// read.
type OtherError struct {
	Packet int
	Err    error
}

func (e *OtherError) Error() string { return fmt.Sprintf("packet %d: %v", e.Packet, e.Err) }

// Unwrap returns the kind of the packet.
func (e *OtherError) Unwrap() error { return e.Err }

// checkSeal returns an error if the seal of the record b is wrong, or the position of its
// packet in the file. Either all packets have seals, or no packet has one.
func (f *Reader) checkSeal(head, b []byte) error {
	end, has := len(b)-sealSize, false
	if end >= recordSize {
		has = end == recordSize+int(binary.BigEndian.Uint16(b[wireLength:])) && string(b[end:end+len(sealMagic)]) == sealMagic
	}
	if f.n == 1 {
		f.seals = has
	}
	switch {
	case !has && !f.seals:
		return nil
	case has != f.seals:
		return errors.New("the file is damaged: some packets have no checksum")
	}
	sum := crc32.Update(crc32.ChecksumIEEE(head), crc32.IEEETable, b[:len(b)-4])
	if sum != binary.BigEndian.Uint32(b[len(b)-4:]) {
		return errors.New("the file is damaged: the checksum of the packet does not match")
	}
	if n := binary.BigEndian.Uint32(b[end+len(sealMagic):]); n != uint32(f.n) {
		return fmt.Errorf("the file is damaged: this is packet %d of the recording; packets are missing or repeated", n)
	}
	return nil
}

// CutError is the error of a file that ends within a packet, because its writer was
// killed or its disk was full. The packets before it are complete.
type CutError struct{ Packet int }

func (e *CutError) Error() string {
	return fmt.Sprintf("packet %d is cut off: the file is incomplete", e.Packet)
}

// pcap is a pcap file.
type pcap struct {
	in    io.Reader
	order binary.ByteOrder
	unit  time.Duration // of the fractions of seconds
	link  LinkType
	head  [packetHead]byte
	buf   []byte
}

func newPcap(in io.Reader) (*pcap, error) {
	var head [fileHead]byte
	switch _, err := io.ReadFull(in, head[:]); {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errors.New("not a capture file: it is too short")
	case err != nil:
		return nil, err
	}
	f := &pcap{in: in, buf: make([]byte, snapLen)}
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		switch order.Uint32(head[:]) {
		case microseconds:
			f.order, f.unit = order, time.Microsecond
		case nanoseconds:
			f.order, f.unit = order, time.Nanosecond
		}
	}
	if a, b := f.order.Uint16(head[4:]), f.order.Uint16(head[6:]); a != major || b != minor {
		return nil, fmt.Errorf("not a pcap file of version %d.%d: it has version %d.%d", major, minor, a, b)
	}
	f.link = LinkType(f.order.Uint32(head[20:]) & linkMask)
	return f, nil
}

func (f *pcap) next(x *frame) error {
	if _, err := io.ReadFull(f.in, f.head[:]); err != nil {
		return err
	}
	length := f.order.Uint32(f.head[8:])
	if length > snapLen {
		return fmt.Errorf("a record of %d bytes, longer than %d", length, snapLen)
	}
	if err := readPart(f.in, f.buf[:length]); err != nil {
		return err
	}
	fraction := time.Duration(f.order.Uint32(f.head[4:])) * f.unit
	*x = frame{
		link: f.link, data: f.buf[:length], length: int(f.order.Uint32(f.head[12:])), head: f.head[:],
		time: time.Unix(int64(f.order.Uint32(f.head[:])), int64(fraction)).UTC(),
	}
	return nil
}

// readPart reads what must follow: the end of the file is an error.
func readPart(in io.Reader, b []byte) error {
	_, err := io.ReadFull(in, b)
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// records is a file of ERF records.
type records struct {
	in   io.Reader
	head [recordSize]byte
	buf  []byte
}

func (f *records) next(x *frame) error {
	for {
		if _, err := io.ReadFull(f.in, f.head[:]); err != nil {
			return err
		}
		length := int(binary.BigEndian.Uint16(f.head[recordLength:]))
		if length < recordSize {
			return fmt.Errorf("an ERF record of %d bytes, shorter than its header", length)
		}
		f.buf = append(f.buf[:0], f.head[:]...)
		f.buf = append(f.buf, make([]byte, length-recordSize)...)
		if err := readPart(f.in, f.buf[recordSize:]); err != nil {
			return err
		}
		if f.head[8]&^moreHeaders != typeMeta {
			break // Wireshark does not count facts about the capture as packets
		}
	}
	stamp := binary.LittleEndian.Uint64(f.head[:])
	fraction := int64((stamp & 0xffffffff) * uint64(time.Second) >> 32)
	*x = frame{link: LinkERF, data: f.buf, length: len(f.buf), time: time.Unix(int64(stamp>>32), fraction).UTC()}
	return nil
}

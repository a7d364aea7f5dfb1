// Package erf stores InfiniBand packets in capture files that Wireshark reads:
// unreliable datagrams in ERF records in a pcap file. It does not interpret their
// payload. A Writer writes such a file. A Reader reads it, and captures of others (pcap,
// pcapng, ERF records without a file head), packet by packet; neither is safe for concurrent
// use. Append and Parse encode and decode one Packet.
//
// Sources: Endace ERF Types Reference Guide (record header, extension headers, TYPE_INFINIBAND,
// TYPE_META); pcap-savefile(5); the Internet draft PCAP Now Generic Dump File Format (pcapng);
// IBA 7.7, 8.3, 9.2, 9.3.1 (LRH, GRH, BTH, DETH). Checked against tshark.
package erf

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"time"
)

// Packet is an unreliable datagram of a capture.
type Packet struct {
	Time time.Time
	// Interface is the number of the capture interface, 0 to 3; the writer
	// chooses its meaning.
	Interface uint8
	// Direction is what the file states; DirectionUnknown in ERF records, which have Interface.
	Direction Direction
	// Error is the record's flag for a reception error.
	Error      bool
	VL, SL     uint8
	SLID, DLID uint16
	GRH        *GRH // nil: local
	PKey       uint16
	DestQP     uint32
	SrcQP      uint32
	QKey       uint32
	Payload    []byte // a multiple of 4 bytes
}

// Direction is the direction of a packet, as the capturing host saw it.
type Direction uint8

const (
	DirectionUnknown Direction = iota
	DirectionReceived
	DirectionSent
)

// GRH is the global route header.
type GRH struct {
	TrafficClass uint8
	FlowLabel    uint32
	HopLimit     uint8
	SGID, DGID   [16]byte
}

// Lengths of headers in bytes, and the positions of lengths in the header of a record.
const (
	recordSize    = 16
	recordLength  = 10
	wireLength    = 14
	extensionSize = 8
	lrhSize       = 8
	grhSize       = 40
	bthSize       = 12
	dethSize      = 8
	icrcSize      = 4
	vcrcSize      = 2
	// MaxPayload is the largest MTU.
	MaxPayload = 4096
)

const (
	typeInfiniBand = 21
	typeMeta       = 27   // facts about the capture, not a packet
	moreHeaders    = 0x80 // of the type: extension headers follow
	flagVarLength  = 4
	flagInterface  = 3 // mask
	flagTruncated  = 0x08
	flagError      = 0x10
	lnhGlobal      = 3    // LRH.LNH: a GRH follows
	lnhLocal       = 2    // LRH.LNH: a BTH follows
	nextHeaderBTH  = 0x1b // GRH.NxtHdr
	opcodeUDSend   = 0x64 // BTH.OpCode: UD, send only
)

// Append appends the ERF record of p to b. The CRCs are 0, because the packet
// does not come from a wire.
func Append(b []byte, p *Packet) []byte {
	words := (lrhSize + bthSize + dethSize + len(p.Payload) + icrcSize) / 4 // LRH.PktLen
	lnh := byte(lnhLocal)
	if p.GRH != nil {
		words += grhSize / 4
		lnh = lnhGlobal
	}
	wire := 4*words + vcrcSize

	// The time is a fixed-point number of seconds, little-endian; the rest of
	// the record is big-endian.
	fraction := uint64(p.Time.Nanosecond()) << 32 / uint64(time.Second)
	b = binary.LittleEndian.AppendUint64(b, uint64(p.Time.Unix())<<32|fraction)
	flags := flagVarLength | p.Interface&flagInterface
	if p.Error {
		flags |= flagError
	}
	b = append(b, typeInfiniBand, flags)
	b = binary.BigEndian.AppendUint16(b, uint16(recordSize+wire))
	b = append(b, 0, 0) // loss counter: no packets lost before this one
	b = binary.BigEndian.AppendUint16(b, uint16(wire))

	b = append(b, p.VL<<4, p.SL<<4|lnh)
	b = binary.BigEndian.AppendUint16(b, p.DLID)
	b = binary.BigEndian.AppendUint16(b, uint16(words))
	b = binary.BigEndian.AppendUint16(b, p.SLID)
	if g := p.GRH; g != nil {
		b = binary.BigEndian.AppendUint32(b, 6<<28|uint32(g.TrafficClass)<<20|g.FlowLabel&0xfffff)
		b = binary.BigEndian.AppendUint16(b, uint16(4*words-lrhSize-grhSize))
		b = append(b, nextHeaderBTH, g.HopLimit)
		b = append(b, g.SGID[:]...)
		b = append(b, g.DGID[:]...)
	}
	b = append(b, opcodeUDSend, 0)
	b = binary.BigEndian.AppendUint16(b, p.PKey)
	b = binary.BigEndian.AppendUint32(b, p.DestQP&0xffffff)
	b = binary.BigEndian.AppendUint32(b, 0) // PSN
	b = binary.BigEndian.AppendUint32(b, p.QKey)
	b = binary.BigEndian.AppendUint32(b, p.SrcQP&0xffffff)
	b = append(b, p.Payload...)
	return append(b, make([]byte, icrcSize+vcrcSize)...)
}

// Parse reads the ERF record b into p, except the time. The payload is part of b.
func Parse(b []byte, p *Packet) error {
	if len(b) < recordSize {
		return fmt.Errorf("%d bytes are not an ERF record", len(b))
	}
	if t := b[8] & 0x7f; t != typeInfiniBand {
		return fmt.Errorf("ERF record type %d, want %d (InfiniBand)", t, typeInfiniBand)
	}
	if b[9]&flagTruncated != 0 {
		return fmt.Errorf("an ERF record of part of a packet")
	}
	p.Interface, p.Error = b[9]&flagInterface, b[9]&flagError != 0
	wire := int(binary.BigEndian.Uint16(b[14:]))
	more := b[8]&moreHeaders != 0
	for b = b[recordSize:]; more; b = b[extensionSize:] {
		if len(b) < extensionSize {
			return fmt.Errorf("an ERF record that ends within its extension headers")
		}
		more = b[0]&moreHeaders != 0
	}
	if wire > len(b) {
		return fmt.Errorf("%d bytes of a packet of %d bytes", len(b), wire)
	}
	return p.parse(b[:wire], true)
}

// parse reads the packet b, from its LRH. withVCRC: its variant CRC follows.
func (p *Packet) parse(b []byte, withVCRC bool) error {
	vcrcSize := vcrcSize
	if !withVCRC {
		vcrcSize = 0
	}
	tooShort := fmt.Errorf("a packet of %d bytes, too short for its headers", len(b))
	if len(b) < lrhSize+bthSize+dethSize+icrcSize+vcrcSize {
		return tooShort
	}
	p.VL, p.SL = b[0]>>4, b[1]>>4
	p.DLID, p.SLID = binary.BigEndian.Uint16(b[2:]), binary.BigEndian.Uint16(b[6:])
	size := 4 * int(binary.BigEndian.Uint16(b[4:])&0x7ff)
	lnh := b[1] & 3
	if size > len(b)-vcrcSize {
		return fmt.Errorf("a packet of %d bytes whose header has the length %d", len(b)-vcrcSize, size)
	}
	b = b[lrhSize:max(lrhSize, size)]
	p.GRH = nil
	switch lnh {
	case lnhGlobal:
		if len(b) < grhSize {
			return tooShort
		}
		p.GRH = parseGRH(b)
		b = b[grhSize:]
	case lnhLocal:
	default:
		return fmt.Errorf("a raw packet")
	}
	if len(b) < bthSize+dethSize+icrcSize {
		return tooShort
	}
	if b[0] != opcodeUDSend {
		return &opcodeError{Opcode: b[0], SLID: p.SLID, DLID: p.DLID, DestQP: binary.BigEndian.Uint32(b[4:]) & 0xffffff}
	}
	p.PKey = binary.BigEndian.Uint16(b[2:])
	p.DestQP = binary.BigEndian.Uint32(b[4:]) & 0xffffff
	p.QKey = binary.BigEndian.Uint32(b[12:])
	p.SrcQP = binary.BigEndian.Uint32(b[16:]) & 0xffffff
	p.Payload = b[bthSize+dethSize : len(b)-icrcSize]
	return nil
}

func parseGRH(b []byte) *GRH {
	first := binary.BigEndian.Uint32(b)
	return &GRH{
		TrafficClass: uint8(first >> 20),
		FlowLabel:    first & 0xfffff,
		HopLimit:     b[7],
		SGID:         [16]byte(b[8:]),
		DGID:         [16]byte(b[24:]),
	}
}

// opcodeError is the error of a packet that is not an unreliable datagram.
type opcodeError struct {
	Opcode     uint8
	SLID, DLID uint16
	DestQP     uint32
}

func (e *opcodeError) Error() string {
	return fmt.Sprintf("not an unreliable datagram: opcode %#02x (%s), LID %d to LID %d, queue pair %#x", e.Opcode, opcodeName(e.Opcode), e.SLID, e.DLID, e.DestQP)
}

// The services and operations of opcodes (IBA 9.2.1, table 38; tshark packet-infiniband.c).
var (
	services   = [8]string{"RC", "UC", "RD", "UD", "CNP", "XRC"}
	operations = [32]string{
		"SEND first", "SEND middle", "SEND last", "SEND last with immediate", "SEND only", "SEND only with immediate",
		"RDMA WRITE first", "RDMA WRITE middle", "RDMA WRITE last", "RDMA WRITE last with immediate", "RDMA WRITE only", "RDMA WRITE only with immediate",
		"RDMA READ request", "RDMA READ response first", "RDMA READ response middle", "RDMA READ response last", "RDMA READ response only",
		"acknowledge", "ATOMIC acknowledge", "CmpSwap", "FetchAdd", "RESYNC", "SEND last with invalidate", "SEND only with invalidate",
	}
)

// opcodeName returns the service and the operation of an opcode: "RC SEND only".
func opcodeName(opcode uint8) string {
	service, operation := services[opcode>>5], operations[opcode&31]
	switch {
	case service == "CNP" && opcode&31 == 0:
		return "CNP"
	case service == "", operation == "", service == "CNP":
		return "reserved"
	}
	return service + " " + operation
}

// A capture file is a head of 24 bytes, then packets, each with a head of 16 bytes
// (pcap-savefile(5)). These are its magic numbers: of a file whose times are in
// microseconds, and in nanoseconds. All numbers have the byte order of the machine that
// wrote it; the magic number shows which.
const (
	microseconds = 0xa1b2c3d4
	nanoseconds  = 0xa1b23c4d

	fileHead, packetHead = 24, 16 // bytes

	major, minor = 2, 4       // the version of the format
	linkMask     = 0x03ffffff // of the number of the link type; above it are lengths of checksums
	snapLen      = 1<<16 - 1  // the largest length of a record in bytes
)

// The writer ends each record with a seal, in the space after the packet, where others
// have padding: sealMagic, the number of the packet from 1, and the CRC-32 (IEEE) of
// packet head and record up to there, big endian. It shows damage to a file, and packets
// that are missing or repeated. Captures of others do not have seals.
const (
	sealMagic = "fabs"
	sealSize  = len(sealMagic) + 4 + 4 // bytes
)

// Writer writes a capture file.
type Writer struct {
	out io.Writer
	buf []byte // one packet, with its head
	n   int    // packets written
}

// NewWriter begins a capture file in w. Each packet is written by one Write, so
// that the file is complete after each packet.
func NewWriter(w io.Writer) (*Writer, error) {
	head := binary.LittleEndian.AppendUint32(nil, nanoseconds)
	head = binary.LittleEndian.AppendUint16(head, major)
	head = binary.LittleEndian.AppendUint16(head, minor)
	head = append(head, make([]byte, 8)...) // reserved
	head = binary.LittleEndian.AppendUint32(head, snapLen)
	head = binary.LittleEndian.AppendUint32(head, uint32(LinkERF))
	if _, err := w.Write(head); err != nil {
		return nil, err
	}
	return &Writer{out: w}, nil
}

// Write appends p to the file.
func (f *Writer) Write(p *Packet) error {
	if len(p.Payload) > MaxPayload || len(p.Payload)%4 != 0 {
		return fmt.Errorf("a payload of %d bytes", len(p.Payload))
	}
	f.buf = Append(append(f.buf[:0], make([]byte, packetHead)...), p)
	f.n++
	length := uint32(len(f.buf) - packetHead + sealSize)
	binary.BigEndian.PutUint16(f.buf[packetHead+recordLength:], uint16(length))
	for i, v := range []uint32{uint32(p.Time.Unix()), uint32(p.Time.Nanosecond()), length, length} {
		binary.LittleEndian.PutUint32(f.buf[4*i:], v)
	}
	f.buf = append(f.buf, sealMagic...)
	f.buf = binary.BigEndian.AppendUint32(f.buf, uint32(f.n))
	f.buf = binary.BigEndian.AppendUint32(f.buf, crc32.ChecksumIEEE(f.buf))
	_, err := f.out.Write(f.buf)
	return err
}

// Package erf stores InfiniBand packets in capture files that Wireshark reads:
// unreliable datagrams in ERF records in a pcap file. It does not interpret their
// payload.
//
//	erf.go     one packet: headers
//	opcode.go  packets that are not datagrams
//	file.go    a file of packets
//
// Sources: Endace ERF Types Reference Guide (record header, TYPE_INFINIBAND);
// IBA 7.7, 8.3, 9.2, 9.3.1 (LRH, GRH, BTH, DETH). Checked against tshark.
package erf

import (
	"encoding/binary"
	"fmt"
	"time"
)

// Packet is an unreliable datagram of a capture.
type Packet struct {
	Time time.Time
	// Interface is the number of the capture interface, 0 to 3; the writer
	// chooses its meaning.
	Interface uint8
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

// GRH is the global route header.
type GRH struct {
	TrafficClass uint8
	FlowLabel    uint32
	HopLimit     uint8
	SGID, DGID   [16]byte
}

// Lengths of headers in bytes, and the positions of lengths in the header of a record.
const (
	recordSize   = 16
	recordLength = 10
	wireLength   = 14
	lrhSize      = 8
	grhSize      = 40
	bthSize      = 12
	dethSize     = 8
	icrcSize     = 4
	vcrcSize     = 2
	// MaxPayload is the largest MTU.
	MaxPayload = 4096
)

const (
	typeInfiniBand = 21
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
	switch {
	case b[8]&0x80 != 0:
		return fmt.Errorf("an ERF record with extension headers")
	case b[9]&flagTruncated != 0:
		return fmt.Errorf("an ERF record of part of a packet")
	}
	p.Interface, p.Error = b[9]&flagInterface, b[9]&flagError != 0
	wire := int(binary.BigEndian.Uint16(b[14:]))
	if wire > len(b)-recordSize {
		return fmt.Errorf("%d bytes of a packet of %d bytes", len(b)-recordSize, wire)
	}
	return p.parse(b[recordSize : recordSize+wire])
}

// parse reads the packet b.
func (p *Packet) parse(b []byte) error {
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
		return &OpcodeError{Opcode: b[0], SLID: p.SLID, DLID: p.DLID, DestQP: binary.BigEndian.Uint32(b[4:]) & 0xffffff}
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

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

// A capture file is a head of 24 bytes, then packets, each with a head of 16 bytes
// (pcap-savefile(5)). These are its magic numbers: of a file whose times are in
// microseconds, and in nanoseconds. All numbers have the byte order of the machine that
// wrote it; the magic number shows which.
const (
	microseconds = 0xa1b2c3d4
	nanoseconds  = 0xa1b23c4d

	fileHead, packetHead = 24, 16 // bytes

	major, minor = 2, 4       // the version of the format
	linkType     = 197        // LINKTYPE_ERF
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
	head = binary.LittleEndian.AppendUint32(head, linkType)
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

const gzipMagic = "\x1f\x8b"

// Reader reads a capture file.
type Reader struct {
	in    io.Reader
	order binary.ByteOrder
	unit  time.Duration // of the fractions of seconds
	head  [packetHead]byte
	buf   []byte
	n     int  // packets read
	seals bool // packets have seals
}

// NewReader begins to read the capture file r.
func NewReader(r io.Reader) (*Reader, error) {
	in := bufio.NewReaderSize(r, 1<<16)
	if magic, _ := in.Peek(2); string(magic) == gzipMagic {
		return nil, errors.New("compressed by gzip; uncompress it first")
	}
	var head [fileHead]byte
	switch _, err := io.ReadFull(in, head[:]); {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errors.New("not a capture file: it is too short")
	case err != nil:
		return nil, err
	}
	f := &Reader{in: in, buf: make([]byte, snapLen)}
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		switch order.Uint32(head[:]) {
		case microseconds:
			f.order, f.unit = order, time.Microsecond
		case nanoseconds:
			f.order, f.unit = order, time.Nanosecond
		}
	}
	if f.order == nil {
		return nil, fmt.Errorf("not a pcap file: it begins with the bytes % x", head[:4])
	}
	if a, b := f.order.Uint16(head[4:]), f.order.Uint16(head[6:]); a != major || b != minor {
		return nil, fmt.Errorf("not a pcap file of version %d.%d: it has version %d.%d", major, minor, a, b)
	}
	if l := f.order.Uint32(head[20:]) & linkMask; l != linkType {
		return nil, fmt.Errorf("a capture of packets of another kind: link type %d, want %d (ERF)", l, linkType)
	}
	return f, nil
}

// Read reads the next packet; it returns io.EOF at the end. The payload is valid
// until the next Read.
func (f *Reader) Read(p *Packet) error {
	_, err := io.ReadFull(f.in, f.head[:])
	if err == io.EOF {
		return io.EOF
	}
	f.n++
	var length uint32
	if err == nil {
		length = f.order.Uint32(f.head[8:])
		if length > snapLen {
			return fmt.Errorf("packet %d: a record of %d bytes, longer than %d", f.n, length, snapLen)
		}
		_, err = io.ReadFull(f.in, f.buf[:length])
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &CutError{f.n}
	}
	if err != nil {
		return fmt.Errorf("packet %d: %w", f.n, err)
	}
	if err := f.checkSeal(f.buf[:length]); err != nil {
		return fmt.Errorf("packet %d: %w", f.n, err)
	}
	if err := Parse(f.buf[:length], p); err != nil {
		return &OtherError{f.n, err}
	}
	fraction := time.Duration(f.order.Uint32(f.head[4:])) * f.unit
	p.Time = time.Unix(int64(f.order.Uint32(f.head[:])), int64(fraction)).UTC()
	return nil
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
func (f *Reader) checkSeal(b []byte) error {
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
	sum := crc32.Update(crc32.ChecksumIEEE(f.head[:]), crc32.IEEETable, b[:len(b)-4])
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

// Number returns the number of the latest packet, from 1, as in Wireshark.
func (f *Reader) Number() int { return f.n }

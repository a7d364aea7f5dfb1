package erf

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// linkType is LINKTYPE_ERF, snapLen the largest length of a record in bytes.
const (
	linkType = layers.LinkType(197)
	snapLen  = 1<<16 - 1
)

// Writer writes a capture file.
type Writer struct {
	out    io.Writer
	buf    bytes.Buffer // one packet, to be written at once
	pcap   *pcapgo.Writer
	record []byte
}

// NewWriter begins a capture file in w. Each packet is written by one Write, so
// that the file is complete after each packet.
func NewWriter(w io.Writer) (*Writer, error) {
	f := &Writer{out: w}
	f.pcap = pcapgo.NewWriterNanos(&f.buf)
	if err := f.pcap.WriteFileHeader(snapLen, linkType); err != nil {
		return nil, err
	}
	return f, f.flush()
}

// Write appends p to the file.
func (f *Writer) Write(p *Packet) error {
	if len(p.Payload) > MaxPayload || len(p.Payload)%4 != 0 {
		return fmt.Errorf("a payload of %d bytes", len(p.Payload))
	}
	f.record = Append(f.record[:0], p)
	info := gopacket.CaptureInfo{Timestamp: p.Time, CaptureLength: len(f.record), Length: len(f.record)}
	if err := f.pcap.WritePacket(info, f.record); err != nil {
		return err
	}
	return f.flush()
}

func (f *Writer) flush() error {
	_, err := f.out.Write(f.buf.Bytes())
	f.buf.Reset()
	return err
}

const gzipMagic = "\x1f\x8b"

// Reader reads a capture file.
type Reader struct {
	pcap *pcapgo.Reader
	n    int // packets read
}

// NewReader begins to read the capture file r.
func NewReader(r io.Reader) (*Reader, error) {
	in := bufio.NewReaderSize(r, 1<<16)
	if magic, _ := in.Peek(2); string(magic) == gzipMagic {
		return nil, errors.New("packed by gzip: unpack it first") // pcapgo would, whatever it grows to
	}
	p, err := pcapgo.NewReader(in)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errors.New("no capture file: it is too short")
	case err != nil:
		return nil, fmt.Errorf("no pcap file: %w", err)
	case p.LinkType() != linkType:
		return nil, fmt.Errorf("a capture of packets of another kind: link type %d (%v), and ERF is %d", p.LinkType(), p.LinkType(), linkType)
	}
	p.SetSnaplen(min(p.Snaplen(), snapLen))
	return &Reader{pcap: p}, nil
}

// Read reads the next packet; io.EOF when there is none. The payload is valid
// until the next Read.
func (f *Reader) Read(p *Packet) error {
	b, info, err := f.pcap.ZeroCopyReadPacketData()
	if err == io.EOF && info.CaptureLength == 0 {
		return io.EOF
	}
	f.n++
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &CutError{f.n}
	}
	if err == nil {
		err = Parse(b, p)
	}
	if err != nil {
		return fmt.Errorf("packet %d: %w", f.n, err)
	}
	p.Time = info.Timestamp
	return nil
}

// CutError: the file ends within a packet, as one does whose writer was killed or
// whose disk was full. Those before it are whole.
type CutError struct{ Packet int }

func (e *CutError) Error() string {
	return fmt.Sprintf("packet %d is cut off: the file is incomplete", e.Packet)
}

// Number is the number of the latest packet, from 1, as in Wireshark.
func (f *Reader) Number() int { return f.n }

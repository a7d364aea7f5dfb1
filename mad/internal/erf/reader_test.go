package erf_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad/internal/erf"
)

// record returns the ERF record of p.
func record(p *erf.Packet) []byte {
	b := erf.Append(nil, p)
	binary.BigEndian.PutUint16(b[10:], uint16(len(b)))
	return b
}

// block returns a block of pcapng.
func block(order binary.AppendByteOrder, kind uint32, body []byte) []byte {
	for len(body)%4 != 0 {
		body = append(body, 0)
	}
	b := order.AppendUint32(nil, kind)
	b = order.AppendUint32(b, uint32(len(body)+12))
	b = append(b, body...)
	return order.AppendUint32(b, uint32(len(body)+12))
}

// option returns an option of a block.
func option(order binary.AppendByteOrder, code uint16, value []byte) []byte {
	b := order.AppendUint16(nil, code)
	b = append(order.AppendUint16(b, uint16(len(value))), value...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

// pcapng returns a file of packets, of the link type, with their directions, in nanoseconds.
func pcapng(order binary.AppendByteOrder, link uint16, list []erf.Packet) []byte {
	section := order.AppendUint32(nil, 0x1a2b3c4d)
	section = append(order.AppendUint16(order.AppendUint16(section, 1), 0), 255, 255, 255, 255, 255, 255, 255, 255)
	file := block(order, 0x0a0d0d0a, section)
	iface := order.AppendUint32(order.AppendUint16(order.AppendUint16(nil, link), 0), 0)
	file = append(file, block(order, 1, append(iface, option(order, 9, []byte{9})...))...)
	file = append(file, block(order, 0xbad, []byte("a block of others"))...)
	for i := range list {
		data := record(&list[i])
		if link == 247 {
			data = data[16:]
		}
		stamp := uint64(list[i].Time.UnixNano())
		body := order.AppendUint32(nil, 0)
		body = order.AppendUint32(order.AppendUint32(body, uint32(stamp>>32)), uint32(stamp))
		body = append(order.AppendUint32(order.AppendUint32(body, uint32(len(data))), uint32(len(data))), data...)
		for len(body)%4 != 0 {
			body = append(body, 0)
		}
		flags := map[erf.Direction]uint32{erf.DirectionReceived: 1, erf.DirectionSent: 2}[list[i].Direction]
		body = append(body, option(order, 2, order.AppendUint32(nil, flags))...)
		file = append(file, block(order, 6, body)...)
	}
	return file
}

// pcap returns a file of packets, of the link type.
func pcap(link uint32, list []erf.Packet) []byte {
	file := binary.LittleEndian.AppendUint32(nil, 0xa1b23c4d)
	file = append(file, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 0, 0)
	file = binary.LittleEndian.AppendUint32(file, link)
	for i := range list {
		data := record(&list[i])[16:]
		for _, v := range []uint32{uint32(list[i].Time.Unix()), uint32(list[i].Time.Nanosecond()), uint32(len(data)), uint32(len(data))} {
			file = binary.LittleEndian.AppendUint32(file, v)
		}
		file = append(file, data...)
	}
	return file
}

// records returns a file of ERF records, with one of facts about the capture at its beginning, and
// extension headers.
func records(list []erf.Packet) []byte {
	meta := make([]byte, 24)
	meta[8], meta[11] = 27, 24
	file := meta
	for i := range list {
		b := record(&list[i])
		b[8] |= 0x80
		b = slices.Concat(b[:16], []byte{0x83, 0, 0, 0, 0, 0, 0, 1}, []byte{0x04, 0, 0, 0, 0, 0, 0, 2}, b[16:])
		binary.BigEndian.PutUint16(b[10:], uint16(len(b)))
		file = append(file, b...)
	}
	return file
}

// otherFiles returns packets in the files that others write.
func otherFiles(list []erf.Packet) map[string][]byte {
	return map[string][]byte{
		"pcapng": pcapng(binary.LittleEndian, 197, list), "pcapng, big-endian": pcapng(binary.BigEndian, 197, list),
		"pcapng of InfiniBand": pcapng(binary.LittleEndian, 247, list), "pcap of InfiniBand": pcap(247, list), "ERF records": records(list),
		"pcap of user 0": pcap(147, list),
	}
}

// readAs is read with a link type for others.
func readAs(file []byte, other erf.LinkType) (list []erf.Packet, err error) {
	r, err := erf.NewReader(bytes.NewReader(file), other)
	for err == nil {
		var p erf.Packet
		if err = r.Read(&p); err == nil {
			p.Payload = bytes.Clone(p.Payload)
			list = append(list, p)
		}
	}
	if err == io.EOF {
		err = nil
	}
	return list, err
}

// TestOtherFiles: pcapng, ERF records and packets of InfiniBand are read as pcap files of ERF are,
// with the direction if the file has it.
func TestOtherFiles(t *testing.T) {
	list := packets()
	for i := range list {
		list[i].Direction = erf.Direction(i)
	}
	for name, file := range otherFiles(list) {
		want := slices.Clone(list)
		for i := range want {
			if !strings.HasPrefix(name, "pcapng") {
				want[i].Direction = erf.DirectionUnknown
			}
			if strings.Contains(name, "InfiniBand") || strings.Contains(name, "user") {
				want[i].Interface, want[i].Error = 0, false
			}
		}
		other := erf.LinkNone
		if strings.Contains(name, "user") {
			other = erf.LinkInfiniBand
			if _, err := readAs(file, erf.LinkNone); err == nil || err.Error() != "packets of link type 147, want 197 (ERF) or 247 (InfiniBand)" {
				t.Errorf("%s: %v", name, err)
			}
		}
		got, err := readAs(file, other)
		for i := range got {
			got[i].Time = got[i].Time.Round(time.Microsecond) // of ERF, a fraction of 32 bits
			want[i].Time = want[i].Time.Round(time.Microsecond)
		}
		if d := cmp.Diff(want, got); err != nil || d != "" {
			t.Errorf("%s: %v, -want +got\n%s", name, err, d)
		}
	}
}

// TestDamagedFiles: a file that is cut anywhere has the packets before the cut, and an error unless
// it ends between two; a damaged one is an error.
func TestDamagedFiles(t *testing.T) {
	list := packets()
	for name, file := range otherFiles(list) {
		whole, err := readAs(file, erf.LinkInfiniBand)
		if err != nil {
			t.Fatal(name, err)
		}
		clean := 0
		for n := range file {
			got, err := readAs(file[:n], erf.LinkInfiniBand)
			if len(got) > len(whole) || !cmp.Equal(got, whole[:len(got)]) && len(got) > 0 {
				t.Fatalf("%s: cut at %d: %d packets, %v", name, n, len(got), err)
			}
			if cut, ok := errors.AsType[*erf.CutError](err); ok && cut.Packet != len(got)+1 {
				t.Errorf("%s: cut at %d: %v", name, n, err)
			}
			if err == nil {
				clean++
			}
		}
		if clean > len(list)+4 { // between packets, and between blocks
			t.Errorf("%s: %d cuts are not seen", name, clean)
		}
	}
	good := pcapng(binary.LittleEndian, 197, list)
	change := func(at int, v ...byte) []byte {
		b := bytes.Clone(good)
		copy(b[at:], v)
		return b
	}
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"the byte order":  {change(8, 1), "packet 1: the file is damaged: a section of pcapng with the byte-order magic 01 3c 2b 1a"},
		"the length":      {change(4, 5), "packet 1: the file is damaged: a block of pcapng of 5 bytes"},
		"the two lengths": {change(24, 32), "packet 1: the file is damaged: the two lengths of a block of pcapng, 28 and 32, differ"},
		"Ethernet":        {change(36, 1), "packet 1: packets of link type 1 (Ethernet), want 197 (ERF) or 247 (InfiniBand)"},
		"the interface":   {change(bytes.Index(good, []byte{6, 0, 0, 0})+8, 7), "packet 1: the file is damaged: a packet of interface 7 of 1"},
		"a long block":    {change(32, 0, 0, 0, 0x40), "packet 1: a block of pcapng of 1073741824 bytes, longer than 1048576"},
	} {
		if _, err := readAs(c.file, erf.LinkNone); fmt.Sprint(err) != c.want {
			t.Errorf("%s: got %v\nwant %s", name, err, c.want)
		}
	}
}

// TestKindOf: a MAD, digits and archives are not captures.
func TestKindOf(t *testing.T) {
	list := packets()
	for name, file := range otherFiles(list) {
		want, _, _ := strings.Cut(name, " ")
		want = map[string]string{"pcapng": "pcapng", "pcapng,": "pcapng", "pcap": "pcap", "ERF": "erf"}[want]
		if got := erf.KindOf(file); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	mad := make([]byte, 256)
	copy(mad, []byte{1, 0x81, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0x11})
	for name, file := range map[string][]byte{"a MAD": mad, "gzip": []byte("\x1f\x8b\x08\x00"), "digits": []byte("0101010100000000"), "empty": nil} {
		if got := erf.KindOf(file); got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

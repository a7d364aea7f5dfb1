package erf_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad/internal/erf"
)

// packets have each field set to something.
func packets() []erf.Packet {
	return []erf.Packet{
		{
			Time: time.Unix(1700000000, 250000000).UTC(), VL: 15, SLID: 0xffff, DLID: 0xffff,
			PKey: 0xffff, Payload: bytes.Repeat([]byte{0xab}, 256),
		},
		{
			Time: time.Unix(1700000001, 1).UTC(), Interface: 3, VL: 1, SL: 5, SLID: 7, DLID: 9,
			GRH:  &erf.GRH{TrafficClass: 3, FlowLabel: 0x12345, HopLimit: 64, SGID: [16]byte{0xfe, 0x80, 15: 1}, DGID: [16]byte{0xfe, 0x80, 15: 2}},
			PKey: 0x7fff, DestQP: 1, SrcQP: 0xabcdef, QKey: 0x80010000, Payload: []byte{1, 2, 3, 4},
		},
		{Time: time.Unix(0, 0).UTC(), Interface: 1, Error: true, Payload: []byte{}},
	}
}

// TestBytes: a whole file, to the byte.
func TestBytes(t *testing.T) {
	var b bytes.Buffer
	w, err := erf.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	p := packets()[1]
	if err := w.Write(&p); err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"4d3cb2a1 02000400 00000000 00000000 ffff0000 c5000000", // pcap, nanoseconds, 65535, ERF
		"01f15365 01000000 6a000000 6a000000",                   // packet: time, lengths
		"04000000 01f15365 15 07 006a 0000 004e",                // record
		"10 53 0009 0013 0007",                                  // LRH
		"60312345 001c 1b 40",                                   // GRH
		"fe800000 00000000 00000000 00000001",
		"fe800000 00000000 00000000 00000002",
		"64 00 7fff 00000001 00000000", // BTH
		"80010000 00abcdef",            // DETH
		"01020304",
		"00000000 0000",              // CRCs
		"66616273 00000001 5e09bc86", // seal: "fabs", number, CRC-32
	}, "")
	want = strings.ReplaceAll(want, " ", "")
	if got := hex.EncodeToString(b.Bytes()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestRoundTrip(t *testing.T) {
	want := packets()
	got, err := read(write(t, want))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestPayload: what no packet can carry is not written.
func TestPayload(t *testing.T) {
	w, err := erf.NewWriter(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 255, erf.MaxPayload + 4} {
		if err := w.Write(&erf.Packet{Payload: make([]byte, n)}); err == nil {
			t.Errorf("%d bytes were written", n)
		}
	}
	if err := w.Write(&erf.Packet{Payload: make([]byte, erf.MaxPayload)}); err != nil {
		t.Error(err)
	}
}

// TestWriteError: the error of the file is the writer's.
func TestWriteError(t *testing.T) {
	full := errors.New("no space left")
	if _, err := erf.NewWriter(failing{full}); err != full {
		t.Errorf("got %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestErrors(t *testing.T) {
	whole := unsealed(write(t, packets()[:1]))
	change := func(at int, v ...byte) []byte {
		b := bytes.Clone(whole)
		copy(b[at:], v)
		return b
	}
	const record, lrh, bth = 24 + 16, 24 + 16 + 16, 24 + 16 + 16 + 8
	for _, tt := range []struct {
		name string
		file []byte
		want string
	}{
		{"empty", nil, "not a capture file: it is too short"},
		{"header cut", whole[:20], "not a capture file: it is too short"},
		{"text", []byte("what is all this, and why does it go on for so long?"), "not a capture file (pcap, pcapng, ERF): it begins with the bytes 77 68 61 74"},
		{"Ethernet", change(20, 1), "packets of link type 1 (Ethernet), want 197 (ERF) or 247 (InfiniBand)"},
		{"another version", change(6, 3), "not a pcap file of version 2.4: it has version 2.3"},
		{"packet header cut", whole[:24+7], "packet 1 is cut off: the file is incomplete"},
		{"packed", append([]byte("\x1f\x8b"), whole...), "not a capture file (pcap, pcapng, ERF): it begins with the bytes 1f 8b 4d 3c"},
		{"packet missing", whole[:24+16], "packet 1 is cut off: the file is incomplete"},
		{"packet cut", whole[:len(whole)-1], "packet 1 is cut off: the file is incomplete"},
		{"endless packet", change(24+8, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff, 0x7f), "packet 1: a record of 2147483647 bytes, longer than 65535"},
		{"endless packet, as long as the head allows", slices.Concat(whole[:16], []byte{0xff, 0xff, 0xff, 0x7f}, change(24+8, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff, 0x7f)[20:]), "packet 1: a record of 2147483647 bytes, longer than 65535"},
		{"no record", change(24+8, 15, 0), "packet 1: 15 bytes are not an ERF record"},
		{"Ethernet record", change(record+8, 2), "packet 1: ERF record type 2, want 21 (InfiniBand)"},
		{"extension header", change(record+8, 0x80|21), "packet 1: 274 bytes of a packet of 290 bytes"},
		{"truncated", change(record+9, 0x0c), "packet 1: an ERF record of part of a packet"},
		{"wire length", change(record+14, 1, 0x40), "packet 1: 290 bytes of a packet of 320 bytes"},
		{"short packet", change(record+14, 0, 33), "packet 1: a packet of 33 bytes, too short for its headers"},
		{"packet length", change(lrh+4, 0, 73), "packet 1: a packet of 288 bytes whose header has the length 292"},
		{"no packet", change(lrh+4, 0, 0), "packet 1: a packet of 290 bytes, too short for its headers"},
		{"no room for a GRH", change(lrh+1, 3, 0, 0, 0, 10), "packet 1: a packet of 290 bytes, too short for its headers"},
		{"raw", change(lrh+1, 1), "packet 1: a raw packet"},
		{"RC", change(bth, 4), "packet 1: not an unreliable datagram: opcode 0x04 (RC SEND only), LID 65535 to LID 65535, queue pair 0x0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := read(tt.file)
			if err == nil || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

// TestOtherMachines: files of machines of the other byte order, and those whose times are
// in microseconds, are read the same.
func TestOtherMachines(t *testing.T) {
	want := packets()[:1]
	want[0].Time = time.Unix(1700000000, 123456000).UTC()
	other := unsealed(write(t, want))
	for _, number := range [][2]int{{0, 4}, {4, 6}, {6, 8}, {16, 20}, {20, 24}, {24, 28}, {28, 32}, {32, 36}, {36, 40}} {
		slices.Reverse(other[number[0]:number[1]])
	}
	micro := unsealed(write(t, want))
	copy(micro, "\xd4\xc3\xb2\xa1")
	binary.LittleEndian.PutUint32(micro[28:], 123456)
	for name, file := range map[string][]byte{"big-endian": other, "microseconds": micro} {
		got, err := read(file)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v, -want +got\n%s", name, err, diff)
		}
	}
}

// unsealed is a file of one packet as another program writes it, without a seal.
func unsealed(file []byte) []byte {
	file = bytes.Clone(file[:len(file)-12])
	for _, at := range []int{24 + 8, 24 + 12} {
		binary.LittleEndian.PutUint32(file[at:], uint32(len(file)-40))
	}
	binary.BigEndian.PutUint16(file[24+16+10:], uint16(len(file)-40))
	return file
}

// TestSealed: damage in a file is found, and packets that are missing or repeated.
func TestSealed(t *testing.T) {
	list := packets()
	list[1].Payload, list[1].GRH = list[0].Payload, nil
	whole := write(t, list[:2])
	const head = 24
	size := (len(whole) - head) / 2
	first, second := whole[head:head+size], whole[head+size:]
	flip := func(at int) []byte {
		b := bytes.Clone(whole)
		b[at] ^= 1
		return b
	}
	for name, x := range map[string]struct {
		file []byte
		want string
	}{
		"whole":           {whole, ""},
		"the payload":     {flip(head + size - 30), "packet 1: the file is damaged: the checksum of the packet does not match"},
		"the time":        {flip(head), "packet 1: the file is damaged: the checksum of the packet does not match"},
		"the interface":   {flip(head + 16 + 9), "packet 1: the file is damaged: the checksum of the packet does not match"},
		"the first seal":  {flip(head + size - 12), "packet 2: the file is damaged: some packets have no checksum"},
		"the second seal": {flip(head + 2*size - 12), "packet 2: the file is damaged: some packets have no checksum"},
		"missing":         {slices.Concat(whole[:head], second), "packet 1: the file is damaged: this is packet 2 of the recording; packets are missing or repeated"},
		"repeated":        {slices.Concat(whole[:head], first, first, second), "packet 2: the file is damaged: this is packet 1 of the recording; packets are missing or repeated"},
	} {
		got := ""
		if _, err := read(x.file); err != nil {
			got = err.Error()
		}
		if got != x.want {
			t.Errorf("%s: got  %s\nwant %s", name, got, x.want)
		}
	}
}

// FuzzRead: no file makes the reader panic, and what it reads can be written
// and is then read the same.
func FuzzRead(f *testing.F) {
	f.Add(write(f, packets()))
	f.Add(unsealed(write(f, packets()[:1])))
	f.Add(unsealed(write(f, packets()[:1]))[:100])
	for _, file := range otherFiles(packets()) {
		f.Add(file)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		once, err := read(file)
		if err != nil {
			return
		}
		for i := range once {
			once[i].Direction = erf.DirectionUnknown // only pcapng has it
			once[i].Time = time.Unix(once[i].Time.Unix()&0xffffffff, int64(once[i].Time.Nanosecond())).UTC()
		}
		twice, err := read(write(t, once))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(once, twice); diff != "" {
			t.Errorf("-first +second\n%s", diff)
		}
	})
}

func write(t testing.TB, list []erf.Packet) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := erf.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		if err := w.Write(&list[i]); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

func read(file []byte) (list []erf.Packet, err error) {
	r, err := erf.NewReader(bytes.NewReader(file), erf.LinkNone)
	if err != nil {
		return nil, err
	}
	for {
		var p erf.Packet
		switch err := r.Read(&p); {
		case err == io.EOF:
			return list, nil
		case err != nil:
			return list, err
		}
		p.Payload = bytes.Clone(p.Payload)
		list = append(list, p)
	}
}

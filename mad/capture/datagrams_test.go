package capture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"fabsh/mad"
	"fabsh/mad/engine"
	"fabsh/mad/internal/erf"
)

// mixed is a capture of MADs and other packets, none of them recorded here.
func mixed(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := erf.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	smp, gmp := &engine.Call{}, &engine.Call{}
	smp.PutSMP(mad.MethodGet, mad.AttrNodeInfo.ID, 0, nil)
	gmp.PutPerf(mad.MethodGet, mad.AttrPortCounters.ID, 0, nil)
	good := erf.Packet{Time: time.Unix(1, 0), VL: 15, SLID: 3, DLID: 9, PKey: 0xffff, Payload: smp.MAD[:]}
	perf := erf.Packet{Time: time.Unix(1, 0), SLID: 3, DLID: 9, PKey: 0x7fff, DestQP: 1, SrcQP: 1, QKey: mad.GeneralQKey, Payload: gmp.MAD[:]}
	change := func(p erf.Packet, f func(*erf.Packet)) *erf.Packet { f(&p); return &p }
	raw := func(at int, v byte) { b.Bytes()[at] = v }
	for i, p := range []*erf.Packet{
		&good, &perf,
		change(good, func(p *erf.Packet) { p.VL, p.DestQP, p.Interface = 1, 1, 2 }),
		change(perf, func(p *erf.Packet) { p.VL, p.PKey, p.QKey, p.Interface = 15, 0x8000, 5, 3 }),
		change(perf, func(p *erf.Packet) { p.DestQP, p.SrcQP = 0x99, 0x98 }),
		change(perf, func(p *erf.Packet) { p.DestQP, p.SrcQP, p.Payload = 0x48, 0x47, make([]byte, 64) }),
		change(perf, func(p *erf.Packet) { p.DestQP = 0x1234 }), // an RC packet, below
		&good,
	} {
		at := b.Len()
		if err := w.Write(p); err != nil {
			t.Fatal(err)
		}
		if i == 6 {
			raw(at+16+16+8, 0x0a)
		}
	}
	at := b.Len()
	if err := w.Write(&good); err != nil {
		t.Fatal(err)
	}
	raw(at+16+8, 2) // of Ethernet
	if err := w.Write(&perf); err != nil {
		t.Fatal(err)
	}
	return unsealed(b.Bytes())
}

// unsealed is a file as another program writes it: its packets have no seals.
func unsealed(file []byte) []byte {
	const fileHead, packetHead, seal = 24, 16, 12
	out := bytes.Clone(file[:fileHead])
	for rest := file[fileHead:]; len(rest) > 0; {
		n := binary.LittleEndian.Uint32(rest[8:])
		p := bytes.Clone(rest[:packetHead+n-seal])
		binary.LittleEndian.PutUint32(p[8:], n-seal)
		binary.LittleEndian.PutUint32(p[12:], n-seal)
		binary.BigEndian.PutUint16(p[packetHead+10:], uint16(n-seal))
		out, rest = append(out, p...), rest[packetHead+n:]
	}
	return out
}

// TestMixed: packets that are no MADs are named, and do not end the reading; what is wrong
// before a MAD is noted.
func TestMixed(t *testing.T) {
	var lines []string
	incomplete, err := Datagrams(bytes.NewReader(mixed(t)), "mixed", func(d Datagram) error {
		line := fmt.Sprintf("%d %s", d.Packet, strings.Join(d.Problems, "; "))
		if d.MAD == nil {
			line = fmt.Sprintf("%d - %s", d.Packet, d.Other)
		}
		lines = append(lines, strings.TrimSpace(line))
		return nil
	})
	want := `1
2
3 LRH:VL is 1, want 15 in an SMP; BTH:DestQP is 0x1, want 0 in an SMP
4 LRH:VL is 15, valid only in SMPs; BTH:P_Key is 0x8000, invalid; DETH:Q_Key is 0x00000005, want 0x80010000 for queue pair 1
5 BTH:DestQP is 0x99, want 1 in a MAD other than an SMP without redirection
6 - not a management datagram: 64 bytes from LID 3 to LID 9, queue pair 0x48
7 - not an unreliable datagram: opcode 0x0a (RC RDMA WRITE only), LID 3 to LID 9, queue pair 0x1234
8
9 - ERF record type 2, want 21 (InfiniBand)
10`
	if got := strings.Join(lines, "\n"); got != want || incomplete != nil || err != nil {
		t.Errorf("%v, %v; got\n%s\nwant\n%s", incomplete, err, got, want)
	}
}

// FuzzDatagrams: of any file the packets come in their order, each is a MAD or has a name,
// and an error names the file.
func FuzzDatagrams(f *testing.F) {
	whole := mixed(f)
	recorded := recordTwo(f)
	short := facts(localPort())[:1]
	short[0].Payload = short[0].Payload[:mad.SMPDataOffset-12]
	for _, seed := range [][]byte{whole, whole[:len(whole)-5], recorded, unsealed(recorded), recorded[:30], pcap(f, short...), nil} {
		f.Add(seed)
	}
	errStop := errors.New("stop")
	f.Fuzz(func(t *testing.T, file []byte) {
		before, count := 0, 0
		incomplete, err := Datagrams(bytes.NewReader(file), "a.pcap", func(d Datagram) error {
			if d.Packet <= before || (d.MAD == nil) == (d.Other == "") || d.MAD == nil && d.Problems != nil || d.MAD != nil && len(d.MAD) < mad.HeaderSize {
				t.Fatalf("after packet %d: %+v", before, d)
			}
			before = d.Packet
			count++
			return nil
		})
		for _, err := range []error{incomplete, err} {
			if err != nil && !strings.HasPrefix(err.Error(), "a.pcap: ") {
				t.Errorf("%v does not name the file", err)
			}
		}
		if count == 0 {
			return
		}
		given := 0
		if _, err := Datagrams(bytes.NewReader(file), "a.pcap", func(Datagram) error { given++; return errStop }); err != errStop || given != 1 {
			t.Errorf("each ended the reading, and then: %v, after %d packets", err, given)
		}
	})
}

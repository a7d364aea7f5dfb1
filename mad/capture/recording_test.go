package capture

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fabsh/mad"
	"fabsh/mad/engine"
	"fabsh/mad/internal/erf"
)

// pcap is a capture file of packets.
func pcap(t testing.TB, list ...erf.Packet) []byte {
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

// facts are the packets of the local port.
func facts(p engine.Port) (list []erf.Packet) {
	for _, m := range portMADs(&p) {
		list = append(list, packet(ifaceLocal, time.Unix(1, 0), &engine.Address{LID: mad.PermissiveLID}, &p, m))
	}
	return list
}

func TestLoadErrors(t *testing.T) {
	port := facts(localPort())
	foreign := port[0]
	foreign.Interface = ifaceSent
	for _, tt := range []struct {
		name string
		file []byte
		want string
	}{
		{"empty", nil, "a.pcap: not a capture file: it is too short"},
		{"text", []byte("def main(): print('this is no recording, is it?')"), "a.pcap: not a capture file (pcap, pcapng, ERF): it begins with the bytes 64 65 66 20"},
		{"no packets", pcap(t), "a.pcap: not a recording of fabsh --record: the facts of the local port are missing"},
		{"InfiniBand, but not ours", pcap(t, foreign), "a.pcap: not a recording of fabsh --record: the facts of the local port are missing"},
		{"facts out of order", pcap(t, port[1]), "a.pcap: packet 1: not a recording of fabsh --record: the facts of the local port are missing"},
		{"other facts", pcap(t, append(port[:5:5], packet(ifaceLocal, time.Time{}, &engine.Address{}, new(engine.Port), table(mad.AttrNodeRecord).MAD[:]))...), "a.pcap: packet 6: not a recording of fabsh --record: the facts of the local port are missing"},
		{"no MAD", pcap(t, erf.Packet{Payload: make([]byte, 64)}), "a.pcap: packet 1: 64 bytes are not a MAD"},
		{"cut", pcap(t, port...)[:1050], "a.pcap: packet 4 is cut off: the file is incomplete"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Load(bytes.NewReader(tt.file), "a.pcap")
			if err == nil || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

// FuzzReplay: no file makes Load panic, and from what it loads something comes
// to every request that it has: an answer or none, and nothing waits for ever.
func FuzzReplay(f *testing.F) {
	list := facts(localPort())
	at := &engine.Address{LID: 3, QP: 1}
	add := func(iface uint8, at *engine.Address, m []byte) {
		port := localPort()
		list = append(list, packet(iface, time.Unix(2, int64(len(list))), at, &port, m))
	}
	c := table(mad.AttrNodeRecord)
	c.MAD[15] = 1
	add(ifaceSent, at, c.MAD[:])
	for _, s := range segments(engine.Datagram{Address: *at, MAD: c.MAD[:]}, count(500)) {
		s.MAD[15] = 1
		add(ifaceReceived, at, s.MAD)
	}
	byRoute := smp(mad.AttrNodeInfo, 0, 1)
	byRoute.MAD[15] = 2
	add(ifaceSent, &byRoute.To, byRoute.MAD[:])
	add(ifaceReceived, &byRoute.To, respond(engine.Datagram{MAD: byRoute.MAD[:]}, 1).MAD)
	byRoute.MAD[15] = 3
	add(ifaceSent, &byRoute.To, byRoute.MAD[:])
	list = append(list, list[len(list)-1])
	list[len(list)-1].Interface, list[len(list)-1].Error = ifaceLocal, true
	f.Add(unsealed(pcap(f, list...)))
	f.Add(unsealed(pcap(f, list[:6]...)))
	f.Add(pcap(f, list...))
	f.Fuzz(replayAll)
}

// replayAll loads a file and asks for all that it has.
func replayAll(t *testing.T, file []byte) {
	r, err := Load(bytes.NewReader(file), "a.pcap")
	if err != nil {
		if !strings.HasPrefix(err.Error(), "a.pcap: ") {
			t.Errorf("%v does not name the file", err)
		}
		return
	}
	synctest.Test(t, func(t *testing.T) {
		e := engine.New(NewReplay(r), engine.Options{Write: true})
		defer e.Close()
		if _, err := e.Port(); err != nil {
			t.Error(err)
		}
		var calls []*engine.Call
		for _, p := range requests(file) {
			c := new(engine.Call)
			copy(c.MAD[:], p.Payload)
			c.To = farEnd(&p)
			calls = append(calls, c, new(engine.Call))
			*calls[len(calls)-1] = *c
		}
		began := time.Now()
		if err := e.Do(context.Background(), calls...); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// requests are the packets that were sent.
func requests(file []byte) (list []erf.Packet) {
	r, err := erf.NewReader(bytes.NewReader(file), erf.LinkNone)
	for err == nil {
		var p erf.Packet
		if err = r.Read(&p); err == nil && p.Interface == ifaceSent {
			p.Payload = bytes.Clone(p.Payload)
			list = append(list, p)
		}
	}
	return list
}

// TestLoadCut: of a recording that ends anywhere within its packets, the packets that
// are whole are used.
func TestLoadCut(t *testing.T) {
	whole := recordTwo(t)
	want := map[bool]string{}
	for n := range len(whole) {
		r, err := Load(bytes.NewReader(whole[:n]), "a.pcap")
		switch {
		case err != nil:
			want[false] = err.Error()
			continue
		case r.Incomplete() != nil:
			want[true] = r.Incomplete().Error()
		}
	}
	if want[true] != "a.pcap: packet 9 is cut off: the file is incomplete; those before it are used" {
		t.Errorf("incomplete: %s", want[true])
	}
	if want[false] != "a.pcap: packet 6 is cut off: the file is incomplete" {
		t.Errorf("refused: %s", want[false])
	}
	play(t, whole[:len(whole)-1], engine.Options{}, func(e *engine.Engine) {
		list := do(t, e, smp(mad.AttrNodeInfo, 0, 1), smp(mad.AttrNodeInfo, 0, 2))
		if list[0].Err != "" || list[1].Err == "" {
			t.Errorf("got %+v", list)
		}
	})
}

// recordTwo is a recording of two requests, one after the other.
func recordTwo(t testing.TB) []byte {
	port := localPort()
	list := facts(port)
	for i := range uint32(2) {
		c := smp(mad.AttrNodeInfo, 0, byte(i+1))
		m := bytes.Clone(c.MAD[:])
		m[mad.TIDOffset+6] = byte(i + 1)
		list = append(list, packet(ifaceSent, time.Unix(2, 0), &engine.Address{LID: mad.PermissiveLID}, &port, m))
		answer := respond(engine.Datagram{MAD: m}, 1).MAD
		copy(answer[mad.TIDOffset:], m[mad.TIDOffset:][:8])
		list = append(list, packet(ifaceReceived, time.Unix(3, 0), &engine.Address{LID: mad.PermissiveLID}, &port, answer))
	}
	return pcap(t, list...)
}

// TestManySegments: answers without end to one request, in segments of many
// tables, are read in time in proportion.
func TestManySegments(t *testing.T) {
	port := localPort()
	list := facts(port)
	c := table(mad.AttrNodeRecord)
	m := bytes.Clone(c.MAD[:])
	list = append(list, packet(ifaceSent, time.Unix(2, 0), &engine.Address{LID: 1}, &port, m))
	answer := bytes.Clone(m)
	answer[3] |= byte(mad.Response)
	(&mad.RMPPHeader{RMPPVersion: 1, RMPPType: mad.RMPPTypeData, RMPPFlags: mad.RMPPFlagsActive, SegmentNumber: 2}).Encode(answer[mad.RMPPOffset:])
	later := bytes.Clone(answer)
	later[mad.TIDOffset+7]++
	for i := range 100000 {
		a := answer
		if i >= 50000 {
			a = later
		}
		list = append(list, packet(ifaceReceived, time.Unix(3, 0), &engine.Address{LID: 1}, &port, a))
	}
	began := time.Now()
	if _, err := Load(bytes.NewReader(pcap(t, list...)), "a.pcap"); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 30*time.Second && !testing.Short() { // not beside the race detector
		t.Errorf("it took %v", took)
	}
}

// FuzzReplayPackets is FuzzReplay within the frames of pcap and ERF: each packet
// is an interface, a flag and an address, and what a MAD begins with.
func FuzzReplayPackets(f *testing.F) {
	const size = 2 + 80
	var seed []byte
	for _, p := range mustPackets(f, recordTwo(f)) {
		seed = append(append(seed, p.Interface, 0), p.Payload[:size-2]...)
	}
	f.Add(seed)
	f.Add(append(seed, append([]byte{ifaceLocal, 1}, seed[5*size+2:6*size]...)...))
	foreign := bytes.Clone(seed)
	foreign[6*size+2] = 0 // the base version of an answer, which is none then
	f.Add(foreign)
	hops := bytes.Clone(seed)
	for i := range 4 {
		hops[(5+i)*size+2+mad.HopCountOffset] = 255
	}
	f.Add(hops)
	f.Fuzz(func(t *testing.T, data []byte) {
		var list []erf.Packet
		for ; len(data) >= size && len(list) < 200; data = data[size:] {
			p := erf.Packet{Time: time.Unix(int64(len(list)), 0), Interface: data[0] & 3, Error: data[1]&1 != 0, Payload: make([]byte, mad.Size)}
			p.SLID, p.DLID = uint16(data[1]>>4), uint16(data[1]>>4)
			copy(p.Payload, data[2:size])
			list = append(list, p)
		}
		replayAll(t, pcap(t, list...))
	})
}

func mustPackets(t testing.TB, file []byte) (list []erf.Packet) {
	t.Helper()
	r, err := erf.NewReader(bytes.NewReader(file), erf.LinkNone)
	if err != nil {
		t.Fatal(err)
	}
	for {
		var p erf.Packet
		if err := r.Read(&p); err != nil {
			if fmt.Sprint(err) != "EOF" {
				t.Fatal(err)
			}
			return list
		}
		p.Payload = bytes.Clone(p.Payload)
		list = append(list, p)
	}
}

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
	incomplete, err := Datagrams(bytes.NewReader(mixed(t)), "mixed", "", func(d Datagram) error {
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
		incomplete, err := Datagrams(bytes.NewReader(file), "a.pcap", "", func(d Datagram) error {
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
		if _, err := Datagrams(bytes.NewReader(file), "a.pcap", "", func(Datagram) error { given++; return errStop }); err != errStop || given != 1 {
			t.Errorf("each ended the reading, and then: %v, after %d packets", err, given)
		}
	})
}

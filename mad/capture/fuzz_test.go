package capture

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"fabsh/mad"
	"fabsh/mad/engine"
	"fabsh/mad/internal/erf"
)

// TestLoadCut: of a recording that ends anywhere within its packets, those that
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
		list = append(list, packet(sent, time.Unix(2, 0), &engine.Address{LID: mad.PermissiveLID}, &port, m))
		answer := respond(engine.Datagram{MAD: m}, 1).MAD
		copy(answer[mad.TIDOffset:], m[mad.TIDOffset:][:8])
		list = append(list, packet(received, time.Unix(3, 0), &engine.Address{LID: mad.PermissiveLID}, &port, answer))
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
	list = append(list, packet(sent, time.Unix(2, 0), &engine.Address{LID: 1}, &port, m))
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
		list = append(list, packet(received, time.Unix(3, 0), &engine.Address{LID: 1}, &port, a))
	}
	began := time.Now()
	if _, err := Load(bytes.NewReader(pcap(t, list...)), "a.pcap"); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 30*time.Second {
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
	f.Add(append(seed, append([]byte{local, 1}, seed[5*size+2:6*size]...)...))
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
	r, err := erf.NewReader(bytes.NewReader(file))
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

package capture

import (
	"bytes"
	"context"
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
		list = append(list, packet(local, time.Unix(1, 0), &engine.Address{LID: mad.PermissiveLID}, &p, m))
	}
	return list
}

func TestLoadErrors(t *testing.T) {
	port := facts(localPort())
	foreign := port[0]
	foreign.Interface = sent
	for _, tt := range []struct {
		name string
		file []byte
		want string
	}{
		{"empty", nil, "a.pcap: not a capture file: it is too short"},
		{"text", []byte("def main(): print('this is no recording, is it?')"), "a.pcap: not a pcap file: it begins with the bytes 64 65 66 20"},
		{"no packets", pcap(t), "a.pcap: not a recording of fabsh --record: the facts of the local port are missing"},
		{"InfiniBand, but not ours", pcap(t, foreign), "a.pcap: not a recording of fabsh --record: the facts of the local port are missing"},
		{"facts out of order", pcap(t, port[1]), "a.pcap: packet 1: not a recording of fabsh --record: the facts of the local port are missing"},
		{"other facts", pcap(t, append(port[:5:5], packet(local, time.Time{}, &engine.Address{}, new(engine.Port), table(mad.AttrNodeRecord).MAD[:]))...), "a.pcap: packet 6: not a recording of fabsh --record: the facts of the local port are missing"},
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
	add(sent, at, c.MAD[:])
	for _, s := range segments(engine.Datagram{Address: *at, MAD: c.MAD[:]}, count(500)) {
		s.MAD[15] = 1
		add(received, at, s.MAD)
	}
	byRoute := smp(mad.AttrNodeInfo, 0, 1)
	byRoute.MAD[15] = 2
	add(sent, &byRoute.To, byRoute.MAD[:])
	add(received, &byRoute.To, respond(engine.Datagram{MAD: byRoute.MAD[:]}, 1).MAD)
	byRoute.MAD[15] = 3
	add(sent, &byRoute.To, byRoute.MAD[:])
	list = append(list, list[len(list)-1])
	list[len(list)-1].Interface, list[len(list)-1].Error = local, true
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
	r, err := erf.NewReader(bytes.NewReader(file))
	for err == nil {
		var p erf.Packet
		if err = r.Read(&p); err == nil && p.Interface == sent {
			p.Payload = bytes.Clone(p.Payload)
			list = append(list, p)
		}
	}
	return list
}

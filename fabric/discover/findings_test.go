package discover

import (
	"hash/fnv"
	"runtime"
	"slices"
	"testing"
	"time"

	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// liar is a subnet of one honest switch with the local port and a few neighbours,
// of which the one behind port 7 invents what is behind it: on each route another
// switch, all of whose ports are up.
type liar struct {
	engine.Basic
	ports uint8 // of the switches that it invents
	out   chan engine.Datagram
	done  chan bool
}

func (l *liar) Send(d *engine.Datagram) error {
	r := engine.Datagram{Address: d.Address, MAD: slices.Clone(d.MAD)}
	h := mad.ParseHeader(d.MAD)
	route := mad.RouteOf(d.MAD)
	data := r.MAD[mad.SMPDataOffset:][:64]
	invented := len(route) > 2 && route[2] == 7
	n := l.ports
	if !invented {
		n = 8
	}
	switch h.Attribute {
	case mad.AttrNodeInfo.ID:
		sum := fnv.New64()
		sum.Write(route)
		guid := mad.GUID(sum.Sum64())
		info := mad.NodeInfo{BaseVersion: 1, ClassVersion: 1, NodeType: mad.NodeTypeSwitch, NumPorts: n,
			SystemImageGUID: guid, NodeGUID: guid, PortGUID: guid, PartitionCap: 8, LocalPortNum: 1}
		if len(route) == 1 {
			info.NodeType, info.NumPorts = mad.NodeTypeCA, 1
		}
		info.Encode(data)
	case mad.AttrPortInfo.ID:
		port := h.Modifier & 0xff
		info := mad.PortInfo{LID: mad.LID(len(route)), LocalPortNum: 1, PortState: mad.PortStateActive, PortPhysicalState: mad.PortPhysicalStateLinkUp, LinkWidthActive: mad.LinkWidth4x, LinkSpeedActive: mad.LinkSpeedQDR}
		if !invented && len(route) > 1 && port != 1 && (len(route) > 2 || port != 7) { // nothing there
			info.PortState, info.PortPhysicalState = mad.PortStateDown, mad.PortPhysicalStatePolling
		}
		info.Encode(data)
	case mad.AttrNodeDescription.ID:
		copy(data, "honest")
		if invented {
			copy(data, "liar\x00\x00")
		}
	}
	r.MAD[mad.MethodOffset] |= byte(mad.Response)
	r.MAD[mad.StatusOffset] = 0x80
	select {
	case l.out <- r:
	case <-l.done:
	}
	return nil
}

func (l *liar) Recv(d *engine.Datagram) error {
	select {
	case r := <-l.out:
		m := append(d.MAD[:0], r.MAD...)
		*d = r
		d.MAD = m
		return nil
	case <-l.done:
		return engine.ErrClosed
	}
}

func (l *liar) Port() (engine.Port, error) { return engine.Port{LID: 1, Num: 1}, nil }
func (l *liar) Traits() engine.Traits      { return engine.Traits{} }
func (l *liar) Close() error               { close(l.done); return nil }

// TestLyingSwitch: a switch that invents nodes without end ends the sweep with a
// problem that names it; what was found is kept, and memory is bounded.
func TestLyingSwitch(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	for _, test := range []struct {
		ports uint8
		want  string
	}{
		{254, "the sweep stopped at 4114 nodes with 1048571 ports, the most that a subnet can have; most are behind \"liar\" (0xd94d11186c0f2e03) at route 0,1,7; check its management agent"},
		{3, "the sweep stopped at 65536 nodes with 262147 ports, the most that a subnet can have; most are behind \"liar\" (0xd94d11186c0f2e03) at route 0,1,7; check its management agent"},
	} {
		e := engine.New(&liar{ports: test.ports, out: make(chan engine.Datagram, 1<<12), done: make(chan bool)}, engine.Options{Window: 512})
		began := time.Now()
		f, err := Sweep(t.Context(), e, Options{PlainSpeeds: true})
		var mem runtime.MemStats
		runtime.ReadMemStats(&mem)
		t.Logf("%d ports: %v, %d MiB from the system", test.ports, time.Since(began), mem.Sys>>20)
		e.Close()
		if err != nil {
			t.Fatal(err)
		}
		if mem.Sys > 2<<30 {
			t.Errorf("%d MiB were taken from the system", mem.Sys>>20)
		}
		var cut []string
		for _, p := range f.Problems() {
			if p.Kind == fabric.ProblemCut {
				cut = append(cut, p.Text)
			}
		}
		if len(cut) != 1 || cut[0] != test.want {
			t.Errorf("problems %q\nwant %q", cut, test.want)
		}
	}
}

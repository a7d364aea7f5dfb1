package session

import (
	"context"
	"hash/fnv"
	"regexp"
	"slices"
	"testing"

	"fabsh/builtins/lang"
	"fabsh/builtins/program"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// liar is a subnet whose switch invents another one behind each of its ports, and
// so do these.
type liar struct {
	engine.Basic
	out  chan engine.Datagram
	done chan bool
}

func (l *liar) Send(d *engine.Datagram) error {
	r := engine.Datagram{Address: d.Address, MAD: slices.Clone(d.MAD)}
	route := mad.RouteOf(d.MAD)
	data := r.MAD[mad.SMPDataOffset:][:64]
	switch mad.ParseHeader(d.MAD).Attribute {
	case mad.AttrNodeInfo.ID:
		sum := fnv.New64()
		sum.Write(route)
		info := mad.NodeInfo{BaseVersion: 1, ClassVersion: 1, NodeType: mad.NodeTypeSwitch, NumPorts: 254,
			NodeGUID: mad.GUID(sum.Sum64()), PortGUID: mad.GUID(sum.Sum64()), LocalPortNum: 1}
		if len(route) == 1 {
			info.NodeType, info.NumPorts = mad.NodeTypeCA, 1
		}
		info.Encode(data)
	case mad.AttrPortInfo.ID:
		info := mad.PortInfo{LID: mad.LID(len(route)), PortState: mad.PortStateActive, PortPhysicalState: mad.PortPhysicalStateLinkUp}
		info.Encode(data)
	}
	r.MAD[mad.MethodOffset] |= byte(mad.Response)
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

// TestLyingSwitch: a switch that invents nodes ends discover() with a warning; the
// script goes on with what was found, and the exit status is 3.
func TestLyingSwitch(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	p, out := testProgram(t, "--window", "512")
	p.Interrupts, _, _ = testInterrupts()
	s, err := New(p, Base{Connection: &Connection{Name: "liar", transport: &liar{out: make(chan engine.Datagram, 1<<12), done: make(chan bool)}}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	status := s.Runner.Evaluate(func(ctx context.Context) error {
		return program.RunCode(ctx, s.Interpreter, "<command>", "len(discover().nodes)")
	})
	if status != lang.StatusFabric {
		t.Errorf("exit status %d", status)
	}
	want := regexp.MustCompile(`the sweep stopped at 411\d nodes with \d+ ports, the most that a subnet can have; [^\n]*\n(.*\n)*411\d\n`)
	if !want.Match(out.Bytes()) {
		t.Errorf("got %.2000s", out)
	}
}

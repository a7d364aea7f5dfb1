package sim

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"fabsh/fabric/sim/agent"
	"fabsh/fabric/sim/state"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// fuzzSeeds are datagrams that agents answer: address, then MAD.
func fuzzSeeds(r *rig) (seeds [][]byte) {
	add := func(c *engine.Call) {
		seeds = append(seeds, append([]byte{byte(c.To.LID >> 8), byte(c.To.LID), byte(c.To.QP)}, c.MAD[:]...))
	}
	for _, a := range mad.Attributes() {
		if a.Class != mad.ClassSubn {
			continue
		}
		for _, m := range []mad.Method{mad.MethodGet, mad.MethodSet} {
			add(smp(m, a, 0, leaf1, nil))
			add(smp(m, a, 1, r.state.SM.LID, nil))
		}
	}
	add(smp(mad.MethodTrapRepress, mad.AttrSubnNotice, 0, r.lid("leaf-1"), nil))
	for _, a := range mad.Attributes() {
		if a.Class != mad.ClassSubnAdm {
			continue
		}
		for _, m := range a.Methods {
			c := saCall(m, a, 0, ^uint64(0), nil, r.state.SM.LID)
			add(c)
			binary.BigEndian.PutUint64(c.MAD[mad.SAMaskOffset:], 0)
			c.MAD[mad.SAKeyOffset+7] = agent.SMKey
			add(c)
		}
	}
	for _, a := range mad.Attributes() {
		if a.Class != mad.ClassVendor0A && a.Class != mad.ClassVendor0C && a.Class != mad.ClassCongestion {
			continue
		}
		for _, m := range a.Methods {
			c := &engine.Call{To: engine.Address{LID: r.state.SM.LID, QP: 1}}
			c.PutMAD(mad.Header{Class: a.Class, ClassVersion: a.Version, Method: m, Attribute: a.ID}, nil)
			add(c)
			c.To.LID = r.lid("leaf-1")
			add(c)
		}
	}
	for a := range state.CounterViews() {
		c := &engine.Call{}
		c.PutPerf(mad.MethodSet, a.ID, 0, bytes.Repeat([]byte{255}, 64))
		c.SetLID(r.state.SM.LID)
		add(c)
	}
	return seeds
}

// FuzzAgents throws MADs at all agents. Whatever they are, the agents answer
// afterwards, each MAD has at most one answer, and what is kept is bounded.
func FuzzAgents(f *testing.F) {
	seed := newRigOf(f, small)
	for _, s := range fuzzSeeds(seed) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := newRig(t, small+",mkey_level=2,errors=3,ar=updn,ar_with=secondary+hbf+rn+pfrn+plft,vports=2")
		defer r.stopAll()
		if err := r.Traffic.Set(r.Traffic.HostPairs(1e9)); err != nil {
			t.Fatal(err)
		}
		for len(data) > 3 {
			d := engine.Datagram{Address: engine.Address{LID: mad.LID(binary.BigEndian.Uint16(data)), QP: uint32(data[2])}, MAD: make([]byte, mad.Size)}
			n := copy(d.MAD, data[3:])
			data = data[3+n:]
			if err := r.conn.Send(&d); err != nil {
				t.Fatal(err)
			}
		}
		r.checkSane(t)
	})
}

// newRigOf is newRig without a program.
func newRigOf(t testing.TB, spec string) *rig {
	f, o := mustParse(t, spec)
	return &rig{t: t, Fabric: f, Subnet: New(f, o)}
}

// stopAll ends what goes on by itself.
func (r *rig) stopAll() {
	r.Notices.StopTraps()
}

// checkSane: the agents still answer for what they are, and their state is
// consistent.
func (r *rig) checkSane(t *testing.T) {
	t.Helper()
	for _, name := range []string{"node-0001 HCA-1", "leaf-1"} {
		c := r.attach(name)
		call := smp(mad.MethodGet, mad.AttrNodeInfo, 0, here, nil)
		binary.BigEndian.PutUint64(call.MAD[mad.SMPKeyOffset:], c.node.EndPorts()[0].MKey)
		if !c.ask(t, call) || call.Header().Status != 0 {
			t.Errorf("%s does not answer any more", name)
		}
	}
	for i := range r.state.Ports {
		p := &r.state.Ports[i]
		var info mad.PortInfo
		info.Decode(p.Info[:])
		switch {
		case p.Up && (p.Peer == nil || !p.Peer.Up):
			t.Errorf("port %d of %s: the link is up at one end", p.Num, p.Node.Label)
		case p.State != info.PortState, p.MKey != info.MKey, p.LMC != info.LMC:
			t.Errorf("port %d of %s differs from its PortInfo", p.Num, p.Node.Label)
		case p.Up == (info.PortState == mad.PortStateDown) && p.Num > 0 && p.Peer != nil:
			t.Errorf("port %d of %s: up %v, %v", p.Num, p.Node.Label, p.Up, info.PortState)
		}
	}
	if len(r.Notices.Subscriptions) > 1<<16 || len(r.SA.Services) > 1<<16 || len(r.state.Groups) > state.MulticastCap {
		t.Error("too much is kept")
	}
	for i := range r.state.Nodes {
		if len(r.state.Nodes[i].LFT) > state.LinearCap {
			t.Errorf("an LFT of %d entries", len(r.state.Nodes[i].LFT))
		}
	}
}

// TestMutations throws 20,000 mutated MADs at one subnet, whose hands pull and plug
// cables meanwhile.
func TestMutations(t *testing.T) {
	r := newRig(t, small)
	defer r.stopAll()
	if err := r.Traffic.Set(r.Traffic.HostPairs(1e9)); err != nil {
		t.Fatal(err)
	}
	seeds := fuzzSeeds(r)
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		data := bytes.Clone(seeds[random.IntN(len(seeds))])
		for range random.IntN(6) {
			data[random.IntN(len(data))] = byte(random.IntN(256))
		}
		d := engine.Datagram{Address: engine.Address{LID: mad.LID(binary.BigEndian.Uint16(data)), QP: uint32(data[2])}, MAD: data[3:]}
		if err := r.conn.Send(&d); err != nil {
			t.Fatal(err)
		}
		n := r.Fabric.Nodes()[random.IntN(len(r.Fabric.Nodes()))].GUID()
		num := 1 + random.IntN(4)
		switch random.IntN(200) {
		case 0:
			r.Cables.Unlink(n, num)
		case 1:
			r.Cables.Link(n, num)
		case 2:
			r.Cables.Reboot(n)
		case 3:
			r.Cables.SetLink(n, num, state.Limit{Speed: "edr", Width: "2x"})
		case 4:
			r.Cables.Swap(Cable{Node: n, Num: num}, Cable{Node: r.Fabric.Nodes()[random.IntN(6)].GUID(), Num: 1})
		case 5:
			r.Cables.Recable([2]Cable{{Node: n, Num: num}, {Node: r.Fabric.Nodes()[random.IntN(14)].GUID(), Num: random.IntN(5)}})
		}
		for r.conn.Waiting() > 0 {
			var d engine.Datagram
			if err := r.conn.Recv(&d); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.checkSane(t)
}

package sim

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// fuzzSeeds are datagrams that agents answer: address, then MAD.
func fuzzSeeds(r *rig) (seeds [][]byte) {
	add := func(c *engine.Call) {
		seeds = append(seeds, append([]byte{byte(c.To.LID >> 8), byte(c.To.LID), byte(c.To.QP)}, c.MAD[:]...))
	}
	for i := range smpHandlers {
		a := smpHandlers[i].attr
		for _, m := range []mad.Method{mad.MethodGet, mad.MethodSet} {
			add(smp(m, a, 0, leaf1, nil))
			add(smp(m, a, 1, r.sm.lid, nil))
		}
	}
	add(smp(mad.MethodTrapRepress, mad.AttrSubnNotice, 0, r.lid("leaf-1"), nil))
	for i := range recordHandlers {
		for _, m := range recordHandlers[i].attr.Methods {
			c := sa(m, recordHandlers[i].attr, 0, ^uint64(0), nil, r.sm.lid)
			add(c)
			binary.BigEndian.PutUint64(c.MAD[mad.SAMaskOffset:], 0)
			c.MAD[mad.SAKeyOffset+7] = saKey
			add(c)
		}
	}
	for a := range counterViews() {
		c := &engine.Call{}
		c.PutPerf(mad.MethodSet, a.ID, 0, bytes.Repeat([]byte{255}, 64))
		c.SetLID(r.sm.lid)
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
		r := newRig(t, small+",mkey_level=2,errors=3")
		defer r.stopAll()
		if err := r.SetTraffic(r.HostPairs(1e9)); err != nil {
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
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range r.repeated {
		r.stopTrap(key)
	}
}

// checkSane: the agents still answer for what they are, and their state is
// consistent.
func (r *rig) checkSane(t *testing.T) {
	t.Helper()
	for _, name := range []string{"node-0001 HCA-1", "leaf-1"} {
		c := r.attach(name)
		call := smp(mad.MethodGet, mad.AttrNodeInfo, 0, here, nil)
		binary.BigEndian.PutUint64(call.MAD[mad.SMPKeyOffset:], c.port.endPort().mkey)
		if !c.ask(t, call) || call.Header().Status != 0 {
			t.Errorf("%s does not answer any more", name)
		}
	}
	for i := range r.ports {
		p := &r.ports[i]
		var info mad.PortInfo
		info.Decode(p.info[:])
		switch {
		case p.up && (p.peer == nil || !p.peer.up):
			t.Errorf("port %d of %s: the link is up at one end", p.num, p.node.label)
		case p.state != info.PortState, p.mkey != info.MKey, p.lmc != info.LMC:
			t.Errorf("port %d of %s differs from its PortInfo", p.num, p.node.label)
		case p.up == (info.PortState == mad.PortStateDown) && p.num > 0 && p.peer != nil:
			t.Errorf("port %d of %s: up %v, %v", p.num, p.node.label, p.up, info.PortState)
		}
	}
	if len(r.subscriptions) > maxKept || len(r.services) > maxKept || len(r.groups) > multicastCap {
		t.Error("too much is kept")
	}
	for i := range r.nodes {
		if len(r.nodes[i].lft) > linearCap {
			t.Errorf("an LFT of %d entries", len(r.nodes[i].lft))
		}
	}
}

// TestMutations throws 20,000 mutated MADs at one subnet, whose hands pull and plug
// cables meanwhile.
func TestMutations(t *testing.T) {
	r := newRig(t, small)
	defer r.stopAll()
	if err := r.SetTraffic(r.HostPairs(1e9)); err != nil {
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
			r.Unlink(n, num)
		case 1:
			r.Link(n, num)
		case 2:
			r.Reboot(n)
		case 3:
			r.SetLink(n, num, "edr", "2x")
		case 4:
			r.Swap(Cable{n, num}, Cable{r.Fabric.Nodes()[random.IntN(6)].GUID(), 1})
		case 5:
			r.Recable([2]Cable{{n, num}, {r.Fabric.Nodes()[random.IntN(14)].GUID(), random.IntN(5)}})
		}
		for r.conn.queue.waiting() > 0 || r.conn.queue.next < len(r.conn.queue.taken) {
			if _, err := r.conn.queue.pop(); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.checkSane(t)
}

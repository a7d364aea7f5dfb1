package sim

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// bring does what a subnet manager does to a bare subnet: it gives each end port
// the LID that it has in model, fills the tables likewise, and makes the links
// active.
func (r *rig) bring(model *Subnet, sm mad.LID) {
	r.t.Helper()
	routes := r.routesTo()
	must := func(status mad.Status, _ []byte) {
		r.t.Helper()
		if status != 0 {
			r.t.Fatal(status)
		}
	}
	ports := func(do func(p *state.Port, route mad.DirectedRoute, info *mad.PortInfo)) {
		for i := range r.state.Nodes {
			for j := range r.state.Nodes[i].Ports {
				p := &r.state.Nodes[i].Ports[j]
				if route, ok := routes[p.Node]; ok && (p.Num > 0 || p.Node.IsSwitch) {
					info := r.portInfo(uint32(p.Num), route)
					info.PortState, info.PortPhysicalState = 0, 0
					do(p, route, &info)
					must(r.set(mad.AttrPortInfo, uint32(p.Num), route, encode(&info)))
				}
			}
		}
	}
	ports(func(p *state.Port, _ mad.DirectedRoute, info *mad.PortInfo) {
		if p == p.EndPort() {
			info.LID, info.MasterSMLID = model.state.Nodes[r.index(p.Node)].Ports[p.Num].LID, sm
		}
	})
	for i := range r.state.Nodes {
		if n := &r.state.Nodes[i]; n.IsSwitch {
			block := make([]byte, state.SMPSize)
			model.state.Nodes[i].ReadLFT(0, block)
			must(r.set(mad.AttrLinearForwardingTable, 0, routes[n], block))
			must(r.set(mad.AttrSwitchInfo, 0, routes[n], encode(&mad.SwitchInfo{LinearFDBTop: 63, LifeTimeValue: 18, PortStateChange: true})))
		}
	}
	for _, target := range []mad.PortState{mad.PortStateArmed, mad.PortStateActive} {
		ports(func(p *state.Port, _ mad.DirectedRoute, info *mad.PortInfo) {
			if p.Up {
				info.PortState = target
			}
		})
	}
}

func (r *rig) index(n *state.Node) int {
	for i := range r.state.Nodes {
		if &r.state.Nodes[i] == n {
			return i
		}
	}
	panic("no such node")
}

// routesTo are directed routes to all nodes that the first program reaches.
func (r *rig) routesTo() map[*state.Node]mad.DirectedRoute {
	start := r.conn.node
	routes := map[*state.Node]mad.DirectedRoute{start: {0}}
	for queue := []*state.Node{start}; len(queue) > 0; queue = queue[1:] {
		n := queue[0]
		for i := range n.Ports {
			if far := n.Ports[i].Neighbour(); far != nil && (n.IsSwitch || n == start) {
				if _, known := routes[far.Node]; !known {
					routes[far.Node] = routes[n].Append(uint8(i))
					queue = append(queue, far.Node)
				}
			}
		}
	}
	return routes
}

// TestBare: a bare subnet has no LIDs, routes, active links and subnet manager, and
// Sets bring it up.
func TestBare(t *testing.T) {
	f, o := mustParse(t, small)
	model := New(f, o)
	o.Bare = true
	r := &rig{t: t, Fabric: f, Subnet: New(f, o)}
	r.conn = r.attach("node-0001 HCA-1")

	info := r.portInfo(1, here)
	if info.LID != 0 || info.MasterSMLID != 0 || info.PortState != mad.PortStateInitialize || info.CapabilityMask&mad.CapabilityMaskIsSM != 0 {
		t.Errorf("a CA's port: %+v", info)
	}
	if status, _ := r.get(mad.AttrSMInfo, 0, here); status != mad.StatusBadMethodAttribute {
		t.Errorf("SMInfo: %v", status)
	}
	var sw mad.SwitchInfo
	_, data := r.get(mad.AttrSwitchInfo, 0, leaf1)
	if sw.Decode(data); sw.LinearFDBTop != 0 {
		t.Errorf("SwitchInfo: %+v", sw)
	}
	if _, data := r.get(mad.AttrLinearForwardingTable, 0, leaf1); data[1] != mad.NoPort {
		t.Errorf("LFT % x", data)
	}
	if err := r.SM.Restart(0); err == nil {
		t.Error("a subnet manager that is not there was restarted")
	}

	sm := model.state.SM.LID
	r.bring(model, sm)
	for i := range f.Nodes() {
		name := f.Nodes()[i].Name()
		c := &engine.Call{}
		c.PutPerf(mad.MethodGet, mad.AttrPortCounters.ID, 0, []byte{0, 1})
		c.SetLID(r.lid(name))
		if !r.conn.ask(t, c) || c.Header().Status != 0 {
			t.Errorf("%s does not answer", name)
		}
	}
	r.accept(r.conn, mad.ClassSubn, mad.MethodTrap)
	if err := r.Cables.Unlink(r.named("leaf-4").GUID(), 2); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Trap 1 4: trap 128 of LID 4, switch 4"}, r.events(r.conn)); diff != "" {
		t.Errorf("trap (-want +got)\n%s", diff)
	}
	if err := r.Cables.Link(r.named("leaf-4").GUID(), 2); err != nil {
		t.Fatal(err)
	}
	if p := r.at("leaf-4", 2); p.State != mad.PortStateInitialize {
		t.Errorf("the link is %v again: nobody made it so", p.State)
	}
}

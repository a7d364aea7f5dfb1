package sim

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// In "fattree:k=4,levels=2", node-0001 is on port 1 of leaf-1, whose ports 3
// and 4 go to port 1 of spine-1 and of spine-2; node-0008 on port 2 of leaf-4.
const small = "fattree:k=4,levels=2"

func TestDirectedRoute(t *testing.T) {
	r := newRig(t, small)
	type result struct {
		Name, Back string
		LocalPort  uint8
	}
	for _, test := range []struct {
		route mad.DirectedRoute
		want  result
	}{
		{mad.DirectedRoute{0}, result{"node-0001 HCA-1", "0", 1}},
		{mad.DirectedRoute{0, 1}, result{"leaf-1", "0,1", 1}},
		{mad.DirectedRoute{0, 1, 2}, result{"node-0002 HCA-1", "0,1,1", 1}},
		{mad.DirectedRoute{0, 1, 1}, result{"node-0001 HCA-1", "0,1,1", 1}},
		{mad.DirectedRoute{0, 1, 4}, result{"spine-2", "0,1,1", 1}},
		{mad.DirectedRoute{0, 1, 4, 4}, result{"leaf-4", "0,1,1,4", 4}},
		{mad.DirectedRoute{0, 1, 4, 4, 2}, result{"node-0008 HCA-1", "0,1,1,4,1", 1}},
		{mad.DirectedRoute{0, 1, 4, 4, 3, 1}, result{"leaf-1", "0,1,1,4,4,3", 3}},
	} {
		c := smp(mad.MethodGet, mad.AttrNodeInfo, 0, test.route, nil)
		if status, _ := r.smp(c); status != 0 {
			t.Fatalf("%v: %v", test.route, status)
		}
		var info mad.NodeInfo
		info.Decode(c.Data())
		// As the kernel hands it over: D set, hop pointer back at 0, and the
		// return path filled from the first hop on (IBA 14.2.2.4).
		if c.MAD[4] != 0x80 || c.MAD[5] != 0 || c.MAD[6] != 0 || int(c.MAD[7]) != test.route.Hops() {
			t.Errorf("%v: status and hops % x", test.route, c.MAD[4:8])
		}
		if diff := cmp.Diff(test.route.String(), mad.RouteOf(c.MAD[:]).String()); diff != "" {
			t.Error(diff)
		}
		back := mad.DirectedRoute(c.MAD[mad.SMPReturnPathOffset:][:len(test.route)])
		name := r.NodeByGUID(info.NodeGUID)[0].Name()
		if diff := cmp.Diff(test.want, result{name, back.String(), info.LocalPortNum}); diff != "" {
			t.Errorf("%v: (-want +got)\n%s", test.route, diff)
		}
		if c.To.LID != mad.PermissiveLID || c.To.QP != 0 {
			t.Errorf("%v: answer from %+v", test.route, c.To)
		}
	}
}

func TestDirectedRouteDiscarded(t *testing.T) {
	r := newRig(t, small)
	for name, change := range map[string]func(c *engine.Call){
		"control":                 func(c *engine.Call) {},
		"to no port":              func(c *engine.Call) { c.SetRoute(mad.DirectedRoute{0, 1, 5}) },
		"to port 0":               func(c *engine.Call) { c.SetRoute(mad.DirectedRoute{0, 1, 0}) },
		"to port 255":             func(c *engine.Call) { c.SetRoute(mad.DirectedRoute{0, 1, 255}) },
		"by a wrong local port":   func(c *engine.Call) { c.SetRoute(mad.DirectedRoute{0, 2}) },
		"through a host":          func(c *engine.Call) { c.SetRoute(mad.DirectedRoute{0, 1, 2, 1}) },
		"hop pointer not 0":       func(c *engine.Call) { c.MAD[6] = 1 },
		"D set":                   func(c *engine.Call) { c.MAD[4] = 0x80 },
		"64 hops":                 func(c *engine.Call) { c.MAD[7] = 64 },
		"DrSLID not permissive":   func(c *engine.Call) { c.MAD[mad.SMPDrSLIDOffset] = 0 },
		"DrDLID not permissive":   func(c *engine.Call) { c.MAD[mad.SMPDrDLIDOffset] = 0 },
		"to a LID":                func(c *engine.Call) { c.To.LID = r.state.SM.LID },
		"to queue pair 1":         func(c *engine.Call) { c.To.QP = 1 },
		"a response":              func(c *engine.Call) { c.MAD[3] |= 0x80 },
		"base version 2":          func(c *engine.Call) { c.MAD[0] = 2 },
		"a trap":                  func(c *engine.Call) { c.MAD[3] = byte(mad.MethodTrap) },
		"a report":                func(c *engine.Call) { c.MAD[3] = byte(mad.MethodReport) },
		"LID-routed, LID 0":       func(c *engine.Call) { c.SetLID(0) },
		"LID-routed, nobody's":    func(c *engine.Call) { c.SetLID(99) },
		"LID-routed, above top":   func(c *engine.Call) { c.SetLID(0xbfff) },
		"LID-routed, multicast":   func(c *engine.Call) { c.SetLID(0xc000) },
		"LID-routed, permissive":  func(c *engine.Call) { c.SetLID(mad.PermissiveLID) },
		"perf to queue pair 0":    func(c *engine.Call) { c.PutPerf(mad.MethodGet, 1, 0, nil); c.SetLID(r.state.SM.LID); c.To.QP = 0 },
		"LID-routed to queue 1":   func(c *engine.Call) { c.SetLID(r.state.SM.LID); c.To.QP = 1 },
		"perf to the DR LID":      func(c *engine.Call) { c.PutPerf(mad.MethodGet, 1, 0, nil); c.SetLID(mad.PermissiveLID) },
		"class 0 to queue pair 0": func(c *engine.Call) { c.MAD[1] = 0 },
	} {
		c := smp(mad.MethodGet, mad.AttrNodeInfo, 0, mad.DirectedRoute{0, 1, 4}, nil)
		change(c)
		if answered := r.conn.ask(t, c); answered != (name == "control") {
			t.Errorf("%s: answered: %v", name, answered)
		}
	}
}

// TestLongRoute: a directed route of 63 hops.
func TestLongRoute(t *testing.T) {
	r := newRig(t, "ring:n=2")
	route := mad.DirectedRoute{0, 1}
	for route.Hops() < mad.MaxHops {
		if route.Hops()%2 == 1 {
			route = route.Append(3) // switch-1, right
		} else {
			route = route.Append(2) // switch-2, left
		}
	}
	c := smp(mad.MethodGet, mad.AttrNodeInfo, 0, route, nil)
	if !r.conn.ask(t, c) {
		t.Error("63 hops: no answer")
	}
	// The 64th byte of a path is the first of the return path.
	c = smp(mad.MethodGet, mad.AttrNodeInfo, 0, route, nil)
	c.MAD[7]++
	c.MAD[mad.SMPReturnPathOffset] = 3
	if r.conn.ask(t, c) {
		t.Error("64 hops: an answer")
	}
}

// TestFirstHop: a program on one port of a CA cannot send through another.
func TestFirstHop(t *testing.T) {
	r := newRig(t, "pgft:m=2,w=1,p=2")
	for num, want := range []bool{1: true, 2: false} {
		if got := r.conn.ask(t, smp(mad.MethodGet, mad.AttrNodeInfo, 0, mad.DirectedRoute{0, uint8(num)}, nil)); got != want {
			t.Errorf("through port %d: answered: %v", num, got)
		}
	}
}

func TestLIDRoute(t *testing.T) {
	r := newRig(t, small)
	for i := range r.Fabric.Nodes() {
		n := &r.Fabric.Nodes()[i]
		lid := r.lid(n.Name())
		c := smp(mad.MethodGet, mad.AttrNodeInfo, 0, lid, nil)
		r.smp(c)
		var info mad.NodeInfo
		info.Decode(c.Data())
		if info.NodeGUID != n.GUID() || c.To.LID != lid || c.To.QP != 0 {
			t.Errorf("LID %d of %s: answer from %v, %+v", lid, n.Label(), info.NodeGUID, c.To)
		}
	}
	// From a switch's port 0.
	c := smp(mad.MethodGet, mad.AttrNodeInfo, 0, r.lid("node-0008 HCA-1"), nil)
	if !r.attach("spine-1").ask(t, c) {
		t.Error("no answer at spine-1")
	}
}

// TestTablesCount: a wrong entry loses the request or the answer.
func TestTablesCount(t *testing.T) {
	r := newRig(t, small)
	far := r.lid("node-0008 HCA-1")
	ask := func() bool { return r.conn.ask(t, smp(mad.MethodGet, mad.AttrNodeInfo, 0, far, nil)) }
	leaf := mad.DirectedRoute{0, 1}
	change := func(route mad.DirectedRoute, lid mad.LID, port byte) (before byte) {
		_, block := r.get(mad.AttrLinearForwardingTable, 0, route)
		data := slices.Clone(block)
		before, data[lid] = data[lid], port
		if status, got := r.set(mad.AttrLinearForwardingTable, 0, route, data); status != 0 || !cmp.Equal(got, data) {
			t.Fatalf("%v %v", status, cmp.Diff(data, got))
		}
		return before
	}
	if !ask() {
		t.Fatal("unreachable before anything was done")
	}
	for _, port := range []byte{2, 5, 0, 254, 255} { // node-0002, no port, itself, no port, dropped
		before := change(leaf, far, port)
		if ask() {
			t.Errorf("reached through port %d", port)
		}
		if change(leaf, far, before); !ask() {
			t.Error("unreachable again")
		}
	}
	// A loop between leaf-1 and spine-1.
	up := change(leaf, far, 3)
	down := change(mad.DirectedRoute{0, 1, 3}, far, 1)
	if ask() {
		t.Error("reached through a loop")
	}
	change(leaf, far, up)
	change(mad.DirectedRoute{0, 1, 3}, far, down)
	// The way back, on leaf-4.
	back := change(mad.DirectedRoute{0, 1, 3, 4}, r.state.SM.LID, 255)
	if ask() {
		t.Error("an answer came back without a route")
	}
	change(mad.DirectedRoute{0, 1, 3, 4}, r.state.SM.LID, back)
	if !ask() {
		t.Error("unreachable in the end")
	}
	// LinearFDBTop below the LID.
	_, data := r.get(mad.AttrSwitchInfo, 0, leaf)
	var info mad.SwitchInfo
	info.Decode(data)
	info.LinearFDBTop = uint16(far) - 1
	if status, _ := r.set(mad.AttrSwitchInfo, 0, leaf, encode(&info)); status != 0 {
		t.Fatal(status)
	}
	if ask() {
		t.Error("reached above LinearFDBTop")
	}
}

// TestActive: only SMPs cross links that are not active.
func TestActive(t *testing.T) {
	r := newRig(t, small)
	host := mad.DirectedRoute{0, 1, 2}
	lid := r.lid("node-0002 HCA-1")
	perf := func() bool {
		c := &engine.Call{}
		c.PutPerf(mad.MethodGet, mad.AttrPortCounters.ID, 0, []byte{0, 1})
		c.SetLID(lid)
		return r.conn.ask(t, c)
	}
	byLID := func() bool { return r.conn.ask(t, smp(mad.MethodGet, mad.AttrNodeInfo, 0, lid, nil)) }
	setState := func(route mad.DirectedRoute, num uint32, state mad.PortState) {
		t.Helper()
		info := r.portInfo(num, route)
		info.PortState, info.PortPhysicalState = state, 0
		if status, _ := r.set(mad.AttrPortInfo, num, route, encode(&info)); status != 0 {
			t.Fatal(status)
		}
	}
	check := func(what string, wantPerf bool) {
		t.Helper()
		if perf() != wantPerf || !byLID() {
			t.Errorf("%s: wrong packets pass", what)
		}
	}
	r.state.SM.Node.Off = true // so that it does not sweep
	check("active", true)
	setState(mad.DirectedRoute{0, 1}, 2, mad.PortStateDown) // and up again
	check("initialize", false)
	setState(mad.DirectedRoute{0, 1}, 2, mad.PortStateArmed)
	setState(host, 1, mad.PortStateArmed)
	check("armed", false)
	setState(mad.DirectedRoute{0, 1}, 2, mad.PortStateActive)
	check("active at one end", false)
	setState(host, 1, mad.PortStateActive)
	check("active again", true)
}

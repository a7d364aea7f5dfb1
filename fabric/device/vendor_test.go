package device_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/device"
	"fabsh/fabric/discover"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// vendorTap is a transport that counts requests for the vendor's attributes, and changes what
// is answered: answer returns whether data is now the answer. It loses what lost names.
type vendorTap struct {
	engine.Transport
	mu     sync.Mutex
	seen   map[string]int
	lost   func(h mad.Header, route mad.DirectedRoute) bool
	answer func(h mad.Header, route mad.DirectedRoute, data []byte) bool
}

func (t *vendorTap) TrySend(d *engine.Datagram) (bool, error) { return true, t.Send(d) }

func (t *vendorTap) Send(d *engine.Datagram) error {
	h := mad.ParseHeader(d.MAD)
	if a := mad.Lookup(h.Class.Family(), h.Attribute); a != nil && h.Attribute >= 0xff00 {
		t.mu.Lock()
		t.seen[a.Name]++
		t.mu.Unlock()
		if t.lost != nil && t.lost(h, mad.RouteOf(d.MAD)) {
			return nil
		}
	}
	return t.Transport.Send(d)
}

func (t *vendorTap) Recv(d *engine.Datagram) error {
	err := t.Transport.Recv(d)
	if err != nil || t.answer == nil {
		return err
	}
	h := mad.ParseHeader(d.MAD)
	if t.answer(h, mad.RouteOf(d.MAD), d.MAD[h.DataOffset():][:64]) {
		h.Status = 0x8000
		h.Put(d.MAD)
	}
	return nil
}

// counts returns how often each attribute was requested, and forgets it.
func (t *vendorTap) counts() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []string
	for _, name := range slices.Sorted(maps.Keys(t.seen)) {
		list = append(list, fmt.Sprintf("%s %d", name, t.seen[name]))
	}
	clear(t.seen)
	return strings.Join(list, ", ")
}

// onVendor runs fn on a swept fabric. change may return another topology, and prepare change
// what nodes report; both may be nil.
func onVendor(t *testing.T, spec string, change func(*fabric.Fabric) *fabric.Fabric, prepare func(*sim.Subnet, *fabric.Fabric), tap *vendorTap, fn func(ctx context.Context, e *engine.Engine, f *fabric.Fabric)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		topology, o, err := sim.Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		if change != nil {
			topology = change(topology)
		}
		subnet := sim.New(topology, o)
		if prepare != nil {
			prepare(subnet, topology)
		}
		conn, err := subnet.Attach(topology.OfType(mad.NodeTypeCA)[0].ID(), 1)
		if err != nil {
			t.Fatal(err)
		}
		tap.Transport, tap.seen = conn, map[string]int{}
		e := engine.New(tap, engine.Options{})
		defer e.Close()
		f, err := discover.Sweep(t.Context(), e, discover.Options{})
		if err != nil {
			t.Fatal(err)
		}
		tap.counts()
		fn(t.Context(), e, f)
	})
}

// virtualOf describes virtual ports.
func virtualOf(f *fabric.Fabric) string {
	var list []string
	for i := range f.VirtualPorts() {
		v := &f.VirtualPorts()[i]
		own := "unknown"
		if v.Info != nil {
			own = fmt.Sprintf("LID %d, GUID +%#x", v.LID(), uint64(v.GUID()-v.Port.GUID()))
		}
		list = append(list, fmt.Sprintf("%s #%d %s %s", v.Port.Name(), v.Index, v.State, own))
	}
	return strings.Join(list, "\n")
}

// TestReadExtended: ports with a link and virtual ports are read where they are announced.
// VPortInfo is read by modifiers of the caller alone; what was read before is kept.
func TestReadExtended(t *testing.T) {
	tap := new(vendorTap)
	onVendor(t, "ring:n=3,vports=2,ar=updn", nil, nil, tap, func(ctx context.Context, e *engine.Engine, f *fabric.Fabric) {
		r, err := device.ReadExtended(ctx, e, f)
		if err != nil || r.Problems != nil {
			t.Fatal(err, r.Problems)
		}
		if got, want := tap.counts(), "AdaptiveRoutingInfo 3, ExtendedPortInfo 12, GeneralInfo 6, VPortState 3, VirtualizationInfo 3"; got != want {
			t.Errorf("sent %s, want %s", got, want)
		}
		swept := f
		f = f.With(r)
		var list []device.VPort
		for i := range f.VirtualPorts() {
			if v := &f.VirtualPorts()[i]; v.Index > 0 && v.Port.Node().Name() == "node-0002 HCA-1" {
				list = append(list, device.VPort{Port: v.Port, Modifier: uint32(v.Index)})
			}
		}
		if r, err = device.ReadVPorts(ctx, e, f, list); err != nil || r.Problems != nil {
			t.Fatal(err, r.Problems)
		}
		want := `node-0001 HCA-1/1 #0 active unknown
node-0001 HCA-1/1 #1 active unknown
node-0001 HCA-1/1 #2 active unknown
node-0002 HCA-1/1 #0 active unknown
node-0002 HCA-1/1 #1 active unknown
node-0002 HCA-1/1 #2 active unknown
node-0003 HCA-1/1 #0 active unknown
node-0003 HCA-1/1 #1 active unknown
node-0003 HCA-1/1 #2 active unknown
node-0002 HCA-1/1 #-1 active LID 8, GUID +0x10000000000
node-0002 HCA-1/1 #-1 active LID 0, GUID +0x20000000000`
		f = f.With(r)
		if diff := cmp.Diff(want, virtualOf(f)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		for i := range f.Ports() {
			if p := &f.Ports()[i]; (p.ExtendedInfo() != nil) != (p.Num() > 0 && p.Peer() != nil) {
				t.Errorf("%s: ExtendedPortInfo %v", p.Name(), p.ExtendedInfo())
			}
		}
		again, err := device.ReadExtended(ctx, e, f)
		if got := f.With(again); err != nil || !cmp.Equal(got.Answers(), f.Answers()) {
			t.Errorf("%d answers, then %d: %v", len(f.Answers()), len(got.Answers()), err)
		}
		file := engine.New(device.NewStoredTransport(f), engine.Options{})
		defer file.Close()
		if r, err := device.ReadExtended(ctx, file, f); err != nil || r.Problems != nil || !cmp.Equal(f.With(r).Answers(), f.Answers()) {
			t.Errorf("of the file: %v, %v", err, r.Problems)
		}
		without := engine.New(device.NewStoredTransport(swept), engine.Options{})
		defer without.Close()
		if r, err := device.ReadExtended(ctx, without, swept); err != nil || r.Problems != nil || r.Answers != nil {
			t.Errorf("of a file without answers: %v, %v", err, r)
		}
		if got, want := tap.counts(), "AdaptiveRoutingInfo 3, ExtendedPortInfo 12, VPortInfo 2, VPortState 3, VirtualizationInfo 3"; got != want {
			t.Errorf("sent %s, want %s: devices are asked once", got, want)
		}
	})
}

// TestReadExtendedWithout: devices of other vendors get no request, and devices that announce
// nothing only GeneralInfo.
func TestReadExtendedWithout(t *testing.T) {
	for _, test := range []struct {
		spec   string
		change func(*fabric.Fabric) *fabric.Fabric
		want   string
	}{
		{"ring:n=3", ofOtherVendor, ""},
		{"ring:n=3,vports=2", nil, "ExtendedPortInfo 12, GeneralInfo 6, VPortState 3, VirtualizationInfo 3"},
		{"ring:n=3", nil, "ExtendedPortInfo 12, GeneralInfo 6"},
	} {
		tap := new(vendorTap)
		onVendor(t, test.spec, test.change, nil, tap, func(ctx context.Context, e *engine.Engine, f *fabric.Fabric) {
			r, err := device.ReadExtended(ctx, e, f)
			if err != nil || r.Problems != nil {
				t.Fatal(err, r.Problems)
			}
			if got := tap.counts(); got != test.want {
				t.Errorf("%s: sent %s, want %s", test.spec, got, test.want)
			}
		})
	}
}

// ofOtherVendor returns the topology with nodes of a vendor that is not NVIDIA.
func ofOtherVendor(f *fabric.Fabric) *fabric.Fabric {
	const oui = 0x001175
	b := fabric.NewBuilder()
	for i := range f.Nodes() {
		info := *f.Nodes()[i].Info()
		info.VendorID = oui
		for _, guid := range []*mad.GUID{&info.NodeGUID, &info.PortGUID, &info.SystemImageGUID} {
			*guid = oui<<40 | *guid&(1<<40-1)
		}
		b.AddNode(fabric.NodeSpec{Info: info, Name: f.Nodes()[i].Name()})
	}
	for i := range f.Ports() {
		if p := &f.Ports()[i]; p.Peer() != nil {
			_ = b.Link(p.Node().ID(), p.Num(), p.Peer().Node().ID(), p.Peer().Num()) // again from the other end
		}
	}
	return b.Build()
}

// TestReadExtendedUnanswered: a port that does not answer is a problem, and the others are
// read.
func TestReadExtendedUnanswered(t *testing.T) {
	tap := &vendorTap{lost: func(h mad.Header, _ mad.DirectedRoute) bool {
		return h.Attribute == mad.AttrVPortState.ID || h.Attribute == mad.AttrExtendedPortInfo.ID && h.Modifier == 2
	}}
	onVendor(t, "ring:n=3,vports=2,ar=updn", nil, nil, tap, func(ctx context.Context, e *engine.Engine, f *fabric.Fabric) {
		r, err := device.ReadExtended(ctx, e, f)
		if err != nil {
			t.Fatal(err)
		}
		kinds := map[string]int{}
		for _, p := range r.Problems {
			kinds[string(p.Kind)+": "+p.Text[:strings.Index(p.Text, " of ")]]++
		}
		if got, want := fmt.Sprint(kinds), "map[timed out: ExtendedPortInfo:3 timed out: VPortState:3]"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if f = f.With(r); len(f.VirtualPorts()) != 0 || f.OfType(mad.NodeTypeSwitch)[0].Port(1).ExtendedInfo() == nil {
			t.Errorf("virtual ports %v; port 1: %v", f.VirtualPorts(), f.OfType(mad.NodeTypeSwitch)[0].Port(1).ExtendedInfo())
		}
	})
}

// TestReadRouter: the tables of a router are read as far as RouterInfo has entries, and FLIDs
// where they are announced.
func TestReadRouter(t *testing.T) {
	for _, flid := range []bool{false, true} {
		var router mad.DirectedRoute
		tap := new(vendorTap)
		tap.answer = func(h mad.Header, route mad.DirectedRoute, data []byte) bool {
			if router == nil || !slices.Equal(route, router) || h.Attribute < 0xff00 {
				return false
			}
			var answer interface{ Encode([]byte) }
			switch h.Attribute {
			case mad.AttrGeneralInfo.ID:
				caps := mad.GeneralInfoCapabilities{}
				if flid {
					caps.CapMask1 = mad.Capabilities1RouterLID
				}
				answer = &caps
			case mad.AttrRouterInfo.ID:
				answer = &mad.RouterInfo{NextHopCap: 64, NextHopTop: 5, AdjSubnetsTop: 2, AdjLIDInfoTop: 9}
			case mad.AttrNextHopTable.ID:
				var x mad.NextHopTable
				for i := range x.Record {
					x.Record[i].SubnetPrefix = uint64(4*int(h.Modifier) + i + 1)
				}
				answer = &x
			case mad.AttrAdjSiteLocalSubnetsTable.ID:
				answer = &mad.AdjSiteLocalSubnetsTable{Record: [8]mad.AdjSubnet{{SubnetPrefixID: 7}, {SubnetPrefixID: 8}, {SubnetPrefixID: 9}}}
			case mad.AttrAdjSubnetsRouterLIDInfo.ID:
				answer = &mad.AdjSubnetsRouterLIDInfo{Record: [8]mad.AdjSubnetLIDs{{SubnetPrefixID: uint16(h.Modifier)}}}
			default:
				return false
			}
			clear(data)
			answer.Encode(data)
			return true
		}
		onVendor(t, "ring:n=3", nil, func(s *sim.Subnet, topology *fabric.Fabric) {
			n := topology.NodeByName("node-0003 HCA-1")[0]
			if err := s.Edit.Node(n.GUID(), func(_ *string, info *mad.NodeInfo, _ *mad.SwitchInfo) { info.NodeType = mad.NodeTypeRouter }); err != nil {
				t.Fatal(err)
			}
		}, tap, func(ctx context.Context, e *engine.Engine, f *fabric.Fabric) {
			n := &f.OfType(mad.NodeTypeRouter)[0]
			router = n.Port(1).Route()
			r, err := device.ReadExtended(ctx, e, f)
			if err != nil || r.Problems != nil {
				t.Fatal(err, r.Problems)
			}
			x := f.With(r).Nodes()[n.ID()].Router()
			if x == nil {
				t.Fatal("no tables")
			}
			got := fmt.Sprintf("%d hops to %d, %d adjacent, %d FLID ranges", len(x.NextHops), x.NextHops[len(x.NextHops)-1].SubnetPrefix, len(x.Adjacent), len(x.LIDs))
			want := "5 hops to 5, 2 adjacent, 0 FLID ranges"
			if flid {
				want = "5 hops to 5, 2 adjacent, 9 FLID ranges"
			}
			if got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			sent := tap.counts()
			if strings.Contains(sent, "AdjSubnetsRouterLIDInfo 2") != flid || !strings.Contains(sent, "NextHopTable 2") {
				t.Errorf("sent %s", sent)
			}
		})
	}
}

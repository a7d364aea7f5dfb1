package sim

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/sim/state"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// adaptiveAttributes are the attributes that ar= adds to agents of subnet management, with a
// modifier that they accept.
var adaptiveAttributes = []struct {
	attr     *mad.Attribute
	modifier uint32
	onCAs    bool
}{
	{mad.AttrGeneralInfo, 4, true},
	{mad.AttrAdaptiveRoutingInfo, 0, false}, {mad.AttrAdaptiveRoutingGroupTable, 0, false}, {mad.AttrAdaptiveRoutingLFT, 0, false},
	{mad.AttrHBFConfig, 0, false}, {mad.AttrWeightedHBFConfig, 0, false}, {mad.AttrPFRNConfig, 0, false},
	{mad.AttrPrivateLFTInfo, 0, false}, {mad.AttrPrivateLFTDef, 0, false}, {mad.AttrPrivateLFTMap, 0, false}, {mad.AttrPortSLToPrivateLFTMap, 0, false},
	{mad.AttrRNSubGroupDirectionTable, 0, false}, {mad.AttrRNGenStringTable, 0, false}, {mad.AttrRNRcvString, 0, false},
	{mad.AttrRNXmitPortMask, 0, false}, {mad.AttrRNGenBySubGroupPriority, 0, false},
}

// TestAdaptiveUnannounced: what GeneralInfo does not announce is answered with status 0x000C:
// without ar=, at devices of other vendors, and at CAs; and no Set is accepted. Without ar=,
// ExtendedPortInfo and registers are announced alone.
func TestAdaptiveUnannounced(t *testing.T) {
	for _, spec := range []string{"ring", "ring:ar=updn", "other vendor"} {
		f, o := mustParse(t, map[bool]string{true: "ring", false: "ring:ar=updn"}[spec == "ring"])
		if spec == "other vendor" {
			f = fabricOf(f, func(info *mad.NodeInfo) { info.VendorID, info.DeviceID = 0x1234, 1 })
		}
		r := &rig{t: t, Fabric: f, Subnet: New(f, o)}
		r.conn = r.attach(f.OfType(mad.NodeTypeCA)[0].Name())
		if status, data := r.get(mad.AttrGeneralInfo, 4, r.lid("switch-2")); spec == "ring" && (status != mad.StatusOK || !bytes.Equal(data, append([]byte{0, 0, 6, 0}, make([]byte, 60)...))) {
			t.Errorf("GeneralInfo: %v, % x", status, data)
		}
		for _, name := range []string{"switch-2", "node-0002 HCA-1"} {
			for _, a := range adaptiveAttributes {
				want := mad.StatusBadMethodAttribute
				if spec == "ring:ar=updn" && (a.onCAs || name == "switch-2") || spec == "ring" && a.attr == mad.AttrGeneralInfo {
					want = mad.StatusOK
				}
				if got, _ := r.get(a.attr, a.modifier, r.lid(name)); got != want {
					t.Errorf("%s: Get(%s) of %s: status %v, want %v", spec, a.attr.Name, name, got, want)
				}
				if got, _ := r.set(a.attr, a.modifier, r.lid(name), make([]byte, 64)); got != mad.StatusBadMethodAttribute {
					t.Errorf("%s: Set(%s) of %s: status %v", spec, a.attr.Name, name, got)
				}
			}
		}
	}
}

// fabricOf is f with other NodeInfos.
func fabricOf(f *fabric.Fabric, change func(info *mad.NodeInfo)) *fabric.Fabric {
	b := fabric.NewBuilder()
	for i := range f.Nodes() {
		info := *f.Nodes()[i].Info()
		change(&info)
		b.AddNode(fabric.NodeSpec{Info: info, Name: f.Nodes()[i].Name()})
	}
	for i := range f.Ports() {
		if p := &f.Ports()[i]; p.Peer() != nil {
			_ = b.Link(p.Node().ID(), p.Num(), p.Peer().Node().ID(), p.Peer().Num())
		}
	}
	return b.Build()
}

// TestAdaptiveModifiers: modifiers beyond the tables are invalid.
func TestAdaptiveModifiers(t *testing.T) {
	r := newRig(t, "fattree:k=8,ar=updn,ar_with=secondary")
	for _, c := range []struct {
		attr *mad.Attribute
		last uint32
	}{
		{mad.AttrAdaptiveRoutingLFT, 48*1024/16 - 1}, {mad.AttrAdaptiveRoutingGroupTable, 4095}, {mad.AttrAdaptiveRoutingInfo, 0},
		{mad.AttrHBFConfig, 0}, {mad.AttrWeightedHBFConfig, 255}, {mad.AttrPFRNConfig, 0}, {mad.AttrPrivateLFTInfo, 0}, {mad.AttrPrivateLFTDef, 0},
		{mad.AttrPrivateLFTMap, 3}, {mad.AttrPortSLToPrivateLFTMap, 2}, {mad.AttrRNGenBySubGroupPriority, 0}, {mad.AttrRNGenStringTable, 0},
		{mad.AttrRNRcvString, 15}, {mad.AttrRNXmitPortMask, 0}, {mad.AttrRNSubGroupDirectionTable, 127},
	} {
		for modifier, want := range map[uint32]mad.Status{c.last: mad.StatusOK, c.last + 1: mad.StatusBadValue, 1 << 31: mad.StatusBadValue} {
			if got, _ := r.get(c.attr, modifier, r.lid("leaf-1")); got != want {
				t.Errorf("%s, modifier %d: status %v, want %v", c.attr.Name, modifier, got, want)
			}
		}
	}
	for modifier, want := range map[uint32]mad.Status{0: mad.StatusBadValue, 4: mad.StatusOK, 5: mad.StatusBadValue} {
		if got, _ := r.get(mad.AttrGeneralInfo, modifier, r.lid("leaf-1")); got != want {
			t.Errorf("GeneralInfo, modifier %d: status %v, want %v", modifier, got, want)
		}
	}
}

// TestAdaptiveRead: a reader of the tables, by the bytes on the wire, finds the choices that
// packets have.
func TestAdaptiveRead(t *testing.T) {
	for _, with := range []string{"", ",ar_with=secondary+hbf", ",ar_with=free"} {
		r := newRig(t, "fattree:k=6,levels=3,ar=updn,remove_links=5%"+with)
		for i := range r.state.Nodes {
			n := &r.state.Nodes[i]
			if !n.IsSwitch {
				continue
			}
			lid := n.Ports[0].LID
			read := func(a *mad.Attribute, modifier uint32) []byte {
				status, data := r.get(a, modifier, lid)
				if status != mad.StatusOK {
					t.Fatalf("%s of %s: %v", a.Name, n.Label, status)
				}
				return data
			}
			var info mad.AdaptiveRoutingInfo
			info.Decode(read(mad.AttrAdaptiveRoutingInfo, 0))
			sub := int(info.SubGrpsActive)
			top := 0
			for p := range state.EndPorts(r.state.LIDs) {
				data := read(mad.AttrAdaptiveRoutingLFT, uint32(p.LID)/16)
				entry := binary.BigEndian.Uint32(data[p.LID%16*4:])
				st, port, group := adaptive.State(entry>>30), uint8(entry>>16), int(entry&0xffff)
				var ports adaptive.Ports
				for s := range sub {
					if st == adaptive.Static {
						break
					}
					top = max(top, group)
					block := read(mad.AttrAdaptiveRoutingGroupTable, uint32(group*sub+s)/2)
					mask := block[(group*sub+s)%2*32:][:32]
					for num := range len(n.Ports) {
						if mask[31-num/8]>>(num%8)&1 != 0 {
							ports.Add(uint8(num))
						}
					}
				}
				if st == adaptive.Static {
					ports.Add(port)
				}
				want := n.Choose(adaptive.Packet{LID: p.LID, Transport: adaptive.RC}, (*state.Port).Active)
				if ports != want.Ports || port != want.Port || st != want.State {
					t.Fatalf("%s to LID %d: read %v by %v, static port %d; packets take %v, %v, %d", n.Label, p.LID, ports, st, port, want.Ports, want.State, want.Port)
				}
			}
			if int(info.GroupTop) < top || !info.E {
				t.Errorf("%s: GroupTop is %d, but group %d is in use", n.Label, info.GroupTop, top)
			}
		}
	}
}

// TestAdaptiveSettings: the attributes of settings, as a manager reads them.
func TestAdaptiveSettings(t *testing.T) {
	r := newRig(t, "fattree:k=4,ar=updn,ar_with=hbf+whbf+plft+rn+pfrn+secondary")
	lid := r.lid("leaf-1")
	got := map[string]string{}
	read := func(what string, a *mad.Attribute, modifier uint32, d interface{ Decode([]byte) }, text func() string) {
		_, data := r.get(a, modifier, lid)
		d.Decode(data)
		got[what] = text()
	}
	var general mad.GeneralInfoCapabilities
	read("GeneralInfo", mad.AttrGeneralInfo, 4, &general, func() string { return fmt.Sprintf("%#x", uint32(general.CapMask0)) })
	var info mad.AdaptiveRoutingInfo
	read("AR", mad.AttrAdaptiveRoutingInfo, 0, &info, func() string {
		return fmt.Sprint(info.E, info.BySLEn, info.EnableBySLMask, info.DisUD, info.DisRC, info.FREnabled, info.RNXmitEnabled, info.HBFEn, info.WHBFEn, info.EnableBySLMaskHBF, info.PFRNEn, info.SubGrpsActive)
	})
	var hbf mad.HBFConfig
	read("HBF", mad.AttrHBFConfig, 0, &hbf, func() string { return fmt.Sprintf("%v %#x %#x", hbf.HashType, hbf.Seed, hbf.FieldsEnable) })
	var weights mad.WeightedHBFConfig
	read("WHBF", mad.AttrWeightedHBFConfig, 1, &weights, func() string { return fmt.Sprint(weights.Group[3]) })
	var private mad.PrivateLFTInfo
	read("pLFT", mad.AttrPrivateLFTInfo, 0, &private, func() string { return fmt.Sprint(private.NumPLFTs, private.ActiveMode, private.Mode[0]) })
	var def mad.PrivateLFTDef
	read("pLFT places", mad.AttrPrivateLFTDef, 0, &def, func() string { return fmt.Sprint(def.Table[:3]) })
	var table mad.PrivateLFTMap
	read("pLFT 1", mad.AttrPrivateLFTMap, 1, &table, func() string { return fmt.Sprint(table.LFTTop >= 12, adaptive.PortsOfMask(table.PortGroupMask)) })
	var rows mad.PortSLToPrivateLFTMap
	read("pLFTs of ports", mad.AttrPortSLToPrivateLFTMap, 0, &rows, func() string { return fmt.Sprint(rows.PLFTID[16*1+15], rows.PLFTID[16*3+15]) })
	var pfrn mad.PFRNConfig
	read("pFRN", mad.AttrPFRNConfig, 0, &pfrn, func() string { return fmt.Sprint(pfrn.SL, pfrn.MaskClearTimeout, pfrn.MaskForceClearTimeout) })
	var received mad.RNRcvString
	read("RN", mad.AttrRNRcvString, 0, &received, func() string {
		return fmt.Sprint(received.Entry[0].Decision, received.Entry[8].Decision, received.Entry[9].Decision)
	})
	var xmit mad.RNXmitPortMask
	read("RN ports", mad.AttrRNXmitPortMask, 0, &xmit, func() string { return fmt.Sprint(xmit.PortPair[:3]) })
	lid = r.lid("node-0002 HCA-1")
	var port mad.ExtendedPortInfo
	read("adapter", mad.AttrExtendedPortInfo, 1, &port, func() string { return fmt.Sprintf("%#x", port.OOOSLMask) })
	want := map[string]string{
		"GeneralInfo": "0x1603", "AR": "true true 65535 true false true true true true 65535 true 2",
		"HBF": "crc 0x100000 0x40f00c0f", "WHBF": "{0 3 1 0}", "pLFT": "4 1 {48 4}", "pLFT places": "[{0 1 0 0} {1 1 0 0} {0 0 0 0}]",
		"pLFT 1": "true 3-4", "pLFTs of ports": "0 1", "pFRN": "0 180 720", "RN": "discard consume_arn_frn discard", "RN ports": "[0 7 112]", "adapter": "0xffff",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestVendorKeys: keys are hidden from requesters that do not know them, and shown where they do not
// protect.
func TestVendorKeys(t *testing.T) {
	r := newRig(t, "fattree:k=4,ar=updn,ar_with=pfrn,ar_faults=key@leaf-2")
	ask := func(name string, a *mad.Attribute, modifier uint32, key uint64) (mad.Status, []byte) {
		var c engine.Call
		c.PutMAD(mad.Header{Class: a.Class, ClassVersion: a.Class.Version(), Method: mad.MethodGet, Attribute: a.ID, Modifier: modifier}, nil)
		binary.BigEndian.PutUint64(c.MAD[24:], key)
		c.SetLID(r.lid(name))
		if !r.conn.ask(t, &c) {
			t.Fatalf("%s of %s: no answer", a.Name, name)
		}
		return mad.ParseHeader(c.MAD[:]).Status, c.MAD[32:]
	}
	vs, n2n := r.state.Nodes[r.named("leaf-1").ID()].VSKey.VSKey, r.state.Nodes[r.named("leaf-1").ID()].N2NKey.N2NMgrKey
	for _, c := range []struct {
		name string
		attr *mad.Attribute
		key  uint64
		want string
	}{
		{"leaf-1", mad.AttrVSKeyInfo, 0, "ok hidden protected, lease 60"},
		{"leaf-1", mad.AttrVSKeyInfo, vs, "ok shown protected, lease 60"},
		{"leaf-1", mad.AttrVSKeyInfo, vs + 1, "ok hidden protected, lease 60"},
		{"leaf-1", mad.AttrN2NKeyInfo, 0, "ok hidden protected, lease 60"},
		{"leaf-1", mad.AttrN2NKeyInfo, n2n, "ok shown protected, lease 60"},
		{"leaf-2", mad.AttrVSKeyInfo, 0, "ok shown open, lease 60"},
		{"leaf-2", mad.AttrN2NKeyInfo, 0, "ok shown open, lease 60"},
		{"node-0002 HCA-1", mad.AttrVSKeyInfo, 0, "ok hidden protected, lease 60"},
		{"node-0002 HCA-1", mad.AttrN2NKeyInfo, 0, "method/attribute combination not supported"},
	} {
		status, data := ask(c.name, c.attr, 0, c.key)
		got := status.Text(c.attr.Class)
		if status == mad.StatusOK {
			var info mad.VSKeyInfo // the other begins alike
			info.Decode(data)
			got = fmt.Sprintf("ok %s %s, lease %d", map[bool]string{true: "hidden", false: "shown"}[info.VSKey == 0], map[bool]string{true: "protected", false: "open"}[info.ProtectBit], info.LeasePeriod)
		}
		if got != c.want {
			t.Errorf("%s of %s: %s, want %s", c.attr.Name, c.name, got, c.want)
		}
	}
	_, data := ask("leaf-1", mad.AttrNeighborsInfo, 0, n2n)
	var info mad.NeighborsInfo
	info.Decode(data)
	if n := info.Neighbor[3]; n.LID != r.lid("spine-1") || n.NodeType != mad.NodeTypeSwitch || n.N2NKey == 0 || info.Neighbor[1].LID != 0 {
		t.Errorf("port 3: %+v, port 1: %+v", n, info.Neighbor[1])
	}
	if status, _ := ask("leaf-1", mad.AttrNeighborsInfo, 1, n2n); status != mad.StatusBadValue {
		t.Errorf("block 1: %v", status)
	}
}

// hostRoutes are the ports through which each switch of a plane forwards to each host, by
// the names of both; the plane has the names of the fabric without planes.
func (r *rig) hostRoutes(plane int) map[string]int {
	routes := map[string]int{}
	r.state.EnsureTables()
	for i := range r.state.Nodes {
		n := &r.state.Nodes[i]
		name, in := n.Name(), 1
		if !n.IsSwitch {
			continue
		}
		if plane > 0 {
			var base string
			if fmt.Sscanf(name, "%s plane-%d", &base, &in); in != plane {
				continue
			}
			name = base
		}
		for _, host := range r.OfType(mad.NodeTypeCA) {
			if host.Kind() == fabric.KindHost {
				lid := r.state.Nodes[host.ID()].Ports[max(plane, 1)].LID
				routes[name+" to "+host.Name()] = int(n.LFT[lid])
			}
		}
	}
	return routes
}

// TestPlanes: each plane has the routes of the fabric without planes, aggregation nodes do
// not change them, every port of every plane reaches every other, and a packet leaves its
// plane at the first switch.
func TestPlanes(t *testing.T) {
	const spec = "fattree:k=4,levels=3"
	want := newRig(t, spec).hostRoutes(0)
	if got := newRig(t, spec+",aggregation=yes").hostRoutes(0); !cmp.Equal(want, got) {
		t.Errorf("with aggregation nodes (-want +got)\n%s", cmp.Diff(want, got))
	}
	r := newRig(t, spec+",planes=2,aggregation=yes,generation=xdr")
	for plane := 1; plane <= 2; plane++ {
		if got := r.hostRoutes(plane); !cmp.Equal(want, got) {
			t.Errorf("plane %d (-want +got)\n%s", plane, cmp.Diff(want, got))
		}
	}
	var ends []*state.Port
	for p := range state.EndPorts(r.state.LIDs) {
		ends = append(ends, p)
	}
	if want := 2*20 + 2*16 + 2*20; len(ends) != want { // switches, ports of hosts, aggregation nodes
		t.Errorf("%d LIDs, want %d", len(ends), want)
	}
	for _, from := range ends {
		for _, to := range ends {
			if in := state.ForwardLID(from, to.LID, false); (in == nil || in.EndPort() != to) && (from.Node.IsSwitch || from.Node != to.Node) {
				t.Fatalf("from port %d of %s to port %d of %s: %v", from.Num, from.Node.Label, to.Num, to.Node.Label, in)
			}
			at, hops := from, 0
			for at.Node != to.Node {
				out, _ := at.NextHop(to.LID, at == from)
				if out.FNM && (hops > 1 || hops == 1 && from.Node.IsSwitch) {
					t.Fatalf("from %s to %s: crosses to another plane after %d hops", from.Node.Label, to.Node.Label, hops)
				}
				at, hops = out.Peer, hops+1
			}
		}
	}
}

// TestPlanesHaveRates: links show the width and speed of their generation.
func TestPlanesHaveRates(t *testing.T) {
	for spec, want := range map[string]string{
		"speed=xdr":                     "4x xdr",
		"generation=xdr,planes=4":       "1x xdr",
		"generation=ndr,split=yes":      "2x ndr",
		"generation=hdr":                "4x hdr",
		"planes=2":                      "2x hdr",
		"generation=ndr,speed=edr":      "4x edr",
		"generation=xdr,width=1x":       "1x xdr",
		"aggregation=yes,planes=4":      "1x hdr",
		"generation=ndr,remove_links=1": "4x ndr",
	} {
		r := newRig(t, "fattree:k=4,"+spec)
		f := r.discover(engine.Options{})
		p := f.OfType(mad.NodeTypeCA)[0].Port(1)
		if got := p.Width() + " " + p.Speed(); got != want || p.BestSpeed() != p.Speed() || p.BestWidth() != p.Width() {
			t.Errorf("%s: %s, best %s %s, want %s", spec, got, p.BestWidth(), p.BestSpeed(), want)
		}
	}
}

// TestVirtualPorts: virtual ports have GUIDs and states, ports with an odd index a LID of
// their own, by which packets reach the port.
func TestVirtualPorts(t *testing.T) {
	r := newRig(t, "ring:n=3,vports=3,ar=updn")
	lid := r.lid("node-0002 HCA-1")
	var info mad.VirtualizationInfo
	_, data := r.get(mad.AttrVirtualizationInfo, 1, lid)
	if info.Decode(data); info.VPortCap != 255 || info.VPortIndexTop != 3 || !info.VirtualizationEnable {
		t.Errorf("%+v", info)
	}
	guid := r.at("node-0002 HCA-1", 1).GUID
	var got []string
	for index := range uint32(4) {
		var p mad.VPortInfo
		var n mad.VNodeInfo
		for _, a := range []struct {
			attr *mad.Attribute
			to   interface{ Decode([]byte) }
		}{{mad.AttrVPortInfo, &p}, {mad.AttrVNodeInfo, &n}} {
			status, data := r.get(a.attr, index, lid)
			_, same := r.get(a.attr, 1<<16|index, lid)
			if a.to.Decode(data); status != mad.StatusOK || !cmp.Equal(data, same) {
				t.Errorf("%s %d: %v", a.attr.Name, index, status)
			}
		}
		got = append(got, fmt.Sprintf("%v own %v LID %d of %d, GUID +%#x, %d ports", p.State, p.LIDRequired, p.LID, p.LIDByVPortIndex, uint64(p.PortGUID-guid), n.NumPorts))
		if p.LID != 0 {
			if in := state.ForwardLID(r.at("node-0003 HCA-1", 1), p.LID, false); in == nil || in.Node.Name() != "node-0002 HCA-1" {
				t.Errorf("a packet to LID %d arrives at %v", p.LID, in)
			}
		}
	}
	want := []string{
		"active own true LID 5 of 0, GUID +0x0, 1 ports",
		"active own true LID 9 of 0, GUID +0x10000000000, 1 ports",
		"active own false LID 0 of 0, GUID +0x20000000000, 1 ports",
		"active own true LID 10 of 0, GUID +0x30000000000, 1 ports",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var states mad.VPortState
	_, data = r.get(mad.AttrVPortState, 0, lid)
	if states.Decode(data); states.State[3] != mad.PortStateActive || states.State[4] != 0 {
		t.Errorf("states %v", states.State[:5])
	}
	for _, c := range []struct {
		attr     *mad.Attribute
		modifier uint32
		name     string
		want     mad.Status
	}{
		{mad.AttrVPortInfo, 4, "node-0002 HCA-1", mad.StatusBadValue}, {mad.AttrVPortInfo, 2 << 16, "node-0002 HCA-1", mad.StatusBadValue},
		{mad.AttrVPortState, 1, "node-0002 HCA-1", mad.StatusBadValue}, {mad.AttrVNodeInfo, 4, "node-0002 HCA-1", mad.StatusBadValue},
		{mad.AttrVirtualizationInfo, 2, "node-0002 HCA-1", mad.StatusBadValue}, {mad.AttrVirtualizationInfo, 0, "switch-1", mad.StatusBadMethodAttribute},
		{mad.AttrVPortInfo, 0, "switch-1", mad.StatusBadMethodAttribute},
	} {
		if got, _ := r.get(c.attr, c.modifier, r.lid(c.name)); got != c.want {
			t.Errorf("%s %#x of %s: %v, want %v", c.attr.Name, c.modifier, c.name, got, c.want)
		}
	}
	if status, _ := newRig(t, "ring").get(mad.AttrVirtualizationInfo, 0, r.lid("node-0001 HCA-1")); status != mad.StatusBadMethodAttribute {
		t.Errorf("without vports=: %v", status)
	}
}

// TestPlanesAnnounced: devices announce their planes, and FNM ports.
func TestPlanesAnnounced(t *testing.T) {
	r := newRig(t, "fattree:k=4,planes=4,generation=xdr,aggregation=yes")
	for name, want := range map[string]string{"node-0002 HCA-1": "multi_plane_ca, 4 planes", "leaf-1 plane-2": "standard, 4 planes"} {
		var info mad.ExtendedNodeInfo
		status, data := r.get(mad.AttrExtendedNodeInfo, 0, r.lid(name))
		info.Decode(data)
		if got := fmt.Sprintf("%v, %d planes", info.NodeTypeExtended, info.AsicMaxPlanes); status != mad.StatusOK || got != want {
			t.Errorf("%s: %v, %s, want %s", name, status, got, want)
		}
	}
	for num, want := range map[uint32]string{1: "false 0", 4: "false 0", 5: "false 1", 6: "true 0", 8: "true 0"} { // the aggregation node at 5
		var info mad.ExtendedPortInfo
		_, data := r.get(mad.AttrExtendedPortInfo, num, r.lid("leaf-1 plane-2"))
		info.Decode(data)
		if got := fmt.Sprint(info.IsFNMPort, info.SpecialPortType); got != want {
			t.Errorf("port %d: %s, want %s", num, got, want)
		}
	}
}

package device_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/device"
	"fabsh/fabric/discover"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// arSwitch is what a switch answers to the vendor's attributes. Nil of an attribute: status
// 0x000C.
type arSwitch struct {
	caps   *mad.GeneralInfoCapabilities
	info   *mad.AdaptiveRoutingInfo
	tables *adaptive.Switch
	plft   *mad.PrivateLFTInfo
	maps   map[uint32]mad.PrivateLFTMap
	ports  [][16]uint8
	pfrn   *mad.PFRNConfig
	edit   func(h mad.Header, data []byte) // of what is answered next; may be nil
}

// arTap is a transport on which switches answer the vendor's attributes, by GUID. All else
// is answered by the simulated subnet.
type arTap struct {
	engine.Transport
	f    *fabric.Fabric
	mu   sync.Mutex
	of   map[mad.GUID]*arSwitch
	seen map[string]int // requests, by attribute
}

func (t *arTap) TrySend(d *engine.Datagram) (bool, error) { return true, t.Send(d) }

func (t *arTap) Send(d *engine.Datagram) error {
	h := mad.ParseHeader(d.MAD)
	if a := mad.Lookup(h.Class.Family(), h.Attribute); a != nil && h.Attribute >= 0xff00 {
		t.mu.Lock()
		t.seen[a.Name]++
		t.mu.Unlock()
	}
	return t.Transport.Send(d)
}

func (t *arTap) Recv(d *engine.Datagram) error {
	err := t.Transport.Recv(d)
	h := mad.ParseHeader(d.MAD)
	if err != nil || h.Attribute < 0xff00 {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.of[t.f.PortAt(mad.RouteOf(d.MAD)).Node().GUID()]
	data := d.MAD[h.DataOffset():][:64]
	h.Status = 0x8000 | mad.StatusBadMethodAttribute
	clear(data)
	if x.answer(h, data) {
		h.Status = 0x8000
	}
	if x.edit != nil {
		x.edit(h, data)
	}
	h.Put(d.MAD)
	return nil
}

func (x *arSwitch) answer(h mad.Header, data []byte) bool {
	put := func(ok bool, encode func([]byte)) bool {
		if ok {
			encode(data)
		}
		return ok
	}
	switch h.Attribute {
	case mad.AttrGeneralInfo.ID:
		return x.caps != nil && h.Modifier == 4 && put(true, x.caps.Encode)
	case mad.AttrAdaptiveRoutingInfo.ID:
		return x.info != nil && put(true, x.info.Encode)
	case mad.AttrPrivateLFTInfo.ID:
		return x.plft != nil && put(true, x.plft.Encode)
	case mad.AttrPFRNConfig.ID:
		return x.pfrn != nil && put(true, x.pfrn.Encode)
	case mad.AttrPrivateLFTMap.ID:
		m, ok := x.maps[h.Modifier]
		return put(ok, m.Encode)
	case mad.AttrPrivateLFTDef.ID:
		d := mad.PrivateLFTDef{}
		d.Table[1] = mad.PrivateLFTPlace{ForceSubGroup0Bank: 1, LIDSpace: 96, LIDOffset: 2}
		return put(true, d.Encode)
	case mad.AttrPortSLToPrivateLFTMap.ID:
		for i := range 4 {
			if port := int(h.Modifier)*4 + i; port < len(x.ports) {
				copy(data[16*i:], x.ports[port][:])
			}
		}
		return x.ports != nil
	case mad.AttrAdaptiveRoutingLFT.ID:
		for i := range 16 {
			e := x.tables.Table(0).Entry(mad.LID(16*int(h.Modifier) + i))
			binary.BigEndian.PutUint32(data[4*i:], uint32(e.State)<<30|uint32(e.Port)<<16|uint32(e.Group))
		}
		return true
	case mad.AttrAdaptiveRoutingGroupTable.ID:
		g := x.tables.Table(0).Groups
		for i := range 2 {
			n := 2*int(h.Modifier) + i
			mask := g.Ports(n/g.SubGroups(), n%g.SubGroups()).Mask()
			copy(data[32*i:], mask[:])
		}
		return true
	}
	return false
}

// adaptiveRing runs fn on a simulated ring of three switches, each of which routes adaptively:
// free, to either neighbour, where the forwarding table leads to one.
func adaptiveRing(t *testing.T, fn func(t *testing.T, e *engine.Engine, f *fabric.Fabric, tap *arTap)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		topology, o, err := sim.Parse("ring:n=3")
		if err != nil {
			t.Fatal(err)
		}
		conn, err := sim.New(topology, o).Attach(topology.OfType(mad.NodeTypeCA)[0].ID(), 1)
		if err != nil {
			t.Fatal(err)
		}
		tap := &arTap{Transport: conn, of: map[mad.GUID]*arSwitch{}, seen: map[string]int{}}
		e := engine.New(tap, engine.Options{})
		defer e.Close()
		f, err := discover.Sweep(t.Context(), e, discover.Options{})
		if err != nil {
			t.Fatal(err)
		}
		tap.f = f
		r, _, err := device.ReadRoutes(t.Context(), e, f)
		if err != nil {
			t.Fatal(err)
		}
		for s, n := range r.Graph().Switches() {
			groups := adaptive.NewGroups(2)
			groups.Set(2, 0, adaptive.PortSet(1))
			groups.Set(2, 1, adaptive.PortSet(2))
			tables := adaptive.NewTable(r.Top(), groups)
			for lid, port := range r.Row(s) {
				entry := adaptive.Entry{State: adaptive.Static, Port: port}
				if port == 1 || port == 2 {
					entry.State, entry.Group = adaptive.Free, 2
				}
				tables.Set(mad.LID(lid), entry)
			}
			tap.of[n.GUID()] = &arSwitch{
				caps:   &mad.GeneralInfoCapabilities{CapMask0: mad.Capabilities0AR},
				info:   &mad.AdaptiveRoutingInfo{E: true, BySLEn: true, EnableBySLMask: 6, ByTranspCap: true, DisUD: true, SubGrpsActive: 2, GroupTop: 2, GroupCap: 100, FREnabled: true},
				tables: &adaptive.Switch{Enabled: true, SLs: 6, Static: adaptive.TransportSet(adaptive.UD), FastRecovery: true, Tables: []*adaptive.Table{tables}},
			}
		}
		fn(t, e, f, tap)
	})
}

// arOf describes what was read of a switch.
func arOf(a *device.AR, want *adaptive.Switch) string {
	switch {
	case a.Err != nil:
		return a.Err.Error()
	case a.Tables.Unknown != "":
		return "unknown: " + a.Tables.Unknown
	case !a.Tables.Active():
		return fmt.Sprintf("off, announced %t", a.Info != nil)
	case string(a.Tables.Append(nil)) != string(want.Append(nil)):
		return fmt.Sprintf("other tables: %x, want %x", a.Tables.Append(nil), want.Append(nil))
	}
	return "as set"
}

func requestsOf(tap *arTap) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(tap.seen)) {
		list = append(list, fmt.Sprintf("%s %d", name, tap.seen[name]))
	}
	return strings.Join(list, ", ")
}

// TestReadAR: what a switch announces is requested, and nothing else; its tables are read
// again when they change; and what cannot be right is unknown, with the reason.
func TestReadAR(t *testing.T) {
	const once = "AdaptiveRoutingGroupTable 3, AdaptiveRoutingInfo 2, AdaptiveRoutingLFT 1, GeneralInfo 1"
	for _, test := range []struct {
		name     string
		change   func(x *arSwitch)
		want     string
		requests string
	}{
		{"on", func(x *arSwitch) {}, "as set", once},
		{"rev1", func(x *arSwitch) { x.caps.CapMask0 = mad.Capabilities0ARRev1 }, "as set", once},
		{"off", func(x *arSwitch) { x.info.E = false }, "off, announced true", "AdaptiveRoutingInfo 1, GeneralInfo 1"},
		{"nothing announced", func(x *arSwitch) { x.caps.CapMask0 = 0 }, "off, announced false", "GeneralInfo 1"},
		{"no GeneralInfo", func(x *arSwitch) { x.caps = nil }, "off, announced false", "GeneralInfo 1"},
		{"private LFTs off", func(x *arSwitch) {
			x.caps.CapMask0 |= mad.Capabilities0PrivateLFT | mad.Capabilities0PortSLToPrivateLFT
			x.plft = &mad.PrivateLFTInfo{NumPLFTs: 4}
		}, "as set", once + ", PrivateLFTInfo 1"},
		{"pFRN", func(x *arSwitch) { x.info.PFRNSup, x.pfrn = true, &mad.PFRNConfig{SL: 3} }, "as set", "AdaptiveRoutingGroupTable 3, AdaptiveRoutingInfo 3, AdaptiveRoutingLFT 1, GeneralInfo 1, pFRNConfig 1"},
		{"one private LFT", func(x *arSwitch) { withPLFTs(x); x.ports = make([][16]uint8, 4); x.tables.Private = x.ports },
			"as set", once + ", PortSLToPrivateLFTMap 1, PrivateLFTInfo 1, PrivateLFTMap 2"},
		{"several private LFTs", func(x *arSwitch) { withPLFTs(x); x.ports = make([][16]uint8, 4); x.ports[2][7] = 1 },
			"unknown: private LFT 1 is in use; no public source has the modifier that reads its entries", ""},
		{"several private LFTs by ports", func(x *arSwitch) {
			withPLFTs(x)
			x.caps.CapMask0 &^= mad.Capabilities0PortSLToPrivateLFT
		}, "unknown: private LFT 1 is in use; no public source has the modifier that reads its entries", ""},
		{"group above the last", func(x *arSwitch) { x.info.GroupTop = 1 }, "unknown: the entry of LID 1 has group 2; the last group is 1", "AdaptiveRoutingGroupTable 6, AdaptiveRoutingInfo 4, AdaptiveRoutingLFT 3, GeneralInfo 1"},
		{"no such member", func(x *arSwitch) { x.tables.Tables[0].Groups.Set(2, 1, adaptive.PortSet(9)) }, "unknown: group 2 of LID 1 has port 9; the switch has ports 0..3", ""},
		{"no such static port", func(x *arSwitch) {
			x.tables.Tables[0].Set(5, adaptive.Entry{State: adaptive.Static, Port: 200})
		}, "unknown: the entry of LID 5 has port 200; the switch has ports 0..3", ""},
		{"written meanwhile", func(x *arSwitch) {
			asked := 0
			x.info.GroupTop = 1
			x.edit = func(h mad.Header, _ []byte) {
				if h.Attribute == mad.AttrAdaptiveRoutingGroupTable.ID {
					if asked++; asked == 1 {
						x.info.GroupTop = 2
					}
				}
			}
		}, "as set", "AdaptiveRoutingGroupTable 5, AdaptiveRoutingInfo 3, AdaptiveRoutingLFT 2, GeneralInfo 1"},
		{"groups written last", func(x *arSwitch) {
			asked := 0
			x.edit = func(h mad.Header, data []byte) {
				if h.Attribute == mad.AttrAdaptiveRoutingGroupTable.ID && h.Modifier == 2 {
					if asked++; asked == 1 {
						data[0] = 1 // port 248
					}
				}
			}
		}, "as set", "AdaptiveRoutingGroupTable 6, AdaptiveRoutingInfo 3, AdaptiveRoutingLFT 2, GeneralInfo 1"},
		{"written all the time", func(x *arSwitch) {
			x.edit = func(h mad.Header, _ []byte) {
				if h.Attribute == mad.AttrAdaptiveRoutingInfo.ID {
					x.info.AgeingTime++
				}
			}
		}, "its adaptive routing changed while it was read, 3 times in a row; try again when the subnet manager has finished", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			adaptiveRing(t, func(t *testing.T, e *engine.Engine, f *fabric.Fabric, tap *arTap) {
				n := &f.OfType(mad.NodeTypeSwitch)[1]
				x := tap.of[n.GUID()]
				test.change(x)
				clear(tap.seen)
				a := &device.AR{Dest: fabric.Dest{Route: n.Route()}, GUID: n.GUID()}
				announced := -1
				if err := device.ReadAR(t.Context(), e, func(requests int) { announced = requests }, a); err != nil {
					t.Fatal(err)
				}
				if got := arOf(a, x.tables); got != test.want {
					t.Errorf("got  %s\nwant %s", got, test.want)
				}
				if got := requestsOf(tap); test.requests != "" && got != test.requests {
					t.Errorf("requests: %s\nwant      %s", got, test.requests)
				}
				if want := tap.seen["AdaptiveRoutingLFT"] + tap.seen["AdaptiveRoutingGroupTable"]; test.requests == once && announced != want {
					t.Errorf("%d requests were announced, %d were made", announced, want)
				}
				if test.name == "pFRN" && (a.PFRN == nil || a.PFRN.SL != 3) {
					t.Errorf("pFRN %+v", a.PFRN)
				}
			})
		})
	}
}

// withPLFTs gives a switch two private LFTs: ports 1 and 2 use table 1, where the ports alone
// decide.
func withPLFTs(x *arSwitch) {
	x.caps.CapMask0 |= mad.Capabilities0PrivateLFT | mad.Capabilities0PortSLToPrivateLFT
	x.plft = &mad.PrivateLFTInfo{NumPLFTs: 2, ModeCap: 1, ActiveMode: 1}
	x.maps = map[uint32]mad.PrivateLFTMap{
		0: {PortMaskEnable: true, PortGroupMask: adaptive.PortSet(0, 3).Mask()},
		1: {PortMaskEnable: true, PortGroupMask: adaptive.PortSet(1, 2).Mask(), LFTTopEnable: true, LFTTop: 77},
	}
}

// TestReadPLFTs: places, ports and tops of private forwarding tables.
func TestReadPLFTs(t *testing.T) {
	read := func(change func(x *arSwitch)) (p *device.PLFT) {
		adaptiveRing(t, func(t *testing.T, e *engine.Engine, f *fabric.Fabric, tap *arTap) {
			n := &f.OfType(mad.NodeTypeSwitch)[1]
			change(tap.of[n.GUID()])
			p = &device.PLFT{Dest: fabric.Dest{Route: n.Route()}, GUID: n.GUID()}
			if err := device.ReadPLFTs(t.Context(), e, p); err != nil || p.Err != nil {
				t.Fatal(err, p.Err)
			}
		})
		return p
	}
	if p := read(func(*arSwitch) {}); p.Info != nil || p.Rows() != nil {
		t.Errorf("not announced: %+v", p)
	}
	p := read(func(x *arSwitch) {
		withPLFTs(x)
		x.caps.CapMask0 &^= mad.Capabilities0PortSLToPrivateLFT
	})
	one := [16]uint8{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}
	if d := cmp.Diff([][16]uint8{{}, one, one, {}}, p.Rows()); d != "" {
		t.Errorf("by ports (-want +got):\n%s", d)
	}
	top, ok := p.Top(1)
	if _, other := p.Top(0); top != 77 || !ok || other || p.Len() != 2 {
		t.Errorf("top %d, %t; table 0 has its own: %t; %d tables", top, ok, other, p.Len())
	}
	if want := []mad.PrivateLFTPlace{{}, {ForceSubGroup0Bank: 1, LIDSpace: 96, LIDOffset: 2}}; !slices.Equal(p.Places, want) {
		t.Errorf("places %+v, want %+v", p.Places, want)
	}
	rows := [][16]uint8{{}, {3: 1}, {}, {}}
	p = read(func(x *arSwitch) { withPLFTs(x); x.ports = rows })
	if d := cmp.Diff(rows, p.Rows()); d != "" {
		t.Errorf("by ports and service levels (-want +got):\n%s", d)
	}
	if n := (&device.PLFT{Info: &mad.PrivateLFTInfo{}}).Len(); n != 36 {
		t.Errorf("%d tables, want 36", n)
	}
}

// TestReadAdaptiveRoutes: tables of switches that route adaptively come from them, of others
// from their forwarding tables; static ports that do not lead to their LIDs make it unknown.
func TestReadAdaptiveRoutes(t *testing.T) {
	read := func(change func(f *fabric.Fabric, tap *arTap)) (text, requests string) {
		adaptiveRing(t, func(t *testing.T, e *engine.Engine, f *fabric.Fabric, tap *arTap) {
			change(f, tap)
			clear(tap.seen)
			r, failed, err := device.ReadAdaptiveRoutes(t.Context(), e, f, nil)
			if err != nil {
				t.Fatal(err)
			}
			text, requests = adaptiveText(r, tap), requestsOf(tap)
			for _, x := range failed {
				text += fmt.Sprintf("failed: %s: %v\n", x.Switch.Name(), x.Err)
			}
		})
		return text, requests
	}
	at := func(f *fabric.Fabric, tap *arTap, i int) *arSwitch {
		return tap.of[f.OfType(mad.NodeTypeSwitch)[i].GUID()]
	}
	const on = "switch-1 as set\nswitch-2 as set\nswitch-3 as set\n"
	for _, test := range []struct {
		name   string
		change func(f *fabric.Fabric, tap *arTap)
		want   string
	}{
		{"all", func(*fabric.Fabric, *arTap) {}, on},
		{"mixed", func(f *fabric.Fabric, tap *arTap) { at(f, tap, 1).info.E = false }, "switch-1 as set\nswitch-2 off\nswitch-3 as set\n"},
		{"info fails", func(f *fabric.Fabric, tap *arTap) { at(f, tap, 1).info = nil }, "switch-1 as set\n" +
			"switch-2 unknown: adaptive routing could not be read: SubnGet(AdaptiveRoutingInfo) to route 0,1,3: method/attribute combination not supported (status 0x000c)\nswitch-3 as set\n"},
		{"loop", func(f *fabric.Fabric, tap *arTap) {
			lid := f.OfType(mad.NodeTypeSwitch)[1].LID()
			toward := func(i, to int) {
				sw := f.OfType(mad.NodeTypeSwitch)
				for p := range sw[i].Ports() {
					if p.Peer() != nil && p.Peer().Node() == &sw[to] {
						at(f, tap, i).tables.Tables[0].Set(lid, adaptive.Entry{State: adaptive.Free, Group: 2, Port: uint8(p.Num())})
					}
				}
			}
			toward(0, 2)
			toward(2, 0)
		}, ""},
		{"missing", func(f *fabric.Fabric, tap *arTap) {
			at(f, tap, 0).tables.Tables[0].Set(f.OfType(mad.NodeTypeCA)[2].LID(), adaptive.Entry{State: adaptive.Free, Group: 2, Port: mad.NoPort})
		}, ""},
	} {
		got, _ := read(test.change)
		switch test.name {
		case "loop":
			if strings.Count(got, "leads into a loop") != 2 || !strings.Contains(got, "switch-2 as set") {
				t.Errorf("%s: %s", test.name, got)
			}
		case "missing":
			if strings.Count(got, "of a port has no entry") != 1 || strings.Count(got, "as set") != 2 {
				t.Errorf("%s: %s", test.name, got)
			}
		default:
			if d := cmp.Diff(test.want, got); d != "" {
				t.Errorf("%s (-want +got):\n%s", test.name, d)
			}
		}
	}
	if _, requests := read(func(f *fabric.Fabric, tap *arTap) {
		for i := range 3 {
			at(f, tap, i).caps.CapMask0 = 0
		}
	}); requests != "GeneralInfo 3" {
		t.Errorf("without adaptive routing: %s", requests)
	}
}

// adaptiveText is the adaptive routing of r, beside what the switches have.
func adaptiveText(r *routes.Routes, tap *arTap) string {
	var b strings.Builder
	for s, n := range r.Graph().Switches() {
		a := r.Adaptive(s)
		text := "off"
		switch {
		case a == nil:
			text = "none"
		case a.Unknown != "":
			text = "unknown: " + a.Unknown
		case a.Active():
			if text = "other"; string(a.Append(nil)) == string(tap.of[n.GUID()].tables.Append(nil)) {
				text = "as set"
			}
		}
		fmt.Fprintf(&b, "%s %s\n", n.Name(), text)
	}
	return b.String()
}

// TestReadAdaptivity: it is read where it is on; where a device does not answer what it
// announces, it is undetermined, and not off.
func TestReadAdaptivity(t *testing.T) {
	for _, x := range []struct {
		spec             string
		silent           bool // leaf-2 does not answer GeneralInfo
		on, undetermined int
	}{
		{"fattree:k=4", false, 0, 0},
		{"fattree:k=4,ar=updn", false, 6, 0},
		{"fattree:k=4,ar=updn,ar_with=hbf", false, 6, 0},
		{"fattree:k=4,ar=updn", true, 5, 1},
		{"fattree:k=4", true, 0, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			topology, o, err := sim.Parse(x.spec)
			if err != nil {
				t.Fatal(err)
			}
			conn, err := sim.New(topology, o).Attach(topology.OfType(mad.NodeTypeCA)[0].ID(), 1)
			if err != nil {
				t.Fatal(err)
			}
			var silent mad.DirectedRoute
			e := engine.New(lossy{Transport: conn, lost: func(d *engine.Datagram) bool {
				h := mad.ParseHeader(d.MAD)
				return silent != nil && h.Attribute == mad.AttrGeneralInfo.ID && mad.RouteOf(d.MAD).String() == silent.String()
			}}, engine.Options{})
			defer e.Close()
			f, err := discover.Sweep(t.Context(), e, discover.Options{PlainSpeeds: true})
			if err != nil {
				t.Fatal(err)
			}
			leaf := f.OfType(mad.NodeTypeSwitch)[1]
			if x.silent {
				silent = leaf.Route()
			}
			a, err := device.ReadAdaptivity(t.Context(), e, f)
			if err != nil || len(a.On) != x.on || len(a.Undetermined) != x.undetermined {
				t.Fatalf("%s: %+v, %v", x.spec, a, err)
			}
			if x.silent && a.Undetermined[0].Switch.GUID() != leaf.GUID() {
				t.Errorf("%s: undetermined at %s", x.spec, a.Undetermined[0].Switch.Label())
			}
			live, _, err := device.ReadRoutes(t.Context(), e, f)
			if err != nil {
				t.Fatal(err)
			}
			choices, err := device.ReadChoices(t.Context(), e, live, a.On)
			if err != nil || len(choices) != 6 {
				t.Fatal(choices, err)
			}
			for s, c := range choices {
				on := x.on == 6 || x.on == 5 && live.Graph().Switches()[s] != &leaf
				if c.Active() != (on && live.Graph().Switches()[s].GUID() != silentGUID(x.silent, leaf.GUID())) || c != nil && c.Unknown != "" {
					t.Errorf("%s: switch %d: %+v", x.spec, s, c)
				}
			}
		})
	}
}

func silentGUID(silent bool, guid mad.GUID) mad.GUID {
	if silent {
		return guid
	}
	return 0
}

// BenchmarkReadAdaptiveRoutes reads the tables of a simulated fabric of 11,664 hosts and 1,620
// switches, with adaptive routing and without: seconds, and the memory that is live afterwards.
func BenchmarkReadAdaptiveRoutes(b *testing.B) {
	for _, spec := range []string{"ar", "static"} {
		b.Run(spec, func(b *testing.B) {
			text := "pgft:m=18/18/36,w=1/18/18,p=1/1/1"
			if spec == "ar" {
				text += ",ar=updn"
			}
			topology, o, err := sim.Parse(text)
			if err != nil {
				b.Fatal(err)
			}
			conn, err := sim.New(topology, o).Attach(topology.OfType(mad.NodeTypeCA)[0].ID(), 1)
			if err != nil {
				b.Fatal(err)
			}
			e := engine.New(conn, engine.Options{})
			defer e.Close()
			f, err := discover.Sweep(b.Context(), e, discover.Options{})
			if err != nil {
				b.Fatal(err)
			}
			if _, _, err := device.ReadAdaptiveRoutes(b.Context(), e, f, nil); err != nil { // the subnet makes its tables
				b.Fatal(err)
			}
			for b.Loop() {
				r, _, err := device.ReadAdaptiveRoutes(b.Context(), e, f, nil)
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				b.ReportMetric(float64(m.HeapAlloc)/1e6, "MB-heap")
				runtime.KeepAlive(r)
				b.StartTimer()
			}
		})
	}
}

package builtins

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/afero"

	"fabsh/builtins/audits"
	"fabsh/builtins/script"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// vendorRequests counts the requests for a vendor's attributes that reach the agents of a
// simulated subnet, by attribute.
type vendorRequests struct {
	mu    sync.Mutex
	count map[string]int
}

func (v *vendorRequests) seen(_ mad.GUID, h mad.Header) {
	if h.Attribute < 0xff00 && !h.Class.IsVendor() {
		return
	}
	name := fmt.Sprintf("%v %#x", h.Class, uint16(h.Attribute))
	if a := mad.Lookup(h.Class.Family(), h.Attribute); a != nil {
		name = a.Name
	}
	v.mu.Lock()
	v.count[name]++
	v.mu.Unlock()
}

// take returns the counts, and forgets them.
func (v *vendorRequests) take() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var list []string
	for _, name := range slices.Sorted(maps.Keys(v.count)) {
		list = append(list, fmt.Sprintf("%s %d", name, v.count[name]))
	}
	clear(v.count)
	return strings.Join(list, ", ")
}

// uncapable is a transport on which GeneralInfo and ClassPortInfo of the vendor's classes
// announce nothing.
type uncapable struct{ engine.Transport }

func (u uncapable) Recv(d *engine.Datagram) error {
	err := u.Transport.Recv(d)
	if err != nil || len(d.MAD) < mad.Size {
		return err
	}
	switch h := mad.ParseHeader(d.MAD); {
	case h.Class.Family() == mad.ClassSubn && h.Attribute == mad.AttrGeneralInfo.ID:
		clear(d.MAD[h.DataOffset():][:mad.AttrGeneralInfo.Size])
	case h.Class == mad.ClassVendor0A && h.Attribute == mad.AttrVendor0AClassPortInfo.ID:
		clear(d.MAD[h.DataOffset():][:mad.AttrVendor0AClassPortInfo.Size])
	case h.Class == mad.ClassVendor0C && h.Attribute == mad.AttrVendor0CClassPortInfo.ID:
		h.Status = mad.StatusBadMethodAttribute
		h.Put(d.MAD)
	}
	return nil
}

// withNodes returns the topology with other NodeInfo.
func withNodes(f *fabric.Fabric, change func(info *mad.NodeInfo)) *fabric.Fabric {
	b := fabric.NewBuilder()
	for i := range f.Nodes() {
		info := *f.Nodes()[i].Info()
		change(&info)
		b.AddNode(fabric.NodeSpec{Info: info, Name: f.Nodes()[i].Name()})
	}
	for i := range f.Ports() {
		if p := &f.Ports()[i]; p.Peer() != nil {
			_ = b.Link(p.Node().ID(), p.Num(), p.Peer().Node().ID(), p.Peer().Num()) // again from the other end
		}
	}
	return b.Build()
}

// vendorSessions are what users do with a fabric.
var vendorSessions = []struct {
	name string
	run  func(t *testing.T, f *fixture)
}{
	{"discover", func(t *testing.T, f *fixture) { runOn(t, f, "discover()") }},
	{"discover extended", func(t *testing.T, f *fixture) { runOn(t, f, "discover(extended=True)") }},
	{"audit", func(t *testing.T, f *fixture) { audited(t, f, audits.RunOptions{}) }},
	{"deep audit", func(t *testing.T, f *fixture) { audited(t, f, audits.RunOptions{}, "--deep") }},
	{"snapshot", func(t *testing.T, f *fixture) {
		swept, err := topology.SweepQuietly(t.Context(), f.Runtime)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := audits.ReadRoutes(t.Context(), f.Runtime, swept, true); err != nil {
			t.Fatal(err)
		}
		if _, err := audits.ReadAnswers(t.Context(), f.Runtime, swept); err != nil {
			t.Fatal(err)
		}
	}},
	{"page", func(t *testing.T, f *fixture) { runOn(t, f, "report(deep=True)") }},
	{"reports", func(t *testing.T, f *fixture) {
		for _, r := range script.Reports.Shipped() {
			if r.Name == "jobs" || r.Name == "suspects" { // it requires a file
				continue
			}
			words := map[string][]string{"ibroute": {"2"}, "ibtracert": {"1", "3"}, "perfquery": {"2"}, "saquery": {"NR"}, "path": {"1", "3"}, "find": {"1"}, "impact": {"1"}}[r.Name]
			if out := f.report(r.Name, words...); strings.Contains(out, "[exit status 2]") || strings.Contains(out, "[exit status 3]") {
				t.Errorf("%s: %s", r.Name, out)
			}
		}
	}},
	{"exporter", func(t *testing.T, f *fixture) {
		kept := new(audit.State)
		for range 2 {
			audited(t, f, audits.RunOptions{Kept: kept, Once: true}, "counters", "links", "--over=last")
			if _, err := audits.AdaptiveMetrics(t.Context(), f.Runtime, func(string) bool { return true }); err != nil {
				t.Error(err)
			}
		}
	}},
	{"top", func(t *testing.T, f *fixture) {
		runOn(t, f, "discover()")
		if _, err := audits.ReadAdaptivity(t.Context(), f.Runtime, topology.EnvOf(f.Runtime).Current.Fabric); err != nil {
			t.Error(err)
		}
	}},
	{"tables", func(t *testing.T, f *fixture) {
		runOn(t, f, `f = discover()
get_ar(f.switches)
get_plft(f.switches)
get_routes(f, adaptive=True).verify()
set_lft(f.switches[0], get_lft(f.switches[0]))
catch(reg_get, "MTMP", f.switches)
catch(smp_get, "VirtualizationInfo", f.ports[0])`)
	}},
}

func runOn(t *testing.T, f *fixture, code string) {
	t.Helper()
	if _, explained, _ := f.run(code); explained != "" {
		t.Errorf("%s: %s", code, explained)
	}
}

// TestVendorRequests: over whole sessions, devices of NVIDIA that announce nothing get
// GeneralInfo alone, once each, and ClassPortInfo of the vendor's classes; devices of another
// vendor get no request of NVIDIA's.
func TestVendorRequests(t *testing.T) {
	nothing := []string{"GeneralInfo", "ClassPortInfo"}
	for _, test := range []struct {
		name string
		info func(info *mad.NodeInfo) // nil: NVIDIA's
		want []string                 // attributes; GeneralInfo at most once for each node
	}{
		{"no capability", nil, nothing},
		{"older devices", func(info *mad.NodeInfo) { info.DeviceID = 0xbd36 }, nothing},
		{"another vendor", func(info *mad.NodeInfo) {
			info.VendorID = 0x001175
			for _, guid := range []*mad.GUID{&info.NodeGUID, &info.PortGUID, &info.SystemImageGUID} {
				*guid = 0x001175<<40 | *guid&(1<<40-1)
			}
		}, nil},
	} {
		for _, s := range vendorSessions {
			t.Run(test.name+"/"+s.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					topo, o, err := sim.Parse("fattree:k=4,registers=yes,ar=updn,vports=2")
					if err != nil {
						t.Fatal(err)
					}
					if test.info != nil {
						topo = withNodes(topo, test.info)
					}
					subnet := sim.New(topo, o)
					sent := &vendorRequests{count: map[string]int{}}
					subnet.Programs.Watch(sent.seen)
					conn, err := subnet.Attach(topo.OfType(mad.NodeTypeCA)[0].ID(), 1)
					if err != nil {
						t.Fatal(err)
					}
					e := engine.New(uncapable{conn}, engine.Options{Write: true, Keys: smKey})
					defer e.Close()
					f := &fixture{fs: afero.NewMemMapFs()}
					if f.Session, err = NewSession(SessionOptions{Facts: topology.Facts{Engine: e, Write: true}, Stdout: &f.stdout, Stderr: &f.stderr, FS: f.fs, Dir: "/work"}); err != nil {
						t.Fatal(err)
					}
					defer f.Close()
					s.run(t, f)
					sent.mu.Lock()
					if n := sent.count["GeneralInfo"]; n > len(topo.Nodes()) {
						t.Errorf("GeneralInfo was requested %d times of %d nodes", n, len(topo.Nodes()))
					}
					sent.mu.Unlock()
					for name := range sent.count {
						if !slices.Contains(test.want, name) {
							t.Errorf("sent %s, want %s", sent.take(), test.want)
							break
						}
					}
				})
			})
		}
	}
}

// hostile is a transport to devices that answer queries of registers otherwise
// than they were asked.
type hostile struct {
	engine.Transport
	spoil func(m []byte)
	sent  int // requests about registers
}

func (h *hostile) Send(d *engine.Datagram) error {
	if isRegister(d.MAD) {
		h.sent++
	}
	return h.Transport.Send(d)
}

func (h *hostile) TrySend(d *engine.Datagram) (bool, error) { return true, h.Send(d) }

func (h *hostile) Recv(d *engine.Datagram) error {
	if err := h.Transport.Recv(d); err != nil {
		return err
	}
	if isRegister(d.MAD) && h.spoil != nil {
		d.MAD = bytes.Clone(d.MAD)
		h.spoil(d.MAD)
	}
	return nil
}

func isRegister(m []byte) bool {
	h := mad.ParseHeader(m)
	return h.Class == mad.ClassVendor0A || h.Class.Family() == mad.ClassSubn && h.Attribute == mad.AttrMlnxAccessRegister.ID
}

// TestHostileRegisters: an answer that is malformed, or about something else, is an
// error of its target and no value; text is harmless.
func TestHostileRegisters(t *testing.T) {
	const bySMP, byGMP = `catch(reg_get, "MTMP", dr("0,1"))`, `catch(reg_get, "MTMP", 1)`
	op := mad.AttrMlnxAccessRegister.Offset()
	content := mad.AttrAccessRegister.Offset() + 12
	for _, tt := range []struct {
		what, ask string
		spoil     func(m []byte)
		want      string
	}{
		{"another register", bySMP, func(m []byte) { m[op+4], m[op+5] = 0x90, 0x20 }, "for another register"},
		{"a length of 0", bySMP, func(m []byte) { m[op+16], m[op+17] = 0x18, 0 }, "for another register, or malformed"},
		{"a length beyond the datagram", bySMP, func(m []byte) { m[op+16], m[op+17] = 0x1f, 0xff }, "malformed"},
		{"no register behind it", bySMP, func(m []byte) { m[op+16] = 0 }, "malformed"},
		{"a write", bySMP, func(m []byte) { m[op+6] = 0x82 }, "malformed"},
		{"a status", bySMP, func(m []byte) { m[op+2] = 7 }, "bad parameter"},
		{"a status of no name", bySMP, func(m []byte) { m[op+2] = 0x33 }, "unknown(51)"},
		{"not supported", bySMP, func(m []byte) { m[op+2] = 4 }, "does not have register MTMP"},
		{"another register, by GMP", byGMP, func(m []byte) { m[22], m[23] = 0x90, 0x20 }, "for another register"},
		{"another block", byGMP, func(m []byte) { m[33] = 1 }, "for another register"},
		{"not supported, by GMP", byGMP, func(m []byte) { m[5] = 0x14 }, "does not have register MTMP"},
		{"another page", `catch(reg_get, "PDDR", 1, 2, page_select="module")`, func(m []byte) { m[content+7] = 6 }, "for another part"},
		{"a text that clears the screen", `reg_get("MTMP", 1)`, func(m []byte) { copy(m[content+24:], "\x1b[2J\n") }, `\x1b[2J\n`},
		{"all ones", `reg_get("PPCNT", 1, 2, grp="rs_fec_histogram").hist[0]`, func(m []byte) {
			for i := content + 8; i < len(m); i++ {
				m[i] = 0xff
			}
		}, "18446744073709551615"},
		{"a module of no kind", `catch(reg_get, "EEPROM", 1, 2)`, func(m []byte) { m[content+16] = 0x77 }, "unknown layout of modules of kind unknown(119)"},
		{"a module that is not there", `catch(reg_get, "EEPROM", 1, 2)`, func(m []byte) { m[content+3] = 3 }, "not connected"},
	} {
		h := &hostile{spoil: tt.spoil}
		onSimWith(t, "registers=yes", nil, func(tr engine.Transport) engine.Transport { h.Transport = tr; return h }, nil, func(t *testing.T, f *fixture) {
			if got, _, _ := f.run("show(" + tt.ask + ")"); !strings.Contains(got, tt.want) || strings.Contains(got, "\x1b") {
				t.Errorf("%s: %q, want %q", tt.what, got, tt.want)
			}
		})
	}
}

// TestRegisterWritesAreNotSent: nothing of a write reaches the transport, in a
// session that may write too.
func TestRegisterWritesAreNotSent(t *testing.T) {
	h := new(hostile)
	onSimWith(t, "registers=yes", nil, func(tr engine.Transport) engine.Transport { h.Transport = tr; return h }, nil, func(t *testing.T, f *fixture) {
		for _, code := range []string{
			`mad_send("MlnxAccessRegister", dr("0,1"), method="get", operation_type=1, operation_len=4, register_id=0x900a, register_method="write", operation_class=1, register_type=3, register_len=9)`,
			`mad_send("MlnxAccessRegister", dr("0,1"), method="set", register_id=0x900a, register_method="write")`,
			`mad_send(0xff52, 1, mgmt_class=0x81, method="get", data="0804 0000 900a 0201", header={})`,
			`mad_send("MlnxAccessRegister", dr("0,1"), method="get", register_id=0x900a, register_method="write", class_version=7, header={})`,
			`mad_set("AccessRegister", 1, modifier=0x5008, data="00")`,
			`mad_get("AccessRegister", 1, modifier=0x9052)`,
			`mad_set("ConfigSpace", 1, mgmt_class=0x0a, data="00")`,
			`reg_get("PPCNT", 1, 2, grp=0x12, clr=1)`,
		} {
			if _, explained, status := f.run(code); status != 2 || !strings.Contains(explained, "refused") {
				t.Errorf("%s: status %d, %s", code, status, explained)
			}
		}
		if h.sent > 0 {
			t.Errorf("%d datagrams were sent", h.sent)
		}
	})
}

// TestVendorNotices: the subscriptions and notices of a vendor's events have its numbers,
// and the old names of fields and attributes are understood.
func TestVendorNotices(t *testing.T) {
	const code = `
sa_set("InformInfo", lid_range_begin=0xffff, subscribe=1, type="all", device_id=66, vendor_id=0x2c9)
r = sa_gettable("InformInfoRecord")[0]
show(r)
print(r.vendor_id, r.device_id, r.node_type, r.producer_type)
sub = sa_subscribe(trap=128)
g = sa_gettable("InformInfoRecord")[1]
print(g.trap_number, g.producer_type, g.node_type, g.vendor_id)
print([x.device_id for x in sa_gettable("InformInfoRecord", device_id=66)])
print(g.replace(node_type="ca").producer_type)
help("InformInfo.NodeType")
print(smp_get("LEDInfo", dr("0"), 1).led_mask)
`
	const want = `subscriber_gid   fe80::2:c903:1000:1
enum             0
gid              ::
lid_range_begin  65535
lid_range_end    0
is_generic       0
subscribe        1
type             all
device_id        0x0042
qpn              0x000000
resp_time_value  0
vendor_id        0x0002c9
713 66 713 713
128 all all 16777215
[66]
ca
InformInfo.producer_type (ProducerType): 24 bits at bit 264 (byte 33), section 13.4.8.3 of the specification
ProducerType is the kind of node where the event occurs; of a vendor's traps, the vendor's OUI.
Words: ca, switch, router, subnet_management, all.
A Set writes it.
Queries can select records by it: bit 12 of the component mask.
0
`
	onSim(t, "ring:n=3", nil, func(t *testing.T, f *fixture) {
		out, explained, _ := f.run(code)
		if diff := cmp.Diff(want, out); diff != "" || explained != "" {
			t.Errorf("(-want +got):\n%s%s", diff, explained)
		}
	})
}

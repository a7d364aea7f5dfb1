package builtins

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

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
			if r.Name == "jobs" { // it requires a file
				continue
			}
			words := map[string][]string{"ibroute": {"2"}, "ibtracert": {"1", "3"}, "perfquery": {"2"}, "saquery": {"NR"}}[r.Name]
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
		want []string                 // attributes; the number of GeneralInfo is at most that of nodes
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
					if f.Session, err = NewSession(SessionOptions{Env: topology.Env{Engine: e, Write: true}, Stdout: &f.stdout, Stderr: &f.stderr, FS: f.fs, Dir: "/work"}); err != nil {
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

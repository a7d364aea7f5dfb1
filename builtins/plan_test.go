package builtins

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/builtins/audits"
	"fabsh/builtins/changes"
	"fabsh/builtins/program"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// sentSet is a Set that left the engine.
type sentSet struct {
	Attr     mad.AttributeID
	Modifier uint32
	Route    string
	Data     [64]byte
}

// setTap keeps the Sets that go out.
type setTap struct {
	engine.Transport
	mu   sync.Mutex
	sets []sentSet
}

func (t *setTap) note(d *engine.Datagram) {
	h := mad.ParseHeader(d.MAD)
	if h.Method != mad.MethodSet {
		return
	}
	s := sentSet{Attr: h.Attribute, Modifier: h.Modifier}
	if h.Class == mad.ClassSubnDirected {
		s.Route = mad.RouteOf(d.MAD).String()
	}
	copy(s.Data[:], d.MAD[h.Class.DataOffset():])
	t.mu.Lock()
	t.sets = append(t.sets, s)
	t.mu.Unlock()
}

func (t *setTap) Send(d *engine.Datagram) error { t.note(d); return t.Transport.Send(d) }

func (t *setTap) TrySend(d *engine.Datagram) (bool, error) {
	sent, err := t.Transport.TrySend(d)
	if sent {
		t.note(d)
	}
	return sent, err
}

// maintenance writes all that a plan can hold, reads some of it again, and takes
// ports down.
const maintenance = `
f = discover()
leaf, spine = f.switches[0], f.switches[-1]
host = f.cas[-1]
set_lft(leaf, {60: 1, 40: None, 200: 2})
if get_lft(leaf)[60] != 1 or get_lft(leaf.lid)[40] != None or get_lft(leaf)[200] != 2: fail("LFT reads otherwise")
set_lft(leaf, {60: 2, 61: 3})
set_mft(spine, {0xc000: [1, 2], 0xc001: [3]})
set_sl2vl(leaf, {(1, 2): [3] * 16})
set_sl2vl(host, [1] * 16)
set_vlarb(leaf.ports[2], {"low": [(1, 10)]})
set_pkeys(leaf.ports[2], {1: 0x8001})
set_pkeys(host.ports[1], {1: 0x8002})
if get_pkeys(host.lid)[1] != 0x8002: fail("P_Keys read otherwise")
set_guids(host, {1: 0x1234})
smp_set("SwitchInfo", spine, life_time_value=9)
if smp_get("SwitchInfo", spine.lid).life_time_value != 9: fail("by LID it reads otherwise")
smp_set("PortInfo", leaf, port=2, hoq_life=7)
smp_set("PortInfo", leaf, port=2, vl_high_limit=3)
port_set(leaf.ports[6], speed="edr", width="1x")
port_disable(leaf.ports[6], wait="1h")
if smp_get("PortInfo", leaf, 6).port_physical_state != "disabled": fail("the port is up")
port_disable([leaf.ports[7]], wait="1h")
port_reset(leaf.ports[5], wait="1h")
parallel(lambda p: set_pkeys(p, {2: 0x9000 + p.num}), list(spine.ports), width=3)
set_pkeys(spine.ports[1], {3: 7})
`

// planOf is the plan of a script, and the Sets that left the engine meanwhile.
func planOf(t *testing.T, spec, code string) (*change.Plan, []sentSet) {
	t.Helper()
	_, tr := attachSubnet(t, spec)
	tap := &setTap{Transport: tr}
	e := engine.New(tap, engine.Options{}) // it needs no --write
	defer e.Close()
	s, err := NewSession(SessionOptions{Facts: topology.Facts{Engine: e}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	planning, err := changes.StartRecording(t.Context(), s.Runtime, changes.ProofOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := program.RunCode(t.Context(), s.Interpreter, "m.star", code); err != nil {
		t.Fatal(s.Explain(err))
	}
	p, err := planning.Finish(t.Context(), "m.star")
	if err != nil {
		t.Fatal(err)
	}
	return p, tap.sets
}

// carryOut makes the Sets of p one after the other, as they stand, and keeps what
// went out.
func carryOut(t *testing.T, spec string, p *change.Plan) []sentSet {
	t.Helper()
	_, tr := attachSubnet(t, spec)
	tap := &setTap{Transport: tr}
	e := engine.New(tap, engine.Options{Write: true})
	defer e.Close()
	for i := range p.Sets {
		set := &p.Sets[i]
		to := fabric.Dest{Route: set.Routes[0]}
		var get, put engine.Call
		to.Put(&get, mad.MethodGet, set.Attr, set.Modifier&^(1<<31), nil)
		if err := e.Do(t.Context(), &get); err != nil || get.Err != nil {
			t.Fatal(err, get.Err)
		}
		to.Put(&put, mad.MethodSet, set.Attr, set.Modifier, set.Request(get.Data(), set.New))
		if err := e.Do(t.Context(), &put); err != nil || put.Err != nil {
			t.Fatal(err, put.Err)
		}
	}
	return tap.sets
}

// setsOf are the Sets of a script that runs with --write on a twin.
func setsOf(t *testing.T, spec, code string) []sentSet {
	t.Helper()
	subnet, tr := attachSubnet(t, spec)
	tap := &setTap{Transport: tr}
	snapshotOf(t, subnet, tap, code)
	return tap.sets
}

// bySet puts Sets in an order of their own: the engine sends many at a time.
func bySet(sets []sentSet) []string {
	var lines []string
	for _, s := range sets {
		lines = append(lines, fmt.Sprintf("%#04x %#08x %s %x", uint16(s.Attr), s.Modifier, s.Route, s.Data))
	}
	slices.Sort(lines)
	return lines
}

// TestPlanIsWhatIsWritten: the Sets of a plan are, byte for byte, the Sets of the script that runs
// with --write on a twin; while the plan is made none leaves the engine.
func TestPlanIsWhatIsWritten(t *testing.T) {
	for _, spec := range []string{"fattree:k=8,levels=2", "fattree:k=10,levels=2"} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			p, sent := planOf(t, spec, maintenance)
			if took := time.Since(began); took > time.Minute {
				t.Errorf("the plan waited for what did not happen, %v", took)
			}
			if len(sent) > 0 {
				t.Errorf("while the plan was made, %d Sets were sent, such as %v", len(sent), sent[0])
			}
			// Through its file, as everybody gets it.
			path := filepath.Join(t.TempDir(), "m.plan")
			if err := p.Save(t.Context(), path); err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			loaded, err := change.LoadPlan(bytes.NewReader(data), path)
			if err != nil {
				t.Fatal(err)
			}
			want, got := setsOf(t, spec, maintenance), carryOut(t, spec, loaded)
			if len(want) < 20 {
				t.Fatalf("the script made %d Sets only", len(want))
			}
			if d := cmp.Diff(bySet(want), bySet(got)); d != "" {
				t.Errorf("%s: (-written +planned):\n%s", spec, d)
			}
			again, _ := planOf(t, spec, maintenance)
			if d := cmp.Diff(p, again, cmp.Comparer(func(a, b *mad.Attribute) bool { return a == b })); d != "" {
				t.Errorf("the same script, another plan:\n%s", d)
			}
			for _, s := range p.Sets {
				if !strings.HasPrefix(s.Line, "m.star:") {
					t.Errorf("%s of %s was asked for in line %q", s.Attr.Name, s.Name, s.Line)
				}
			}
		})
	}
}

// TestPlanRefuses: what no plan can hold ends the script, and no Set is sent.
func TestPlanRefuses(t *testing.T) {
	for _, code := range []string{
		`sa_set("ServiceRecord", service_id=1)`,
		`sa_delete("ServiceRecord", service_id=1)`,
		`mad_send("Notice", 1, mgmt_class="subn", method="trap")`,
		`mad_set("PortInfo", dr("0,1"), mgmt_class="subn", modifier=1, hoq_life=3)`,
		`perf_clear("PortCounters", discover().switches[0].ports[1])`,
		`perf_set("PortCounters", discover().switches[0].ports[1], symbol_error_counter=0)`,
		`sa_subscribe(trap_number=64)`,
		`smp_set("PortInfo", dr("0,1"), 1, m_key=5)`,
		`smp_set("SMInfo", dr("0"), modifier=1)`,
		`smp_set("NodeDescription", dr("0,1"), node_string="x")`,
		`sim.unlink("leaf-1/3")`,
	} {
		for _, wrap := range []string{"%s", "plan(lambda: %s)", "plan(lambda: catch(lambda: %s))"} {
			synctest.Test(t, func(t *testing.T) {
				subnet, tr := attachSubnet(t, "fattree:k=4,levels=2")
				tap := &setTap{Transport: tr}
				e := engine.New(tap, engine.Options{Write: true})
				defer e.Close()
				s, err := NewSession(SessionOptions{Facts: topology.Facts{Engine: e, Sim: subnet, Write: true}})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				if wrap == "%s" {
					if _, err := changes.StartRecording(t.Context(), s.Runtime, changes.ProofOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				err = program.RunCode(t.Context(), s.Interpreter, "<test>", fmt.Sprintf(wrap, code))
				if err == nil || audits.ExitStatus(s.Runtime, err) != 2 {
					t.Errorf("%s: %v, status %d", fmt.Sprintf(wrap, code), err, audits.ExitStatus(s.Runtime, err))
				} else if text := s.Explain(err); !strings.Contains(text, "a plan is being made") {
					t.Errorf("%s: %s", fmt.Sprintf(wrap, code), text)
				}
				if len(tap.sets) > 0 {
					t.Errorf("%s: %d Sets were sent", code, len(tap.sets))
				}
			})
		}
	}
}

// TestPlanIsBound: a plan says what has changed since it was made.
func TestPlanIsBound(t *testing.T) {
	onSim(t, "fattree:k=8,levels=2", nil, func(t *testing.T, f *fixture) {
		for _, test := range []struct{ code, want string }{
			{`p.verify()`, ""},
			{`sim.unlink("leaf-1/7"); p.verify()`, "verify: the plan is stale: leaf-1/7 is now down; make the plan again"},
			{`sim.link("leaf-1/7", "spine-3/1"); p.verify()`, "verify: the plan is stale: leaf-1/7 is now up, connected to spine-3/1; make the plan again"},
		} {
			_, explained, status := f.run("p = plan(lambda: set_lft(discover().switches[0], {9: 1})); " + test.code)
			if line, _, _ := strings.Cut(explained, "\n"); line != test.want || status != map[bool]int{true: 0, false: 2}[test.want == ""] {
				t.Errorf("%s: %q, status %d", test.code, explained, status)
			}
		}
	})
}

// TestPlanSettles: a fabric that changes under a plan is told of.
func TestPlanSettles(t *testing.T) {
	onSim(t, "fattree:k=8,levels=2", nil, func(t *testing.T, f *fixture) {
		f.run("f = discover()")
		subnet := f.Env.Sim
		planning, err := changes.StartRecording(t.Context(), f.Runtime, changes.ProofOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := program.RunCode(t.Context(), f.Interpreter, "<test>", `set_lft(discover().switches[0], {9: 1});`); err != nil {
			t.Fatal(err)
		}
		leaf := subnet.NodeGUIDs("leaf-1")[0]
		if err := subnet.Cables.Unlink(leaf, 7); err != nil {
			t.Fatal(err)
		}
		_, err = planning.Finish(t.Context(), "x")
		if want := "the fabric has changed since discover(): leaf-1/7 is now down; discover and plan again"; err == nil || err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
	})
}

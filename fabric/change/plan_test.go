package change_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/change/certificate"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/sa"
	"fabsh/fabric/sim"
	"fabsh/mad"
)

// subnet is a simulated fabric.
func subnet(t testing.TB, spec string) *fabric.Fabric {
	t.Helper()
	f, _, err := sim.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// sample is a plan with a Set of each kind.
func sample(t testing.TB) *change.Plan {
	f := subnet(t, "ring:n=3")
	sw, ca := &f.OfType(mad.NodeTypeSwitch)[0], &f.OfType(mad.NodeTypeCA)[0]
	to := func(c certificate.Change) certificate.Change {
		c.Node, c.Name, c.Routes = sw.GUID(), sw.Name(), []mad.DirectedRoute{{0, 1}}
		return c
	}
	host := func(c certificate.Change) certificate.Change {
		c.Node, c.Port, c.Name, c.Routes = ca.GUID(), 1, ca.Name(), []mad.DirectedRoute{{0}}
		return c
	}
	of := func(b byte, n int) []byte { return bytes.Repeat([]byte{b}, n) }
	return &change.Plan{
		From: "maintenance.star",
		Report: &change.Report{OK: true, Rounds: []change.Extent{{Blocks: 1, Switches: 1, Drain: 1500 * time.Millisecond}, {Lanes: true}}, Pairs: 7, LoadBefore: 3, LoadAfter: 4, NotJudged: []string{"SLs"},
			Effect: &change.Effect{
				OutOfReach: 3, IdleSwitches: []string{"spine-1"}, IdleLinks: 4, AllLinks: 20,
				Links: []string{"switch-1/2 - switch-2/1"}, Managed: true, Engine: "minhop", Basis: "by minhop", Through: 1, Lost: 2, Rerouted: 3, LoadBefore: 4, LoadAfter: 5,
				Split: "a and b", LastPath: "a", Needed: "a/1", CreditLoop: "a loop", LoopBefore: true, Notes: []string{"no lanes"},
			}},
		Base: change.FingerprintOf(f, &sa.SM{LID: 3, Info: &mad.SMInfo{GUID: 0x1234, Priority: 4, SMState: mad.SMStateMaster}}),
		Sets: []certificate.Change{
			to(certificate.Change{Attr: mad.AttrLinearForwardingTable, Old: of(255, 64), New: of(1, 64), Line: "maintenance.star:3:9"}),
			to(certificate.Change{Attr: mad.AttrLinearForwardingTable, Old: of(1, 64), New: of(2, 64), Line: "maintenance.star:4:9"}),
			to(certificate.Change{Attr: mad.AttrSLtoVLMappingTable, Modifier: 0x102, Old: of(0, 8), New: of(0x11, 8)}),
			host(certificate.Change{Attr: mad.AttrPKeyTable, Old: of(0, 64), New: of(7, 64)}),
			to(certificate.Change{Attr: mad.AttrPortInfo, Modifier: 1<<31 | 2}.With("port_physical_state", 5, 3)),
			to(certificate.Change{Attr: mad.AttrSwitchInfo}.With("life_time_value", 18, 18)),
			to(certificate.Change{Attr: mad.AttrLinearForwardingTable, Modifier: 1, Old: of(255, 64), New: of(3, 64)}),
			to(certificate.Change{Attr: mad.AttrLinearForwardingTable, Modifier: 2, Old: of(255, 64), New: of(4, 64)}),
		},
		Certificate: &certificate.Certificate{
			Lanes:  15,
			Rounds: []certificate.Round{{Writes: []certificate.Write{{Change: 1, Data: of(0x11, 8)}}}, {Writes: []certificate.Write{{Change: 0, Data: of(9, 64)}, {Change: 4, Data: of(3, 64)}, {Change: 5, Data: of(4, 64)}}, Drain: time.Second}, {Writes: []certificate.Write{{Change: 0, Data: of(2, 64)}}}},
			Ranks:  certificate.Pack([]uint32{1, 300, 2}), Orders: [][]byte{certificate.Pack([]uint32{7}), certificate.Pack(nil)},
		},
	}
}

func TestSaveLoad(t *testing.T) {
	want := sample(t)
	path := filepath.Join(t.TempDir(), "m.plan")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := want.Save(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, want 0600", st.Mode())
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got, err := change.LoadPlan(bytes.NewReader(data), "m.plan")
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	want.Report, want.Recorded = nil, want.Report // only the file has it
	if d := cmp.Diff(want, got, cmp.Comparer(func(a, b *mad.Attribute) bool { return a == b })); d != "" {
		t.Errorf("read back it differs (-written +read):\n%s", d)
	}
}

// TestSetWithoutEffect: a plan with a Set that changes no field is read back.
func TestSetWithoutEffect(t *testing.T) {
	p := sample(t)
	size := mad.AttrSwitchInfo.Size
	p.Sets[5].Fields, p.Sets[5].Old, p.Sets[5].New = []string{}, make([]byte, size), make([]byte, size)
	if again := reread(t, p, same); fileOf(t, again) != fileOf(t, p) || len(again.Changes()) != len(p.Changes()) {
		t.Errorf("read back: %+v", again.Sets[5])
	}
}

// TestChanges: Sets of one block are one change, and what ends as it began is none.
func TestChanges(t *testing.T) {
	p := sample(t)
	var got []string
	for _, c := range p.Changes() {
		got = append(got, strings.TrimSpace(c.Attr.Name+" "+c.Line))
	}
	want := []string{"LinearForwardingTable maintenance.star:3:9", "SLtoVLMappingTable", "P_KeyTable", "PortInfo", "LinearForwardingTable", "LinearForwardingTable"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if c := p.Changes()[0]; c.Old[0] != 255 || c.New[0] != 2 {
		t.Errorf("the first block goes from %d to %d", c.Old[0], c.New[0])
	}
}

// TestPorts: no node loses its last path, a switch's side is disabled, few links go
// down, and the tables lead over none of them.
func TestPorts(t *testing.T) {
	for _, test := range []struct {
		spec  string
		node  int // switches first
		ports []uint32
		sm    *sa.SM
		want  string
		reset bool
	}{
		{spec: "ring:n=3", ports: []uint32{2, 3}, want: "ok: 2 Sets on 1 node; no forwarding table changes", reset: true},
		{spec: "fattree:k=24,levels=2", ports: []uint32{13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23}, want: "not ok: 11 links go down; the maximum is 10: 10, or 0.5 % of the ports with a link", reset: true},
		{"ring:n=3", 0, []uint32{2}, nil, "ok: 1 Set on 1 node; no forwarding table changes", false},
		{"ring:n=3", 0, []uint32{2, 3}, nil, "not ok: \"switch-1\" (0x0002c90300100000) and \"switch-2\" (0x0002c90300100010) would lose the last path between them", false},
		{"ring:n=3", 3, []uint32{1}, nil, "not ok: node-0001 HCA-1/1: port of a ca, which perhaps only its host can enable again; disable switch-1/1, at the other end", false},
		{"fattree:k=24,levels=2", 0, []uint32{13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23}, nil, "not ok: 11 links go down; the maximum is 10: 10, or 0.5 % of the ports with a link", false},
	} {
		f := subnet(t, test.spec)
		n := &f.Nodes()[test.node]
		p := &change.Plan{Base: change.FingerprintOf(f, test.sm)}
		to := mad.PortPhysicalStateDisabled
		if test.reset {
			to = mad.PortPhysicalStatePolling
		}
		for _, port := range test.ports {
			p.Sets = append(p.Sets, certificate.Change{Attr: mad.AttrPortInfo, Modifier: port, Node: n.GUID()}.With("port_physical_state", 5, uint64(to)))
		}
		g, err := graph.New(f, graph.BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := p.Prove(t.Context(), &change.Tables{Live: routes.New(g, 0)})
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Line(r); got != test.want {
			t.Errorf("%s: ports %v: %s\nwant %s", test.spec, test.ports, got, test.want)
		}
	}
}

// TestSince: what has changed is told by names.
func TestSince(t *testing.T) {
	old := change.FingerprintOf(subnet(t, "ring:n=3"), nil)
	now := change.FingerprintOf(subnet(t, "ring:n=3"), &sa.SM{LID: 3, Info: &mad.SMInfo{GUID: 1, SMState: mad.SMStateMaster}})
	now.Links = slices.DeleteFunc(now.Links, func(l change.Link) bool { return l.A.Node == 0 && l.A.Port == 2 })
	now.Nodes[4].LIDs = []change.PortLID{{Port: 1, LID: 9}}
	now.Nodes[5].GUID, now.Nodes[5].Name = 77, "new"
	want := []string{
		"new was added", "node-0002 HCA-1/1 now has LID 9; it had none", "node-0003 HCA-1 was removed", "switch-1/2 is now down",
		"there is now a subnet manager: GUID 0x0000000000000001 at LID 3, priority 0, state master",
	}
	if d := cmp.Diff(want, old.Since(&now)); d != "" {
		t.Error(d)
	}
	if same := old.Since(&old); same != nil {
		t.Errorf("from itself it differs: %q", same)
	}
}

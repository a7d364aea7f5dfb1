package plan_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/change/plan"
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
func sample(t testing.TB) *plan.Plan {
	f := subnet(t, "ring:n=3")
	sw, ca := &f.OfType(mad.NodeTypeSwitch)[0], &f.OfType(mad.NodeTypeCA)[0]
	to := plan.Target{GUID: sw.GUID(), Name: sw.Name(), Routes: []mad.DirectedRoute{{0, 1}}}
	host := plan.Target{GUID: ca.GUID(), Port: 1, Name: ca.Name(), Routes: []mad.DirectedRoute{{0}}}
	of := func(b byte, n int) []byte { return bytes.Repeat([]byte{b}, n) }
	return &plan.Plan{
		From:   "maintenance.star",
		Report: &plan.Report{OK: true, Rounds: []plan.Round{{Blocks: 1, Switches: 1, Drain: 1500 * time.Millisecond}, {Lanes: true}}, Pairs: 7, LoadBefore: 3, LoadAfter: 4, NotJudged: []string{"SLs"}},
		Base:   plan.FingerprintOf(f, &sa.SM{LID: 3, Info: &mad.SMInfo{GUID: 0x1234, Priority: 4, SMState: mad.SMStateMaster}}),
		Sets: []plan.Set{
			{Attr: mad.AttrLinearForwardingTable, Target: to, Old: of(255, 64), New: of(1, 64), Line: "maintenance.star:3:9"},
			{Attr: mad.AttrLinearForwardingTable, Target: to, Old: of(1, 64), New: of(2, 64), Line: "maintenance.star:4:9"},
			{Attr: mad.AttrSLtoVLMappingTable, Modifier: 0x102, Target: to, Old: of(0, 8), New: of(0x11, 8)},
			{Attr: mad.AttrPKeyTable, Target: host, Old: of(0, 64), New: of(7, 64)},
			{Attr: mad.AttrPortInfo, Modifier: 1<<31 | 2, Target: to, Fields: []plan.Field{{Name: "port_physical_state", Old: 5, New: 3}}},
			{Attr: mad.AttrSwitchInfo, Target: to, Fields: []plan.Field{{Name: "life_time_value", Old: 18, New: 18}}},
		},
	}
}

func TestSaveLoad(t *testing.T) {
	want := sample(t)
	path := filepath.Join(t.TempDir(), "m.plan")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := want.Save(path); err != nil {
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
	got, err := plan.Load(bytes.NewReader(data), "m.plan")
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	if d := cmp.Diff(want, got, cmp.Comparer(func(a, b *mad.Attribute) bool { return a == b })); d != "" {
		t.Errorf("read back it differs (-written +read):\n%s", d)
	}
}

// TestChanges: Sets of one block are one change, and what ends as it began is none.
func TestChanges(t *testing.T) {
	p := sample(t)
	var got []string
	for _, c := range p.Changes() {
		got = append(got, strings.TrimSpace(c.Attr.Name+" "+strings.Join(c.Lines, " ")))
	}
	want := []string{"LinearForwardingTable maintenance.star:3:9 maintenance.star:4:9", "SLtoVLMappingTable", "P_KeyTable", "PortInfo"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if c := p.Changes()[0]; c.Old[0] != 255 || c.New[0] != 2 {
		t.Errorf("the first block goes from %d to %d", c.Old[0], c.New[0])
	}
}

package builtins

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/audit"
	"fabsh/fabric/sim"
	"fabsh/mad"
)

// TestSilentKind: where nobody answers registers, some of each kind of device are
// asked, and the coverage tells of all; where one answers, everybody is asked.
func TestSilentKind(t *testing.T) {
	const spec = "fattree:k=8,levels=2,registers=yes" // 8 and 4 switches of a kind, 32 CAs
	for _, test := range []struct {
		name    string
		answers int // CAs
		want    audit.Row
		most    uint64 // datagrams
	}{
		{"nobody", 0, audit.Row{Audit: "health", Attribute: "MGIR", Asked: 44, TimedOut: 44}, 450},
		{"half", 16, audit.Row{Audit: "health", Attribute: "MGIR", Asked: 44, Answered: 16, TimedOut: 28}, 640},
	} {
		t.Run(test.name, func(t *testing.T) {
			onSim(t, spec, nil, func(t *testing.T, f *fixture) {
				answers := test.answers
				base, err := f.Sweep(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				for i := range base.Nodes() {
					n := &base.Nodes()[i]
					if !n.IsSwitch() && answers > 0 {
						answers--
						continue
					}
					for num := range n.NumPorts() + 1 {
						if err := f.env.Sim.LosePackets(sim.End{Node: n.ID(), Num: num}, 100, mad.AttrAccessRegister.ID); err != nil && num > 0 {
							t.Fatal(err)
						}
					}
				}
				r := audited(t, f, AuditRun{}, "health", "--over=1s")
				_, rows := status(f, r)
				rows = slices.DeleteFunc(rows, func(r audit.Row) bool { return r.Attribute != "MGIR" })
				if diff := cmp.Diff([]audit.Row{test.want}, rows); diff != "" {
					t.Errorf("coverage -want +got\n%s", diff)
				}
				if r.Datagrams > test.most {
					t.Errorf("%d datagrams, %d at most are expected", r.Datagrams, test.most)
				}
			})
		})
	}
}

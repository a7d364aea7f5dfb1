package builtins

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/builtins/audits"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/mad"
)

// TestMembersOfModel: of a finding about several nodes, only those that the baseline has, or that
// are acknowledged, are left out.
func TestMembersOfModel(t *testing.T) {
	onSim(t, "fattree", nil, func(t *testing.T, f *fixture) {
		rename := func(from, to int) *fabric.Fabric {
			for n := from; n <= to; n++ {
				base := topology.EnvOf(f.Runtime).Current.Fabric
				guid := end(t, base, fmt.Sprintf("node-%04d HCA-1", n), 1).Node
				if err := f.Env.Sim.Edit.Node(guid, func(name *string, _ *mad.NodeInfo, _ *mad.SwitchInfo) {
					*name = "MT4129 ConnectX7   Mellanox Technologies"
				}); err != nil {
					t.Fatal(err)
				}
			}
			swept, err := topology.SweepQuietly(t.Context(), f.Runtime)
			if err != nil {
				t.Fatal(err)
			}
			return swept
		}
		rename(1, 0)
		two := rename(11, 12)
		seven := rename(13, 17)
		var got strings.Builder
		check := func(what string, baseline *fabric.Fabric, ids ...string) []string {
			begin := func(fabric.Subnet) (acks audit.Acks, err error) {
				for _, id := range ids {
					acks = append(acks, audit.Ack{Pattern: id, Until: time.Now().AddDate(0, 0, 1), Count: 1})
				}
				return acks, nil
			}
			r := audited(t, f, audits.RunOptions{Baseline: baseline, Begin: begin}, "identity")
			fmt.Fprintf(&got, "%s: %d known, %d acked\n%s", what, r.Known, len(r.Acked), told(r))
			if len(r.Findings) == 0 {
				return nil
			}
			return append([]string{r.Findings[0].ID()}, r.Findings[0].Absorbed...)
		}
		ids := check("two in the baseline", two)
		check("all in the baseline", seven)
		check("three acked", nil, ids[1:4]...)
		check("five acked, two in the baseline", two, ids[2:]...)
		check("all acked", nil, ids...)
		const text = "info name.default MT4129 ConnectX7   Mellanox Technologies: the name is a vendor default, which identifies no node; and 6 more of the model; "
		want := "two in the baseline: 0 known, 0 acked\n" + text + "2 of 7 also in the baseline\n" +
			"all in the baseline: 1 known, 0 acked\n" +
			"three acked: 0 known, 0 acked\n" + text + "3 of 7 acknowledged\n" +
			"five acked, two in the baseline: 0 known, 1 acked\n" +
			"all acked: 0 known, 1 acked\n"
		if diff := cmp.Diff(want, got.String()); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
}

// TestNotJudgedIsNotGone: a finding whose check was not done in a later run is not gone.
func TestNotJudgedIsNotGone(t *testing.T) {
	onSim(t, "ring:n=2", nil, func(t *testing.T, f *fixture) {
		write(t, f.fs, "/work/a.star", `
def audit(fabric):
    perf_rates(fabric.switches[0].ports[1], over = "last")
    if len(fabric.nodes[0].name) != 5:
        finding("a.fault", fabric, "found", severity = "info")
        finding("a.other", fabric, "found", severity = "info")
    else:
        not_judged("a.fault", "no answer")
`)
		kept := new(audit.State)
		name := func(text string) {
			guid := topology.EnvOf(f.Runtime).Current.Fabric.Nodes()[0].GUID()
			if err := f.Env.Sim.Edit.Node(guid, func(name *string, _ *mad.NodeInfo, _ *mad.SwitchInfo) { *name = text }); err != nil {
				t.Fatal(err)
			}
		}
		var notes []string
		for i := range 3 {
			time.Sleep(10 * time.Minute)
			if i > 0 {
				name([]string{"", "short", "longer"}[i])
			}
			r := audited(t, f, audits.RunOptions{Kept: kept}, "a.star")
			notes = append(notes, strings.Join(r.Notes, ", "))
			if i == 2 && (len(r.Findings) != 2 || !r.Findings[0].Since.Before(r.Findings[1].Since)) {
				t.Errorf("findings %v", r.Findings)
			}
		}
		want := []string{"counters were not judged: no earlier run of this job has read them", "1 finding is gone since the previous run: a.other fabric", ""}
		if diff := cmp.Diff(want, notes); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
}

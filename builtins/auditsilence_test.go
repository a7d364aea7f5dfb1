package builtins

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/builtins/audits"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// TestSilentKind: where nobody answers registers, some of each kind of device are
// asked, and the coverage tells of all; where one answers, everybody is asked.
func TestSilentKind(t *testing.T) {
	const spec = "fattree:k=8,levels=2,registers=yes" // 8 and 4 switches of a kind, 32 CAs
	for _, test := range []struct {
		name    string
		answers int // CAs
		want    []audit.Row
		lacked  string
		most    uint64 // datagrams
	}{
		{"nobody", 0, nil, "MGIR: no answer to 44 of 44 requests", 450},
		{"half", 16, nil, "MGIR: no answer to 28 of 44 requests", 670},
	} {
		t.Run(test.name, func(t *testing.T) {
			onSim(t, spec, nil, func(t *testing.T, f *fixture) {
				answers := test.answers
				base, err := topology.SweepQuietly(context.Background(), f.Runtime)
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
						if err := f.Env.Sim.Faults.LosePackets(sim.End{Node: n.ID(), Num: num}, 100, mad.AttrAccessRegister.ID); err != nil && num > 0 {
							t.Fatal(err)
						}
					}
				}
				r := audited(t, f, audits.RunOptions{}, "health", "--over=1s")
				_, rows := statusOf(f, r)
				rows = slices.DeleteFunc(rows, func(r audit.Row) bool { return r.Attribute != "MGIR" })
				if diff := cmp.Diff(test.want, rows); diff != "" {
					t.Errorf("coverage -want +got\n%s", diff)
				}
				if len(r.Unjudged) != 8 || r.Unjudged[0].Lacked != test.lacked || r.Complete() || !r.Answered() {
					t.Errorf("not judged: %v; want 8 checks that lack %s", r.Unjudged, test.lacked)
				}
				if r.Datagrams > test.most {
					t.Errorf("%d datagrams, %d at most are expected", r.Datagrams, test.most)
				}
			})
		})
	}
}

// TestSilentOwnPort: a sweep that does not get beyond its own port is no whole one, live or
// kept in a file; nor is a file of a sweep that saw the fabric change.
func TestSilentOwnPort(t *testing.T) {
	want := []audit.Row{{Audit: "sweep", Attribute: "PortInfo", Asked: 1, TimedOut: 1}}
	x := &troubled{attr: mad.AttrPortInfo, lose: true}
	wrap := func(tr engine.Transport) engine.Transport { x.Transport = tr; return x }
	onSimWith(t, "ring:n=2", nil, wrap, nil, func(t *testing.T, f *fixture) {
		swept, err := topology.SweepQuietly(t.Context(), f.Runtime)
		if err != nil {
			t.Fatal(err)
		}
		file := ofFile(t, swept)
		defer file.Close()
		for _, of := range []*fixture{f, file} {
			code, rows := statusOf(of, audited(t, of, audits.RunOptions{}, "links"))
			if diff := cmp.Diff(want, rows); diff != "" || code != 3 {
				t.Errorf("live %v: status %d, coverage -want +got\n%s", of == f, code, diff)
			}
		}
	})
	b := fabric.NewBuilder()
	b.AddNode(fabric.NodeSpec{Info: mad.NodeInfo{NodeType: mad.NodeTypeSwitch, NodeGUID: 1, PortGUID: 1, NumPorts: 2}, Name: "switch-1"})
	b.AddProblem(fabric.Problem{Kind: fabric.ProblemChanged, Text: "switch-1 was restarted"})
	file := ofFile(t, b.Build())
	defer file.Close()
	r := audited(t, file, audits.RunOptions{}, "links")
	if code := audits.RunStatus(r, audit.Warning); code != 3 || !slices.Equal(r.Notes, []string{"switch-1 was restarted"}) {
		t.Errorf("a fabric that changed: status %d, notes %q", code, r.Notes)
	}
}

// TestUnreadLID: of a port whose PortInfo a sweep did not get nobody says that it has no LID.
func TestUnreadLID(t *testing.T) {
	onSim(t, "ring:n=2", nil, func(t *testing.T, f *fixture) {
		base, err := topology.SweepQuietly(t.Context(), f.Runtime)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Env.Sim.Faults.LosePackets(sim.End{Node: base.NodeByName("node-0002 HCA-1")[0].ID(), Num: 1}, 100, mad.AttrPortInfo.ID); err != nil {
			t.Fatal(err)
		}
		const want = `perf_get: "node-0002 HCA-1" (0x0002c90310000010): its LID is unknown, because the sweep did not read its PortInfo; run discover() again`
		_, explained, code := f.run(`perf_get("PortCounters", discover().node("node-0002 HCA-1"), 1)`)
		if first, _, _ := strings.Cut(explained, "\n"); first != want || code != 3 {
			t.Errorf("status %d, got %s\nwant %s", code, first, want)
		}
	})
}

package builtins

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	remedyrun "fabsh/builtins/remedies"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/remedy"
)

// TestRemedyPast: what the shipped remedies decide by the past of links, and by files.
func TestRemedyPast(t *testing.T) {
	operate(t, "fattree:k=8", func(o *operator) {
		t := o.t
		p, q, host := o.port("leaf-1/5"), o.port("leaf-1/6"), o.port("leaf-2/1")
		ago := func(d time.Duration) time.Time { return time.Now().Add(-d) }
		past := func(x remedy.Past) *remedy.State {
			x.Port, x.Peer, x.Name = remedy.PlaceOf(p), remedy.PlaceOf(p.Peer()), "x"
			return &remedy.State{Runs: []time.Time{ago(3 * time.Hour), ago(2 * time.Hour), ago(time.Hour)}, Ports: []*remedy.Past{&x}}
		}
		bad := func(p, q *fabric.Port) []audit.Finding {
			return []audit.Finding{{Check: "ctr.ber", Subject: audit.OfLink(p, q), Severity: audit.Error, Message: "bad"}}
		}
		write(t, o.f.fs, "/work/busy", "NODE-0005.cluster.example\n")
		for _, test := range []struct {
			name, words string
			state       *remedy.State
			findings    []audit.Finding
			want        string
		}{
			{"planned, and fewer runs", "isolate", past(remedy.Past{Planned: ago(time.Hour)}), bad(p, p.Peer()), "isolate -"},
			{"planned, and few uplinks", "isolate --uplinks=0.8", past(remedy.Past{Planned: ago(time.Hour)}), bad(p, p.Peer()), "isolate uplinks"},
			{"planned, and all budgets spent", "isolate --per-day=1", past(remedy.Past{Planned: ago(time.Hour)}), bad(p, p.Peer()), "isolate -"},
			{"planned before the clock was set back", "isolate --runs=1 --per-day=0", past(remedy.Past{Planned: ago(-time.Hour)}), bad(p, p.Peer()), "isolate per-day"},
			{"isolated", "isolate --runs=1 --total=1", past(remedy.Past{Isolated: ago(72 * time.Hour), Last: ago(72 * time.Hour)}), bad(q, q.Peer()), "isolate total"},
			{"to be enabled", "isolate --runs=1 --total=1", past(remedy.Past{Isolated: ago(72 * time.Hour), Last: ago(72 * time.Hour), Restoring: ago(time.Hour)}), bad(q, q.Peer()), "isolate total"},
			{"in its test", "isolate --runs=1 --total=1", past(remedy.Past{Testing: ago(time.Hour), Last: ago(72 * time.Hour)}), bad(q, q.Peer()), "isolate -, ticket -"},
			{"the cable was moved", "isolate --runs=1", new(remedy.State), bad(p, o.port("spine-2/2")), ""},
			{"busy", "isolate --runs=1 --busy=/work/busy", new(remedy.State), bad(host, host.Peer()), "isolate busy"},
		} {
			set, err := remedyrun.Load(t.Context(), o.f.Interpreter, strings.Fields(test.words), nil)
			if err != nil {
				t.Fatal(err)
			}
			outcome, err := set.Decide(t.Context(), o.f.Interpreter, &remedyrun.Input{Fabric: o.fabric, Findings: test.findings, State: test.state, Of: time.Now()})
			if err != nil {
				t.Fatal(o.f.Explain(err))
			}
			var got []string
			for _, d := range outcome.Decisions {
				rule := d.Rule
				if rule == "" {
					rule = "-"
				}
				got = append(got, string(d.Kind)+" "+rule)
			}
			if diff := cmp.Diff(test.want, strings.Join(got, ", ")); diff != "" {
				t.Errorf("%s: -want +got\n%s", test.name, diff)
			}
		}
	})
}

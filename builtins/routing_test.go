package builtins

import (
	"context"
	"slices"
	"testing"

	"github.com/spf13/afero"

	"fabsh/builtins/program"
	"fabsh/builtins/script"
	"fabsh/builtins/topology"
	"fabsh/fabric/sim"
	"fabsh/mad/engine"
)

// TestRepairDiscovers: tables are repaired for the fabric as it is now, not as it was when a script
// discovered it.
func TestRepairDiscovers(t *testing.T) {
	onSim(t, "torus:dims=4/4,hosts=1", nil, func(t *testing.T, f *fixture) {
		out, explained, status := f.run(`
t = discover().graph().route("updn")
sim.unlink("switch-1-1/3")
r = t.repair()
print(r.verify().ok, r.diff(t).entries > 0, len(r.fabric.links) - len(t.fabric.links))
`)
		if out != "True True -1\n" || status != 0 {
			t.Errorf("status %d: %s%s", status, out, explained)
		}
	})
}

// TestRoutingProgress: what computes for long says what it is at, and takes that away
// again.
func TestRoutingProgress(t *testing.T) {
	loaded, _, err := sim.Parse("ring:n=4")
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	f := plain(t, func(o *SessionOptions) {
		o.Facts = topology.Facts{Loaded: loaded}
		o.Progress = func(text string) { told = append(told, text) }
	})
	if _, why, status := f.run("t = discover().graph().route('updn')\nt.verify()\nt.repair()\nt.congestion()\nt.fail_each_link()"); status != 0 {
		t.Fatal(why)
	}
	want := []string{"computing tables by updn", "verifying the tables", "repairing the tables", "counting the loads of links", "failing one link after the other"}
	for _, line := range want {
		if i := slices.Index(told, line); i < 0 || i+1 == len(told) || told[i+1] != "" {
			t.Errorf("%q, want %q and then nothing", told, line)
		}
	}
}

// entryByEntry writes each entry by itself, as d-mod-k up a tree would.
const entryByEntry = `
def route(fabric):
    g = fabric.graph()
    t = g.routes()
    lids = g.lids()
    for s in g.switches:
        row = t[s]
        ports = [p.num for p in s.ports if p.peer]
        n = len(ports)
        for i, lid in enumerate(lids):
            row[lid] = ports[i % n]
    return t
`

// BenchmarkPolicy routes 11,664 hosts by d-mod-k: by the native engine, by a
// script with operations on rows, and one entry at a time.
func BenchmarkPolicy(b *testing.B) {
	subnet, transport := attachSubnet(b, "pgft:m=18/18/36,w=1/18/18,p=1/1/1")
	engine := engine.New(transport, engine.Options{})
	defer engine.Close()
	fs := afero.NewMemMapFs()
	if err := afero.WriteFile(fs, "/work/entries.star", []byte(entryByEntry), 0o644); err != nil {
		b.Fatal(err)
	}
	s, err := NewSession(SessionOptions{Facts: topology.Facts{Engine: engine, Sim: subnet}, FS: fs, Dir: "/work"})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	if err := program.RunCode(context.Background(), s.Interpreter, "<sweep>", "discover()"); err != nil {
		b.Fatal(err)
	}
	for _, test := range []struct{ name, policy string }{{"native", "ftree"}, {"rows", "@examples//dmodk.star"}, {"entries", "entries.star"}} {
		b.Run(test.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				policy, err := program.LoadPolicy(b.Context(), s.Interpreter, test.policy, nil)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := policy.Compute(b.Context(), s.Env.Fabric()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkComparisons compiles all shipped scripts, and examines their comparisons.
func BenchmarkComparisons(b *testing.B) {
	for _, test := range []struct {
		name string
		on   bool
	}{{"compile", false}, {"compile and examine", true}} {
		b.Run(test.name, func(b *testing.B) {
			s, err := NewSession(SessionOptions{FS: afero.NewMemMapFs(), Dir: "/work"})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			s.Quiet = !test.on
			sources := map[string]string{}
			for _, name := range script.Embedded() {
				if sources[name], err = s.Interpreter.Read(b.Context(), name); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				for name, src := range sources {
					if _, _, err := s.Interpreter.Compile(name, src); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

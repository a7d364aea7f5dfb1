package builtins

import (
	"bytes"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/afero"

	"fabsh/builtins/audits"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/audit"
	"fabsh/fabric/format"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// kept is what fabsh snapshot --all keeps, through its file.
func kept(t *testing.T, f *fixture) *fabric.Fabric {
	t.Helper()
	swept, err := topology.SweepQuietly(t.Context(), f.Runtime)
	if err != nil {
		t.Fatal(err)
	}
	routes, err := audits.ReadRoutes(t.Context(), f.Runtime, swept, true)
	if err != nil {
		t.Fatal(err)
	}
	tables, switches := make([][]byte, len(swept.Nodes())), make([]*adaptive.Switch, len(swept.Nodes()))
	for i, sw := range routes.Graph().Switches() {
		tables[sw.ID()], switches[sw.ID()] = routes.Row(i), routes.Adaptive(i)
	}
	all, err := audits.ReadAnswers(t.Context(), f.Runtime, swept.With(fabric.Reading{LFTs: tables, Adaptive: switches}))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := format.WriteSnapshot(&b, all); err != nil {
		t.Fatal(err)
	}
	read, err := format.ReadSnapshot(&b, "snapshot")
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// ofFile is a session on a file.
func ofFile(t *testing.T, f *fabric.Fabric) *fixture {
	t.Helper()
	x := &fixture{fs: afero.NewMemMapFs()}
	var err error
	if x.Session, err = NewSession(SessionOptions{Env: topology.Env{Loaded: f}, Stdout: &x.stdout, Stderr: &x.stderr, FS: x.fs, Dir: "/work"}); err != nil {
		t.Fatal(err)
	}
	return x
}

// aboutRun are checks that judge the run, and state.
func aboutRun(id string) bool { return strings.HasPrefix(id, "audit.") }

// TestSnapshotAudits: a snapshot with all that audits read is judged as the fabric itself:
// the same findings, and all that was asked there is answered here.
func TestSnapshotAudits(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	for _, x := range slices.Concat(standardFaults, settingFaults, partitionFaults, groupFaults) {
		switch x.name {
		case "sm.alive", "prefix.default", "sm.links", "pkey.file", "name.map", "cc.uniform table", // options that a file has not; what changes meanwhile
			"mkey.exposed",             // keys are left out of files
			"lid.range", "lmc.uniform": // to such LIDs nothing answers, so the snapshot is not complete
			continue
		}
		if x.on != "" || x.counts {
			continue
		}
		t.Run(x.name, func(t *testing.T) {
			keys := smKey
			if x.untold {
				keys = nil
			}
			onSimWith(t, "fattree", keys, nil, nil, func(t *testing.T, f *fixture) {
				swept, err := topology.SweepQuietly(t.Context(), f.Runtime)
				if err != nil {
					t.Fatal(err)
				}
				own := swept.From()
				b := &bench{t: t, f: f, subnet: f.Env.Sim, fabric: swept, rand: rand.New(rand.NewPCG(1, 1)), used: map[mad.GUID]bool{own.Node().GUID(): true, own.Peer().Node().GUID(): true}}
				ca, leaf := b.host()
				x.do(b, ca, leaf)
				live := audited(t, f, b.run, append(b.words, "--deep")...)
				file := ofFile(t, kept(t, f))
				defer file.Close()
				stored := audited(t, file, b.run, append(b.words, "--deep")...)
				want := slices.DeleteFunc(idsOf(live.Findings), aboutRun)
				got := slices.DeleteFunc(idsOf(stored.Findings), aboutRun)
				if diff := cmp.Diff(strings.Join(want, "\n"), strings.Join(got, "\n")); diff != "" {
					t.Errorf("-live +file\n%s", diff)
				}
				if live.Answered() != stored.Answered() {
					t.Errorf("answered: %v live, %v of the file: %v, %v", live.Answered(), stored.Answered(), live.Coverage.Missing(), stored.Coverage.Missing())
				}
			})
		})
	}
}

// TestSnapshotRates: what was counted between two snapshots is found as it is on a fabric
// between two runs. With FABSH_SOAK that is so of each counter.
func TestSnapshotRates(t *testing.T) {
	for i, x := range counterFaults {
		if x.name == "ctr.vl15" { // whether the sweep is the reason only a fabric can tell
			continue
		}
		if i%6 != 0 && os.Getenv("FABSH_SOAK") == "" {
			continue
		}
		onSimWith(t, "fattree", smKey, nil, nil, func(t *testing.T, f *fixture) {
			swept, err := topology.SweepQuietly(t.Context(), f.Runtime)
			if err != nil {
				t.Fatal(err)
			}
			own := swept.From()
			b := &bench{t: t, f: f, subnet: f.Env.Sim, fabric: swept, rand: rand.New(rand.NewPCG(uint64(i), 1)), used: map[mad.GUID]bool{own.Node().GUID(): true, own.Peer().Node().GUID(): true}}
			ca, leaf := b.host()
			if x.before != nil {
				x.before(b, ca, leaf)
			}
			before := kept(t, f)
			time.Sleep(betweenRuns)
			want := x.do(b, ca, leaf)
			after := ofFile(t, kept(t, f))
			defer after.Close()
			var file bytes.Buffer
			if err := format.WriteSnapshot(&file, before); err != nil {
				t.Fatal(err)
			}
			if err := afero.WriteFile(after.fs, "/work/before.fab", file.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
			got := idsOf(audited(t, after, audits.RunOptions{}, "--over", "before.fab").Findings)
			if diff := cmp.Diff(expand(want, got), got); diff != "" {
				t.Errorf("%s: -want +got\n%s", x.name, diff)
			}
		})
	}
}

// TestSnapshotOver: files that rates cannot be over are refused, and it is said why.
func TestSnapshotOver(t *testing.T) {
	onSim(t, "ring:n=2", nil, func(t *testing.T, f *fixture) {
		swept, err := topology.SweepQuietly(t.Context(), f.Runtime)
		if err != nil {
			t.Fatal(err)
		}
		older := kept(t, f)
		time.Sleep(time.Hour)
		newer := kept(t, f)
		time.Sleep(100 * time.Millisecond)
		soon := kept(t, f)
		timeless := newer.With(fabric.Reading{Answers: newer.Answers()})
		for _, x := range []struct {
			at, over *fabric.Fabric
			want     string
		}{
			{newer, older, "3600.0"},
			{older, newer, "its counters were read at 2000-01-01 01:00:00, not before those compared with it, at 2000-01-01 00:00:00"},
			{newer, newer, "not before those compared with it"},
			{soon, newer, "its counters were read only 100ms earlier; want 2s or more"},
			{newer, swept, "the file has no counters; write it with snapshot FILE --all"},
			{newer, timeless, "the file has no time of its counters"},
			{timeless, older, "the file has no time of its counters"},
		} {
			s := ofFile(t, x.at)
			var file bytes.Buffer
			if err := format.WriteSnapshot(&file, x.over); err != nil {
				t.Fatal(err)
			}
			if err := afero.WriteFile(s.fs, "/work/over.fab", file.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
			out, explained, _ := s.run(`print(perf_rates(discover().switches[0].ports[1], over="./over.fab").window, perf_rates(discover().switches[0].ports[1], over=load_fabric("over.fab")).window)`)
			if !strings.Contains(out+explained, x.want) {
				t.Errorf("got %s%s, want %s", out, explained, x.want)
			}
			s.Close()
		}
	})
}

// TestSnapshotSilence: what was not answered when a snapshot was made is not answered by
// it, and is no health; counters that stand at their largest value are told.
func TestSnapshotSilence(t *testing.T) {
	for _, attr := range []*mad.Attribute{mad.AttrPKeyTable, mad.AttrPortCountersExtended, mad.AttrPerfClassPortInfo, mad.AttrMCMemberRecord, mad.AttrNodeRecord} {
		x := &troubled{attr: attr, lose: true}
		wrap := func(tr engine.Transport) engine.Transport { x.Transport = tr; return x }
		onSimWith(t, "ring:n=3", smKey, wrap, nil, func(t *testing.T, f *fixture) {
			file := ofFile(t, kept(t, f))
			defer file.Close()
			if r := audited(t, file, audits.RunOptions{}); r.Complete() || audits.RunStatus(r, audit.Critical) != 3 && len(r.Findings) == 0 {
				t.Errorf("%s: the coverage is complete: %v", attr.Name, r.Coverage.Rows())
			}
		})
	}
	onSim(t, "ring:n=3", nil, func(t *testing.T, f *fixture) {
		swept, err := topology.SweepQuietly(t.Context(), f.Runtime)
		if err != nil {
			t.Fatal(err)
		}
		b := &bench{t: t, subnet: f.Env.Sim}
		p := swept.NodeByName("switch-2")[0].Port(1)
		b.count(p, "SymbolErrorCounter", math.MaxUint64)
		file := ofFile(t, kept(t, f))
		defer file.Close()
		got := told(audited(t, file, audits.RunOptions{}, "counters"))
		if !strings.HasPrefix(got, "warning ctr.saturated switch-2/1: counters at their largest value: ") {
			t.Errorf("got %s", got)
		}
	})
}

// TestTopologyAudits: of a topology all audits run, and those are left out that need what it
// does not have; who asks for one of these by name is told so.
func TestTopologyAudits(t *testing.T) {
	onSim(t, "ring:n=3", nil, func(t *testing.T, f *fixture) {
		swept, err := topology.SweepQuietly(t.Context(), f.Runtime)
		if err != nil {
			t.Fatal(err)
		}
		file := ofFile(t, swept) // without tables
		defer file.Close()
		for _, words := range [][]string{nil, {"routing"}} {
			all, err := audits.LoadAudits(t.Context(), file.Interpreter, words, nil, true)
			if err != nil {
				t.Fatal(err)
			}
			r, err := all.Run(t.Context(), file.Interpreter, audits.RunOptions{})
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(r.Failures, func(x audit.Failure) bool { return x.Audit == "routing" })
			want := 0
			if words != nil {
				want = 2
			}
			if code := audits.RunStatus(r, audit.Warning); i < 0 || r.Failures[i].Skipped != (want == 0) || code != want {
				t.Errorf("%q: status %d, want %d: %v", words, code, want, r.Failures)
			}
		}
	})
}

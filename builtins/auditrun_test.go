package builtins

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/afero"

	"fabsh/builtins/audits"
	"fabsh/builtins/help"
	"fabsh/builtins/lang"
	"fabsh/builtins/program"
	"fabsh/builtins/script"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// statusOf is the exit status of a report, and its coverage where that is not full.
func statusOf(f *fixture, r *audit.Report) (int, []audit.Row) {
	var rows []audit.Row
	for _, row := range r.Coverage.Rows() {
		if !row.Complete() || row.Unsupported > 0 {
			rows = append(rows, row)
		}
	}
	return audits.RunStatus(r, audit.Warning), rows
}

// TestSilentNode: a node that does not answer makes the status 3, and takes
// nothing else away; one that is known to be silent is named, and not missed.
func TestSilentNode(t *testing.T) {
	onSim(t, "fattree", nil, func(t *testing.T, f *fixture) {
		base, err := topology.SweepQuietly(context.Background(), f.Runtime)
		if err != nil {
			t.Fatal(err)
		}
		quiet, narrow := end(t, base, "node-0010 HCA-1", 1), end(t, base, "node-0020 HCA-1", 1)
		f.Env.Sim.Cables.Silence(quiet.Node, 1, true)
		f.Env.Sim.Edit.Port(narrow.Node, 1, func(i *mad.PortInfo) { i.OperationalVLs = mad.OperationalVLs0 })
		r := audited(t, f, audits.RunOptions{Baseline: base})
		want := `error vl.oper leaf-5/4 - node-0020 HCA-1/1: different numbers of data VLs in use: vl0_7 and vl0
error node.gone node-0010 HCA-1: the CA was not found: it is gone, or did not answer
warning audit.coverage fabric: requests without an answer: NodeInfo of sweep: 1 of 44
`
		if diff := cmp.Diff(want, told(r)); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
		code, rows := statusOf(f, r)
		if diff := cmp.Diff([]audit.Row{{Audit: "sweep", Attribute: "NodeInfo", Requests: 44, Answered: 43, TimedOut: 1}}, rows); diff != "" || code != 3 {
			t.Errorf("status %d, coverage -want +got\n%s", code, diff)
		}

		now := time.Now()
		var acks audit.Acks
		for _, id := range []string{"port.unresponsive:*", "node.*:*"} {
			a, err := audit.NewAck(id, "", now.Format("2006-01-02"), "me", "in service", now)
			if err != nil {
				t.Fatal(err)
			}
			acks = append(acks, *a)
		}
		known := audits.RunOptions{Baseline: base, Begin: func(fabric.Subnet) (audit.Acks, error) { return acks, nil }}
		r = audited(t, f, known)
		code, rows = statusOf(f, r)
		if code != 1 || rows != nil || len(r.Findings) != 1 || len(r.Acked) != 1 || len(r.Silent) != 3 {
			t.Errorf("with acks: status %d, coverage %v, findings %v, acked %v, silent %v, notes %v", code, rows, r.Findings, r.Acked, r.Silent, r.Notes)
		}
	})
}

// TestSilentAdministrator: the subnet administrator is down, and all that does
// not need it is found.
func TestSilentAdministrator(t *testing.T) {
	onSim(t, "fattree", nil, func(t *testing.T, f *fixture) {
		base, err := topology.SweepQuietly(context.Background(), f.Runtime)
		if err != nil {
			t.Fatal(err)
		}
		f.Env.Sim.SA.Mute(true)
		f.Env.Sim.Edit.Port(end(t, base, "node-0020 HCA-1", 1).Node, 1, func(i *mad.PortInfo) { i.MasterSMLID = 99 })
		r := audited(t, f, audits.RunOptions{})
		want := `critical sa.answers fabric: the subnet administrator did not answer ClassPortInfo: timed out
error sm.lid node-0020 HCA-1/1: MasterSMLID is not 13, the LID of the master at node-0001 HCA-1/1
warning audit.coverage fabric: requests without an answer: MCMemberRecord of multicast: 1 of 1; ServiceRecord of sa: 1 of 1; ClassPortInfo of sm: 1 of 1
`
		if diff := cmp.Diff(want, told(r)); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
		code, rows := statusOf(f, r)
		missed := []audit.Row{
			{Audit: "multicast", Attribute: "MCMemberRecord", Requests: 1, TimedOut: 1},
			{Audit: "sa", Attribute: "ServiceRecord", Requests: 1, TimedOut: 1},
			{Audit: "sm", Attribute: "ClassPortInfo", Requests: 1, TimedOut: 1},
		}
		if diff := cmp.Diff(missed, rows); diff != "" || code != 3 {
			t.Errorf("status %d, coverage -want +got\n%s", code, diff)
		}
	})
}

// TestOwnAudits: what an audit of one's own may do, and does wrong.
func TestOwnAudits(t *testing.T) {
	for _, test := range []struct {
		name, src string
		told      string
		notes     []string
		status    int
		rows      []audit.Row
	}{
		{"not supported is named, and no fault", `
def audit(fabric):
    for r in perf_get("PortSamplesResultExtended", fabric.cas[:3]):
        if not r:
            finding("mine.samples", fabric, r.status, severity="info")
`, "info mine.samples fabric: method/attribute combination not supported\n", nil, 0, []audit.Row{{Audit: "mine", Attribute: "PortSamplesResultExtended", Requests: 3, Unsupported: 3}}},
		{"what is gone at the second reading is not told", `
runs = []
def audit(fabric):
    runs.append(1)
    if len(runs) == 1:
        finding("mine.gone", fabric.nodes[0], "for a moment")
    else:
        finding("mine.fresh", fabric.nodes[1], "later")
    finding("mine.stays", fabric.nodes[0], "run %d" % len(runs), severity="warning")
`, "warning mine.stays leaf-1: run 2\n", []string{
			"1 finding did not persist on re-read; not reported",
			"1 finding new on re-read; not reported until the next run confirms it"}, 1, nil},
		{"a broken audit takes nothing from others", `
def audit(fabric):
    finding("mine.first", fabric, "found before")
    fabric.nods
`, "error mine.first fabric: found before\n", nil, 2, nil},
		{"exit() in an audit takes nothing from others, either", `
def audit(fabric):
    finding("mine.first", fabric, "found before")
    exit(0)
`, "error mine.first fabric: found before\n", nil, 2, nil},
		{"a single target that is silent ends the audit with 3", `
def audit(fabric):
    finding("mine.first", fabric, "found before")
    smp_get("NodeInfo", 999)
`, "error mine.first fabric: found before\n", nil, 3, []audit.Row{{Audit: "mine", Attribute: "NodeInfo", Requests: 1, TimedOut: 1}}},
		{"causes, subjects that are not there, hostile texts", `
def audit(fabric):
    a = finding("node.fire", "0x2c90300100000", "evil,\"\n\x1b[2J", severity="critical", temperature_c=90, ports=[1, 2])
    finding("link.hot", fabric.switches[0].ports[1], "warm", cause=a)
    finding("x.y", fabric, "by id", cause=a.id, severity="info")
    finding("x.z", fabric, "of nobody", cause="no.such:fabric", severity="info")
`, "critical node.fire 0x0002c90300100000: evil,\"\n\x1b[2J\n  error link.hot leaf-1/1: warm\n  info x.y fabric: by id\ninfo x.z fabric: of nobody\n", nil, 1, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			onSim(t, "fattree", nil, func(t *testing.T, f *fixture) {
				write(t, f.fs, "/work/mine.star", test.src)
				all, err := audits.LoadAudits(context.Background(), f.Interpreter, []string{"mine.star", "links"}, nil, false)
				if err != nil {
					t.Fatal(err)
				}
				r, err := all.Run(context.Background(), f.Interpreter, audits.RunOptions{})
				if err != nil {
					t.Fatal(err)
				}
				code, rows := statusOf(f, r)
				if diff := cmp.Diff(test.told, told(r)); diff != "" || code != test.status || !slices.Equal(r.Notes, test.notes) {
					t.Errorf("status %d, want %d; notes %q; -want +got\n%s", code, test.status, r.Notes, diff)
				}
				if diff := cmp.Diff(test.rows, rows); diff != "" {
					t.Errorf("coverage -want +got\n%s", diff)
				}
				for _, x := range r.Findings {
					if x.Cause != "" && !slices.Contains(idsOf(r.Findings), x.Cause) {
						t.Errorf("%s follows from %s, which is not told", x.ID(), x.Cause)
					}
				}
				if !slices.Equal(r.Audits, []string{"mine", "links"}) {
					t.Errorf("ran %q", r.Audits)
				}
			})
		})
	}
}

// TestFindingArguments: what finding() refuses.
func TestFindingArguments(t *testing.T) {
	onSim(t, "ring:n=2", nil, func(t *testing.T, f *fixture) {
		for _, test := range []struct{ code, want string }{
			{`finding("Link Width", discover(), "x")`, `finding: for parameter check: invalid check "Link Width"; want words in lower case, separated by dots: "link.width"`},
			{`finding("a.b", "leaf-1", "x")`, `finding: for parameter subject: invalid subject "leaf-1"; want a GUID or GUID/PORT, or the node, port or link: names are not unique`},
			{`finding("a.b", 3, "x")`, `finding: for parameter subject: got int, want the fabric, a node, a port or a link of it, or a GUID`},
			{`finding("a.b", discover(), "x", severity="eror")`, `finding: for parameter severity: unknown severity "eror" (did you mean error?); supported: info, warning, error, critical`},
			{`finding("a.b", discover(), "x", rate=len)`, `finding: for parameter rate: cannot encode builtin_function_or_method as JSON`},
			{`finding("a.b", discover(), "x", cause=3)`, `finding: for parameter cause: got int, want a finding, or the id of one`},
			{`finding("a.b", discover(), "x" * 5000)`, `finding: for parameter message: too long: 5000 bytes; want at most 4096`},
		} {
			_, explained, _ := f.run(test.code)
			if got, _, _ := strings.Cut(explained, "\n"); got != test.want {
				t.Errorf("%s\ngot  %s\nwant %s", test.code, got, test.want)
			}
		}
	})
}

// TestAuditOptions: an option goes to each audit that has it; one that none has
// is refused.
func TestAuditOptions(t *testing.T) {
	f := plain(t, func(o *SessionOptions) {
		write(t, o.FS, "/work/a.star", "def audit(fabric, *, share=0.5, deep=False): pass")
		write(t, o.FS, "/work/b.star", "def audit(fabric, *, share=0.7, baseline=None): pass")
		write(t, o.FS, "/work/bad.star", "def audit(fabric, name): pass")
		write(t, o.FS, "/work/none.star", "x = 1")
		write(t, o.FS, "/work/ends.star", "exit(0)")
	})
	for _, test := range []struct {
		words string
		want  string
	}{
		{"a.star b.star --share 0.9", `a[("share", 0.9)] b[("share", 0.9)]`},
		{"--share 0.9 a.star", `a[("share", 0.9)]`},
		{"a.star --deep b.star", "--deep: unknown flag: no audit of this run has it"}, // the command fills it
		{"a.star --sahre 0.9", "--sahre: unknown flag: no audit of this run has it (did you mean --share?)"},
		{"b.star --baseline x", "--baseline: unknown flag: no audit of this run has it"},
		{"a.star --share=x", `a: --share "x": want a number`},
		{"a.star --share b.star", `a: --share "b.star": want a number`},
		{"linkz", "\"linkz\": unknown audit (did you mean links?); use a .star file, or one of adaptive, config, counters, health, host, identity, keys, links, multicast, partitions, probe, routing, sa, self, sm, tenants, topology, virtual"},
		{"bad.star", "bad.star: invalid parameters of audit(); want fabric, and options after a *: def audit(fabric, *, threshold=5)"},
		{"ends.star", "ends.star: exit(0): not supported in an audit; its findings set the exit status"},
		{"none.star", "none.star: not an audit; it does not define audit(fabric, ...)"},
	} {
		all, err := audits.LoadAudits(context.Background(), f.Interpreter, strings.Fields(test.words), nil, false)
		got := ""
		if err != nil {
			got = f.Explain(err)
		} else {
			for _, a := range all.List {
				got += " " + a.Name + "["
				for _, kv := range a.Keywords {
					got += kv.String()
				}
				got += "]"
			}
			got = strings.TrimSpace(got)
		}
		if got != test.want {
			t.Errorf("%s\ngot  %s\nwant %s", test.words, got, test.want)
		}
	}
}

// TestManagers: what the seeded faults cannot put in alone.
func TestManagers(t *testing.T) {
	onSim(t, "fattree:k=4,levels=2", nil, func(t *testing.T, f *fixture) {
		base, err := topology.SweepQuietly(context.Background(), f.Runtime)
		if err != nil {
			t.Fatal(err)
		}
		host := end(t, base, "node-0005 HCA-1", 1)
		f.Env.Sim.Cables.Silence(host.Node, 1, true) // a sweep drops it, then it answers
		up := end(t, base, "leaf-2", 3)
		f.Env.Sim.Cables.Unlink(up.Node, up.Num)
		f.Env.Sim.Cables.Link(up.Node, up.Num)
		f.Env.Sim.Cables.Silence(host.Node, 1, false)
		r := audited(t, f, audits.RunOptions{}, "sm", "--standbys", "1")
		want := "error sm.records node-0005 HCA-1/1: the subnet administrator has no record of this node\n" +
			"warning sm.standby fabric: standby subnet managers: 0; required: 1\n"
		if diff := cmp.Diff(want, told(r)); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
	onSim(t, "ring:n=2,delay=20ms", nil, func(t *testing.T, f *fixture) {
		r := audited(t, f, audits.RunOptions{}, "sm", "--slow", "10ms")
		if got := idsOf(r.Findings); !slices.Equal(got, []string{"sa.answers:fabric"}) || r.Worst() != audit.Warning {
			t.Errorf("got %v", r.Findings)
		}
	})
}

// TestCutSweep: of a part of a fabric nothing is said, for what was not asked
// would look as if it were gone.
func TestCutSweep(t *testing.T) {
	onSim(t, "ring:n=3,dead=switch-2/1", nil, func(t *testing.T, f *fixture) {
		time.AfterFunc(500*time.Millisecond, func() { f.Env.Engine.Halt(&lang.DeadlineError{After: 500 * time.Millisecond}) })
		all, err := audits.LoadAudits(context.Background(), f.Interpreter, nil, nil, false)
		if err != nil {
			t.Fatal(err)
		}
		r, err := all.Run(context.Background(), f.Interpreter, audits.RunOptions{})
		if code, _ := statusOf(f, r); err != nil || code != 3 || len(r.Findings) > 0 || len(r.Failures) != len(all.List) || len(r.Notes) != 1 {
			t.Errorf("status %d, findings %v, failures %v, notes %q, %v", code, r.Findings, r.Failures, r.Notes, err)
		}
	})
}

// TestEndlessAudit: an audit that computes past the deadline is not done, nor are those
// that run after it; findings of those before it, such as links, are reported.
func TestEndlessAudit(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	late := &lang.DeadlineError{After: time.Minute}
	onSim(t, "fattree", func(o *SessionOptions) {
		o.Progress = func(text string) {
			if text == "audit endless" {
				cancel(late)
			}
		}
		write(t, o.FS, "/work/first.star", `def audit(fabric): finding("my.check", fabric.switches[0], "found")`)
		write(t, o.FS, "/work/endless.star", "def audit(fabric):\n    while True: pass")
		write(t, o.FS, "/work/last.star", "def audit(fabric): pass")
	}, func(t *testing.T, f *fixture) {
		all, err := audits.LoadAudits(ctx, f.Interpreter, []string{"first.star", "endless.star", "last.star", "links"}, nil, false)
		if err != nil {
			t.Fatal(err)
		}
		r, err := all.Run(ctx, f.Interpreter, audits.RunOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := told(r); !strings.HasPrefix(got, "error my.check ") || strings.Count(got, "\n") != 1 {
			t.Errorf("told %q", got)
		}
		want := []audit.Failure{{Audit: "endless", Err: late}, {Audit: "last", Err: late}}
		if code, _ := statusOf(f, r); code != 3 || !slices.Equal(r.Failures, want) {
			t.Errorf("status %d, failures %v, want 3 and %v", code, r.Failures, want)
		}
	})
}

// TestBaselineBeside: the baseline is judged while the fabric is swept. What it prints
// comes first, what it asks is not the run's, and its steps count.
func TestBaselineBeside(t *testing.T) {
	onSim(t, "fattree", func(o *SessionOptions) {
		write(t, o.FS, "/work/mine.star", `
def audit(fabric):
    print(len(fabric.nodes), "nodes")
    catch(smp_get, "NodeInfo", fabric.switches[0])
    for i in range(1000):
        pass
    finding("mine.size", fabric, "%d nodes" % len(fabric.nodes), severity = "warning")
`)
	}, func(t *testing.T, f *fixture) {
		base, err := topology.SweepQuietly(t.Context(), f.Runtime)
		if err != nil {
			t.Fatal(err)
		}
		f.Env.Sim.Cables.Silence(end(t, base, "node-0010 HCA-1", 1).Node, 1, true)
		steps := func(n uint64, baseline *fabric.Fabric) error {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			all, err := audits.LoadAudits(ctx, f.Interpreter, []string{"mine.star"}, nil, false)
			if err != nil {
				t.Fatal(err)
			}
			r, err := all.Run(lang.LimitSteps(ctx, n, cancel), f.Interpreter, audits.RunOptions{Baseline: baseline, Once: true})
			if err == nil && (len(r.Findings) > 0) == (baseline != nil) {
				t.Errorf("told %s", told(r))
			}
			for _, row := range r.Coverage.Rows() {
				if row.Audit == "mine" && row.Requests != 1 {
					t.Errorf("%d requests of the audit count, want 1", row.Requests)
				}
			}
			return err
		}
		var many *lang.LimitError
		if err := steps(9000, nil); err != nil {
			t.Error(err)
		}
		if err := steps(9000, base); !errors.As(err, &many) {
			t.Errorf("with a baseline: %v, want too many steps", err)
		}
		f.stdout.Reset()
		if err := steps(0, base); err != nil || f.stdout.String() != "44 nodes\n43 nodes\n" {
			t.Errorf("printed %q, %v", f.stdout.String(), err)
		}
	})
}

// dropper is a transport to a subnet whose switches drop SMPs when they are swept.
type dropper struct {
	engine.Transport
	subnet *sim.Subnet
	node   mad.GUID // that drops; 0: none
}

func (d *dropper) Send(x *engine.Datagram) error {
	if h := mad.ParseHeader(x.MAD); d.node != 0 && h.Class == mad.ClassSubnDirected && h.Attribute == mad.AttrNodeDescription.ID {
		if err := d.subnet.Counters.Add(d.node, 2, "VL15Dropped", 1); err != nil {
			return err
		}
	}
	return d.Transport.Send(x)
}

func (d *dropper) TrySend(*engine.Datagram) (bool, error) { return false, nil }

// TestSelf: what the audit says of itself.
func TestSelf(t *testing.T) {
	state := t.TempDir()
	drops := new(dropper)
	onSim(t, "ring:n=3", func(o *SessionOptions) {
		o.Engine.Close()
		drops.subnet, drops.Transport = attachSubnet(t, "ring:n=3")
		o.Sim = drops.subnet
		o.Engine = engine.New(drops, engine.Options{Write: true})
		o.State = state
	}, func(t *testing.T, f *fixture) {
		defer f.Env.Engine.Close()
		fab, err := topology.SweepQuietly(t.Context(), f.Runtime)
		if err != nil {
			t.Fatal(err)
		}
		write(t, f.fs, "/work/busy.star", "def audit(fabric):\n    sim.restart_sm(fabric.cas[1])\n")
		check := func(what, want string, words ...string) {
			t.Helper()
			time.Sleep(5 * time.Minute)
			r := ran(t, f, audits.RunOptions{Job: "x", ReadOnly: what == "at a terminal"}, append(words, "counters", "self", "--over", "last")...)
			if diff := cmp.Diff(want, told(r)); diff != "" || !r.Answered() {
				t.Errorf("%s: %v, -want +got\n%s", what, r.Failures, diff)
			}
		}
		check("at a terminal", "info audit.window fabric: counters were not judged: no earlier run of this job has read them; a run from a terminal keeps its reads only with --job NAME\n")
		check("first", "info audit.window fabric: counters were not judged: no earlier run of this job has read them\n")
		check("second", "info audit.window fabric: bit errors cannot be judged yet: the oldest read of this job is 300 s old\n")
		check("third", "info audit.window fabric: bit errors cannot be judged yet: the oldest read of this job is 10 min old\n")
		check("old enough", "")
		if err := f.Env.Sim.Counters.Add(fab.OfType(mad.NodeTypeSwitch)[1].GUID(), 3, "VL15Dropped", 4); err != nil {
			t.Fatal(err)
		}
		check("others drop", "warning ctr.vl15 switch-2/3: 4 SMPs dropped: the port receives more than it can process\n")
		drops.node = fab.OfType(mad.NodeTypeSwitch)[0].GUID()
		check("we drop", `info ctr.vl15 switch-1/2: 6 SMPs dropped, and more during a sweep: a lower --window may help
warning audit.load fabric: sweeps make agents drop SMPs at 1 port: a lower --window may help
`)
		drops.node = 0
		check("they were dropped after the read", "warning ctr.vl15 switch-1/2: 6 SMPs dropped: the port receives more than it can process\n")
		paths, _ := filepath.Glob(filepath.Join(state, "*", "x.state"))
		if len(paths) != 1 {
			t.Fatal(paths)
		}
		if err := os.WriteFile(paths[0], []byte("rubbish"), 0o644); err != nil {
			t.Fatal(err)
		}
		check("damaged", "warning audit.state fabric: "+paths[0]+": expected a state of fabsh, which begins with \"fabsh audit state 5\\n\"; the state starts empty\n")
		check("busy", "info audit.window fabric: bit errors cannot be judged yet: the oldest read of this job is 300 s old\n"+
			"info audit.changed_during fabric: the subnet manager changed during the run: from a subnet manager with GUID 0x0002c90310000001 at LID 4, priority 14, state master "+
			"to a subnet manager with GUID 0x0002c90310000011 at LID 5, priority 14, state master\n", "busy.star")
	})
}

// TestCountersOptions: a file of thresholds, and what is wrong with options.
func TestCountersOptions(t *testing.T) {
	onPMA(t, t.TempDir(), func(t *testing.T, f *fixture, p *pma) {
		write(t, f.fs, "/work/limits", "PortRcvErrors=5\nPortXmitWait=1000\nVL15Dropped=2\n")
		write(t, f.fs, "/work/bad", "PortRcvErrors=many\n")
		ran(t, f, audits.RunOptions{Job: "x"}, "counters", "--over", "last")
		time.Sleep(time.Hour)
		f.run(`
f = discover()
perf_set("PortCountersExtended", f.switches[0].ports[1], port_rcv_errors=6, symbol_error_counter=5, vl15_dropped=2)
perf_set("PortCounters", f.switches[1].ports[2], port_xmit_wait=1001)
`)
		r := ran(t, f, audits.RunOptions{Job: "x"}, "counters", "--over", "last", "--thresholds", "limits", "--ber", "1e-10")
		want := `warning ctr.rcv switch-1/1 - node-0001 HCA-1/1: switch-1/1: 6 packets with errors in 60 min
info ctr.wait switch-1/3 - switch-2/2: switch-2/2: 1001 ticks of waiting in 60 min
`
		if diff := cmp.Diff(want, told(r)); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
		for option, want := range map[string]string{
			"--thresholds=bad": `load_thresholds: bad:1: port_rcv_errors: expected a number, or one per time such as 5/min, got "many"`,
			"--ber=0":          "fail: --ber: invalid bit error rate 0.0; want a number such as 1e-15",
			"--ber-no-fec=1.5": "fail: --ber-no-fec: invalid bit error rate 1.5; want a number such as 1e-15",
		} {
			r = ran(t, f, audits.RunOptions{}, "counters", option)
			if len(r.Failures) != 1 || audits.RunStatus(r, audit.Warning) != lang.StatusUsage {
				t.Errorf("%v", r.Failures)
			} else if got := r.Failures[0].Err.Error(); got != want {
				t.Error(got)
			}
		}
	})
}

// TestNeeds: each check that a shipped audit documents is in its table needs, and no other, so
// that a report names it if it was not done.
func TestNeeds(t *testing.T) {
	documented := map[string][]string{}
	for _, c := range help.Checks() {
		documented[c.Audit] = append(documented[c.Audit], c.Name)
	}
	f := plain(t, nil)
	var words []string
	for _, d := range script.Audits.Shipped() {
		words = append(words, d.Name)
	}
	set, err := audits.LoadAudits(t.Context(), f.Interpreter, words, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range set.List {
		got, want := a.Checks(), documented[a.Name]
		slices.Sort(got)
		slices.Sort(want)
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%s:\nneeds      %v\ndocumented %v", a.Name, got, want)
		}
	}
}

// TestMembersOfModel: a finding about several nodes omits only the nodes that the baseline has, or
// that are acknowledged.
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
		const text = "info name.default MT4129 ConnectX7   Mellanox Technologies: the name identifies no node: the description is the model, as the firmware sets it; and 6 more of the model; "
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

// TestRunsApart: a run of audits reports only what its audits have reported, each time, and what the
// session has reported stays there. The clock of the run is not that of the session.
func TestRunsApart(t *testing.T) {
	onSim(t, "ring:n=3,hosts=1", func(o *SessionOptions) { o.Format = "prom" }, func(t *testing.T, f *fixture) {
		const script = `metric("site_loaded", 1)

def audit(fabric):
    metric("site_ran", 2)
    not_judged("mine.check", "nothing is known")
    sleep("1h")
    finding("mine.found", fabric, "it is there")
`
		if err := afero.WriteFile(f.fs, "/work/mine.star", []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := program.RunCode(t.Context(), f.Interpreter, "<test>", `metric("site_script", 3)`); err != nil {
			t.Fatal(err)
		}
		set, err := audits.LoadAudits(t.Context(), f.Interpreter, []string{"mine.star"}, nil, false)
		if err != nil {
			t.Fatal(err)
		}
		clock := f.Clock
		begin := func(fabric.Subnet) (audit.Acks, error) {
			if f.Clock != clock {
				t.Error("the session has the clock of the run")
			}
			return nil, nil
		}
		for range 2 {
			began := f.Clock.Now()
			r, err := set.Run(t.Context(), f.Interpreter, audits.RunOptions{Begin: begin, Once: true})
			if err != nil {
				t.Fatal(err)
			}
			got := fmt.Sprint(len(r.Findings), len(r.Unjudged), r.Metrics, r.Ended.Sub(r.Began) >= time.Hour)
			if want := "1 1 [{site_loaded  [] 1} {site_ran  [] 2}] true"; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if d := f.Clock.Now().Sub(began); d > time.Minute {
				t.Errorf("the clock of the session advanced by %v", d)
			}
		}
		f.stdout.Reset()
		if err := audits.WriteMetrics(f.Runtime); err != nil {
			t.Fatal(err)
		}
		if got := f.stdout.String(); !strings.Contains(got, "site_script 3") || strings.Contains(got, "site_ran") {
			t.Errorf("metrics of the session:\n%s", got)
		}
	})
}

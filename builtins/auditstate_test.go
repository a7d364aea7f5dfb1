package builtins

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/builtins/audits"
	"fabsh/builtins/topology"
	"fabsh/fabric/audit"
	"fabsh/fabric/format"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// ran runs audits, as a job that keeps what it reads.
func ran(t *testing.T, f *fixture, o audits.RunOptions, words ...string) *audit.Report {
	t.Helper()
	set, err := audits.LoadAudits(context.Background(), f.Interpreter, words, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	if o.Job == "" {
		o.Job = set.Job
	}
	r, err := set.Run(context.Background(), f.Interpreter, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestCounterCoverage: counters that are not answered are missing in the coverage,
// and make the status 3.
func TestCounterCoverage(t *testing.T) {
	onPMA(t, t.TempDir(), func(t *testing.T, f *fixture, p *pma) {
		f.run(`perf_set("PortCounters", discover().switches[0].ports, port_rcv_errors=1, port_xmit_discards=1)`)
		write(t, f.fs, "/work/mine.star", `
def audit(fabric):
    perf_rates(fabric.switches[0].ports, over="2s")
`)
		for _, test := range []struct {
			lost mad.AttributeID
			want []audit.Row
		}{
			{0, nil},
			{mad.AttrPortCounters.ID, nil}, // it is not asked for: the 64-bit one has all
			{mad.AttrPortCountersExtended.ID, []audit.Row{{Audit: "mine", Attribute: "PortCountersExtended", Requests: 3, TimedOut: 3}}},
			{mad.AttrPortRcvErrorDetails.ID, []audit.Row{{Audit: "mine", Attribute: "PortRcvErrorDetails", Requests: 6, TimedOut: 6}}},
			{mad.AttrPerfClassPortInfo.ID, []audit.Row{{Audit: "mine", Attribute: "ClassPortInfo", Requests: 1, TimedOut: 1}}},
		} {
			clear(p.lose)
			p.lose[test.lost] = true
			r := ran(t, f, audits.RunOptions{}, "mine.star")
			want := 0
			if test.want != nil {
				want = 3
			}
			code, rows := statusOf(f, r)
			if diff := cmp.Diff(test.want, rows); diff != "" || code != want {
				t.Errorf("without %#x: status %d, coverage -want +got\n%s", test.lost, code, diff)
			}
		}
		p.lose = map[mad.AttributeID]bool{}
		p.refuse[mad.AttrPortXmitDiscardDetails.ID] = true
		code, rows := statusOf(f, ran(t, f, audits.RunOptions{}, "mine.star"))
		if diff := cmp.Diff([]audit.Row{{Audit: "mine", Attribute: "PortXmitDiscardDetails", Requests: 1, Unsupported: 1}}, rows); diff != "" || code != 0 {
			t.Errorf("not supported: status %d, coverage -want +got\n%s", code, diff)
		}
	})
}

// TestRunsOfJobs: a run compares with the run of its job before, in its second
// reading too; it is told since when something has been so, and what is gone.
func TestRunsOfJobs(t *testing.T) {
	state := t.TempDir()
	onPMA(t, state, func(t *testing.T, f *fixture, p *pma) {
		write(t, f.fs, "/work/a.star", `
load("lib.star", "say")
def audit(fabric):
    say(fabric, "a")
`)
		write(t, f.fs, "/work/b.star", `
load("lib.star", "say")
def audit(fabric, *, once=False):
    say(fabric, "b")
    if once:
        finding("b.once", fabric, "for this run")
`)
		write(t, f.fs, "/work/c.star", "def audit(fabric, *, past=None): pass")
		write(t, f.fs, "/work/lib.star", `
def say(fabric, name):
    finding(name + ".window", fabric, "%s" % perf_rates(fabric.switches[0].ports[1], over="last").window, severity="info")
`)
		var got strings.Builder
		began := time.Now()
		check := func(what string, o audits.RunOptions, words ...string) {
			time.Sleep(5*time.Minute - time.Since(began)%(5*time.Minute))
			r := ran(t, f, o, words...)
			fmt.Fprintf(&got, "%s:", what)
			for _, x := range r.Findings {
				fmt.Fprintf(&got, " %s %s", x.Check, x.Message)
				if !x.Since.IsZero() {
					fmt.Fprintf(&got, " since %v", x.Since.Sub(began).Round(time.Minute))
				}
			}
			fmt.Fprintln(&got, r.Notes, r.Failures)
		}
		check("at a terminal", audits.RunOptions{ReadOnly: true}, "a.star", "b.star")
		check("first", audits.RunOptions{}, "a.star", "b.star", "--once")
		check("second", audits.RunOptions{}, "a.star", "b.star")
		check("another job", audits.RunOptions{Job: "mine"}, "a.star", "b.star")
		check("looks only", audits.RunOptions{ReadOnly: true}, "a.star", "b.star")
		check("third", audits.RunOptions{}, "a.star", "b.star")
		check("other audits", audits.RunOptions{}, "a.star")
		held, err := format.AcquireLock(filepath.Join(state, "sm-0x0002c90310000001", "mine.state.lock"))
		if err != nil {
			t.Fatal(err)
		}
		check("locked", audits.RunOptions{Job: "mine"}, "a.star")
		check("locked, and only seen", audits.RunOptions{Job: "mine"}, "c.star")
		held.Release()
		if err := os.WriteFile(filepath.Join(state, "sm-0x0002c90310000001", "mine.state"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		check("damaged", audits.RunOptions{Job: "mine"}, "a.star")
		want := `at a terminal: a.window None b.window None[counters were not judged: no earlier run of this job has read them; a run from a terminal keeps its reads only with --job NAME] []
first: b.once for this run since 10m0s a.window None since 10m0s b.window None since 10m0s[counters were not judged: no earlier run of this job has read them] []
second: a.window 300.0 since 10m0s b.window 300.0 since 10m0s[1 finding is gone since the previous run: b.once fabric] []
another job: a.window None since 20m0s b.window None since 20m0s[counters were not judged: no earlier run of this job has read them] []
looks only: a.window 600.0 since 10m0s b.window 600.0 since 10m0s[] []
third: a.window 900.0 since 10m0s b.window 900.0 since 10m0s[] []
other audits: a.window None since 35m0s[counters were not judged: no earlier run of this job has read them] []
locked:[] [{a perf_rates: over="last": another run is in progress: process PID holds DIR/sm-0x0002c90310000001/mine.state.lock false}]
locked, and only seen:[observations of ports in earlier runs are unknown: another run is in progress: process PID holds DIR/sm-0x0002c90310000001/mine.state.lock] []
damaged: a.window None since 50m0s[counters were not judged: no earlier run of this job has read them] []
`
		text := strings.NewReplacer(state, "DIR", fmt.Sprint("process ", os.Getpid()), "process PID").Replace(got.String())
		if d := cmp.Diff(want, text); d != "" {
			t.Errorf("-want +got\n%s", d)
		}
		wantErr := "warning: DIR/sm-0x0002c90310000001/mine.state: expected a state of fabsh, which begins with \"fabsh audit state 5\\n\"; the state starts empty\n"
		if d := cmp.Diff(wantErr, strings.ReplaceAll(f.stderr.String(), state, "DIR")); d != "" {
			t.Errorf("stderr -want +got\n%s", d)
		}
	})
}

// TestPast: what runs of the job before have seen up, and is down, is told, folded under
// the node that is gone; and what comes up again and again. A run at a terminal keeps
// nothing, and another job knows nothing of it.
func TestPast(t *testing.T) {
	onSimWith(t, "fattree", nil, nil, func(o *SessionOptions) { o.State = t.TempDir() }, func(t *testing.T, f *fixture) {
		swept, err := topology.SweepQuietly(t.Context(), f.Runtime)
		if err != nil {
			t.Fatal(err)
		}
		at := func(name string, num int) sim.Cable { return end(t, swept, name, num) }
		again := func(job string, lookOnly bool) string {
			r := audited(t, f, audits.RunOptions{Job: job, ReadOnly: lookOnly}, "links")
			time.Sleep(time.Hour)
			return told(r)
		}
		expect := func(what, got, want string) {
			t.Helper()
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: -want +got\n%s", what, diff)
			}
		}
		b := &bench{t: t, subnet: f.Env.Sim}
		expect("first", again("x", false), "")
		b.must(b.subnet.Cables.Unlink(at("leaf-3", 7).Node, 7))
		b.must(b.subnet.Cables.Unlink(at("leaf-2", 1).Node, 1))
		down := func(ago string) string {
			return "critical link.down leaf-3/7 - spine-3/3: the link is down; it was up " + ago + " ago\n" +
				"error link.down leaf-2/1: the link is down; it was up " + ago + " ago, to 0x0002c90310000040, which is not in the fabric now\n"
		}
		expect("down", again("x", true), down("1h0m10s"))
		expect("another job", again("y", false), "warning link.uplinks leaf-3: links to spines: 3; most similar leaves: 4; fewer than most to spine-3 (0 of 1)\n")
		expect("at a terminal nothing was kept", again("x", false), down("3h0m10s"))
		b.must(b.subnet.Cables.Link(at("leaf-3", 7).Node, 7))
		b.must(b.subnet.Cables.Link(at("leaf-2", 1).Node, 1))
		expect("up", again("x", false), "")

		flaps := fmt.Sprintf("error link.init leaf-4/1 - %s/1: the link is up, but initialize: the subnet manager has not activated it\n", swept.NodeByName("leaf-4")[0].Port(1).Peer().Node().Name())
		state := func(s mad.PortState) {
			for _, p := range []sim.Cable{at("leaf-4", 1), cable(swept.NodeByName("leaf-4")[0].Port(1).Peer())} {
				b.must(b.subnet.Edit.Port(p.Node, p.Num, func(i *mad.PortInfo) { i.PortState = s }))
			}
		}
		for range 4 {
			state(mad.PortStateInitialize)
			expect("init", again("x", false), flaps)
			state(mad.PortStateActive)
			expect("active", again("x", false), "")
		}
		state(mad.PortStateInitialize)
		expect("five times, and now", again("x", false), flaps)
		state(mad.PortStateActive)
		expect("five times", again("x", false), "error link.init leaf-4/1 - "+swept.NodeByName("leaf-4")[0].Port(1).Peer().Name()+": the link was up but not active in 5 of the latest ten runs\n")
	})
}

// TestRebootsAndFlaps: what is counted over more than a window: twice down in 24
// hours, a run after the other; and a node that reboots again and again.
func TestRebootsAndFlaps(t *testing.T) {
	onSimWith(t, "fattree", nil, nil, func(o *SessionOptions) { o.State = t.TempDir() }, func(t *testing.T, f *fixture) {
		swept, err := topology.SweepQuietly(t.Context(), f.Runtime)
		if err != nil {
			t.Fatal(err)
		}
		b := &bench{t: t, subnet: f.Env.Sim}
		host := swept.NodeByName("node-0010 HCA-1")[0].Port(1)
		other := swept.NodeByName("leaf-4")[0].Port(1)
		trafficOf(b, host, nil)
		again := func() string { return told(ran(t, f, audits.RunOptions{Job: "x"}, "counters", "--over", "last")) }
		again()
		for _, want := range []string{"ctr.downed", "link.flap", "link.flap"} {
			time.Sleep(11 * time.Hour)
			b.count(other, "LinkDownedCounter", 1)
			b.count(other.Peer(), "LinkDownedCounter", 1)
			if got := again(); !bytes.Contains([]byte(got), []byte("error "+want+" ")) {
				t.Errorf("got\n%swant %s", got, want)
			}
			trafficOf(b, host, nil)
		}
		for _, reboots := range []uint64{1, 10, 11} {
			time.Sleep(14 * time.Minute)
			b.must(b.subnet.Counters.Reset(host.Node().GUID(), 1))
			b.count(host.Peer(), "LinkDownedCounter", reboots)
			got := again()
			want := "info node.reboot node-0010 HCA-1: counters restarted from 0, and the links went down: the node was rebooted\n"
			if reboots > 10 {
				want = "warning node.reboot node-0010 HCA-1: counters restarted from 0, and the links went down 11 times within 15 min: the node reboots repeatedly\n"
			}
			if !bytes.Contains([]byte(got), []byte(want)) {
				t.Errorf("%d reboots: got\n%swant\n%s", reboots, got, want)
			}
			trafficOf(b, host, nil)
			again()
		}
	})
}

// TestStorm: a port that sends notices all the time, and one that sends a few.
func TestStorm(t *testing.T) {
	onSim(t, "fattree", nil, func(t *testing.T, f *fixture) {
		swept, err := topology.SweepQuietly(t.Context(), f.Runtime)
		if err != nil {
			t.Fatal(err)
		}
		b := &bench{t: t, subnet: f.Env.Sim}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := range 120 {
				time.Sleep(time.Second)
				b.subnet.Notices.SendTrap(129, swept.NodeByName("leaf-3")[0].GUID(), 7, nil)
				if i%10 == 0 {
					b.subnet.Notices.SendTrap(130, swept.NodeByName("leaf-2")[0].GUID(), 1, nil)
				}
			}
		}()
		r := audited(t, f, audits.RunOptions{}, "sm", "--traps", "40s")
		if got := idsOf(r.Findings); len(got) != 1 || got[0] != fmt.Sprintf("trap.storm:%v/7", swept.NodeByName("leaf-3")[0].GUID()) {
			t.Errorf("got %v, %v", told(r), r.Notes)
		}
		<-done
	})
}

// narrowAgent is a transport to agents of which one has no counters of 64 bits.
type narrowAgent struct {
	engine.Transport
	lid mad.LID
}

func (x *narrowAgent) Recv(d *engine.Datagram) error {
	err := x.Transport.Recv(d)
	if h := mad.ParseHeader(d.MAD); err == nil && d.LID == x.lid && h.Class == mad.ClassPerf && h.Attribute == mad.AttrPerfClassPortInfo.ID {
		d.MAD = bytes.Clone(d.MAD)
		var info mad.ClassPortInfo
		info.Decode(d.MAD[h.Class.DataOffset():])
		info.CapabilityMask &^= uint16(mad.PerfCapabilityMaskIsExtendedWidthSupported)
		info.Encode(d.MAD[h.Class.DataOffset():])
	}
	return err
}

// TestUnlikeAgents: an agent that lacks counters which other agents of its model have.
func TestUnlikeAgents(t *testing.T) {
	x := new(narrowAgent)
	wrap := func(tr engine.Transport) engine.Transport { x.Transport = tr; return x }
	onSimWith(t, "fattree", nil, wrap, nil, func(t *testing.T, f *fixture) {
		swept, err := topology.SweepQuietly(t.Context(), f.Runtime)
		if err != nil {
			t.Fatal(err)
		}
		x.lid = swept.NodeByName("node-0010 HCA-1")[0].Port(1).LID()
		got := told(audited(t, f, audits.RunOptions{}, "counters"))
		want := "info ctr.absent node-0010 HCA-1: the agent does not have PortCountersExtended, unicast and multicast packets, errors of 64 bits; most of the model do\n"
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
}

// TestKnownFabric: a fabric that is known is not swept, and its counters are read at the
// LIDs that it says; where a node is not at its LID any more, or silent, the fabric is
// swept.
func TestKnownFabric(t *testing.T) {
	onSim(t, "fattree", nil, func(t *testing.T, f *fixture) {
		swept, err := topology.SweepQuietly(t.Context(), f.Runtime)
		if err != nil {
			t.Fatal(err)
		}
		f.Env.Current = nil
		b := &bench{t: t, subnet: f.Env.Sim}
		again := func() (asked int, notes string) {
			r := audited(t, f, audits.RunOptions{Known: swept}, "counters")
			if len(r.Findings) > 0 {
				t.Error(told(r))
			}
			for _, row := range r.Coverage.Rows() {
				if row.Audit == audit.Sweep {
					asked += row.Requests
				}
			}
			return asked, fmt.Sprint(r.Notes)
		}
		if asked, notes := again(); asked > 0 || notes != "[the fabric was not swept: new and missing nodes and links are unknown, and states are those of the file]" {
			t.Errorf("known: %d requests of a sweep, %s", asked, notes)
		}
		b.must(b.subnet.Cables.Silence(end(t, swept, "node-0010 HCA-1", 1).Node, 1, true))
		if asked, notes := again(); asked == 0 || !strings.HasPrefix(notes, `[the fabric is swept: "node-0010 HCA-1" (0x0002c90310000090) does not answer at LID `) {
			t.Errorf("moved: %d requests of a sweep, %s", asked, notes)
		}
	})
}

package builtins

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/audit"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
)

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
		o.Env.Sim = drops.subnet
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
		check("third", "info audit.window fabric: bit errors cannot be judged yet: the oldest read of this job is 600 s old\n")
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

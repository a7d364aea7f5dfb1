package builtins

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/builtins/program"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// subscriptionsAt is how many the subnet administrator has.
func subscriptionsAt(t *testing.T, s *sim.Subnet) int {
	t.Helper()
	tr, err := s.Attach(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	e := engine.New(tr, engine.Options{})
	defer e.Close()
	port, _ := e.Port()
	var c engine.Call
	c.PutSA(mad.MethodGetTable, mad.AttrInformInfoRecord.ID, 0, 0, nil)
	c.SetLID(port.SMLID)
	if err := e.Do(t.Context(), &c); err != nil || c.Err != nil {
		t.Fatal(err, c.Err)
	}
	return len(c.Table) / 64
}

// TestSubscriptionsEnd: at the end of the session the subnet administrator has
// none, and a dead one does not hold the end up.
func TestSubscriptionsEnd(t *testing.T) {
	for _, silent := range []bool{false, true} {
		var subnet *sim.Subnet
		var on *sometimes
		adapt := func(o *SessionOptions) {
			subnet = o.Sim
			on = &sometimes{Transport: replaced(o)}
			o.Engine = engine.New(on, engine.Options{})
		}
		onSim(t, "ring:n=3", adapt, func(t *testing.T, f *fixture) {
			defer f.Env.Engine.Close()
			if _, explained, status := f.run("sa_subscribe(trap=128); sa_subscribe(); sub = sa_subscribe(trap=64)\n1"); status != lang.StatusClean {
				t.Fatal(explained)
			}
			if n := subscriptionsAt(t, subnet); n != 3 {
				t.Errorf("%d subscriptions", n)
			}
			on.silent = silent
			began := time.Now()
			f.Unsubscribe()
			if took := time.Since(began); took > time.Second || !silent && took > 0 {
				t.Errorf("the end took %v", took)
			}
			if n := subscriptionsAt(t, subnet); n != 0 && !silent {
				t.Errorf("%d subscriptions are left", n)
			}
			synctest.Wait()
		})
	}
}

// replaced returns another transport to the port of o's engine, which stays unchanged.
func replaced(o *SessionOptions) engine.Transport {
	tr, err := o.Sim.Attach(o.simNode(), 1)
	if err != nil {
		panic(err)
	}
	return tr
}

// simNode is the number of the first CA in the ring of three.
func (o *SessionOptions) simNode() int { return 3 }

// sometimes is a transport that answers no more.
type sometimes struct {
	engine.Transport
	silent bool
}

func (s *sometimes) Send(d *engine.Datagram) error {
	if s.silent {
		return nil
	}
	return s.Transport.Send(d)
}

func (s *sometimes) TrySend(d *engine.Datagram) (bool, error) { return true, s.Send(d) }

// TestNextStops: Ctrl-C ends the waiting, and so does the deadline, which the
// script may report.
func TestNextStops(t *testing.T) {
	onSim(t, "ring:n=3", nil, func(t *testing.T, f *fixture) {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Hour, func() { cancel(lang.ErrInterrupted) })
		began := time.Now()
		err := program.RunCode(ctx, f.Interpreter, "<test>", "sub = sa_subscribe(trap=128)\nsub.next()")
		if !errors.Is(err, lang.ErrInterrupted) || audits.ExitStatus(f.Runtime, err) != lang.StatusInterrupted || time.Since(began) != time.Hour {
			t.Errorf("interrupted: %v after %v", err, time.Since(began))
		}
	})
	onSim(t, "ring:n=3", nil, func(t *testing.T, f *fixture) {
		late := &lang.DeadlineError{After: time.Minute}
		time.AfterFunc(time.Minute, func() { f.Env.Engine.Halt(late) })
		out, explained, status := f.run("sub = sa_subscribe(trap=128)\nr = catch(sub.next)\nprint(r.message)\nsub.next(timeout=5)")
		const where = "next: deadline of 1m0s passed\n  <test>:4:5: in <toplevel>\n    sub.next(timeout=5)\n        ^"
		if out != "next: deadline of 1m0s passed\n" || explained != where || status != lang.StatusFabric {
			t.Errorf("%s%s, status %d", out, explained, status)
		}
		f.Env.Engine.Halt(nil) // as at the prompt, after the statement
	})
}

// TestNotices are shown as what they are, in each format.
func TestNotices(t *testing.T) {
	const code = `
sub = sa_subscribe(trap=[65, 128])
sim.unlink("switch-2/1")
n = sub.next(timeout=1)
show(n)
show(sub.next(timeout=1))
print(sub.next(timeout=1))
print(n)
`
	for format, want := range map[lang.Format]string{
		lang.FormatText: `is_generic     1
type           urgent
producer_type  switch
trap_number    128
issuer_lid     2
notice_toggle  0
notice_count   0
lid_addr       2
issuer_gid     fe80::2:c903:10:10
source         4
is_generic     1
type           subnet_management
producer_type  subnet_management
trap_number    65
issuer_lid     4
notice_toggle  0
notice_count   0
gid_addr       fe80::2:c903:1000:11
issuer_gid     fe80::2:c903:1000:1
source         4
None
notice(trap 128 (link state changed), is_generic=1, type="urgent", ...)
`,
		lang.FormatJSONL: `{"schema":"notice/1","is_generic":1,"type":"urgent","type_code":1,"producer_type":"switch","producer_type_code":2,"trap_number":128,"issuer_lid":2,"notice_toggle":0,"notice_count":0,"lid_addr":2,"issuer_gid":"fe80::2:c903:10:10","source":4}
{"schema":"notice/1","is_generic":1,"type":"subnet_management","type_code":3,"producer_type":"subnet_management","producer_type_code":4,"trap_number":65,"issuer_lid":4,"notice_toggle":0,"notice_count":0,"gid_addr":"fe80::2:c903:1000:11","issuer_gid":"fe80::2:c903:1000:1","source":4}
`,
	} {
		onSim(t, "ring:n=3", func(o *SessionOptions) { o.Format = format }, func(t *testing.T, f *fixture) {
			out, explained, _ := f.run(code)
			if diff := cmp.Diff(want, out); diff != "" || explained != "" {
				t.Errorf("%s (-want +got):\n%s%s", format, diff, explained)
			}
		})
	}
}

// TestTrapAgent: with --trap-agent, agents that take this port for the subnet
// manager's tell it what happens, and are answered; where a subnet manager is,
// it is refused.
func TestTrapAgent(t *testing.T) {
	const code = `
sub = sa_subscribe(trap=128, source="traps")
smp_set("PortInfo", 2, 0, master_sm_lid=smp_get("PortInfo", dr("0"), 0).lid)
sim.unlink("switch-2/1")
n = sub.next(timeout="1s")
(n.trap_number, n.lid_addr, sub.next(timeout="1s"), stats().unsolicited)
`
	agent := func(o *SessionOptions) { o.TrapAgent = true }
	onSim(t, "ring:n=3,sm=node-0003 HCA-1", agent, func(t *testing.T, f *fixture) {
		out, explained, _ := f.run(code)
		if want := "(128, 2, None, 1)\n"; out != want || explained != "" {
			t.Errorf("%s%s", out, explained)
		}
	})
	onSim(t, "ring:n=3", agent, func(t *testing.T, f *fixture) {
		_, explained, status := f.run(code)
		if !strings.HasPrefix(explained, "sa_subscribe: refused: a subnet manager runs on this port and receives its traps; use another port (-C, -P)\n") || status != lang.StatusUsage {
			t.Errorf("%s, status %d", explained, status)
		}
	})
}

// TestSubscribeReadOnly: subscriptions are for all; cables are not.
func TestSubscribeReadOnly(t *testing.T) {
	readOnly := func(o *SessionOptions) {
		o.Write = false
	}
	onSim(t, "ring:n=3", readOnly, func(t *testing.T, f *fixture) {
		out, explained, status := f.run("print(sa_subscribe(trap=128).next(timeout=1))\nsim.unlink(\"switch-2/1\")")
		if out != "None\n" || !strings.HasPrefix(explained, "unlink: refused: this session is read-only") || status != lang.StatusUsage {
			t.Errorf("%s%s, status %d", out, explained, status)
		}
	})
}

// TestPoll: source="poll" reports the notices of a device that sends no traps, and of no
// other; what came before the subscription is not reported.
func TestPoll(t *testing.T) {
	onSim(t, "ring:n=3", nil, func(t *testing.T, f *fixture) {
		const switch2 = mad.GUID(0x0002c90300100010)
		if err := f.Env.Sim.Edit.Port(switch2, 0, func(i *mad.PortInfo) { i.CapabilityMask &^= mad.CapabilityMaskIsTrapSupported }); err != nil {
			t.Fatal(err)
		}
		const code = `
sim.trap(130, "switch-2/1")
sub = sa_subscribe(trap=[130, 257], source="poll")
reports = sa_subscribe(trap=130)
print(sub.next(timeout=12))
sim.trap(130, "switch-2/2")
sim.trap(130, "switch-1/2")
n = sub.next(timeout=12)
print(n, n.port_no, n.source)
sim.trap(129, "switch-2/2")
sim.trap(257, "switch-2/2", key=0x8001, sl=3, lid_addr1=5, gid_addr2="fe80::7")
n = sub.next(timeout=12)
print(type(n), n.count)
n = sub.next(timeout=12)
print(n, hex(n.key), n.sl, n.lid_addr1, n.gid_addr2)
print(sub.next(timeout=12))
print(reports.next(timeout=1).port_no, reports.next(timeout=1))
sub.close()
`
		const want = `None
notice(trap 130 (excessive buffer overrun threshold reached), is_generic=1, type="urgent", ...) 2 2
lost 1
notice(trap 257 (bad P_Key), is_generic=1, type="security", ...) 0x8001 3 5 fe80::7
None
2 None
`
		out, explained, _ := f.run(code)
		if diff := cmp.Diff(want, out); diff != "" || explained != "" {
			t.Errorf("(-want +got):\n%s%s", diff, explained)
		}
	})
}

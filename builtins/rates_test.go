package builtins

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/audit"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// pma is a transport between a session and agents that do not behave: to some
// requests of performance management it gives no answer, or one that says no.
type pma struct {
	engine.Transport

	mu     sync.Mutex
	lose   map[mad.AttributeID]bool // requests for these
	refuse map[mad.AttributeID]bool
	sets   int
	gets   map[mad.AttributeID]int
}

func (p *pma) Send(d *engine.Datagram) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := mad.ParseHeader(d.MAD)
	if h.Class != mad.ClassPerf {
		return p.Transport.Send(d)
	}
	if h.Method == mad.MethodSet {
		p.sets++
	}
	p.gets[h.Attribute]++
	switch {
	case p.lose[h.Attribute]:
		return nil
	case p.refuse[h.Attribute]: // the simulator knows no such attribute, and says so
		other := *d
		other.MAD = bytes.Clone(d.MAD)
		h.Attribute = 0x3f
		h.Put(other.MAD)
		d = &other
	}
	return p.Transport.Send(d)
}

func (p *pma) TrySend(d *engine.Datagram) (bool, error) { return true, p.Send(d) }

// Recv gives refusals the attribute that was asked for.
func (p *pma) Recv(d *engine.Datagram) error {
	err := p.Transport.Recv(d)
	if err != nil {
		return err
	}
	if h := mad.ParseHeader(d.MAD); h.Class == mad.ClassPerf && h.Attribute == 0x3f {
		p.mu.Lock()
		for id := range p.refuse {
			h.Attribute = id
		}
		p.mu.Unlock()
		h.Put(d.MAD)
	}
	return nil
}

// onPMA runs fn with a session on a simulated ring of 2 switches, in virtual time.
func onPMA(t *testing.T, state string, fn func(t *testing.T, f *fixture, p *pma)) {
	p := &pma{lose: map[mad.AttributeID]bool{}, refuse: map[mad.AttributeID]bool{}, gets: map[mad.AttributeID]int{}}
	onSim(t, "ring:n=2", func(o *SessionOptions) {
		o.Engine.Close()
		o.Sim, p.Transport = attachSubnet(t, "ring:n=2")
		o.Engine = engine.New(p, engine.Options{Write: true})
		o.State, o.Job = state, "test"
	}, func(t *testing.T, f *fixture) {
		defer f.Env.Engine.Close()
		fn(t, f, p)
	})
}

// TestPerfRates: rates are of what was counted between two reads, at each port;
// nothing is cleared.
func TestPerfRates(t *testing.T) {
	onPMA(t, t.TempDir(), func(t *testing.T, f *fixture, p *pma) {
		out, explained, status := f.run(`
f = discover()
ports = list(f.switches[0].ports) + list(f.switches[1].ports)
perf_set("PortCountersExtended", ports[0], symbol_error_counter=1000, port_xmit_data=1 << 40)
perf_set("PortCountersExtended", ports[1], port_rcv_switch_relay_errors=65500)
perf_set("PortRcvErrorDetails", ports[1], port_looping_errors=65500)
def count():
    sleep("5s")
    perf_set("PortCountersExtended", ports[0], symbol_error_counter=1050, port_xmit_data=(1 << 40) + 1000)
    perf_set("PortRcvErrorDetails", ports[1], port_looping_errors=65535)
r, _ = parallel(lambda fn: fn(), [lambda: perf_rates(ports), count])
for x in r:
    print(x.port.name, x.window, x.moving, x.port_xmit_bytes, sorted(x.unknown.keys()))
print(r[0].rates["symbol_error_counter"], r[0].counts["port_xmit_bytes"], r[0].counts["symbol_error_counter"], "port_looping_errors" in r[1].rates)
print([b.verdict for b in [r[0].ber(1e-11), r[0].ber(), r[1].ber(1e-11), r[2].ber(1e-10), r[2].ber()]])
print(perf_get("PortCountersExtended", ports[0]).symbol_error_counter)
`)
		want := `switch-1/1 10.0 ["symbol_error_counter"] 400.0 ["not_supported"]
switch-1/2 10.0 [] 0.0 ["not_supported", "saturated"]
switch-1/3 10.0 [] 0.0 ["not_supported"]
switch-2/1 10.0 [] 0.0 ["not_supported"]
switch-2/2 10.0 [] 0.0 ["not_supported"]
switch-2/3 10.0 [] 0.0 ["not_supported"]
5.0 4000 50 False
["exceeded", "exceeded", "unknown", "ok", "window_too_short"]
1050
`
		if d := cmp.Diff(want, out); d != "" || status != 0 {
			t.Errorf("status %d, %s -want +got\n%s", status, explained, d)
		}
		if p.sets != 5 {
			t.Errorf("%d Sets were sent, want the script's 5", p.sets)
		}
	})
}

// TestPerfRatesUnknown: what is silent, refused or cleared is absent, with why.
func TestPerfRatesUnknown(t *testing.T) {
	onPMA(t, t.TempDir(), func(t *testing.T, f *fixture, p *pma) {
		p.refuse[mad.AttrPortXmitDiscardDetails.ID] = true
		p.lose[mad.AttrPortRcvErrorDetails.ID] = true
		out, explained, status := f.run(`
f = discover()
sw = f.switches[0]
perf_set("PortCountersExtended", sw.ports, port_rcv_errors=7, port_xmit_discards=1)
perf_set("PortCountersExtended", f.switches[1].ports[1], port_rcv_errors=7, vl15_dropped=2, port_xmit_discards=1)
perf_set("PortCountersExtended", f.switches[1].ports[2], port_rcv_errors=7, port_xmit_discards=1)
def clear():
    sleep("5s")
    perf_clear("PortCountersExtended", sw.ports)
    perf_clear("PortCountersExtended", f.switches[1].ports[1], counters="port_rcv_errors")
r, _ = parallel(lambda fn: fn(), [lambda: perf_rates(list(sw.ports) + list(f.switches[1].ports)[:2], over="20s"), clear])
for x in r:
    print(x.port.name, {k: len(v) for k, v in x.unknown.items() if k != "not_supported"}, "port_inactive_discards" in x.unknown["not_supported"], x.rates.get("vl15_dropped"))
`)
		want := `switch-1/1 {"no_answer": 6, "no_earlier_read": 4, "node_reset": 22} False None
switch-1/2 {"no_answer": 6, "no_earlier_read": 4, "node_reset": 22} False None
switch-1/3 {"no_answer": 6, "no_earlier_read": 4, "node_reset": 22} False None
switch-2/1 {"no_answer": 6, "cleared": 20} True 0.0
switch-2/2 {"no_answer": 6} True 0.0
`
		if d := cmp.Diff(want, out); d != "" || status != lang.StatusFabric {
			t.Errorf("status %d, %s -want +got\n%s", status, explained, d)
		}
		// Each agent is asked once for what it refuses, and for what it is silent
		// about once a read, with the engine's retries; not for what has counted
		// nothing.
		got := [2]int{p.gets[mad.AttrPortXmitDiscardDetails.ID], p.gets[mad.AttrPortRcvErrorDetails.ID]}
		if want := [2]int{2, 3 * 6}; got != want {
			t.Errorf("%v requests for details, want %v", got, want)
		}
	})
}

// TestPerfRatesErrors: what is no port, or does not answer at all.
func TestPerfRatesErrors(t *testing.T) {
	onPMA(t, t.TempDir(), func(t *testing.T, f *fixture, p *pma) {
		for code, want := range map[string]string{
			`perf_rates(discover().switches[0])`:                  `perf_rates: for parameter target: "switch-1" (0x0002c90300100000) is not a port of the fabric; use sw.ports, fabric.ports or "NAME/PORT", after discover()`,
			`perf_rates(1)`:                                       `perf_rates: for parameter target: LID 1 is not a port of the fabric; use sw.ports, fabric.ports or "NAME/PORT", after discover()`,
			`perf_rates(discover().switches[0].ports, over="1s")`: `perf_rates: for parameter over: 1s: too short; want 2s or more, because agents do not update counters at each read`,
			`perf_rates(discover().switches[0].ports, over="x")`:  `perf_rates: for parameter over: invalid duration "x"; write "500ms", "10s", "2m" or a number of seconds; also valid: "last", and the path of a snapshot such as ./FILE`,
			`discover().cas[0].ports[1].ber`:                      `port has no .ber field or method`,
		} {
			if _, explained, status := f.run(code); firstLines(explained, want) != want || status != lang.StatusUsage {
				t.Errorf("%s: status %d, %s", code, status, explained)
			}
		}
		if out, _, status := f.run(`print(perf_rates([]), [e.status for e in perf_rates(["nobody"])])`); status != 0 {
			t.Errorf("status %d, %s", status, out)
		}
		p.lose[mad.AttrPerfClassPortInfo.ID] = true
		p.gets = map[mad.AttributeID]int{}
		_, explained, status := f.run(`perf_rates(discover().switches[0].ports)[1].window`)
		want := `perf_rates: port 2 of "switch-1" (0x0002c90300100000): PerfGet(ClassPortInfo) to LID 1: timed out`
		if !strings.HasPrefix(explained, want) || status != lang.StatusFabric || len(p.gets) != 1 {
			t.Errorf("a silent agent: status %d, asked for %v, %s", status, p.gets, explained)
		}
	})
}

// TestPerfRatesLast: over="last" is since the run before, whatever session that
// was; a state that is damaged is told, and begins anew.
func TestPerfRatesLast(t *testing.T) {
	state := t.TempDir()
	onPMA(t, state, func(t *testing.T, f *fixture, p *pma) {
		var got strings.Builder
		run := func(code string) {
			out, explained, status := f.run("f = discover()\n" + code + `
x = perf_rates(f.switches[0].ports[1], over="last")
print(x.window, x.moving, x.rates.get("symbol_error_counter"), x.rates.get("port_xmit_bytes"), list(x.unknown.keys()), x.ber(1e-13).verdict)
y = x.ber()
print(y.errors, y.window, y.verdict)`)
			fmt.Fprint(&got, strings.ReplaceAll(out+f.stderr.String()+explained, state, "DIR"))
			if status != 0 {
				fmt.Fprintln(&got, "status", status)
			}
		}
		run("")
		run("sleep('5m')\nperf_set('PortCountersExtended', f.switches[0].ports[1], symbol_error_counter=60)")
		run("sleep('5m')")
		run("sleep('130m')")
		paths, _ := filepath.Glob(filepath.Join(state, "*", "*.state"))
		if len(paths) != 1 {
			t.Fatal(paths)
		}
		if err := os.WriteFile(paths[0], []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
		run("sleep('5m')")
		run("sleep('5m')")
		want := `None [] None None ["not_supported", "no_earlier_read"] unknown
None None unknown
300.0 ["symbol_error_counter"] 0.2 0.0 ["not_supported"] exceeded
60 300.0 exceeded
300.0 [] 0.0 0.0 ["not_supported"] ok
60 600.0 exceeded
7800.0 [] 0.0 0.0 ["not_supported"] ok
60 8400.0 exceeded
None [] None None ["not_supported", "no_earlier_read"] unknown
None None unknown
warning: DIR/sm-0x0002c90310000001/test.state: expected a state of fabsh, which begins with "fabsh audit state 5\n"; the state starts empty
300.0 [] 0.0 0.0 ["not_supported"] ok
0 300.0 window_too_short
`
		if d := cmp.Diff(want, got.String()); d != "" {
			t.Errorf("-want +got\n%s", d)
		}
	})
}

// TestPerfRatesAsks: what a port tells in one attribute it is not asked for in two, and
// what an agent said it has it is not asked for again.
func TestPerfRatesAsks(t *testing.T) {
	onPMA(t, t.TempDir(), func(t *testing.T, f *fixture, p *pma) {
		run := func(what string, info, base, wide int) {
			t.Helper()
			p.gets = map[mad.AttributeID]int{}
			r := ran(t, f, audits.RunOptions{Job: "x"}, "counters", "--over", "last")
			time.Sleep(time.Hour)
			got := [3]int{p.gets[mad.AttrPerfClassPortInfo.ID], p.gets[mad.AttrPortCounters.ID], p.gets[mad.AttrPortCountersExtended.ID]}
			if want := [3]int{info, base, wide}; got != want || !r.Answered() {
				t.Errorf("%s: %v requests, want %v; %v", what, got, want, r.Failures)
			}
		}
		run("first", 4, 0, 6)
		run("second", 0, 0, 6)
		f.run(`perf_set("PortCountersExtended", discover().switches[0].ports, port_rcv_errors=9)`)
		run("counted", 0, 0, 6)
		f.run(`perf_clear("PortCountersExtended", discover().switches[0].ports)`)
		run("begun anew", 0, 0, 6)
		run("thereafter", 1, 0, 6)
		p.refuse[mad.AttrPortCountersExtended.ID] = true
		run("refused", 0, 6, 4)
		run("still so", 4, 6, 4)
		delete(p.refuse, mad.AttrPortCountersExtended.ID)
		run("not any more", 4, 0, 6)
	})
}

// setClock is a clock that is set when it has been read some times.
type setClock struct {
	by    time.Duration
	after int
	reads int
	slept time.Duration
}

func (c *setClock) Now() time.Time {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	if c.reads++; c.reads > c.after {
		now = now.Add(c.by)
	}
	return now
}

func (c *setClock) Sleep(_ context.Context, d time.Duration) error {
	c.slept = max(c.slept, d)
	return nil
}

// TestRatesClock: whenever the clock is set back, or stops, rates over 2 s wait 2 s at
// most, and are not known.
func TestRatesClock(t *testing.T) {
	for _, by := range []time.Duration{-time.Hour, 0} {
		for after := range 40 {
			c := &setClock{by: by, after: after}
			onSim(t, "fattree:k=4", func(o *SessionOptions) { o.Clock = c }, func(t *testing.T, f *fixture) {
				out, explained, exit := f.run(`perf_rates(discover().switches[0].ports[1], over="2s").unknown.get("too_short", []) != []`)
				if out != "True\n" || exit != 0 {
					t.Errorf("set by %v after %d: %s%s", by, after, out, explained)
				}
				if c.slept > 2*time.Second {
					t.Errorf("set by %v after %d: it waits %v", by, after, c.slept)
				}
			})
		}
	}
}

// bootClock is a machine's clock that is set, with the time since its boot.
type bootClock struct {
	lang.RealClock
	by   time.Duration
	boot string
	at   time.Time // of the boot
}

func (c *bootClock) Now() time.Time { return time.Now().Round(0).Add(c.by) }

func (c *bootClock) Uptime() (boot string, up time.Duration) { return c.boot, time.Since(c.at) }

// TestRunsClock: whatever the clock does between two runs, rates are over the time since
// boot. After another boot they are over the clock's time, or not judged, with the reason.
func TestRunsClock(t *testing.T) {
	t.Run("a file", func(t *testing.T) { runsClock(t, nil) })
	t.Run("in memory", func(t *testing.T) { runsClock(t, new(audit.State)) }) // as the exporter keeps it
}

func runsClock(t *testing.T, kept *audit.State) {
	c := &bootClock{boot: "a"}
	var got strings.Builder
	onSim(t, "ring:n=2", func(o *SessionOptions) { o.Clock, o.State = c, t.TempDir() }, func(t *testing.T, f *fixture) {
		c.at = time.Now().Add(-time.Hour)
		write(t, f.fs, "/work/a.star", `
def audit(fabric):
    finding("a.window", fabric, "%s" % perf_rates(fabric.switches[0].ports[1], over="last").window, severity="info")
`)
		check := func(what string) {
			time.Sleep(10 * time.Minute)
			r := ran(t, f, audits.RunOptions{Kept: kept}, "a.star")
			for _, x := range r.Findings {
				fmt.Fprintln(&got, what+":", x.Message, "since", c.Now().Sub(x.Since).Round(time.Minute), r.Notes)
			}
		}
		check("first")
		check("second")
		c.by = -time.Hour
		check("an hour back")
		c.by += 24 * time.Hour
		check("a day forward")
		c.by -= 10 * time.Minute
		check("standing")
		c.boot, c.at = "b", time.Now()
		check("another boot")
		c.boot, c.at, c.by = "c", time.Now(), c.by-time.Hour
		check("another boot, an hour back")
	})
	want := `first: None since 0s [counters were not judged: no earlier run of this job has read them]
second: 600.0 since 10m0s []
an hour back: 600.0 since 20m0s []
a day forward: 600.0 since 30m0s []
standing: 600.0 since 40m0s []
another boot: 600.0 since 50m0s []
another boot, an hour back: None since 0s [counters were not judged: the clock stopped or was set back since the previous run of this job]
`
	if d := cmp.Diff(want, got.String()); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// fecAgents is a transport to agents that have the counters of Reed-Solomon FEC, which agents of
// the simulator do not have.
type fecAgents struct {
	engine.Transport

	mu     sync.Mutex
	counts map[fecKey]uint64
}

type fecKey struct {
	lid   mad.LID
	port  int
	field string
	lane  int
}

func (f *fecAgents) Recv(d *engine.Datagram) error {
	if err := f.Transport.Recv(d); err != nil {
		return err
	}
	h := mad.ParseHeader(d.MAD)
	switch {
	case h.Class == mad.ClassPerf && h.Attribute == mad.AttrPerfClassPortInfo.ID:
		d.MAD = bytes.Clone(d.MAD)
		data := d.MAD[h.Class.DataOffset():]
		var info mad.ClassPortInfo
		info.Decode(data)
		info.CapabilityMask |= uint16(mad.PerfCapabilityMaskIsRSFECModeSupported)
		info.Encode(data)
	case h.Class == mad.ClassPerf && h.Attribute == mad.AttrPortExtendedSpeedsCounters.ID:
		d.MAD = bytes.Clone(d.MAD)
		data := d.MAD[h.Class.DataOffset():]
		f.mu.Lock()
		defer f.mu.Unlock()
		attr := mad.AttrPortExtendedSpeedsCounters.WithVariant("rs_fec")
		port := int(attr.Field("port_select").Uint(data))
		for key, n := range f.counts {
			if key.lid == d.LID && key.port == port {
				attr.Field(key.field).SetUintAt(data, key.lane, n)
			}
		}
	case h.Class.Family() == mad.ClassSubn && h.Attribute == mad.AttrPortInfoExtended.ID:
		d.MAD = bytes.Clone(d.MAD)
		h.Status &^= 0x7fff // all but the direction
		h.Put(d.MAD)
		(&mad.PortInfoExtended{CapabilityMask: mad.ExtendedCapabilityMaskIsFECModeSupported, FECModeActive: mad.FECModeRS}).Encode(d.MAD[64:128])
	}
	return nil
}

// TestFECCounters: what FEC could not mend; a link that it mends far more on than on
// others; a lane.
func TestFECCounters(t *testing.T) {
	agents := &fecAgents{counts: map[fecKey]uint64{}}
	onSim(t, "fattree", func(o *SessionOptions) {
		o.Engine.Close()
		o.Sim, agents.Transport = attachSubnet(t, "fattree")
		o.Engine = engine.New(agents, engine.Options{Write: true})
		o.State = t.TempDir()
	}, func(t *testing.T, f *fixture) {
		defer f.Env.Engine.Close()
		fab, err := topology.SweepQuietly(t.Context(), f.Runtime)
		if err != nil {
			t.Fatal(err)
		}
		count := func(name string, num int, field string, lane int, n uint64) {
			p := fab.NodeByName(name)[0].Port(num)
			agents.counts[fecKey{p.LID(), num, field, lane}] += n
		}
		normal := func() {
			for i := range fab.Nodes() {
				n := &fab.Nodes()[i]
				for num := 1; num <= n.NumPorts(); num++ {
					count(n.Name(), num, "port_fec_corrected_symbol_ctr", 0, 4000)
					for lane := range 4 {
						count(n.Name(), num, "fec_correctable_symbol_ctr_lane", lane, 1000+uint64(lane))
					}
				}
			}
		}
		normal()
		if r := ran(t, f, audits.RunOptions{}, "counters", "--over", "last"); len(r.Findings) > 0 {
			t.Errorf("%v", told(r))
		}
		time.Sleep(15 * time.Minute)
		normal()
		if r := ran(t, f, audits.RunOptions{}, "counters", "--over", "last"); len(r.Findings) > 0 || !r.Answered() {
			t.Errorf("healthy: %v, %v", told(r), r.Coverage.Rows())
		}
		time.Sleep(15 * time.Minute)
		normal()
		count("leaf-1", 1, "port_fec_uncorrectable_block_ctr", 0, 1)
		count("leaf-2", 2, "unknown_block_counter", 0, 3)
		count("leaf-3", 3, "port_fec_corrected_symbol_ctr", 0, 400_000)
		count("leaf-4", 4, "fec_correctable_symbol_ctr_lane", 2, 90_000)
		r := ran(t, f, audits.RunOptions{}, "counters", "--over", "last")
		want := `error ctr.fec.uncorrectable leaf-1/1 - node-0001 HCA-1/1: leaf-1/1: 1 block not corrected by FEC in 15 min
error ctr.fec.uncorrectable leaf-2/2 - node-0006 HCA-1/1: leaf-2/2: 3 unknown blocks in 15 min
warning ctr.fec.corrected leaf-3/3 - node-0011 HCA-1/1: leaf-3/3: FEC corrected 404000 symbols in 15 min; median of similar links: 4000
warning ctr.fec.corrected leaf-4/4 - node-0016 HCA-1/1: leaf-4/4: FEC corrected 91002 symbols on lane 2 in 15 min; median of the other lanes: 1001
`
		if diff := cmp.Diff(want, told(r)); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
}

package builtins

import (
	"bytes"
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
		o.Env.Sim, p.Transport = attachSubnet(t, "ring:n=2")
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

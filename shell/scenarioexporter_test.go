package shell

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
)

// logged is a line of the log of fabsh sim.
type logged struct {
	At     float64
	Time   time.Time
	Action string
	Args   map[string]any
	Peer   *struct{ PID, UID int }
	Error  string
}

// readLog reads the complete lines of a log.
func readLog(t testing.TB, path string) (list []logged) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan(); {
		var a logged
		if err := json.Unmarshal(in.Bytes(), &a); err != nil {
			return list // the line is being written
		}
		list = append(list, a)
	}
	return list
}

// cycle is a result of the exporter, and when it was read.
type cycle struct {
	begin, end time.Time
	metrics    map[string]*dto.MetricFamily
}

// nextCycle waits for a result of a later cycle than number.
func (x *exporting) nextCycle(t *testing.T, number float64) (c cycle, next float64) {
	t.Helper()
	scrapes := time.NewTicker(200 * time.Millisecond) // a cycle takes a second
	defer scrapes.Stop()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); <-scrapes.C {
		before := time.Now()
		m := x.metrics(t)
		after := time.Now()
		if n := value(m, "fabsh_exporter_cycles_total", "outcome=whole"); n > number {
			seconds := func(name string) time.Duration { return time.Duration(value(m, name) * float64(time.Second)) }
			age, took := seconds("fabsh_exporter_result_age_seconds"), seconds("fabsh_exporter_cycle_duration_seconds")
			return cycle{before.Add(-age - took), after.Add(-age), m}, n
		}
	}
	t.Fatal("the exporter has no new result")
	return c, 0
}

// TestScenarioExporter: what an exporter shows, cycle by cycle, is what the log of a served
// fabric has: nothing of an action before its time, and each action from its time on. The
// actions are those of a scenario, and of another program.
func TestScenarioExporter(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("abstract sockets")
	}
	if testing.Short() {
		t.Skip("takes a quarter of a minute")
	}
	t.Parallel()
	dir := t.TempDir()
	name, log, script := fmt.Sprintf("fabsh-%016x", rand.Uint64()), filepath.Join(dir, "log"), filepath.Join(dir, "x.star")
	const rate = 50
	if err := os.WriteFile(script, []byte(`def scenario(sim):
    at("4s", lambda: sim.errors("leaf-1/3", symbol_error_counter = 50))
    at("5s", lambda: sim.temperature("spine-1", 108))
    at("6s", lambda: sim.unlink("leaf-2/3"))
    at("12s", lambda: sim.link("leaf-2/3"))
    at("13s", lambda: sim.kill("spine-2"))
`), 0o666); err != nil {
		t.Fatal(err)
	}
	serveSim(t, name, "fattree:k=4,levels=2", "--scenario", script, "--log", log)
	x := startExporter(t, []string{"-F", "ibsim:" + name, "-t", "1s"}, "--every", "1s", "--audits", "counters,health")
	if got := outcome(fabsh(t, nil, "-q", "-F", "ibsim:"+name, "-c", `sim.set_counters("leaf-3/1", link_downed_counter=7)`)); got != "[exit status 0]\n" {
		t.Fatal(got)
	}
	port := func(metric, leaf, num string) func(cycle) float64 {
		return func(c cycle) float64 { return value(c.metrics, metric, "switch="+leaf, "port="+num) }
	}
	type state struct {
		action string
		value  func(cycle) float64
		before float64 // of the value
		after  float64 // NaN: by the time
	}
	byTime := math.NaN()
	states := []state{
		{"set_counters", port("infiniband_switch_port_link_downed_total", "leaf-3", "1"), 0, 7},
		{"errors", port("infiniband_switch_port_symbol_error_total", "leaf-1", "3"), 0, byTime},
		{"temperature", func(c cycle) float64 {
			return value(c.metrics, "fabsh_audit_finding", "check=env.temp", "subject=spine-1", "severity=critical")
		}, 0, 1},
		{"unlink", port("infiniband_switch_port_state", "leaf-2", "3"), 1, 0},
		{"link", port("infiniband_switch_port_state", "leaf-2", "3"), 0, 1},
		{"kill", func(c cycle) float64 { return value(c.metrics, "infiniband_switch_info", "switch=spine-2") }, 1, 0},
	}
	var cycles []cycle
	number := 0.0
	for {
		var c cycle
		c, number = x.nextCycle(t, number)
		cycles = append(cycles, c)
		if actions := readLog(t, log); len(actions) == len(states) && c.begin.After(actions[len(actions)-1].Time) {
			break
		}
	}
	actions := map[string]logged{}
	for _, a := range readLog(t, log) {
		actions[a.Action] = a
		if own := a.Peer == nil; own == (a.Action == "set_counters") || a.Error != "" {
			t.Errorf("the log has %+v", a)
		}
	}
	for i, s := range states {
		a, logged := actions[s.action]
		until := time.Now() // of the next action that changes the same value
		if s.action == "unlink" {
			until = actions["link"].Time
		}
		seen := 0
		for _, c := range cycles {
			v := s.value(c)
			switch {
			case c.end.Before(a.Time) && s.action != "link":
				if v != s.before {
					t.Errorf("%s is %v in the cycle that ended %v before it", s.action, v, a.Time.Sub(c.end))
				}
			case c.begin.After(a.Time) && c.end.Before(until):
				seen++
				if !math.IsNaN(s.after) && v != s.after {
					t.Errorf("%s is %v in the cycle that began %v after it, want %v", s.action, v, c.begin.Sub(a.Time), s.after)
				}
			}
			if s.action == "errors" { // the value shows the time
				least, most := rate*max(0, c.begin.Sub(a.Time).Seconds())-1, rate*max(0, c.end.Sub(a.Time).Seconds())+1
				if v < least || v > most {
					t.Errorf("%v errors in the cycle from %v to %v after the action, want %v to %v", v, c.begin.Sub(a.Time), c.end.Sub(a.Time), least, most)
				}
			}
		}
		if !logged || seen == 0 && s.action != "unlink" { // which a slow machine may miss
			t.Errorf("state %d, %s: in the log: %v, seen in %d of %d cycles", i, s.action, logged, seen, len(cycles))
		}
	}
}

package builtins

import (
	"sync"
	"testing"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/sim"
)

// steps is a clock by which each reading is a second after the one before.
type steps struct {
	lang.RealClock
	mu  sync.Mutex
	now time.Time
}

func (s *steps) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(time.Second)
	return s.now
}

// TestScenarioLog: the log has the time before a change, of another program and of a scenario, so that
// nothing that follows from the change is earlier: here the begin of a flow.
func TestScenarioLog(t *testing.T) {
	clock := &steps{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	var subnet *sim.Subnet
	adapt := func(o *SessionOptions) { o.Clock, subnet = clock, o.Env.Sim }
	onSim(t, "fattree", adapt, func(t *testing.T, f *fixture) {
		var began time.Time // of the first reading by the subnet
		subnet.SetClock(func() time.Time {
			now := clock.Now()
			if began.IsZero() {
				began = now
			}
			return now
		})
		began = time.Time{} // SetClock reads it too
		var logged []time.Time
		observed := &topology.Sim{Subnet: subnet, Acted: func(since time.Time, _ string, _ map[string]any, err error) {
			if logged = append(logged, since); err != nil {
				t.Error(err)
			}
		}}
		thread := f.newThread(t.Context(), "test")
		if _, err := observed.Execute(thread, "traffic", []byte(`{"pairs": [["node-0001 HCA-1", "node-0009 HCA-1"]]}`)); err != nil {
			t.Fatal(err)
		}
		method, err := observed.Attr("traffic")
		if err != nil {
			t.Fatal(err)
		}
		if len(logged) != 1 || began.IsZero() || !logged[0].Before(began) {
			t.Errorf("logged %v, began %v", logged, began)
		}
		began = time.Time{}
		pairs := starlark.NewList([]starlark.Value{starlark.Tuple{starlark.String("node-0002 HCA-1"), starlark.String("node-0009 HCA-1")}})
		if _, err := starlark.Call(thread, method, starlark.Tuple{pairs}, nil); err != nil {
			t.Fatal(err)
		}
		if len(logged) != 2 || began.IsZero() || !logged[1].Before(began) {
			t.Errorf("logged %v, began %v", logged, began)
		}
	})
}

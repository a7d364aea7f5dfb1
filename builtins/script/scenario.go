package script

import (
	"container/heap"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/sim/server"
)

// scenarioEntry is the function of a scenario.
const scenarioEntry = "scenario"

// ScenarioAction is a change that a scenario, or a call of another program, has made or tried.
type ScenarioAction struct {
	At     float64        `json:"at"`     // seconds since the scenario began, or since the subnet is served
	Time   time.Time      `json:"time"`   // by the clock of the session; nothing has changed before it
	Action string         `json:"action"` // the method of sim
	Args   map[string]any `json:"args"`
	Peer   *server.Peer   `json:"peer,omitempty"`  // the program that called; nil: the scenario
	Error  string         `json:"error,omitempty"` // why it failed
}

// Scenario changes a simulated fabric at given times: it has the actions that the function
// scenario(sim) of a script has scheduled. Actions may be called while another goroutine plays it.
type Scenario struct {
	in     *Interpreter
	log    func(ScenarioAction)
	random *rand.Rand
	events events
	seq    int
	begin  time.Time
	now    time.Duration // since begin, of the event that runs

	mu    sync.Mutex
	done  []ScenarioAction // the last ones
	added int              // the number of all
}

// LoadScenario runs the top level of a script with the text src, and its scenario(sim), with an
// interpreter of its own beside in. Random choices follow from seed. Each action goes to
// log, which may be nil.
func LoadScenario(ctx context.Context, in *Interpreter, sim *topology.Sim, path, src string, seed int64, log func(ScenarioAction)) (*Scenario, error) {
	beside := in.Beside()
	env := *topology.EnvOf(in.Runtime)
	env.Facts = env.Facts.Beside()
	*topology.EnvOf(beside.Runtime) = env
	s := &Scenario{in: beside, log: log, random: rand.New(rand.NewPCG(uint64(seed), 0)), begin: in.Runtime.Clock.Now()}
	observed := &topology.Sim{Subnet: sim.Subnet, Acted: s.logChange}
	beside.Globals = maps.Clone(in.Globals)
	beside.Globals["sim"] = observed
	ctx = lang.WithRun(ctx, beside.Runtime, s)
	return s, beside.Runtime.Evaluate(ctx, path, func(t *starlark.Thread) error {
		loaded, err := beside.Run(t, path, src)
		if err != nil {
			return err
		}
		fn := loaded.Function(scenarioEntry)
		if fn == nil {
			return fmt.Errorf("%s: not a scenario; it does not define scenario(sim)", path)
		}
		_, err = starlark.Call(t, fn, starlark.Tuple{observed}, nil)
		return lang.NotExit(err, path+" must return; use fail(TEXT) to report an error")
	})
}

// scenarioOf returns the scenario whose code makes the call.
func scenarioOf(c *lang.Call) (*Scenario, error) {
	if s := lang.RunOf[Scenario](c.Fiber()); s != nil {
		return s, nil
	}
	return nil, lang.Errorf("only supported in a scenario: a script with scenario(sim), played by sim.play() or fabsh sim --scenario")
}

// logChange logs a change of the fabric.
func (s *Scenario) logChange(since time.Time, method string, args map[string]any, err error) {
	a := ScenarioAction{At: s.now.Seconds(), Time: since, Action: method, Args: args}
	if err != nil {
		a.Error = err.Error()
	}
	s.add(a)
}

// Begin returns the time of 0 s.
func (s *Scenario) Begin() time.Time { return s.begin }

// JSON returns the action as a line of a log, without the end of the line.
func (a ScenarioAction) JSON() ([]byte, error) { return json.Marshal(a) }

// Play runs the actions at their times, by the clock of the session, until none is left,
// until the scenario has lasted for limit, unless that is 0, or until ctx ends. Further
// actions follow one that fails; the first error is returned.
func (s *Scenario) Play(ctx context.Context, limit time.Duration) (failed error) {
	clock := s.in.Runtime.Clock
	ctx = lang.WithRun(ctx, s.in.Runtime, s)
	for len(s.events) > 0 && (limit == 0 || s.events[0].due <= limit) {
		e := heap.Pop(&s.events).(*event)
		if d := s.begin.Add(e.due).Sub(clock.Now()); d > 0 {
			if err := clock.Sleep(ctx, d); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		s.now = e.due
		if e.every > 0 && (e.until == 0 || e.due+e.every <= e.until) {
			s.push(&event{due: e.due + e.every, every: e.every, until: e.until, action: e.action})
		}
		known := s.count()
		err := s.in.Runtime.Evaluate(ctx, scenarioEntry, func(t *starlark.Thread) error {
			_, err := starlark.Call(t, e.action, nil, nil)
			return err
		})
		if err == nil {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if done := s.Actions(); s.count() == known || done[len(done)-1].Error == "" { // not an error of a change, which is logged
			s.add(ScenarioAction{At: s.now.Seconds(), Time: clock.Now(), Action: e.action.Name(), Error: lang.OneLine(err.Error())})
		}
		if failed == nil {
			failed = err
		}
	}
	return failed
}

// event is an action and its time since the scenario began.
type event struct {
	due    time.Duration
	every  time.Duration // 0: once
	until  time.Duration // the last time; 0: unlimited
	action starlark.Callable
	seq    int
}

// push adds an event.
func (s *Scenario) push(e *event) {
	s.seq++
	e.seq = s.seq
	heap.Push(&s.events, e)
}

// events is a heap, by time; events at the same time are in the order of their requests.
type events []*event

func (h events) Len() int { return len(h) }
func (h events) Less(i, j int) bool {
	if h[i].due != h[j].due {
		return h[i].due < h[j].due
	}
	return h[i].seq < h[j].seq
}
func (h events) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *events) Push(x any)   { *h = append(*h, x.(*event)) }
func (h *events) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return e
}

// add records an action, and logs it.
func (s *Scenario) add(a ScenarioAction) {
	s.mu.Lock()
	if len(s.done) >= 2*maxActions {
		s.done = slices.Clone(s.done[len(s.done)-maxActions:]) // Actions shares the older array
	}
	s.done = append(s.done, a)
	s.added++
	s.mu.Unlock()
	if s.log != nil {
		s.log(a)
	}
}

// maxActions is the number of actions that are kept, because an action of every("1ms") on a served
// fabric would otherwise fill the memory.
const maxActions = 10_000

// Actions returns the latest actions, at most maxActions.
func (s *Scenario) Actions() []ScenarioAction {
	s.mu.Lock()
	defer s.mu.Unlock()
	done := s.done[max(0, len(s.done)-maxActions):]
	return done[:len(done):len(done)]
}

// count returns the number of all actions so far.
func (s *Scenario) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.added
}

// start plays s beside the fibers of a session, until it closes.
func (s *Scenario) start(c *lang.Call) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.Fiber().Context))
	finished := make(chan struct{})
	leave := lang.Accompany(c.Runtime().Clock)
	go func() {
		defer close(finished)
		defer leave()
		s.Play(ctx, 0) // errors are among its actions
	}()
	p := lang.StateOf[sessionScenarios](c.Runtime())
	p.list = append(p.list, s)
	p.stop = append(p.stop, func() { cancel(); <-finished })
}

// sessionScenarios are the scenarios that a session plays.
type sessionScenarios struct {
	list []*Scenario
	stop []func()
}

// PlaysScenario reports whether a session plays a scenario, whether or not it has ended: the
// fabric may change while a script waits.
func PlaysScenario(r *lang.Runtime) bool {
	return len(lang.StateOf[sessionScenarios](r).list) > 0
}

// StopScenario ends the scenarios of a session.
func StopScenario(r *lang.Runtime) {
	for _, stop := range lang.StateOf[sessionScenarios](r).stop {
		stop()
	}
}

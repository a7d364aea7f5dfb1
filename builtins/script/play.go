package script

import (
	"container/heap"
	"context"
	"slices"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
)

// Play does the actions at their times, by the clock of the session, until none is left,
// until the scenario has lasted for limit, unless that is 0, or until ctx ends. Further
// actions follow one that fails; the first error is returned.
func (s *Scenario) Play(ctx context.Context, limit time.Duration) (failed error) {
	clock := s.in.Runtime.Clock
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

func (s *Scenario) push(e *event) {
	s.seq++
	e.seq = s.seq
	heap.Push(&s.events, e)
}

// events are ordered by time, and those at one time as they were requested.
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

// maxActions is the number of actions that are kept: an action of every("1ms") on a served
// fabric would otherwise fill the memory.
const maxActions = 10_000

// Actions returns the last actions until now, at most maxActions.
func (s *Scenario) Actions() []ScenarioAction {
	s.mu.Lock()
	defer s.mu.Unlock()
	done := s.done[max(0, len(s.done)-maxActions):]
	return done[:len(done):len(done)]
}

// count returns the number of all actions until now.
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
	p := lang.StateOf[played](c.Runtime())
	p.list = append(p.list, s)
	p.stop = append(p.stop, func() { cancel(); <-finished })
}

// played are the scenarios that a session plays.
type played struct {
	list []*Scenario
	stop []func()
}

// StopScenario ends the scenarios of a session.
func StopScenario(r *lang.Runtime) {
	for _, stop := range lang.StateOf[played](r).stop {
		stop()
	}
}

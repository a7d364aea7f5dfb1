// Package scenario changes a simulated fabric at given times, by a script that defines
// scenario(sim).
//
//	scenario.go  Scenario: a script whose scenario(sim) has run
//	play.go      Play: the actions at their times
//	builtin.go   at(), every(), random(), sim.play(), sim.actions()

package script

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/sim/server"
)

// Entry is the function of a scenario.
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

// Scenario is a script whose scenario(sim) has run: what to do, and when.
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
	*topology.EnvOf(beside.Runtime) = *topology.EnvOf(in.Runtime)
	s := &Scenario{in: beside, log: log, random: rand.New(rand.NewPCG(uint64(seed), 0)), begin: in.Runtime.Clock.Now()}
	observed := &topology.Sim{Subnet: sim.Subnet, Acted: s.acted}
	beside.Globals = maps.Clone(in.Globals)
	beside.Globals["sim"] = observed
	*lang.StateOf[*Scenario](beside.Runtime) = s
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

// of returns the scenario whose code c calls.
func of(c *lang.Call) (*Scenario, error) {
	if s := *lang.StateOf[*Scenario](c.Runtime()); s != nil {
		return s, nil
	}
	return nil, lang.Errorf("only supported in a scenario: a script with scenario(sim), played by sim.play() or fabsh sim --scenario")
}

// acted logs a change.
func (s *Scenario) acted(since time.Time, method string, args map[string]any, err error) {
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

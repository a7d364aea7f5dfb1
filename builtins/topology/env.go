package topology

import (
	"context"
	"errors"
	"fmt"

	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/fabric/device"
	"fabsh/fabric/localhost"
	"fabsh/fabric/sa"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// Headings in the overview.
const (
	GroupFabric = "The fabric"
	GroupTable  = "Whole tables"
)

// Env is the fabric of a session, and what the session may change. It is the state that
// topology keeps with a lang.Runtime.
type Env struct {
	// Engine reaches the fabric; nil when the session reads a file.
	Engine *engine.Engine
	// Absent is the reason why there is neither Engine nor Loaded; functions that need a
	// fabric fail with it.
	Absent error
	// Sim is the simulated fabric of this process that Engine reaches; nil: none.
	Sim *sim.Subnet
	// Control is the value sim of a simulated fabric that another process serves; nil: none.
	Control *Sim
	// Loaded is the fabric of the file that the session reads.
	Loaded *fabric.Fabric
	// Host is the host that the session judges, whose Fabric is Loaded; nil: it judges a
	// fabric.
	Host *localhost.Host
	// Stored reaches the answers in the file of Loaded; nil: the file has none.
	Stored *engine.Engine
	// Names are the names of nodes that replace their own descriptions.
	Names map[mad.GUID]string
	// PlainSpeeds prevents discover from reading vendor-specific speeds.
	PlainSpeeds bool

	Write      bool // --write: changes of the fabric are allowed
	ReadOnly   bool // --read-only: no simulated fabric may be changed either
	TrapAgent  bool // --trap-agent: traps sent to this port may be received
	OverrideSM bool // --override-sm: changes are allowed where a subnet manager owns the attribute
	// Forbidden is why no script may change the fabric now, such as "a remedy returns actions";
	// "": it may.
	Forbidden string
	// Confined is set if the scripts are not the user's, but those of a client of a server:
	// refusals name its remedies, and subscriptions are refused.
	Confined bool
	// BeforeSweep is called before each sweep; it may wait, and an error prevents the sweep.
	// Nil: nothing is called.
	BeforeSweep func(context.Context) error

	// SA sends requests to the subnet administrator and addresses general packets
	// according to --sm-lid, --sl and --pkey; nil: according to the port. A session
	// sets its Engine.
	SA *sa.Client

	// Levels is a file with the service levels of packets, for proofs of plans; "": they
	// are read from the subnet administrator.
	Levels string
	// AcceptCreditLoops allows plans during which packets may deadlock.
	AcceptCreditLoops bool

	Current *Fabric // the latest result of discover; nil before the first
	swept   bool    // Current was read from the nodes
}

// EnvOf returns the environment of a session.
func EnvOf(r *lang.Runtime) *Env { return lang.StateOf[Env](r) }

// Fabric returns the latest result of discover, or the loaded fabric; nil: none yet.
func (e *Env) Fabric() *fabric.Fabric {
	if e.Current == nil {
		return nil
	}
	return e.Current.Fabric
}

// ValueOf returns the value of f; it is always the same while f is the latest.
func (e *Env) ValueOf(f *fabric.Fabric) *Fabric {
	if e.Fabric() == f {
		return e.Current
	}
	return NewFabric(f)
}

// ErrNoFabric is the error of functions that need a live fabric in a session without one.
var ErrNoFabric = errors.New("no live fabric")

// ErrNotInFile is the error of a request whose answer is not in the session's file.
var ErrNotInFile = device.ErrNotInFile

// Load makes e the environment of a session that reads a file and the answers in it.
func (e *Env) Load(f *fabric.Fabric) {
	e.Engine, e.Absent, e.Loaded, e.Stored = nil, nil, f, nil
	if len(f.Answers()) > 0 {
		e.Stored = engine.New(device.NewStoredTransport(f), engine.Options{})
		e.SA = &sa.Client{Engine: e.Stored, SL: new(uint8)} // service levels have no effect
	}
}

// Unload releases the resources of Load.
func (e *Env) Unload() {
	if e.Stored != nil {
		e.Stored.Close()
	}
}

// ReaderOf returns the engine for reads: EngineOf, or that of the answers in a file.
func ReaderOf(c *lang.Call) (*engine.Engine, error) {
	if e := EnvOf(c.Runtime()); e.Engine == nil && e.Stored != nil {
		return e.Stored, nil
	}
	return EngineOf(c)
}

// EngineOf returns the engine that reaches the fabric. Its error names the builtin,
// because it may become the Failure of a target.
func EngineOf(c *lang.Call) (*engine.Engine, error) {
	if e := EnvOf(c.Runtime()).Engine; e != nil {
		return e, nil
	}
	if absent := EnvOf(c.Runtime()).Absent; absent != nil {
		return nil, fmt.Errorf("%s: %w: %w", c.Name, ErrNoFabric, absent)
	}
	return nil, fmt.Errorf("%s: %w: this session reads a file; open a live fabric with -F (for example -F sim)", c.Name, ErrNoFabric)
}

// LocalPort reads the data of the session's local port.
func LocalPort(c *lang.Call) (p engine.Port, err error) {
	e, err := ReaderOf(c)
	if err != nil {
		return p, err
	}
	err = c.Block(func(context.Context) (err error) {
		p, err = e.Port()
		return err
	})
	return p, err
}

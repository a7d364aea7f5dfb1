package topology

import (
	"context"
	"errors"
	"fmt"

	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/fabric/sa"
	"fabsh/fabric/sim"
	"fabsh/fabric/stored"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// Headings in the overview.
const (
	GroupFabric = "The fabric"
	GroupTable  = "Whole tables"
)

// Env is the fabric that a session works on, and what it may do to it. It is the
// state that topology keeps with a lang.Runtime.
type Env struct {
	// Engine reaches the fabric; nil when the session reads a file.
	Engine *engine.Engine
	// Absent is why there is neither Engine nor Loaded; what needs a fabric
	// fails with it.
	Absent error
	// Sim is the simulated fabric that Engine reaches; nil: it is none of this process.
	Sim *sim.Subnet
	// Loaded is the fabric of that file.
	Loaded *fabric.Fabric
	// Stored reaches the answers that came with Loaded; nil: there are none.
	Stored *engine.Engine
	// Names are what nodes are called, whatever they say themselves.
	Names map[mad.GUID]string
	// PlainSpeeds: discover asks for no vendor's own speeds.
	PlainSpeeds bool

	Write      bool // --write: changes of the fabric are allowed
	TrapAgent  bool // --trap-agent: traps that come to this port may be taken
	OverrideSM bool // --override-sm: also where a subnet manager owns what is changed

	// SA asks the subnet administrator and addresses general packets, as
	// --sm-lid, --sl and --pkey say; nil: as the port says. A session sets its
	// Engine.
	SA *sa.Client

	// Levels is a file with the service levels that packets have, for proofs of plans;
	// "": the subnet administrator is asked.
	Levels string
	// AcceptCreditLoops makes plans by which packets may deadlock on the way.
	AcceptCreditLoops bool

	Current *Fabric // the latest that discover found; nil if there is none yet
	swept   bool    // by asking the nodes
}

// EnvOf is the environment of a session.
func EnvOf(r *lang.Runtime) *Env { return lang.StateOf[Env](r) }

// Fabric is the latest that discover found, or the one that was loaded; nil:
// none yet.
func (e *Env) Fabric() *fabric.Fabric {
	if e.Current == nil {
		return nil
	}
	return e.Current.Fabric
}

// ValueOf is the value of f, of which there is one as long as f is the latest.
func (e *Env) ValueOf(f *fabric.Fabric) *Fabric {
	if e.Fabric() == f {
		return e.Current
	}
	return NewFabric(f)
}

// ErrNoFabric ends what needs a live fabric in a session that has none.
var ErrNoFabric = errors.New("no live fabric")

// ErrNotInFile is why there is no answer in a session that reads those of a file.
var ErrNotInFile = stored.ErrNotInFile

// Load makes e the environment of a session that reads a file, with the answers in it.
func (e *Env) Load(f *fabric.Fabric) {
	e.Engine, e.Absent, e.Loaded, e.Stored = nil, nil, f, nil
	if len(f.Answers()) > 0 {
		e.Stored = engine.New(stored.New(f), engine.Options{})
		e.SA = &sa.Client{Engine: e.Stored, SL: new(uint8)} // nobody looks at service levels
	}
}

// Unload ends what Load began.
func (e *Env) Unload() {
	if e.Stored != nil {
		e.Stored.Close()
	}
}

// ReaderOf is what can be asked: EngineOf, or the answers of a file.
func ReaderOf(c *lang.Call) (*engine.Engine, error) {
	if e := EnvOf(c.Runtime()); e.Engine == nil && e.Stored != nil {
		return e.Stored, nil
	}
	return EngineOf(c)
}

// EngineOf is what reaches the fabric. Its error names the builtin by itself,
// for it may become the Failure of a target.
func EngineOf(c *lang.Call) (*engine.Engine, error) {
	if e := EnvOf(c.Runtime()).Engine; e != nil {
		return e, nil
	}
	if absent := EnvOf(c.Runtime()).Absent; absent != nil {
		return nil, fmt.Errorf("%s: %w: %w", c.Name, ErrNoFabric, absent)
	}
	return nil, fmt.Errorf("%s: %w: this session reads a file; open one with -F (for example -F sim)", c.Name, ErrNoFabric)
}

// LocalPort reads the facts of the port that the session is on.
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

// Package topology has the values and functions of scripts for the fabric: fabrics,
// nodes, ports, links, directed routes, targets, and how requests reach them.
//
// Env is the fabric of a session, and what the session may change (MayChange, Change); its
// Facts are what the session was opened with. A Fabric, from discover() or a file, has the
// values Node, Port and Link; it never changes, and audits read it from several fibers at the
// same time. A Resolver turns values of scripts into a Target, and Transact sends the requests.
// Failed and FailedRequest return their failures, with a remedy. An Observer sees the results
// of requests, for audits. Sim has the operations on a simulated fabric, of this process or of
// another one.
package topology

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/change/apply"
	"fabsh/fabric/change/certificate"
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

// Facts are what a session is opened with: its fabric, what it may change, and the program that opens
// it. Nothing changes them while the session is open.
type Facts struct {
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
	// Names are the names of nodes that replace their own descriptions.
	Names map[mad.GUID]string
	// PlainSpeeds prevents discover from reading vendor-specific speeds.
	PlainSpeeds bool
	// SA sends requests to the subnet administrator and addresses general packets
	// according to --sm-lid, --sl and --pkey; nil: according to the port. A session
	// sets its Engine.
	SA *sa.Client

	// HostPorts returns the active InfiniBand ports of this host, if Engine uses one of them; nil:
	// they are no remedy, because Engine does not use a port of this host.
	HostPorts func() []engine.Port

	Write      bool // --write: changes of the fabric are allowed
	ReadOnly   bool // --read-only: no simulated fabric may be changed either
	TrapAgent  bool // --trap-agent: traps sent to this port may be received
	OverrideSM bool // --override-sm: changes are allowed where a subnet manager owns the attribute
	// Confined is set if the scripts are not the user's, but come from a client of a server:
	// refusals name its remedies, and subscriptions are refused.
	Confined bool
	// BeforeSweep is called before each sweep; it may wait, and an error prevents the sweep.
	// Nil: nothing is called.
	BeforeSweep func(context.Context) error
	// Recent returns a whole fabric that the first sweep of the session returns instead of
	// sweeping; nil, and its result nil: it sweeps. With Recent, a target by name sweeps if no
	// fabric is known.
	Recent func() *fabric.Fabric
	// RecentReads are the tables and counters that earlier sessions have read on the fabric of
	// Recent; nil: all are read.
	RecentReads *RecentReads

	// History is where Loaded is from, if it is the fabric at a time of a history; else nil.
	History *HistorySource

	// State is the directory for state kept between runs: reads of counters below the name
	// Job, acknowledgements, and journals of changes. Empty: nothing is kept.
	State, Job string
	Version    string // of the program, for pages
	// User is recorded as the author of changes; StartGuard starts their guard process.
	// Nil: plan.apply() is refused.
	User       string
	StartGuard apply.StartGuard
	// BesideManager reports that the subnet manager, if it is at the local port, is a process of
	// this host, whose configuration can be read.
	BesideManager bool
}

// NoTables states that the file or the history of the session has no forwarding tables.
func (f *Facts) NoTables() string {
	if f.History != nil {
		return "forwarding tables are not in the history at " + f.History.Time.Local().Format(time.RFC3339) + "; fabsh history record --routes keeps them"
	}
	return "the file has no forwarding tables; fabsh snapshot stores them"
}

// HistorySource is a history, and a time of it.
type HistorySource struct {
	Path string
	Time time.Time // of the sweep
}

// Beside returns the facts of a session beside this one: it keeps no state and applies no plans.
func (f Facts) Beside() Facts {
	f.State, f.Job, f.User, f.StartGuard = "", "", "", nil
	return f
}

// Env is the fabric of a session, and what the session may change. It is the state that
// topology keeps with a lang.Runtime.
type Env struct {
	Facts

	// Stored reaches the answers in the file of Loaded; nil: the file has none.
	Stored *engine.Engine

	Current *Fabric // the latest result of discover; nil before the first
	swept   bool    // Current was read from the nodes

	read map[string]bool // kinds of tables that were read, or taken from RecentReads
}

// Open makes e the environment of a session. Loaded replaces a live fabric.
func (e *Env) Open(f Facts) {
	*e = Env{Facts: f}
	switch {
	case f.Loaded != nil:
		e.Engine, e.Absent, e.Current = nil, nil, NewFabric(f.Loaded.Renamed(f.Names))
		if len(f.Loaded.Answers()) > 0 {
			e.Stored = engine.New(device.NewStoredTransport(f.Loaded), engine.Options{})
			e.SA = &sa.Client{Engine: e.Stored, SL: new(uint8)} // service levels have no effect
		}
	case f.Engine != nil:
		if f.SA == nil {
			e.SA = new(sa.Client)
		}
		e.SA.Engine = f.Engine
	}
}

// SetSimClock sets the clock of the simulated fabric of this process, if the session has one.
func (e *Env) SetSimClock(now func() time.Time) {
	if e.Sim != nil {
		e.Sim.SetClock(now)
	}
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

// ValueOf returns the value of f; it does not change while f is the latest.
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

// Unload releases the resources of Open.
func (e *Env) Unload() {
	if e.Stored != nil {
		e.Stored.Close()
	}
}

// ReaderOf returns the engine for reads: EngineOf, or the engine of the answers in a file.
func ReaderOf(c *lang.Call) (*engine.Engine, error) {
	switch e := EnvOf(c.Runtime()); {
	case e.Engine == nil && e.Stored != nil:
		return e.Stored, nil
	case e.Engine == nil && e.Loaded != nil && lacks(c.Name) != "":
		return nil, fmt.Errorf("%s: %w", c.Name, &lackingError{lacks(c.Name)})
	}
	return EngineOf(c)
}

// lackingError is an ErrNoFabric that states what the session's file lacks, and which files have it.
type lackingError struct{ what string }

func (e *lackingError) Error() string {
	return "the file has no " + e.what + "; or open a live fabric with -F (for example -F sim)"
}
func (e *lackingError) Is(target error) bool { return target == ErrNoFabric }

// lacks names what a function reads, and the files that have it; "": it does not read what files have.
func lacks(function string) string {
	switch name, of, _ := strings.Cut(function, "_"); {
	case function == "perf_get", function == "perf_rates":
		return "counters; ibdiagnet2.db_csv, fabsh snapshot --all, and outputs of ibqueryerrors and perfquery in one directory with the topology have them"
	case name == "sa" && strings.HasPrefix(of, "get"):
		return "records of the subnet administrator; fabsh snapshot --all has them, and opensm-sa.dump in one directory with the topology has groups and services"
	case function == "reg_get":
		return "registers of devices; ibdiagnet2.db_csv and fabsh snapshot --all have them"
	case function == "smp_get", name == "get":
		return "attributes beyond the topology; ibdiagnet2.db_csv and fabsh snapshot --all have them"
	}
	return ""
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

// managerSearchValidity is the time for which the result of a search for a subnet manager is valid.
const managerSearchValidity = 10 * time.Second

// managerSearch is the result of the last search for a subnet manager.
type managerSearch struct {
	sm    *sa.SM
	until time.Time
}

// forbidden is why scripts of a run may not change the fabric.
type forbidden struct{ reason string }

// Forbid returns a context for a run whose scripts may not change the fabric, for a reason such as
// "a remedy returns actions".
func Forbid(ctx context.Context, r *lang.Runtime, reason string) context.Context {
	return lang.WithRun(ctx, r, &forbidden{reason})
}

// MayChange returns the engine if the script may Set attr; with an attr without a class, if it
// may send a request whose effect is unknown. A subnet manager expects that
// no others change what it sets, so while one is active --override-sm is required.
func MayChange(c *lang.Call, attr *mad.Attribute) (*engine.Engine, error) {
	e, err := EngineOf(c)
	if err != nil {
		return nil, err
	}
	if err := refuseLoading(c); err != nil {
		return nil, err
	}
	s, simulated, why := EnvOf(c.Runtime()), e.Traits().Simulated, lang.RunOf[forbidden](c.Fiber())
	switch {
	case why != nil:
		return nil, c.Refuse("refused: %s", why.reason)
	case e.Interceptor() != nil && slices.Contains(certificate.PlannedAttributes(), attr):
		return e, nil
	case e.Interceptor() != nil:
		return nil, MayNotPlan(c)
	case s.Write && e.Write():
		s.RecentReads.Forget()
	default:
		return nil, c.Refuse("%s", s.refusal(simulated, attr.Class != 0))
	}
	if simulated || s.OverrideSM || !attr.SMOwned {
		return e, nil
	}
	guarded, clock := lang.StateOf[managerSearch](c.Runtime()), c.Clock()
	if left := guarded.until.Sub(clock.Now()); left < 0 || left > managerSearchValidity { // the clock may have been set back
		var sm *sa.SM
		err := c.Block(func(ctx context.Context) (err error) {
			sm, err = s.SA.FindSM(ctx, s.Fabric())
			return err
		})
		if err != nil {
			return nil, pkeyError(err)
		}
		*guarded = managerSearch{sm: sm, until: clock.Now().Add(managerSearchValidity)}
	}
	if guarded.sm != nil {
		return nil, c.Refuse("refused: %v sets %s and expects no other changes; OpenSM neither detects nor repairs them, because it compares with the values that it remembers; --override-sm allows the change", guarded.sm, attr.Name)
	}
	return e, nil
}

// refuseLoading refuses a change of the fabric while a module is being loaded.
func refuseLoading(c *lang.Call) error {
	if loads := c.Fiber().Loads; len(loads) > 0 {
		return c.Refuse("refused: a module cannot change the fabric while it is being loaded (%s); change it in a function that the script calls", loads[len(loads)-1])
	}
	return nil
}

// Refusal returns why the session may not change the fabric, which may be simulated, and the
// remedy.
func (e *Env) Refusal(simulated bool) string { return e.refusal(simulated, true) }

// refusal is Refusal for a request that changes the fabric, or whose effect is unknown.
func (e *Env) refusal(simulated, known bool) string {
	switch {
	case e.Confined && known:
		return "refused: this server only reads; make a plan of the change with the tool plan, and let an operator change the fabric"
	case e.Confined:
		return "refused: this server only reads, and the effect of the request is unknown"
	case simulated && known:
		return "refused: this session is read-only; omit --read-only to change the simulated fabric"
	case simulated:
		return "refused: this session is read-only, and the effect of the request is unknown; omit --read-only to send it"
	case !known:
		return "refused: the effect of the request is unknown; allow it with --write"
	}
	return "refused: it would change the fabric; allow changes with --write"
}

// MayNotPlan refuses an operation that a plan cannot contain, while one is being made.
func MayNotPlan(c *lang.Call) error {
	if !Planning(c) {
		return nil
	}
	return c.Refuse("refused: a plan is being made, and it can contain only what set_*, port_* and smp_set write: forwarding tables, SL2VL, VL arbitration, P_Keys, GUIDs, PortInfo (no keys) and SwitchInfo")
}

// Planning reports whether a plan is being made, so that writes are recorded, not sent.
func Planning(c *lang.Call) bool {
	e := EnvOf(c.Runtime()).Engine
	return e != nil && e.Interceptor() != nil
}

// Change is c.Block for changes of the fabric: it gives a plan that is being made the
// line of the script that requests the change.
func Change(c *lang.Call, fn func(context.Context) error) error {
	cause := change.Cause{Place: c.Fiber().Place}
	for depth := range c.Thread.CallStackDepth() {
		if pos := c.Thread.CallFrame(depth).Pos; pos.Line > 0 {
			cause.Line = fmt.Sprintf("%s:%d", pos.Filename(), pos.Line)
			break
		}
	}
	return c.Block(func(ctx context.Context) error { return fn(change.WithCause(ctx, cause)) })
}

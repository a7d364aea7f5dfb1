package audits

import (
	"errors"
	"fmt"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/lock"
	"fabsh/mad"
)

// keeping is what becomes of reads: those of a run are one read to its job; outside
// of runs, each perf_rates(over="last") keeps its own. It is the state that rates
// keep with a lang.Runtime.
type keeping struct {
	dir, job string // of what is outside of runs
	run      *run   // that is under way; nil: none
}

func keepingOf(r *lang.Runtime) *keeping { return lang.StateOf[keeping](r) }

// KeepBelow says where perf_rates keeps reads, and under which name outside of
// runs. dir is empty where nothing can be kept.
func KeepBelow(r *lang.Runtime, dir, job string) {
	k := keepingOf(r)
	k.dir, k.job = dir, job
}

// Job says what a run of audits compares with.
type Job struct {
	Subnet fabric.Subnet
	Name   string
	// LookOnly: the run compares with the reads of the job, and leaves them as they
	// are.
	LookOnly bool
	// Kept is the state of the job where that is in memory; nil: it is a file.
	Kept *audit.State
}

// run is a run of audits. Nothing of its job is read before an audit asks for it.
type run struct {
	Job
	state  *audit.State  // nil: no audit has asked for it
	unkept error         // why the state is not kept: its folder is not writable, for example
	lock   *lock.Lock    // nil: the state is not to be written
	asked  bool          // for reads of counters
	file   bool          // the counters are a file's
	joined *audit.Read   // what the run has read
	window time.Duration // the longest that rates are of
	// setBack: the clock was, since the run before.
	setBack bool
	rates   []audit.PortRates
	rated   map[place]int // where in rates
}

// place is a port in each sweep.
type place struct {
	node mad.GUID
	port int
}

// BeginRun begins a run of audits: until EndRun, perf_rates(over="last") compares
// with what the run before has read, however often it is called.
func BeginRun(r *lang.Runtime, job Job) { keepingOf(r).run = &run{Job: job} }

// EndRun ends the run. What it read and found is kept for the next one, where an
// audit has asked for what was kept; in found it says since when that has been so.
// gone are what the run before found, and this one, which is complete, has not.
// f is the fabric as the run has seen it.
func EndRun(r *lang.Runtime, f *fabric.Fabric, found []audit.Finding, complete bool) (gone []audit.Finding, err error) {
	k := keepingOf(r)
	x := k.run
	if x == nil || x.state == nil {
		k.run = nil
		return nil, nil
	}
	defer DropRun(r)
	now := r.Clock.Now()
	gone = x.state.SetFindings(found, complete, now)
	if x.LookOnly {
		for i := range found {
			if found[i].Since.Equal(now) { // nobody will know of that
				found[i].Since = time.Time{}
			}
		}
		return gone, nil
	}
	if x.joined != nil && x.asked {
		x.state.Add(x.joined)
	}
	x.state.See(f, now)
	if err := x.state.Save(); err != nil {
		return gone, &StateError{err}
	}
	return gone, nil
}

// Uncompared is why counters could not be compared with what the run before has
// read, in words; empty: they could, or no audit has asked for that.
func Uncompared(r *lang.Runtime) string {
	switch x := keepingOf(r).run; {
	case x != nil && x.file:
		return "a file has one read of them, so rates are not known: --over FILE takes them over a snapshot of before"
	case x == nil || !x.asked || x.window >= audit.MinWindow/2:
		return ""
	case x.setBack:
		return "the clock stopped or was set back since the run of this job before"
	case x.window > 0:
		return "the run of this job before was less than a second ago"
	case x.LookOnly:
		return "no run of this job has read them before, and one from a terminal keeps nothing: --job NAME does"
	}
	return "no run of this job has read them before"
}

// DropRun ends the run, and keeps nothing of it.
func DropRun(r *lang.Runtime) {
	k := keepingOf(r)
	if k.run != nil {
		k.run.lock.Release()
	}
	k.run = nil
}

// StateError is trouble with the files of a state: the host is to be looked at.
type StateError struct{ err error }

func (e *StateError) Error() string { return e.err.Error() }
func (e *StateError) Unwrap() error { return e.err }

// earlier are the reads that the run compares with, the newest first.
func (x *run) earlier() []*audit.Read {
	if x == nil || !x.asked {
		return nil
	}
	return x.state.Reads()
}

// join adds what was read to what the run has read. Outside of runs it does
// nothing.
func (x *run) join(read *audit.Read) {
	switch {
	case x == nil:
	case x.joined == nil:
		x.joined = read
	default:
		x.joined.Join(read)
	}
}

// rate notes that rates are of a window.
func (x *run) rate(window time.Duration) {
	if x != nil {
		x.window = max(x.window, window)
		x.setBack = x.setBack || window <= 0
	}
}

// tell notes what was read of a port: what is read later counts.
func (x *run) tell(r audit.PortRates) {
	if x == nil || r.Port == nil {
		return
	}
	at := place{r.Port.Node().GUID(), r.Port.Num()}
	if i, ok := x.rated[at]; ok {
		x.rates[i] = r
		return
	}
	if x.rated == nil {
		x.rated = map[place]int{}
	}
	x.rated[at] = len(x.rates)
	x.rates = append(x.rates, r)
}

// RunRates is what the run that is under way has read of the counters of ports.
func RunRates(r *lang.Runtime) []audit.PortRates {
	if x := keepingOf(r).run; x != nil {
		return x.rates
	}
	return nil
}

// sinceLast reads once, and compares with what was read before.
func sinceLast(c *lang.Call, r *reader) (starlark.Value, error) {
	k := keepingOf(c.Runtime())
	if k.run != nil {
		if err := k.run.open(c, k.dir); err != nil {
			return nil, lastError(err)
		}
		k.run.asked = true
		after, read, err := r.read()
		if err != nil {
			return nil, err
		}
		k.run.join(read)
		return r.rates(after, read, pastsOf(k.run.earlier(), after))
	}
	f := topology.EnvOf(c.Runtime()).Fabric()
	if f == nil {
		return nil, lang.Errorf("over=%q: which subnet this is is not known: run discover() first", overLast)
	}
	st, held, err := open(c, k.dir, Job{Subnet: fabric.SubnetOf(f, ""), Name: k.job})
	if err != nil {
		return nil, lastError(err)
	}
	defer held.Release()
	after, read, err := r.read()
	if err != nil {
		return nil, err
	}
	earlier := pastsOf(st.Reads(), after)
	st.Add(read)
	if err := st.Save(); err != nil {
		return nil, lastError(&StateError{err})
	}
	return r.rates(after, read, earlier)
}

// open reads what the job has kept, once a run.
func (x *run) open(c *lang.Call, dir string) (err error) {
	switch {
	case x.state != nil:
	case x.Kept != nil:
		x.state = x.Kept
	default:
		if x.state, x.lock, err = open(c, dir, x.Job); err == nil || errors.Is(err, lock.ErrHeld) {
			return err
		}
		if unkept, ok := errors.AsType[*StateError](err); ok {
			x.unkept = fmt.Errorf("the state is not kept: %w; choose a writable folder with --state", unkept)
			c.Runtime().WarnOnce("%v", x.unkept)
		}
	}
	return err
}

// stateError returns why what was kept does not count, or is not kept; nil: it is, or was
// not asked for.
func (x *run) stateError() error {
	if x.state != nil {
		return x.state.Reset
	}
	return x.unkept
}

// agentsOfRun are what the run that is under way knows of agents; nil: there is none.
func agentsOfRun(c *lang.Call) (*audit.Agents, error) {
	k := keepingOf(c.Runtime())
	if k.run == nil {
		return nil, nil
	}
	if err := k.run.open(c, k.dir); err != nil {
		return nil, lastError(err)
	}
	return k.run.state.Agents(), nil
}

// lastError is err as the answer to perf_rates(over="last").
func lastError(err error) error { return lang.Errorf("over=%q: %w", overLast, err) }

// open reads the state of a job, and keeps others away from it where it is to be
// written.
func open(c *lang.Call, dir string, job Job) (*audit.State, *lock.Lock, error) {
	if dir == "" {
		return nil, nil, errors.New("this session keeps no reads: give it a folder with --state DIR")
	}
	st, err := audit.OpenState(dir, job.Subnet, job.Name)
	if err != nil {
		return nil, nil, err
	}
	var held *lock.Lock
	if !job.LookOnly {
		if held, err = st.Lock(); err != nil {
			return nil, nil, &StateError{err}
		}
	}
	if st.Read(); st.Reset != nil {
		c.Fiber().Warn("%v", st.Reset)
	}
	return st, held, nil
}

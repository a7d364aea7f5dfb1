package audits

import (
	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/audit"
)

// keeping is what becomes of reads: those of a run are one read to whoever began
// it; outside of runs, each perf_rates(over="last") keeps its own. It is the state
// that rates keep with a lang.Runtime.
type keeping struct {
	dir, job string // of what is outside of runs

	running bool
	earlier []*audit.Read // what the run compares with, the newest first
	joined  *audit.Read   // what it has read
}

func keepingOf(r *lang.Runtime) *keeping { return lang.StateOf[keeping](r) }

// KeepBelow says where perf_rates keeps reads outside of runs, and under which
// name. dir is empty where nothing can be kept.
func KeepBelow(r *lang.Runtime, dir, job string) {
	k := keepingOf(r)
	k.dir, k.job = dir, job
}

// BeginRun begins a run of audits: until TakeRead, perf_rates compares with the
// reads given, the newest first, and saves nothing by itself.
func BeginRun(r *lang.Runtime, earlier []*audit.Read) {
	k := keepingOf(r)
	k.running, k.earlier, k.joined = true, earlier, nil
}

// TakeRead ends the run, and gives all that it has read; nil: nothing.
func TakeRead(r *lang.Runtime) *audit.Read {
	k := keepingOf(r)
	read := k.joined
	k.running, k.earlier, k.joined = false, nil, nil
	return read
}

func (k *keeping) join(read *audit.Read) {
	switch {
	case !k.running:
	case k.joined == nil:
		k.joined = read
	default:
		k.joined.Join(read)
	}
}

// StateError is trouble with the files of a state: the host is to be looked at.
type StateError struct{ err error }

func (e *StateError) Error() string { return e.err.Error() }
func (e *StateError) Unwrap() error { return e.err }

// sinceLast reads once, and compares with what was read before.
func sinceLast(c *lang.Call, r *reader) (starlark.Value, error) {
	k := keepingOf(c.Runtime())
	if k.running {
		after, read, err := r.read()
		if err != nil {
			return nil, err
		}
		k.join(read)
		return r.rates(after, read, pastsOf(k.earlier, after))
	}
	st, err := k.open(c)
	if err != nil {
		return nil, err
	}
	held, err := st.Lock()
	if err != nil {
		return nil, lang.Errorf("over=%q: %w", overLast, &StateError{err})
	}
	defer held.Unlock()
	if st.Read(); st.Anew != nil {
		c.Fiber().Warn("%v", st.Anew)
	}
	after, read, err := r.read()
	if err != nil {
		return nil, err
	}
	earlier := pastsOf(st.Reads(), after)
	st.Add(read)
	if err := st.Save(); err != nil {
		return nil, lang.Errorf("over=%q: %w", overLast, &StateError{err})
	}
	return r.rates(after, read, earlier)
}

// open is the state of what is outside of runs.
func (k *keeping) open(c *lang.Call) (*audit.State, error) {
	f := topology.EnvOf(c.Runtime()).Fabric()
	switch {
	case k.dir == "":
		return nil, lang.Errorf("over=%q: this session keeps no reads: give it a folder with --state DIR", overLast)
	case f == nil:
		return nil, lang.Errorf("over=%q: which subnet this is is not known: run discover() first", overLast)
	}
	st, err := audit.OpenState(k.dir, audit.SubnetOf(f, ""), k.job)
	if err != nil {
		return nil, lang.Errorf("over=%q: %w", overLast, err)
	}
	return st, nil
}

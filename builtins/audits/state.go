package audits

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/format"
	"fabsh/fabric/history"
	"fabsh/mad"
)

// checkKept returns a *StateError if the state that earlier runs have kept below dir is of another
// subnet.
func checkKept(dir string, subnet fabric.Subnet) error {
	if dir != "" {
		if err := audit.CheckSubnet(dir, subnet); err != nil {
			return &StateError{err}
		}
	}
	return nil
}

// Job identifies the reads that a run of audits compares with.
type Job struct {
	Subnet fabric.Subnet
	Name   string
	// ReadOnly has the run compare with the reads of the job without changing them.
	ReadOnly bool
	// Kept is the state of the job in memory; nil if it is a file.
	Kept *audit.State
}

// jobRun is the part of a run of audits that compares with earlier ones: each
// perf_rates(over="last") compares with the previous run of the job, and all reads of the run are one
// read of the job. The state of the job is read only if an audit needs it.
type jobRun struct {
	Job
	dir    string           // of states; "": nothing is kept
	state  *audit.State     // nil: no audit has needed it
	unkept error            // why the state is not kept, such as a directory that is not writable
	lock   *format.FileLock // nil: the state is not written
	needed bool             // an audit needs the reads of counters
	file   bool             // the counters are of a file
	joined *audit.Read      // all counters of the run
	window time.Duration    // the longest of the rates
	// setBack reports that the clock stopped or was set back since the previous run.
	setBack  bool
	rates    []audit.PortRates
	rated    map[place]int // index in rates
	recorded recorded
	looked   bool // for recorded
}

// recorded is what the history of the subnet has recorded; nothing without a history.
type recorded struct {
	downs *history.PortDowns
	seen  map[history.End]audit.Seen // links of ports, of the last seven days
	since map[string]time.Time       // findings, by ID
}

// place identifies a port across sweeps.
type place struct {
	node mad.GUID
	port int
}

// end ends the run, and keeps its reads and findings for the next one, if an audit needed the
// reads and findings of the previous run. It sets Since of each finding in found. gone are the
// findings of the previous run that this one, if complete, no longer has; findings of unjudged
// checks are not gone. f is the fabric of the run.
func (x *jobRun) end(clock lang.Clock, f *fabric.Fabric, found []audit.Finding, complete bool, unjudged []audit.Unjudged) (gone []audit.Finding, err error) {
	if x.state == nil {
		return nil, nil
	}
	x.state.Align(moment(clock))
	now := clock.Now()
	x.state.SetRecorded(x.recorded.since)
	gone = x.state.SetFindings(found, complete, unjudged, now)
	if x.ReadOnly {
		for i := range found {
			if found[i].Since.Equal(now) { // the next run will not know this time
				found[i].Since = time.Time{}
			}
		}
		return gone, nil
	}
	if x.joined != nil && x.needed {
		x.state.Add(x.joined)
	}
	x.state.See(f, now)
	if err := saveState(x.state, x.dir, x.Subnet, complete); err != nil {
		return gone, &StateError{err}
	}
	return gone, nil
}

// uncompared returns why counters could not be compared with the previous run; "" if they
// were, or no audit needed that.
func (x *jobRun) uncompared() string {
	switch {
	case x != nil && x.file:
		return "a file has one read of them, so rates are unknown; use --over FILE with an earlier snapshot"
	case x == nil || !x.needed || x.window >= audit.MinWindow/2:
		return ""
	case x.setBack:
		return "the clock stopped or was set back since the previous run of this job"
	case x.window > 0:
		return "the previous run of this job was less than a second ago"
	case x.ReadOnly:
		return "no earlier run of this job has read them; a run from a terminal keeps its reads only with --job NAME"
	}
	return "no earlier run of this job has read them"
}

// release releases the lock of the state.
func (x *jobRun) release() {
	if x != nil {
		x.lock.Release()
	}
}

// StateError is an error of the files of a state: a fault of the host.
type StateError struct{ Err error }

func (e *StateError) Error() string { return e.Err.Error() }
func (e *StateError) Unwrap() error { return e.Err }

// moment returns the current time of a clock, and the time since the boot if it has that.
func moment(clock lang.Clock) audit.Moment {
	m := audit.Moment{Time: clock.Now()}
	if c, ok := clock.(lang.UptimeClock); ok {
		m.Boot, m.Uptime = c.Uptime()
	}
	return m
}

// earlier returns the reads that the run compares with, newest first.
func (x *jobRun) earlier() []*audit.Read {
	if x == nil || !x.needed {
		return nil
	}
	return x.state.Reads()
}

// join adds a read to the reads of the run. Outside of runs it does nothing.
func (x *jobRun) join(read *audit.Read) {
	switch {
	case x == nil:
	case x.joined == nil:
		x.joined = read
	default:
		x.joined = x.joined.Join(read)
	}
}

// rate records the window of rates.
func (x *jobRun) rate(window time.Duration) {
	if x != nil {
		x.window = max(x.window, window)
		x.setBack = x.setBack || window <= 0
	}
}

// noteAll records the rates of ports, and keeps the list.
func (x *jobRun) noteAll(rates []audit.PortRates) {
	if x == nil {
		return
	}
	if x.rates == nil && distinct(rates) { // as in most runs: an index of all ports is not needed
		x.rates = rates
		return
	}
	if x.rated == nil {
		x.rated = map[place]int{}
		for i := range x.rates {
			x.rated[placeOf(x.rates[i].Port)] = i
		}
	}
	for _, r := range rates {
		x.note(r)
	}
}

// distinct reports whether rates are of different ports of a fabric.
func distinct(rates []audit.PortRates) bool {
	var seen []bool // by ID
	for i := range rates {
		p := rates[i].Port
		if p == nil || p.Node().Fabric() != rates[0].Port.Node().Fabric() {
			return false
		}
		if seen == nil {
			seen = make([]bool, len(p.Node().Fabric().Ports()))
		}
		if seen[p.ID()] {
			return false
		}
		seen[p.ID()] = true
	}
	return true
}

// note records the rates of a port. A later read replaces an earlier one.
func (x *jobRun) note(r audit.PortRates) {
	if r.Port == nil {
		return
	}
	at := placeOf(r.Port)
	if i, ok := x.rated[at]; ok {
		x.rates[i] = r
		return
	}
	x.rated[at] = len(x.rates)
	x.rates = append(x.rates, r)
}

// placeOf returns the place of a port.
func placeOf(p *fabric.Port) place { return place{p.Node().GUID(), p.Num()} }

// sinceLast reads once, and compares with the previous run.
func sinceLast(c *lang.Call, r *reader) (starlark.Value, error) {
	if x := collectorOf(c.Fiber()).job; x != nil {
		if err := x.open(c); err != nil {
			return nil, overLastError(err)
		}
		x.needed = true
		after, read, err := r.read()
		if err != nil {
			return nil, err
		}
		x.join(read)
		return r.rates(after, compareReads(read, x.earlier()...))
	}
	env := topology.EnvOf(c.Runtime())
	f := env.Fabric()
	if f == nil {
		return nil, lang.Errorf("over=%q: unknown subnet; run discover() first", overLast)
	}
	st, held, err := openState(c, env.State, Job{Subnet: fabric.SubnetOf(f, ""), Name: env.Job})
	if err != nil {
		return nil, overLastError(err)
	}
	defer held.Release()
	after, read, err := r.read()
	if err != nil {
		return nil, err
	}
	earlier := compareReads(read, st.Reads()...)
	st.Add(read)
	if err := saveState(st, env.State, fabric.SubnetOf(f, ""), f.Complete()); err != nil {
		return nil, overLastError(&StateError{err})
	}
	warnUnstored(c.Runtime(), st)
	return r.rates(after, earlier)
}

// saveState saves a state, and which subnet it belongs to. Unless complete is set, switches may be
// missing in the subnet.
func saveState(st *audit.State, dir string, subnet fabric.Subnet, complete bool) error {
	err := st.Save()
	if err == nil && st.InFile() {
		err = audit.RecordSubnet(dir, subnet, complete)
	}
	return err
}

// warnUnstored reports that the history could not be used for a state, which is in a file then.
func warnUnstored(r *lang.Runtime, st *audit.State) {
	if st != nil && st.Unstored != nil {
		r.WarnOnce("the history is not used for the state of audits, and a file is: %v", st.Unstored)
	}
}

// open reads the state of the job, once per run.
func (x *jobRun) open(c *lang.Call) (err error) {
	switch {
	case x.state != nil:
	case x.Kept != nil:
		x.state = x.Kept
		x.state.Align(moment(c.Clock()))
	default:
		if x.state, x.lock, err = openState(c, x.dir, x.Job); err == nil || errors.Is(err, format.ErrLockHeld) {
			return err
		}
		if unkept, ok := errors.AsType[*StateError](err); ok {
			if _, other := errors.AsType[*fabric.OtherSubnetError](err); other { // which the report notes
				x.unkept = fmt.Errorf("the state is not kept: %w", unkept)
				return err
			}
			x.unkept = fmt.Errorf("the state is not kept: %w; choose a writable directory with --state", unkept)
			c.Runtime().WarnOnce("%v", x.unkept)
		}
	}
	return err
}

// stateError returns why the state was not read, or is not kept; nil if it is, or was not
// needed.
func (x *jobRun) stateError() error {
	if x.state != nil {
		return x.state.Reset
	}
	return x.unkept
}

// knownAgents returns the capabilities of agents that the run knows, nil outside of runs.
func (x *jobRun) knownAgents(c *lang.Call) (*audit.Agents, error) {
	if x == nil {
		return nil, nil
	}
	if err := x.open(c); err != nil {
		return nil, overLastError(err)
	}
	return x.state.Agents(), nil
}

// overLastError returns err as an error of perf_rates(over="last").
func overLastError(err error) error { return lang.Errorf("over=%q: %w", overLast, err) }

// openState reads the state of a job, and locks it if it will be written.
func openState(c *lang.Call, dir string, job Job) (*audit.State, *format.FileLock, error) {
	if dir == "" {
		return nil, nil, errors.New("this session keeps no reads; give it a directory with --state DIR")
	}
	st, err := audit.OpenState(dir, job.Subnet, job.Name)
	if err != nil {
		return nil, nil, err
	}
	if err := audit.CheckSubnet(dir, job.Subnet); err != nil {
		return nil, nil, &StateError{err}
	}
	var held *format.FileLock
	if !job.ReadOnly {
		if held, err = st.Lock(); err != nil {
			return nil, nil, &StateError{err}
		}
	}
	err = c.Block(func(ctx context.Context) error {
		st.UseStore(history.JobStates(ctx, dir, job.Subnet))
		st.Read()
		return nil
	})
	if err != nil {
		held.Release()
		return nil, nil, err
	}
	warnUnstored(c.Runtime(), st)
	if st.Reset != nil {
		c.Fiber().Warn("%v", st.Reset)
	}
	st.Align(moment(c.Clock()))
	return st, held, nil
}

// lookUp reads what the history of the subnet has recorded, once per run. A history that cannot be read is
// reported, and the run goes on with what the job has kept.
func (x *jobRun) lookUp(c *lang.Call) *recorded {
	if x == nil {
		return new(recorded)
	}
	if x.looked || x.dir == "" {
		return &x.recorded
	}
	x.looked = true
	if topology.EnvOf(c.Runtime()).Engine == nil || !x.Subnet.IsKnown() || audit.CheckSubnet(x.dir, x.Subnet) != nil {
		return &x.recorded
	}
	path := filepath.Join(x.Subnet.Folder(x.dir), history.FileName)
	if _, err := os.Stat(path); err != nil {
		return &x.recorded
	}
	now := c.Clock().Now()
	err := c.Block(func(ctx context.Context) error {
		h, err := history.Open(ctx, path)
		if err != nil {
			return err
		}
		defer h.Close()
		if x.recorded.downs, err = h.Downs(ctx, now); err != nil {
			return err
		}
		if x.recorded.seen, err = h.LinksSeen(ctx, now.Add(-audit.PastAge)); err != nil {
			return err
		}
		x.recorded.since, err = h.FoundSince(ctx, now.Add(-audit.FlapWindow))
		return err
	})
	if err != nil {
		c.Runtime().WarnOnce("the history is not used: %v", err)
		x.recorded = recorded{}
	}
	return &x.recorded
}

// PastType is the type of an audit's parameter past.
var PastType = &lang.ResultType{
	Name: "audit_past",
	Doc:  "Observations of earlier runs of the job, for audits that compare with them: def audit(fabric, *, past=None). It is None if no state is kept, as for a file.",
	Members: []lang.ResultMember{
		{Name: "down", Doc: "ports that are down, and were up in the last seven days, in a run or by the history of the subnet: dicts of port, link (with the port that was its peer, if that is down too, so that both ends are one fault; else None), seconds (since then), peer (GUID of the node of the peer, None if unknown), to_switch"},
		{Name: "waits", Doc: "ports whose links were up but not active in an earlier run: dicts of port, runs (number of such runs among the latest ten, with this one)"},
	},
}

// past returns the observations of the ports of f in earlier runs of the job, None if no state
// is kept, or an error if the state cannot be read.
func (x *jobRun) past(t *starlark.Thread, f *fabric.Fabric) (v starlark.Value, err error) {
	if x == nil || x.dir == "" && x.Kept == nil {
		return starlark.None, nil
	}
	var unread error // returned alone, since lang.Operate would name a function of scripts
	var seen map[history.End]audit.Seen
	err = lang.Operate(t, "", func(c *lang.Call) error {
		unread = x.open(c)
		seen = x.lookUp(c).seen
		return nil
	})
	if err = cmp.Or(unread, err); err != nil {
		return starlark.None, err
	}
	h := x.state.History()
	h.Merge(f, func(p *fabric.Port) (s audit.Seen, ok bool) {
		s, ok = seen[history.End{Node: p.Node().GUID(), Port: p.Num()}]
		return s, ok
	})
	var down, waits []starlark.Value
	for _, x := range h.Down(f, lang.FiberOf(t).Clock().Now()) {
		peer := lang.OrNone(x.Peer != 0, topology.GUIDValue(x.Peer))
		link := lang.OrNone(x.Other != nil, topology.Link{A: x.Port, B: x.Other})
		down = append(down, lang.DictOf("port", topology.PortOf(x.Port), "link", link, "seconds", seconds(x.For), "peer", peer, "to_switch", starlark.Bool(x.ToSwitch)))
	}
	for _, x := range h.Waits(f) {
		waits = append(waits, lang.DictOf("port", topology.PortOf(x.Port), "runs", starlark.MakeInt(x.Runs)))
	}
	return lang.NewResult(PastType, starlark.NewList(down), starlark.NewList(waits)), nil
}

package audits

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/sa"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// reader reads the counters of the targets of a call, once or twice.
type reader struct {
	c       *lang.Call
	local   *engine.Port
	targets []topology.Target
	many    bool
	ports   []*fabric.Port   // by target
	values  []starlark.Value // by target; nil: not made yet
	failed  []error          // by target; why it fails
	// Requests that are not observed yet.
	answers [len(audit.CounterAttributes)]int // how many were answered, by attribute
	results []result                          // the others
	silent  []bool                            // by target; true if it did not answer

	reads *engine.Engine
	sa    *sa.Client
	clock func() time.Time // the current time; for a file, when its counters were read, zero if unknown
	calls []engine.Call    // for the requests that are sent at once

	recent  *topology.RecentReads // keeps the answers
	keeping *fabric.Fabric        // if they are of its ports

	known  *audit.Agents // capabilities from earlier reads; nil: all agents are queried
	agents map[mad.LID]*agent
	fec    []*mad.FECMode // by target; nil: unknown
	lacks  []uint         // by target: attributes that the file does not have, a mask of indices
}

// agent is the performance management agent of the ports of a node that have one LID.
type agent struct {
	target topology.Target
	port   *fabric.Port // one of its ports
	info   mad.ClassPortInfo
	err    error                               // why info is unknown
	lacks  uint                                // attributes that it does not support, a mask of indices
	silent [len(audit.CounterAttributes)]error // why it did not answer them in this read
}

// newReader resolves the targets, and reads the capabilities of their agents, if unknown.
func newReader(c *lang.Call, target starlark.Value, known *audit.Agents) (*reader, error) {
	res := &topology.Resolver{Call: c}
	env := topology.EnvOf(c.Runtime())
	r := &reader{c: c, sa: env.SA, clock: c.Clock().Now, known: known, agents: map[mad.LID]*agent{}, recent: env.RecentReads, keeping: env.Keeping()}
	if env.Engine == nil && env.Loaded != nil {
		r.clock = env.Loaded.CountersRead
	}
	var err error
	if r.targets, r.many, err = res.Targets(target); err != nil {
		return nil, err
	}
	if r.local, err = res.LocalPort(); err != nil {
		return nil, err
	}
	if r.reads, err = topology.ReaderOf(c); err != nil {
		return nil, err
	}
	r.values = make([]starlark.Value, len(r.targets))
	r.failed = make([]error, len(r.targets))
	r.silent = make([]bool, len(r.targets))
	r.ports = make([]*fabric.Port, len(r.targets))
	r.fec = make([]*mad.FECMode, len(r.targets))
	r.lacks = make([]uint, len(r.targets))
	var lids []mad.LID
	for i := range r.targets {
		t := &r.targets[i]
		if err := t.NeedsLID(); err != nil {
			topology.ObserveOne(c, audit.CounterAttributes[0], t, err)
			r.fail(i, err)
			continue
		}
		if t.Node == nil || t.Port == topology.NoPortGiven {
			return nil, lang.ParamError("target", `%s is not a port of the fabric; use sw.ports, fabric.ports or "NAME/PORT", after discover()`, t.Label)
		}
		if r.ports[i] = t.Node.Port(t.Port); r.ports[i] == nil {
			return nil, lang.ParamError("target", "%s has no port %d", t.Label, t.Port)
		}
		if r.agents[t.LID] == nil {
			a := &agent{target: *t, port: r.ports[i]}
			a.target.Port = topology.NoPortGiven
			r.agents[t.LID] = a
			lids = append(lids, t.LID)
		}
	}
	if err := topology.LearnPaths(c, r.local, lids); err != nil {
		return nil, err
	}
	if err := r.readAgents(lids); err != nil {
		return nil, err
	}
	err = r.readFEC()
	r.settle()
	return r, err
}

// result is the result of a request for a counter attribute that was not answered.
type result struct {
	query
	err     error
	counted bool // it counts as unanswered, although the target does not fail
}

// wanted returns the attributes to read from the agent, as a mask of indices; lacks are those that
// the file does not have of the port.
func (a *agent) wanted(lacks uint) uint { return audit.Wanted(&a.info, a.lacks|lacks) }

// fail records the first error of a target.
func (r *reader) fail(i int, err error) {
	if r.failed[i] == nil {
		r.failed[i] = err
		r.silent[i] = engine.Unanswered(err)
	}
}

// settle observes the results of requests, and makes the values of targets that failed.
func (r *reader) settle() {
	for attr, n := range r.answers {
		for range n {
			topology.ObserveOne(r.c, audit.CounterAttributes[attr], &r.targets[0], nil)
		}
		r.answers[attr] = 0
	}
	for _, x := range r.results {
		topology.ObserveOne(r.c, audit.CounterAttributes[x.attr], &r.targets[x.target], x.err)
		if x.counted {
			topology.CountUnanswered(r.c, x.err)
		}
	}
	r.results = r.results[:0]
	for i, err := range r.failed {
		if err != nil && r.values[i] == nil {
			r.values[i] = topology.Failed(r.c, &r.targets[i], err)
		}
	}
}

// put makes call a Get of the performance management class, with its address.
func (r *reader) put(call *engine.Call, lid mad.LID, attr *mad.Attribute, port int) error {
	call.PutPerf(mad.MethodGet, attr.ID, 0, nil)
	if f := attr.Field("port_select"); f != nil {
		f.SetUint(call.Data(), uint64(port))
	}
	return r.sa.PutGMP(call, r.local, lid)
}

// send sends calls and waits for all; each has its own error.
func (r *reader) send(calls []*engine.Call) error { return topology.SendProbes(r.c, calls) }

// readAgents reads ClassPortInfo, once for each agent, if it is unknown.
func (r *reader) readAgents(lids []mad.LID) error {
	now := r.clock()
	if r.known != nil {
		lids = slices.DeleteFunc(lids, func(lid mad.LID) bool {
			a := r.agents[lid]
			info := r.known.Of(a.port, now)
			if info != nil {
				a.info = *info
			}
			return info != nil
		})
	}
	calls := make([]*engine.Call, len(lids))
	for i, lid := range lids {
		calls[i] = new(engine.Call)
		if err := r.put(calls[i], lid, mad.AttrPerfClassPortInfo, 0); err != nil {
			return err
		}
	}
	sentAfter := time.Now()
	if err := r.send(calls); err != nil {
		return err
	}
	var answers []audit.AgentAnswer
	for i, lid := range lids {
		a := r.agents[lid]
		topology.ObserveOne(r.c, mad.AttrPerfClassPortInfo, &a.target, calls[i].Err)
		if a.err = calls[i].Err; a.err == nil {
			a.info.Decode(calls[i].Data())
			answers = append(answers, audit.AgentAnswer{Port: a.port, Info: &a.info})
			r.recent.KeepCounters(r.keeping, &a.target, mad.AttrPerfClassPortInfo, 0, calls[i].Data()[:mad.AttrPerfClassPortInfo.Size], sentAfter)
		} else if !engine.Unanswered(a.err) { // PortCounters, which all agents have, is still read
			a.err = nil
		}
	}
	if r.known != nil {
		r.known.Keep(answers, now)
	}
	for i := range r.targets {
		if a := r.agents[r.targets[i].LID]; r.failed[i] == nil && a.err != nil {
			r.fail(i, a.err)
		}
	}
	return nil
}

// forget drops the capabilities of agents that may have other firmware, so that they are read
// again: their counters fell, or they did not support an attribute.
func (r *reader) forget(rates []audit.PortRates) {
	if r.known == nil {
		return
	}
	var other []*fabric.Port
	for i, p := range r.ports {
		if !rates[i].Answered() {
			continue
		}
		newest := rates[i].Newest()
		fell, _ := newest.Fell()
		if a := r.agents[r.targets[i].LID]; fell || a.lacks&audit.Wanted(&a.info, 0) != 0 {
			other = append(other, p)
		}
	}
	r.known.Forget(other)
}

// readFEC reads the FEC mode of ports, if the layout of their counters depends on it. Ports
// whose FEC is unknown have fewer counters.
func (r *reader) readFEC() error {
	var calls []*engine.Call
	var of []int
	for i := range r.targets {
		t := &r.targets[i]
		if r.failed[i] != nil || mad.PerfCapabilityMask(r.agents[t.LID].info.CapabilityMask)&mad.PerfCapabilityMaskIsRSFECModeSupported == 0 {
			continue
		}
		call := new(engine.Call)
		call.PutSMP(mad.MethodGet, mad.AttrPortInfoExtended.ID, uint32(t.Port), nil)
		if t.AddressSMP(call) == nil {
			calls, of = append(calls, call), append(of, i)
		}
	}
	if err := r.send(calls); err != nil {
		return err
	}
	for at, i := range of {
		var x mad.PortInfoExtended
		topology.ObserveOne(r.c, mad.AttrPortInfoExtended, &r.targets[i], calls[at].Err)
		if calls[at].Err != nil {
			continue
		}
		if x.Decode(calls[at].Data()); x.CapabilityMask&mad.ExtendedCapabilityMaskIsFECModeSupported != 0 {
			r.fec[i] = &x.FECModeActive
		}
	}
	return nil
}

// query is a request for an attribute of a port.
type query struct{ target, attr int }

// maxQueries is the largest number of requests that are sent at once: it limits the memory for
// their answers.
const maxQueries = 1 << 12

// read reads all ports once. It returns the counters of the ports that answered, by target, and as
// a read to keep.
func (r *reader) read() (after []audit.PortRead, read *audit.Read, err error) {
	err = r.c.Block(func(ctx context.Context) error {
		after, read, err = r.readAll(ctx)
		return err
	})
	r.settle()
	return after, read, err
}

// readAll does what read does, while other fibers run: it uses no values of scripts.
func (r *reader) readAll(ctx context.Context) ([]audit.PortRead, *audit.Read, error) {
	answers := audit.NewAnswers(r.clock(), len(r.targets))
	index := make([]int, len(r.targets))
	for i := range r.targets {
		index[i] = -1
		if r.failed[i] != nil {
			continue
		}
		p := r.ports[i]
		key, _ := audit.KeyOf(p)
		index[i] = answers.AddPort(key, p.Node().GUID(), p.Node().Info().SystemImageGUID)
	}
	for _, a := range r.agents {
		a.silent = [len(audit.CounterAttributes)]error{}
	}
	// Another attribute may replace one that an agent does not support.
	missing := func(i int) uint {
		return r.agents[r.targets[i].LID].wanted(r.lacks[i]) &^ answers.Requested(index[i])
	}
	details := func(i int) uint { return answers.Details(index[i]) }
	for _, attrs := range []func(int) uint{missing, missing, details} {
		// Only an answer shows whether an agent has details: one port is read first.
		first, rest := r.queries(attrs)
		for _, queries := range append([][]query{first}, slices.Collect(slices.Chunk(rest, maxQueries))...) {
			if err := r.query(ctx, queries, answers, index); err != nil {
				return nil, nil, err
			}
		}
	}
	byIndex, read := answers.Read()
	after := make([]audit.PortRead, len(r.targets))
	for i := range after {
		if r.failed[i] == nil {
			after[i] = byIndex[index[i]]
		}
	}
	return after, read, nil
}

// queries returns the requests for attributes, a mask by target: first one of each attribute
// to each agent, then the rest.
func (r *reader) queries(attrs func(i int) uint) (first, rest []query) {
	begun := map[mad.LID]uint{}
	for i := range r.targets {
		if r.failed[i] != nil {
			continue
		}
		lid, mask := r.targets[i].LID, attrs(i)
		for attr := range audit.CounterAttributes {
			switch {
			case mask>>attr&1 == 0:
			case begun[lid]>>attr&1 == 0:
				first = append(first, query{i, attr})
			default:
				rest = append(rest, query{i, attr})
			}
		}
		begun[lid] |= mask
	}
	return first, rest
}

// query sends the requests that agents may answer.
func (r *reader) query(ctx context.Context, queries []query, answers *audit.Answers, index []int) error {
	if len(r.calls) < len(queries) {
		r.calls = make([]engine.Call, len(queries))
	}
	calls, sent := make([]*engine.Call, 0, len(queries)), make([]query, 0, len(queries))
	for _, q := range queries {
		t := &r.targets[q.target]
		a := r.agents[t.LID]
		switch {
		case r.failed[q.target] != nil, (a.lacks|r.lacks[q.target])>>q.attr&1 != 0:
			continue
		case a.silent[q.attr] != nil: // requests for its other ports would time out too
			r.results = append(r.results, result{query: q, err: a.silent[q.attr]})
			answers.Silent(index[q.target], q.attr, &a.info)
			continue
		}
		call := &r.calls[len(calls)]
		*call = engine.Call{}
		if err := r.put(call, t.LID, audit.CounterAttributes[q.attr], t.Port); err != nil {
			return err
		}
		calls, sent = append(calls, call), append(sent, q)
	}
	began, sentAfter := r.clock(), time.Now()
	if err := r.reads.Do(ctx, calls...); err != nil {
		return err
	}
	ended := r.clock() // a virtual clock did not advance meanwhile
	for i, q := range sent {
		when := began.Add(min(calls[i].Elapsed, ended.Sub(began)))
		r.answered(q, calls[i], answers, index[q.target], when)
		if attr := audit.CounterAttributes[q.attr]; calls[i].Err == nil {
			r.recent.KeepCounters(r.keeping, &r.targets[q.target], attr, r.targets[q.target].Port, calls[i].Data()[:attr.Size], sentAfter)
		}
	}
	return nil
}

// answered handles the result of a query.
func (r *reader) answered(q query, call *engine.Call, answers *audit.Answers, at int, when time.Time) {
	a := r.agents[r.targets[q.target].LID]
	if call.Err == nil {
		r.answers[q.attr]++
		answers.Answered(at, q.attr, &a.info, r.fec[q.target], call.Data(), when)
		return
	}
	observed := result{query: q, err: call.Err}
	switch {
	case q.attr == 0:
		r.fail(q.target, call.Err)
	case errors.Is(call.Err, topology.ErrNotInFile): // of this port
		r.lacks[q.target] |= 1 << q.attr
	case isUnsupported(call.Err):
		a.lacks |= 1 << q.attr
	case a.wanted(0)&1 == 0 && q.attr == 1: // it replaces PortCounters
		r.fail(q.target, call.Err)
	default:
		observed.counted = true
		a.silent[q.attr] = call.Err
		answers.Silent(at, q.attr, &a.info)
	}
	r.results = append(r.results, observed)
}

// isUnsupported reports whether the agent does not have the attribute.
func isUnsupported(err error) bool {
	var e *engine.Error
	return errors.As(err, &e) && e.Err == nil && (e.Status == mad.StatusBadMethodAttribute || e.Status == mad.StatusBadMethod)
}

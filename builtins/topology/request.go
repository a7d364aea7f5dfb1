package topology

import (
	"context"
	"errors"
	"fmt"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/device"
	"fabsh/fabric/plural"
	"fabsh/fabric/sa"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// Transact sends calls, waits for all, and counts those that were not answered. It
// returns an error only if the fiber is stopped; the error of a call is in its Err.
func Transact(c *lang.Call, calls []*engine.Call) error {
	e, err := ReaderOf(c)
	if err != nil {
		return err
	}
	err = c.Block(func(ctx context.Context) error { return e.Do(ctx, calls...) })
	for _, call := range calls {
		CountUnanswered(c, call.Err)
	}
	return err
}

// SendProbes sends fabsh's own requests, which do not count for the exit status.
func SendProbes(c *lang.Call, calls []*engine.Call) error {
	e, err := ReaderOf(c)
	if err != nil {
		return err
	}
	return c.Block(func(ctx context.Context) error { return e.Do(ctx, calls...) })
}

// CountUnanswered counts a request that was not answered, for the exit status. A refusal
// by the agent is an answer.
func CountUnanswered(c *lang.Call, err error) {
	if engine.Unanswered(err) {
		c.Fiber().Account.Unanswered++
	}
}

// Results returns a single value, or its failure as an error; for many, the list of all,
// with failures in their places.
func Results(values []starlark.Value, many bool) (starlark.Value, error) {
	if many {
		return starlark.NewList(values), nil
	}
	if e, ok := values[0].(*lang.Failure); ok {
		return nil, e.Err
	}
	return values[0], nil
}

// manyRequests is the number of requests from which they are announced on standard error: they
// take some seconds on a live fabric.
const manyRequests = 10000

// AnnounceRequests returns a function that shows how many requests for tables of adaptive
// routing are about to be sent.
func AnnounceRequests(c *lang.Call) func(requests int) {
	return func(requests int) {
		text := c.Name + ": " + plural.Count(requests, "request", "requests") + " for tables of adaptive routing"
		c.Runtime().Progress(text)
		if requests >= manyRequests {
			c.Fiber().Note("%s", text)
		}
	}
}

// RequestError is a failed request, with the target in the words of the script.
type RequestError struct {
	op     string // the builtin
	target string
	err    error
	Advice string // the remedy; may be empty
	named  bool   // err names the target
}

// Error returns "op: target: cause; advice". If the cause names the target, the target
// is left out.
func (e *RequestError) Error() string {
	msg := e.op + ": "
	var me *engine.Error
	var te *TargetError
	named := e.named || errors.As(e.err, &me) && me.Dest == e.target || errors.As(e.err, &te) && te.named
	if !named {
		msg += e.target + ": "
	}
	msg += e.err.Error()
	if e.Advice != "" {
		msg += "; " + e.Advice
	}
	return msg
}

func (e *RequestError) Unwrap() error { return e.err }

// Target returns the target in the words of the script.
func (e *RequestError) Target() string { return e.target }

// Failed counts a failed request to t and returns the failure as a value.
func Failed(c *lang.Call, t *Target, err error) *lang.Failure {
	CountUnanswered(c, err)
	return lang.NewFailure(FailedRequest(c, t, err))
}

// FailedRequest returns the error of a request to t. A request that was refused because
// --write is missing ends the script with status 2.
func FailedRequest(c *lang.Call, t *Target, err error) error {
	var re *RequestError
	if errors.As(err, &re) {
		return err
	}
	if errors.Is(err, engine.ErrReadOnly) {
		return c.Refuse("%s", EnvOf(c.Runtime()).Refusal(false))
	}
	if errors.Is(err, engine.ErrOnlyReads) {
		return c.Refuse("%v", engine.ErrOnlyReads)
	}
	if errors.Is(err, engine.ErrRegister) {
		return c.Refuse("%v", engine.ErrRegister)
	}
	if errors.Is(err, change.ErrNotPlanned) {
		return c.Refuse("%v", err)
	}
	advice := adviceFor(c, err)
	var me *engine.Error
	if errors.As(err, &me) && me.Timeout() && me.Class.Family() == mad.ClassSubn && !hasKeys(c) && t.wantsKey() {
		advice = "it answers only requests with its M_Key; give the key with --keys FILE"
	}
	return &RequestError{op: c.Name, target: t.Label, err: err, Advice: advice}
}

// wantsKey reports whether t's port is known to require its M_Key for Gets too (IBA
// 14.2.4.1, M_KeyProtectBits 2 and 3).
func (t *Target) wantsKey() bool {
	if t.Node == nil {
		return false
	}
	num := 0
	if !t.Node.IsSwitch() {
		num = max(t.Port, 1)
	}
	p := t.Node.Port(num)
	return p != nil && p.Info() != nil && p.Info().MKeyProtectBits >= 2
}

// adviceFor returns the remedy for an error; empty: none is known.
func adviceFor(c *lang.Call, err error) string {
	var me *engine.Error
	var ke *device.KeyError
	switch {
	case Cautious(err):
		return "force=True skips this check"
	case errors.As(err, &ke) && ke.Given:
		return "the key in --keys is wrong"
	case errors.As(err, &ke):
		return "give it with --keys FILE"
	case !errors.As(err, &me):
		return ""
	case errors.Is(err, engine.ErrClosed):
		return "the device or simulator is gone; start it and run fabsh again"
	case errors.Is(err, engine.ErrNotRecorded):
		return "a replay answers only requests that were recorded"
	case me.Timeout() && me.Class == mad.ClassSubnAdm && hasKeys(c):
		return "check that the subnet manager runs and that sa_key in --keys is its key, or increase --timeout and --retries"
	case me.Timeout() && me.Class.Family() == mad.ClassSubn && hasKeys(c):
		return "check that the node is up, that its address is current (run discover() again) and that --keys has its M_Key, or increase --timeout and --retries"
	case me.Timeout():
		return "check that the node is up and that its address is current (run discover() again), or increase --timeout and --retries"
	case me.Class == mad.ClassSubnAdm && me.Status == mad.StatusRequestInvalid && (c.Name == "sa_set" || c.Name == "sa_delete"):
		return "a required component is missing or has an invalid value, or the record does not exist"
	case me.Class == mad.ClassSubnAdm && me.Status == mad.StatusRequestInvalid && !hasKeys(c):
		return "the request may require the SM_Key; give it with --keys FILE, in a line sa_key"
	case me.Class == mad.ClassSubnAdm && me.Status == mad.StatusNoRecords && c.Name == "sa_delete":
		return "name the record by all its components; sa_gettable lists the records"
	case me.Err == nil && (me.Status < mad.StatusNoResources || me.Class == mad.ClassSubnAdm):
		return statusAdvice[me.Status]
	}
	return ""
}

// hasKeys reports whether --keys was given.
func hasKeys(c *lang.Call) bool {
	e := EnvOf(c.Runtime()).Engine
	return e != nil && e.Options().Keys != nil
}

// statusAdvice has the remedies by the status of the answer.
var statusAdvice = map[mad.Status]string{
	mad.StatusBusy:               "the agent was busy each time; try again later, or increase --timeout and --retries",
	mad.StatusBadVersion:         "the agent supports another version of the class",
	mad.StatusBadMethodAttribute: "this node does not support the attribute, or not with this method",
	mad.StatusBadValue:           "the port or block does not exist, or the node does not accept the value",
	mad.StatusNoRecords:          "sa_gettable answers this with an empty list",
	mad.StatusTooManyRecords:     "name more components, or read all with sa_gettable",
	mad.StatusInsufficient:       "name more components",
	mad.StatusInvalidGID:         "check that a port has this GID, which is the subnet prefix and the port GUID",
}

// Cautious reports whether err means that a possible operation was omitted for safety.
func Cautious(err error) bool {
	var caution *device.CautionError
	return errors.As(err, &caution)
}

// SACall returns a request to the subnet administrator, for Transact or SendProbes.
func SACall(c *lang.Call, r sa.Request) (*engine.Call, error) {
	p, err := LocalPort(c)
	if err != nil {
		return nil, err
	}
	call := new(engine.Call)
	if err := EnvOf(c.Runtime()).SA.Put(call, &p, r); err != nil {
		return nil, SAFailed(c, r.Attr, err)
	}
	return call, nil
}

// SARecords returns the records of an answer, with the layout attr. It returns none if
// the status of the answer is "no records".
func SARecords(attr *mad.Attribute, call *engine.Call) ([]*records.Record, error) {
	seq, err := sa.Records(call, attr)
	if err != nil {
		return nil, err
	}
	var list []*records.Record
	for data := range seq {
		list = append(list, records.NewAnswer(attr, 0, data))
	}
	return list, nil
}

// SAFailed returns the error of a request for records of attr.
func SAFailed(c *lang.Call, attr *mad.Attribute, err error) error {
	return FailedRequest(c, &Target{Label: attr.Name + " of the subnet administrator"}, err)
}

// nodeRecords reads the NodeRecords that match query in one component.
func nodeRecords(c *lang.Call, query *mad.NodeRecord, component string) (list []mad.NodeRecord, err error) {
	if _, err := ReaderOf(c); err != nil {
		return nil, err
	}
	client := EnvOf(c.Runtime()).SA
	err = c.Block(func(ctx context.Context) error {
		all, err := client.Table(ctx, sa.NewRequest(mad.MethodGetTable, mad.AttrNodeRecord, query, component))
		if err != nil {
			return err
		}
		for data := range all {
			var r mad.NodeRecord
			r.Decode(data)
			list = append(list, r)
		}
		return nil
	})
	CountUnanswered(c, err)
	return list, err
}

// pathTo reads a path to the port with a GID.
func pathTo(c *lang.Call, g mad.GID) (path mad.PathRecord, err error) {
	if _, err := ReaderOf(c); err != nil {
		return path, err
	}
	client := EnvOf(c.Runtime()).SA
	err = c.Block(func(ctx context.Context) (err error) {
		path, err = client.Path(ctx, g)
		return err
	})
	CountUnanswered(c, err)
	return path, err
}

// pathWarning records whether the session has warned of unknown paths.
type pathWarning struct{ given bool }

// LearnPaths reads the service levels of the paths from p to lids, which
// sa.Client.PutGMP then uses. If the subnet administrator does not report one, it is 0,
// with one warning in each session.
func LearnPaths(c *lang.Call, p *engine.Port, lids []mad.LID) error {
	client := EnvOf(c.Runtime()).SA
	err := c.Block(func(ctx context.Context) error { return client.LearnPaths(ctx, p, lids) })
	var unknown *sa.PathError
	if errors.As(err, &unknown) {
		if w := lang.StateOf[pathWarning](c.Runtime()); !w.given {
			w.given = true
			c.Fiber().Warn("the service level of paths is unknown; using 0 (--sl sets another): %v", unknown)
		}
		return nil
	}
	return pkeyError(err)
}

// pkeyError converts the error about a P_Key that the port does not have to one that the
// builtin's name precedes.
func pkeyError(err error) error {
	var pkey *sa.PKeyError
	if errors.As(err, &pkey) {
		return lang.Errorf("%w", err)
	}
	return err
}

// Observer receives the result of each request for an attribute by a script: its target,
// and the error, or nil if it was answered. It also sees failures that catch()
// suppresses. It belongs to a run of audits.
type Observer struct {
	Report func(a *mad.Attribute, t *Target, err error) // nil: results are not reported
	// Detail is above 0 during detail(): the requests only add detail to findings.
	Detail int
	// Swept is the fabric that the run has swept; nil: none.
	Swept *fabric.Fabric

	silent map[deviceKind]*kindAnswers // see SendOptional
}

// NewObserver returns the observer of a run, which knows of no device that does not answer.
func NewObserver() *Observer { return &Observer{silent: map[deviceKind]*kindAnswers{}} }

// Part returns an observer for one of several audits of a run, without Report.
func (o *Observer) Part() *Observer { return &Observer{Swept: o.Swept, silent: o.silent} }

// ObserverOf returns the observer of the run that the call belongs to; nil: none.
func ObserverOf(c *lang.Call) *Observer { return lang.RunOf[Observer](c.Fiber()) }

// JustSwept reports whether the current run of audits has swept f.
func JustSwept(c *lang.Call, f *fabric.Fabric) bool {
	o := ObserverOf(c)
	return o != nil && o.Swept == f
}

// Observe reports the results of the requests to targets: values are the results, with
// failures in their places.
func Observe(c *lang.Call, a *mad.Attribute, targets []Target, values []starlark.Value) {
	o := ObserverOf(c)
	if o == nil || o.Report == nil {
		return
	}
	for i := range targets {
		var err error
		if f, ok := values[i].(*lang.Failure); ok {
			err = f.Err
		}
		o.Report(a, &targets[i], err)
	}
}

// ObserveOne is Observe for one request. t is nil for a request to the subnet
// administrator.
func ObserveOne(c *lang.Call, a *mad.Attribute, t *Target, err error) {
	if o := ObserverOf(c); o != nil && o.Report != nil {
		if t == nil {
			t = &Target{Port: NoPortGiven}
		}
		o.Report(a, t, err)
	}
}

// Limits for devices of one kind of which none has answered: requests go to at most
// silentDevices devices, and to each at most silentRequests times.
const (
	silentDevices  = 8
	silentRequests = 2
)

// deviceKind identifies a class, and devices that are likely to have equal agents.
type deviceKind struct {
	class            mad.Class
	vendor, revision uint32
	device           uint16
}

// kindAnswers records the answers of a kind.
type kindAnswers struct {
	answered bool             // a device has answered, perhaps with a refusal
	devices  map[mad.GUID]int // unanswered requests, by device
	last     error            // of the last unanswered request
}

// unresponsive reports whether no answer is expected from the device.
func (s *kindAnswers) unresponsive(device mad.GUID) bool {
	return !s.answered && (s.devices[device] >= silentRequests || s.devices[device] == 0 && len(s.devices) >= silentDevices)
}

// SendOptional is SendProbes for requests of a class whose agent is optional; targets
// are the targets of the requests. If no device of a kind has answered, a run of audits
// no longer sends requests to that kind: they get the error of an earlier request.
func SendOptional(c *lang.Call, class mad.Class, targets []*Target, calls []*engine.Call) error {
	o := ObserverOf(c)
	if o == nil {
		return SendProbes(c, calls)
	}
	kinds := make([]*kindAnswers, len(calls)) // nil: unknown
	members := map[*kindAnswers][]int{}
	for i, t := range targets {
		if t.Node == nil || t.Node.Info() == nil {
			continue
		}
		info := t.Node.Info()
		k := deviceKind{class, info.VendorID, info.Revision, info.DeviceID}
		if o.silent[k] == nil {
			o.silent[k] = &kindAnswers{devices: map[mad.GUID]int{}}
		}
		kinds[i] = o.silent[k]
		members[kinds[i]] = append(members[kinds[i]], i)
	}
	first := make([]bool, len(calls)) // a sample of each kind from the whole fabric, because a failure may affect neighbours
	for s, all := range members {
		if n := silentDevices - len(s.devices); !s.answered && n > 0 {
			for j := range min(n, len(all)) {
				first[all[j*len(all)/min(n, len(all))]] = true
			}
		}
	}
	for _, wave := range []bool{true, false} {
		var send []int
		for i := range calls {
			switch s := kinds[i]; {
			case (s == nil || first[i]) != wave:
			case s != nil && s.unresponsive(targets[i].Node.GUID()):
				calls[i].Err = fmt.Errorf("no request sent, because none of %d devices of its kind has answered: %w", len(s.devices), s.last)
			default:
				send = append(send, i)
			}
		}
		if err := sendAndRecord(c, targets, calls, kinds, send); err != nil {
			return err
		}
	}
	return nil
}

// sendAndRecord sends the calls with the given indices and records which devices answer.
func sendAndRecord(c *lang.Call, targets []*Target, calls []*engine.Call, kinds []*kindAnswers, indices []int) error {
	if len(indices) == 0 {
		return nil
	}
	send := make([]*engine.Call, len(indices))
	for n, i := range indices {
		send[n] = calls[i]
	}
	err := SendProbes(c, send)
	for _, i := range indices {
		switch s := kinds[i]; {
		case s == nil:
		case !engine.Unanswered(calls[i].Err):
			s.answered = true
		default:
			s.devices[targets[i].Node.GUID()]++
			s.last = calls[i].Err
		}
	}
	return err
}

package topology

import (
	"errors"

	"fabsh/builtins/lang"
	"fabsh/fabric/change/plan"
	"fabsh/fabric/table"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// RequestError is a failed request with what the user called its target.
type RequestError struct {
	op     string // the builtin
	target string
	err    error
	Advice string // what to try next; may be empty
	named  bool   // err says what the target is
}

// Error is "op: target: cause; advice". Where the cause names the target by the
// same words, it is not said twice.
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

// Target is what the script called the target.
func (e *RequestError) Target() string { return e.target }

// Failed counts a request to t that failed, and returns the failure as a value.
func Failed(c *lang.Call, t *Target, err error) *lang.Failure {
	CountUnanswered(c, err)
	return lang.NewFailure(FailedRequest(c, t, err))
}

// FailedRequest makes the error of a request to t. One that was refused for want
// of --write ends the script with status 2.
func FailedRequest(c *lang.Call, t *Target, err error) error {
	var re *RequestError
	if errors.As(err, &re) {
		return err
	}
	if errors.Is(err, engine.ErrReadOnly) {
		return c.Refuse("refused, for it would change the fabric, which takes --write")
	}
	if errors.Is(err, engine.ErrRegister) {
		return c.Refuse("%v", engine.ErrRegister)
	}
	if errors.Is(err, plan.ErrNotPlanned) {
		return c.Refuse("%v", err)
	}
	advice := adviceOn(c, err)
	var me *engine.Error
	if errors.As(err, &me) && me.Timeout() && me.Class.Family() == mad.ClassSubn && !hasKeys(c) && t.wantsKey() {
		advice = "it answers nobody without its M_Key: give it with --keys FILE"
	}
	return &RequestError{op: c.Name, target: t.Label, err: err, Advice: advice}
}

// wantsKey: t's port is known to want its M_Key for Gets too (IBA 14.2.4.1,
// M_KeyProtectBits 2 and 3).
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

// adviceOn is what to try next; empty: nothing is known.
func adviceOn(c *lang.Call, err error) string {
	var me *engine.Error
	var ke *table.KeyError
	switch {
	case Cautious(err):
		return "force=True does it all the same"
	case errors.As(err, &ke) && ke.Given:
		return "--keys gives a wrong one"
	case errors.As(err, &ke):
		return "give it with --keys FILE"
	case !errors.As(err, &me):
		return ""
	case errors.Is(err, engine.ErrClosed):
		return "the device or simulator is gone: start it and run fabsh again"
	case errors.Is(err, engine.ErrNotRecorded):
		return "a replay answers only what was asked while it was recorded"
	case me.Timeout() && me.Class == mad.ClassSubnAdm && hasKeys(c):
		return "check that the subnet manager is up, and that the sa_key of --keys is its, or allow more with --timeout and --retries"
	case me.Timeout() && me.Class.Family() == mad.ClassSubn && hasKeys(c):
		return "check that the node is up, the address right (discover() finds it anew) and the M_Key of --keys its own, or allow more with --timeout and --retries"
	case me.Timeout():
		return "check that the node is up and the address right (discover() finds it anew), or allow more with --timeout and --retries"
	case me.Class == mad.ClassSubnAdm && me.Status == mad.StatusRequestInvalid && (c.Name == "sa_set" || c.Name == "sa_delete"):
		return "a component that it takes is missing, or has a value that it does not take; or there is no such record"
	case me.Class == mad.ClassSubnAdm && me.Status == mad.StatusRequestInvalid && !hasKeys(c):
		return "it may be for those alone who show its SM_Key: --keys FILE, with a line sa_key"
	case me.Class == mad.ClassSubnAdm && me.Status == mad.StatusNoRecords && c.Name == "sa_delete":
		return "name the record by all its components: sa_gettable shows what there is"
	case me.Err == nil && (me.Status < mad.StatusNoResources || me.Class == mad.ClassSubnAdm):
		return statusAdvice[me.Status]
	}
	return ""
}

// hasKeys: --keys was given.
func hasKeys(c *lang.Call) bool {
	e := EnvOf(c.Runtime()).Engine
	return e != nil && e.Options().Keys != nil
}

// statusAdvice is adviceOn a status that an agent answered with.
var statusAdvice = map[mad.Status]string{
	mad.StatusBusy:               "the agent was busy each time: ask later, or allow more with --timeout and --retries",
	mad.StatusBadVersion:         "the agent speaks another version of the class",
	mad.StatusBadMethodAttribute: "this node does not have the attribute, or only for another method",
	mad.StatusBadValue:           "the node does not have such a port or block, or does not take such a value",
	mad.StatusNoRecords:          "sa_gettable answers this with an empty list",
	mad.StatusTooManyRecords:     "name more components, or ask for all with sa_gettable",
	mad.StatusInsufficient:       "name more components",
	mad.StatusInvalidGID:         "check that a port has the GID: it is the subnet prefix and the port's GUID",
}

// Cautious: err says that something was not done that could have been.
func Cautious(err error) bool {
	var caution *table.CautionError
	return errors.As(err, &caution)
}

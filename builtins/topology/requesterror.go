package topology

import (
	"errors"

	"fabsh/builtins/lang"
	"fabsh/fabric/change"
	"fabsh/fabric/device"
	"fabsh/mad"
	"fabsh/mad/engine"
)

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
	advice := adviceOn(c, err)
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

// adviceOn returns the remedy for an error; empty: none is known.
func adviceOn(c *lang.Call, err error) string {
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

package lang

import (
	"errors"
	"fmt"

	"go.starlark.net/starlark"
)

// Failure is the value `error`: the failure of a target. It is the only falsy value of
// fabsh.
type Failure struct {
	Err    error
	Target string
}

var (
	_ starlark.HasAttrs = (*Failure)(nil)
	_ Factual           = (*Failure)(nil)
)

func (e *Failure) String() string       { return fmt.Sprintf("error(%s)", e.Err) }
func (e *Failure) Type() string         { return "error" }
func (e *Failure) Freeze()              {}
func (e *Failure) Truth() starlark.Bool { return false }
func (e *Failure) AttrNames() []string  { return []string{"message", "op", "status", "target"} }
func (e *Failure) Hash() (uint32, error) {
	return HashBytes([]byte(e.Err.Error())), nil
}

func (e *Failure) Schema() string { return "error/1" }

func (e *Failure) Facts() []Fact {
	var out []Fact
	for _, name := range []string{"op", "target", "status", "message"} {
		v, _ := e.Attr(name)
		out = append(out, Fact{Name: name, Value: v})
	}
	return out
}

// row returns the failure as a row of a table: its target in the first column, and
// the failure, which spans the other columns.
func (e *Failure) row(first string) []Fact {
	target := e.Target
	if v, _ := e.Attr("target"); target == "" && v != nil {
		target, _ = starlark.AsString(v)
	}
	return []Fact{{Name: first, Value: starlark.String(target)}, {Value: e}}
}

// brief returns the cause, in a few words if possible.
func (e *Failure) brief() string {
	if v, _ := e.Attr("status"); v != nil {
		if status, _ := starlark.AsString(v); status != "" && status != "failed" {
			return status
		}
	}
	return e.Err.Error()
}

// Described is an error that states the operation, its target and its status.
type Described interface {
	error
	Describe() (op, target, status string)
}

// Targeted is an error that names a target in the words of the script.
type Targeted interface {
	error
	Target() string
}

// Attr returns one of the four facts about the failure. Any other attribute was meant
// for the missing value, so it raises the failure.
func (e *Failure) Attr(name string) (starlark.Value, error) {
	var d Described
	found := errors.As(e.Err, &d)
	var op, target, status string
	if found {
		op, target, status = d.Describe()
	}
	switch name {
	case "message":
		return starlark.String(e.Err.Error()), nil
	case "target":
		if e.Target == "" {
			return starlark.String(target), nil
		}
		return starlark.String(e.Target), nil
	case "op":
		return starlark.String(op), nil
	case "status":
		if found {
			return starlark.String(status), nil
		}
		return starlark.String("failed"), nil
	}
	return nil, &raisedError{e.Err}
}

// raisedError is a failure that was raised because a script used its value. It has the place
// of the use, followed by the place of the failure.
type raisedError struct{ err error }

func (e *raisedError) Error() string { return e.err.Error() }
func (e *raisedError) Unwrap() error { return e.err }

// Catch is catch(): failures as values.
var Catch = Builtin{
	Name:  "catch",
	Group: GroupFlow,
	Params: []Param{
		{Name: "fn", Kind: KindFunction, Doc: "the function to call"},
		{Name: "*args", Kind: KindAny, Doc: "its arguments"},
		{Name: "**kwargs", Kind: KindAny, Doc: "its keyword arguments"},
	},
	Doc: `Calls a function and returns its result, or its failure as a value.
An error value is falsy and has op, target, status and message. Requests that are not answered during the call do not count for the exit status. It does not catch exit(), an interrupt, a refusal to change the fabric, or the limits --memory and --max-steps.`,
	Example: `
> r = catch(smp_get, "NodeInfo", 999)
> if not r: print(r.status)
timed out
`,
	Run: Do(func(c *Call, a *struct {
		FN     starlark.Callable
		Args   starlark.Tuple
		Kwargs []starlark.Tuple
	}) (starlark.Value, error) {
		return CallCatching(c, a.FN, a.Args, a.Kwargs)
	}),
}

// CallCatching calls fn as catch() does.
func CallCatching(c *Call, fn starlark.Callable, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	v, err := c.callUncounted(fn, args, kwargs)
	if err == nil {
		return v, nil
	}
	if !Catchable(c.Fiber(), err) {
		return nil, err
	}
	return NewFailure(err), nil
}

// callUncounted calls fn, whose unanswered requests do not count for the exit status.
func (c *Call) callUncounted(fn starlark.Callable, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	f := c.Fiber()
	outer := f.Account
	f.Account = new(Account)
	v, err := starlark.Call(c.Thread, fn, args, kwargs)
	f.Account = outer
	return v, err
}

// NewFailure returns the value of a caught error. A value that was raised again by its
// use keeps its target.
func NewFailure(err error) *Failure {
	f := &Failure{Err: err}
	var t Targeted
	if errors.As(err, &t) {
		f.Target = t.Target()
	}
	return f
}

// OK is ok(): the elements of a list that did not fail.
var OK = Builtin{
	Name:   "ok",
	Group:  GroupFlow,
	Params: []Param{{Name: "list", Kind: KindItems, Doc: "results, some of which may be errors"}},
	Doc:    "Returns the items that are not error values.",
	Example: `
> ok([1, catch(fail, "no"), 2])
[1, 2]
`,
	Run: Do(func(c *Call, a *struct{ List []starlark.Value }) (starlark.Value, error) {
		return filterFailures(a.List, false), nil
	}),
}

// Errors is errors(): the failures in a list.
var Errors = Builtin{
	Name:   "errors",
	Group:  GroupFlow,
	Params: []Param{{Name: "list", Kind: KindItems, Doc: "results, some of which may be errors"}},
	Doc:    "Returns the items that are error values.",
	Example: `
> len(errors([1, catch(fail, "no"), 2]))
1
`,
	Run: Do(func(c *Call, a *struct{ List []starlark.Value }) (starlark.Value, error) {
		return filterFailures(a.List, true), nil
	}),
}

// filterFailures returns the items that are failures, or that are not.
func filterFailures(items []starlark.Value, failures bool) *starlark.List {
	var out []starlark.Value
	for _, v := range items {
		if _, ok := v.(*Failure); ok == failures {
			out = append(out, v)
		}
	}
	return starlark.NewList(out)
}

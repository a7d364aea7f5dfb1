// Package remedies has the values of remedies: scripts that turn findings into actions, of which
// fabsh makes a plan.
//
//	action.go    isolate(), restore(), reset() and ticket(), which make actions
//	past.go      the past of links, as remedies get it
//	decision.go  decisions, in the result of a run and in the log
//
// A run of remedies is in builtins/remedies/run.
package remedies

import (
	"go.starlark.net/starlark"

	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/remedy"
)

// GroupRemedy is the heading of remedies in the overview.
const GroupRemedy = "Remedies"

// Running is set while actions may be made: in remedies, and in tests of scripts. It is the
// state that remedies keep with a lang.Runtime.
type Running bool

var linkParam = lang.Param{Name: "link", Kind: lang.KindAny, Doc: "a link, or a port at one of its ends"}

// reasonParam is why an action is requested, and declinedParam why it is not.
var (
	reasonParam   = lang.Param{Name: "reason", Kind: lang.KindText, Doc: "why, for people: it is in the log of decisions"}
	declinedParam = lang.Param{Name: "declined", Kind: lang.KindText, Default: `""`, Keyword: true, Doc: `a rule of the remedy by which it does not do this, with the reason: "budget: 10 links are isolated". The action is reported and logged, and not planned`}
)

// actionArgs are the arguments of actions on links.
type actionArgs struct {
	Link     starlark.Value
	Reason   string
	Declined string
}

// Isolate is isolate().
var Isolate = lang.Builtin{
	Name:   "isolate",
	Group:  GroupRemedy,
	Params: []lang.Param{linkParam, reasonParam, declinedParam},
	Doc: `Returns an action of a remedy: disable a link.
The plan disables the port of the switch; of two switches, that nearer to this host. Only a remedy may call it: a script with a function remedy(fabric, findings, *, ...), which returns a list of actions, and fabsh remedy runs it. Nothing is sent until fabsh change apply.` + rulesDoc,
	Example: `
> catch(isolate, discover().links[0], "bit errors").message
"isolate: only a remedy makes actions: define remedy(fabric, findings), and run it with fabsh remedy FILE.star"
`,
	Run: lang.Do(func(c *lang.Call, a *actionArgs) (starlark.Value, error) { return linkAction(c, remedy.Isolate, a) }),
}

const rulesDoc = ` "fabsh remedy --help" lists the rules that hold for every remedy.`

// Restore is restore().
var Restore = lang.Builtin{
	Name:   "restore",
	Group:  GroupRemedy,
	Params: []lang.Param{{Name: "port", Kind: lang.KindAny, Doc: "the port that fabsh disabled: past.known[i].port"}, reasonParam, declinedParam},
	Doc: `Returns an action of a remedy: enable a port that fabsh isolated, for a test.
The test begins when the plan has been applied. restore() of a port in its test ends the test, without a change: the link stays up. Only a remedy may call it: see isolate().`,
	Example: `
> catch(restore, discover().switches[0].ports[1], "replaced").message
"restore: only a remedy makes actions: define remedy(fabric, findings), and run it with fabsh remedy FILE.star"
`,
	Run: portAction(remedy.Restore),
}

// Reset is reset().
var Reset = lang.Builtin{
	Name:   "reset",
	Group:  GroupRemedy,
	Params: []lang.Param{{Name: "port", Kind: lang.KindAny, Doc: "a port with a link, or a link"}, reasonParam, declinedParam},
	Doc: `Returns an action of a remedy: train a link again.
While it trains, packets take other links, so the rules are those of isolate(). Only a remedy may call it: see isolate().`,
	Example: `
> catch(reset, discover().switches[0].ports[1], "runs at 1x").message
"reset: only a remedy makes actions: define remedy(fabric, findings), and run it with fabsh remedy FILE.star"
`,
	Run: portAction(remedy.Reset),
}

// portAction returns the body of a function that makes an action on a port.
func portAction(kind remedy.ActionKind) *lang.Body {
	return lang.Do(func(c *lang.Call, a *struct {
		Port             starlark.Value
		Reason, Declined string
	}) (starlark.Value, error) {
		return linkAction(c, kind, &actionArgs{a.Port, a.Reason, a.Declined})
	})
}

// Ticket is ticket().
var Ticket = lang.Builtin{
	Name:  "ticket",
	Group: GroupRemedy,
	Params: []lang.Param{
		{Name: "subject", Kind: lang.KindAny, Doc: `the fabric, a node, a port or a link; or "GUID" or "GUID/PORT"`},
		{Name: "text", Kind: lang.KindText, Doc: "what to do, for people"},
	},
	Doc: `Returns an action of a remedy: work for people, such as a cable to replace.
fabsh reports and logs it, and sends it nowhere: "fabsh -o jsonl remedy" and "fabsh -o jsonl remedy log" have it for programs. Only a remedy may call it: see isolate().`,
	Example: `
> catch(ticket, discover().links[0], "replace the cable").message
"ticket: only a remedy makes actions: define remedy(fabric, findings), and run it with fabsh remedy FILE.star"
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Subject starlark.Value
		Text    string
	}) (starlark.Value, error) {
		if err := mayMake(c, a.Text); err != nil {
			return nil, err
		}
		subject, err := audits.SubjectOf(a.Subject)
		if err != nil {
			return nil, lang.ParamError("subject", "%w", err)
		}
		return newAction(remedy.Action{Kind: remedy.Ticket, Subject: subject, Reason: a.Text}, starlark.None), nil
	}),
}

// maxText is the longest text of an action, in bytes.
const maxText = 4096

// mayMake returns why no action can be made of these texts.
func mayMake(c *lang.Call, texts ...string) error {
	if !*lang.StateOf[Running](c.Runtime()) {
		return lang.Errorf("only a remedy makes actions: define remedy(fabric, findings), and run it with fabsh remedy FILE.star")
	}
	for _, text := range texts {
		if len(text) > maxText {
			return lang.Errorf("text of %d bytes is too long; want at most %d", len(text), maxText)
		}
	}
	return nil
}

// linkAction makes an action on a link or port.
func linkAction(c *lang.Call, kind remedy.ActionKind, a *actionArgs) (starlark.Value, error) {
	if err := mayMake(c, a.Reason, a.Declined); err != nil {
		return nil, err
	}
	var p *fabric.Port
	switch v := a.Link.(type) {
	case topology.Link:
		p = v.A
	case topology.Port:
		p = v.Port
	default:
		return nil, lang.ParamError(map[bool]string{true: "port", false: "link"}[kind != remedy.Isolate], "%w", lang.WantType(v, "a link or a port of the fabric"))
	}
	return newAction(remedy.Action{Kind: kind, Port: p, Subject: audit.OfPort(p), Reason: a.Reason, Declined: a.Declined}, topology.PortOf(p)), nil
}

// ActionType is the type of actions.
var ActionType = &lang.ResultType{
	Name: "action",
	Doc:  "An action of a remedy, from isolate(), restore(), reset() or ticket().",
	Members: []lang.ResultMember{
		{Name: "action", Type: "string", Doc: `"isolate", "restore", "reset" or "ticket"`},
		{Name: "subject", Type: "string", Doc: "name of the port, or of the subject of a ticket"},
		{Name: "port", Doc: "a port of the link; None for a ticket"},
		{Name: "reason", Type: "string", Doc: "why; the text of a ticket"},
		{Name: "declined", Doc: "the rule of the remedy by which it does not do this; None if it wants it"},
	},
}

// action is the value of ActionType.
type action struct {
	*lang.Result
	a remedy.Action
}

func newAction(a remedy.Action, port starlark.Value) *action {
	return &action{lang.NewResult(ActionType, starlark.String(a.Kind), starlark.String(a.Subject.Name()), port, starlark.String(a.Reason), lang.TextOrNone(a.Declined)), a}
}

// actionOf returns the action of a value; false: it is another value.
func actionOf(v starlark.Value) (remedy.Action, bool) {
	x, ok := v.(*action)
	if !ok {
		return remedy.Action{}, false
	}
	return x.a, true
}

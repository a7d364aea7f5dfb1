// Package remedies runs remedies: scripts that turn findings into actions, of which fabsh makes a
// plan.
//
// [Load] loads the remedies of a command line. [Selection.Decide] runs them one after the other,
// with the findings and the past of links, and decides on their actions; [Plan] makes the plan of
// the decisions. Remedies make actions by isolate(), restore(), reset() and ticket(), and change
// nothing themselves.
//
// The rules that hold for every remedy, and the log of decisions, are in fabric/remedy.
package remedies

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/audits"
	"fabsh/builtins/changes"
	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/change"
	"fabsh/fabric/plural"
	"fabsh/fabric/remedy"
)

// GroupRemedy is the heading of remedies in the overview.
const GroupRemedy = "Remedies"

// allowed is the state of a run whose scripts may make actions.
type allowed struct{}

// AllowActions returns a context for a run whose scripts may make actions: of remedies, and of tests of
// scripts.
func AllowActions(ctx context.Context, r *lang.Runtime) context.Context {
	return lang.WithRun(ctx, r, new(allowed))
}

// linkParam is the parameter for the link of an action.
var linkParam = lang.Param{Name: "link", Kind: lang.KindAny, Doc: "a link, or a port at one of its ends"}

// reasonParam is the reason of an action, and declinedParam the reason why it is not planned.
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

// rulesDoc ends the help of functions that make actions.
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
		{Name: "step", Kind: lang.KindText, Default: `""`, Keyword: true, Doc: "the step of repair of the link that it proposes: " + stepWords + ". It is declined if it was proposed or done within the last week"},
	},
	Doc: `Returns an action of a remedy: work for people, such as a cable to replace.
fabsh reports and logs it, and sends it nowhere: "fabsh -o jsonl remedy" and "fabsh -o jsonl remedy log" have it for programs. Only a remedy may call it: see isolate().`,
	Example: `
> catch(ticket, discover().links[0], "replace the cable").message
"ticket: only a remedy makes actions: define remedy(fabric, findings), and run it with fabsh remedy FILE.star"
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Subject    starlark.Value
		Text, Step string
	}) (starlark.Value, error) {
		if err := checkAction(c, a.Text); err != nil {
			return nil, err
		}
		subject, err := audits.SubjectOf(a.Subject)
		if err != nil {
			return nil, lang.ParamError("subject", "%w", err)
		}
		action := remedy.Action{Kind: remedy.Ticket, Subject: subject, Reason: a.Text}
		if a.Step != "" {
			if action.Step, err = remedy.ParseStep(a.Step); err != nil {
				return nil, lang.ParamError("step", "%w", err)
			}
			if len(subject.Ends) == 0 || subject.Ends[0].Num == audit.NoPort {
				return nil, lang.ParamError("step", "a step of repair needs a link or a port as subject")
			}
		}
		return newAction(action, starlark.None), nil
	}),
}

// maxText is the longest text of an action, in bytes.
const maxText = 4096

// checkAction returns an error if no action can be made with these texts.
func checkAction(c *lang.Call, texts ...string) error {
	if lang.RunOf[allowed](c.Fiber()) == nil {
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
	if err := checkAction(c, a.Reason, a.Declined); err != nil {
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
	Name:      "action",
	Doc:       "An action of a remedy, from isolate(), restore(), reset() or ticket().",
	Important: []string{"action", "subject", "reason", "declined"},
	Members: []lang.ResultMember{
		{Name: "action", Type: "string", Doc: `"isolate", "restore", "reset" or "ticket"`},
		{Name: "subject", Type: "string", Doc: "name of the port, or of the subject of a ticket"},
		{Name: "port", Doc: "a port of the link; None for a ticket"},
		{Name: "step", Doc: "the step of repair that a ticket proposes: " + stepWords + "; None without one"},
		{Name: "reason", Type: "string", Doc: "why; the text of a ticket"},
		{Name: "declined", Doc: "the rule of the remedy by which it does not do this; None if it wants it"},
	},
}

// action is the value of ActionType.
type action struct {
	*lang.Result
	a remedy.Action
}

// newAction returns the value of a, an action on port, which is None for a ticket.
func newAction(a remedy.Action, port starlark.Value) *action {
	return &action{lang.NewResult(ActionType, starlark.String(a.Kind), starlark.String(a.Subject.Name()), port, lang.TextOrNone(string(a.Step)), starlark.String(a.Reason), lang.TextOrNone(a.Declined)), a}
}

// actionOf returns the action of a value; false: it is another value.
func actionOf(v starlark.Value) (remedy.Action, bool) {
	x, ok := v.(*action)
	if !ok {
		return remedy.Action{}, false
	}
	return x.a, true
}

// DecisionType is the type of decisions, in the result of a run and in the log.
var DecisionType = &lang.ResultType{
	Name:      "remedy_decision",
	Doc:       "What was decided about an action of a remedy, or what became of it.",
	Important: []string{"at", "decision", "subject", "action", "reason", "why"},
	Members: []lang.ResultMember{
		{Name: "at", Doc: "time, in RFC 3339"},
		{Name: "decision", Type: "string", Doc: `"planned", "declined", "kept" (a link passed its test), "ticket"; in the log also "applied" (a plan was applied), "done" (a step of repair) and "released" (another changed the port)`},
		{Name: "action", Doc: `"isolate", "restore", "reset", "ticket"; None if another changed the port, and for a step that was done`},
		{Name: "step", Doc: "the step of repair that a ticket proposes, or that was done: " + stepWords + "; None without one"},
		{Name: "subject", Type: "string", Doc: "name of the link, or of the subject of a ticket"},
		{Name: "remedy", Doc: "name of the remedy; None if another changed the port, and for a step that was done"},
		{Name: "by", Doc: "who did the step; None if unknown, and for decisions"},
		{Name: "reason", Doc: "why the remedy wants it, the text of the ticket, or the note about a step that was done"},
		{Name: "rule", Doc: "the rule by which it is declined; None if it is not"},
		{Name: "why", Doc: "why the rule applies; None if none does"},
		{Name: "port", Doc: "GUID and number of the port that is changed; or of the step; None for other tickets"},
		{Name: "cost", Doc: "the predicted effect, of this link alone, or of all links of the plan so far; None if unknown"},
	},
}

// RunType is the type of the result of fabsh remedy.
var RunType = &lang.ResultType{
	Name: "remedy",
	Doc:  "The result of fabsh remedy: what remedies decided, and the plan.",
	Members: []lang.ResultMember{
		{Name: "remedies", Doc: "names of the remedies, separated by blanks"},
		{Name: "findings_at", Doc: "time of the findings, in RFC 3339"},
		{Name: "decisions", Doc: "a list of remedy_decision"},
		{Name: "plan", Doc: "the plan; None if there is nothing to do, or the fabric is a file"},
	},
}

// Outcome is a run of remedies with its decisions.
type Outcome struct {
	Names     string
	Of, Now   time.Time
	Decisions []remedy.Decision
	Plan      *change.Plan // may be nil
}

// Wrap returns o as a value to show in a format: one value, or for formats with lines a list of
// the decisions.
func (o *Outcome) Wrap(format lang.Format) starlark.Value {
	var list []starlark.Value
	entries := remedy.Entries(o.Decisions, o.Now, o.Of)[1:]
	for i := range entries {
		list = append(list, decisionOf(&entries[i], o.Decisions[i].Cost))
	}
	if format == lang.FormatJSONL || format == lang.FormatCSV || format == lang.FormatRawCSV {
		return starlark.NewList(list)
	}
	made := starlark.Value(starlark.None)
	if o.Plan != nil {
		made = &changes.Value{Plan: o.Plan}
	}
	return &outcome{o, entries, lang.NewResult(RunType, starlark.String(o.Names), starlark.String(o.Of.UTC().Format(time.RFC3339)), starlark.NewList(list), made)}
}

// outcome is the value of RunType.
type outcome struct {
	o       *Outcome
	entries []remedy.Entry
	*lang.Result
}

// Display returns the decisions, each with its reason, and the plan.
func (v *outcome) Display() string {
	var b strings.Builder
	planned, declined := 0, 0
	for i := range v.entries {
		e := &v.entries[i]
		word := decisionWord(e)
		switch word {
		case "planned", "kept":
			planned++
		case "declined":
			declined++
		}
		fmt.Fprintf(&b, "%-9s %-8s %s: %s\n", word, e.Action, lang.OneLine(e.Name), lang.OneLine(e.Reason))
		if e.Rule != "" {
			fmt.Fprintf(&b, "%18s rule %s: %s\n", "", lang.OneLine(e.Rule), lang.OneLine(e.Why))
		}
		if cost := v.o.Decisions[i].Cost; cost != "" {
			fmt.Fprintf(&b, "%18s %s\n", "", strings.ReplaceAll(lang.Harmless(cost), "\n", "\n"+strings.Repeat(" ", 19)))
		}
	}
	if len(v.entries) == 0 {
		b.WriteString("nothing to do\n")
	} else {
		fmt.Fprintf(&b, "%s: %d planned, %d declined\n", plural.Count(len(v.entries), "action", "actions"), planned, declined)
	}
	if v.o.Plan != nil {
		text, err := lang.Render(&changes.Value{Plan: v.o.Plan}, lang.FormatText)
		if err != nil {
			text = lang.OneLine(err.Error())
		}
		b.WriteString("\n" + text)
	}
	return b.String()
}

// decisionWord returns the word for a decision.
func decisionWord(e *remedy.Entry) string {
	switch {
	case e.Kind == remedy.KindApplied:
		return "applied"
	case e.Kind == remedy.KindStep:
		return "done"
	case e.Kind == remedy.KindReleased:
		return "released"
	case e.Rule != "":
		return "declined"
	case e.Action == remedy.Ticket:
		return "ticket"
	case e.Kept:
		return "kept"
	}
	return "planned"
}

// decisionOf returns the value of a decision.
func decisionOf(e *remedy.Entry, cost string) starlark.Value {
	port := ""
	if e.Port != (remedy.Place{}) {
		port = e.Port.String()
	}
	return lang.NewResult(DecisionType, starlark.String(e.At.UTC().Format(time.RFC3339)), starlark.String(decisionWord(e)), lang.TextOrNone(string(e.Action)), lang.TextOrNone(string(e.Step)), starlark.String(e.Name),
		lang.TextOrNone(e.Remedy), lang.TextOrNone(e.By), lang.TextOrNone(e.Reason), lang.TextOrNone(e.Rule), lang.TextOrNone(e.Why), lang.TextOrNone(port), lang.TextOrNone(cost))
}

// WrapLog returns the decisions of a log as a list, the oldest first.
func WrapLog(entries []remedy.Entry) starlark.Value {
	var list []starlark.Value
	for i := range entries {
		if entries[i].Kind != remedy.KindRun {
			list = append(list, decisionOf(&entries[i], ""))
		}
	}
	return starlark.NewList(list)
}

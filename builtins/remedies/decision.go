package remedies

import (
	"fmt"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/changes"
	"fabsh/builtins/lang"
	"fabsh/fabric/change"
	"fabsh/fabric/plural"
	"fabsh/fabric/remedy"
)

// DecisionType is the type of decisions, in the result of a run and in the log.
var DecisionType = &lang.ResultType{
	Name: "remedy_decision",
	Doc:  "What was decided about an action of a remedy, or what became of it.",
	Members: []lang.ResultMember{
		{Name: "at", Doc: "time, in RFC 3339"},
		{Name: "decision", Type: "string", Doc: `"planned", "declined", "kept" (a link passed its test), "ticket"; in the log also "applied" (a plan was applied) and "released" (another changed the port)`},
		{Name: "action", Doc: `"isolate", "restore", "reset", "ticket"; None if another changed the port`},
		{Name: "subject", Type: "string", Doc: "name of the link, or of the subject of a ticket"},
		{Name: "remedy", Doc: "name of the remedy; None if another changed the port"},
		{Name: "reason", Doc: "why the remedy wants it, or the text of the ticket"},
		{Name: "rule", Doc: "the rule by which it is declined; None if it is not"},
		{Name: "why", Doc: "why the rule applies; None if none does"},
		{Name: "port", Doc: "GUID and number of the port that is changed; None for a ticket"},
		{Name: "cost", Doc: "the predicted effect of the plan with this action and those before it; None if unknown"},
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
		word := wordOf(e)
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

// wordOf returns the word for a decision.
func wordOf(e *remedy.Entry) string {
	switch {
	case e.Kind == remedy.KindApplied:
		return "applied"
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

func decisionOf(e *remedy.Entry, cost string) starlark.Value {
	port := ""
	if e.Port != (remedy.Place{}) {
		port = e.Port.String()
	}
	return lang.NewResult(DecisionType, starlark.String(e.At.UTC().Format(time.RFC3339)), starlark.String(wordOf(e)), lang.TextOrNone(string(e.Action)), starlark.String(e.Name),
		lang.TextOrNone(e.Remedy), lang.TextOrNone(e.Reason), lang.TextOrNone(e.Rule), lang.TextOrNone(e.Why), lang.TextOrNone(port), lang.TextOrNone(cost))
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

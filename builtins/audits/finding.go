// Package audits is what an audit can say: findings; and what a run of audits
// comes to, as a value.
//
//	finding.go   finding(): its arguments, and the value
//	subject.go   from a value to a subject
//	collector.go where findings go while audits run
//	metric.go    metric(): its arguments, and the value
//	report.go    the report of a run; text.go, for people
//	past.go      what earlier runs have seen; poll.go, counters read again and again
//	rates.go     perf_rates(); ratesread.go, its two reads; ratesstate.go, those of
//	             the run before
//	expect.go    expect.findings(), for tests of audits
//	portrates.go what the reads of a port say; portcounts.go, which are worth a look;
//	             ber.go, its bit error rates
//	thresholds.go  load_thresholds()
package audits

import (
	"fmt"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/audit"
)

// GroupAudit is the heading in the overview.
const GroupAudit = "Audits"

// kindCause is a finding, or the ID of one.
var kindCause = &lang.Kind{}

// kindSeverity is a word.
var kindSeverity = &lang.Kind{Convert: lang.ToText, Type: lang.KindText.Type, Default: lang.TextDefault}

// Finding is finding(): what an audit says.
var Finding = lang.Builtin{
	Name:  "finding",
	Group: GroupAudit,
	Params: []lang.Param{
		{Name: "check", Kind: lang.KindText, Doc: `what is wrong, in lower case with dots: "link.width"`},
		{Name: "subject", Kind: lang.KindAny, Doc: `with whom: the fabric, a node, a port or a link of it; or "GUID" or "GUID/PORT" of what is not in it`},
		{Name: "message", Kind: lang.KindText, Doc: "a sentence for people, with the values that tell why"},
		{Name: "severity", Kind: kindSeverity, Default: `"error"`, Keyword: true, Doc: `"critical": data or management is broken now; "error": something does not work as it should; "warning"; "info"`},
		{Name: "cause", Kind: kindCause, Default: "None", Keyword: true, Doc: "the finding that this one follows from, or its id: it is told below that one"},
		{Name: "**data", Kind: lang.KindAny, Doc: "figures for programs, with the unit in the name: rate_gbps=100"},
	},
	Doc: `Says that something is wrong, and returns it: a finding.
Its id is made of the check and of the subject's GUID and port number, so it is the same in the next run. A link is one subject, whichever end is read. What a check says again of one subject is joined to what it has said. fabsh audit reads a finding twice before it tells it; a script that is run as it is tells its findings at its end, and then the exit status is 1.`,
	Example: `
> f = finding("link.width", discover().links[0], "1x, could be 4x", severity="warning", lanes=1)
> f.id, f.subject, f.data["lanes"]
("link.width:0x0002c90300100000/1", "leaf-1/1 - node-0001 HCA-1/1", 1)
`,
	Run: lang.Do(func(c *lang.Call, a *findingArgs) (starlark.Value, error) {
		f, err := a.finding()
		if err != nil {
			return nil, err
		}
		return collectorOf(c.Runtime()).add(f), nil
	}),
}

// findingArgs are the arguments of finding().
type findingArgs struct {
	Check    string
	Subject  starlark.Value
	Message  string
	Severity string
	Cause    starlark.Value
	Data     []starlark.Tuple
}

// maxMessage is how long a message may be, in bytes.
const maxMessage = 4096

// finding checks the arguments.
func (a *findingArgs) finding() (f audit.Finding, err error) {
	if !audit.CheckName().MatchString(a.Check) {
		return f, lang.ParamError("check", `got %q, want words in lower case with dots between: "link.width"`, a.Check)
	}
	if len(a.Message) > maxMessage {
		return f, lang.ParamError("message", "got %d bytes, want at most %d", len(a.Message), maxMessage)
	}
	f = audit.Finding{Check: a.Check, Message: a.Message}
	if f.Severity, err = audit.ParseSeverity(a.Severity); err != nil {
		return f, lang.ParamError("severity", "%w", err)
	}
	if f.Subject, err = subjectOf(a.Subject); err != nil {
		return f, lang.ParamError("subject", "%w", err)
	}
	switch cause := a.Cause.(type) {
	case nil:
	case starlark.String:
		f.Cause = string(cause)
	case *findingValue:
		f.Cause = cause.f.ID()
	default:
		return f, lang.ParamError("cause", "got %s, want a finding, or the id of one", cause.Type())
	}
	for _, kv := range a.Data {
		name := string(kv[0].(starlark.String))
		if _, err := lang.Render(kv[1], lang.FormatJSONL); err != nil {
			return f, lang.ParamError(name, "%w", err)
		}
		kv[1].Freeze()
		f.Data = append(f.Data, audit.Datum{Name: name, Value: kv[1]})
	}
	return f, nil
}

// FindingType is the type of what finding() returns.
var FindingType = &lang.ResultType{
	Name: "finding",
	Doc:  "What an audit found: one thing wrong with one subject.",
	Members: []lang.ResultMember{
		{Name: "severity", Doc: `"critical", "error", "warning" or "info"`},
		{Name: "check", Doc: `what is wrong: "link.width"`},
		{Name: "subject", Doc: `with whom, by name: "leaf-3/7 - node-0012 HCA-1/1", "fabric"; where it is known, with the label of the port's panel: "leaf-3/7 (cage 4/1)"`},
		{Name: "message", Doc: "for people"},
		{Name: "audit", Doc: "which audit found it; None where none runs"},
		{Name: "cause", Doc: "id of the finding that it follows from, None if none is known"},
		{Name: "kind", Doc: `what the subject is: "fabric", "node", "port" or "link"`},
		{Name: "port", Doc: "port number of the subject, of a link that of its first end; None of a node or the fabric"},
		{Name: "peer_port", Doc: "port number of the other end of a link, else None"},
		{Name: "node_guid", Doc: "GUID of the subject's node, of a link that of its first end; None of the fabric"},
		{Name: "peer_guid", Doc: "GUID of the node at the other end of a link, else None"},
		{Name: "id", Doc: "the same for the same fault in the next run: check, GUID and port"},
		{Name: "data", Doc: "a dict of figures, with the unit in their names"},
		{Name: "ack", Doc: "who knows of it: a dict of by, reason, until; None where nobody does"},
		{Name: "since", Doc: "when the first run was that found it, as has each since, in RFC 3339; None where no run keeps that"},
	},
}

// findingValue is the value `finding`.
type findingValue struct {
	*lang.Result
	f audit.Finding
}

// wrapFinding is f as scripts see it; ack may be nil.
func wrapFinding(f audit.Finding, a *audit.Ack) *findingValue {
	end := func(i int) (guid, port starlark.Value) {
		if i >= len(f.Subject.Ends) {
			return starlark.None, starlark.None
		}
		e := f.Subject.Ends[i]
		if e.Num == audit.NoPort {
			return topology.GUIDValue(e.Node), starlark.None
		}
		return topology.GUIDValue(e.Node), starlark.MakeInt(e.Num)
	}
	guid, port := end(0)
	peerGUID, peerPort := end(1)
	data := starlark.NewDict(len(f.Data))
	for _, d := range f.Data {
		data.SetKey(starlark.String(d.Name), d.Value.(starlark.Value))
	}
	since := lang.OrNone(!f.Since.IsZero(), starlark.String(f.Since.UTC().Format(time.RFC3339)))
	ack := starlark.Value(starlark.None)
	if a != nil {
		ack = lang.DictOf("by", starlark.String(a.By), "reason", starlark.String(a.Reason), "until", starlark.String(a.Until.Format("2006-01-02")))
	}
	return &findingValue{f: f, Result: lang.NewResult(FindingType,
		starlark.String(f.Severity.String()), starlark.String(f.Check), starlark.String(f.Subject.Name()), starlark.String(f.Message),
		lang.TextOrNone(f.Audit), lang.TextOrNone(f.Cause), starlark.String(f.Subject.Kind), port, peerPort, guid, peerGUID,
		starlark.String(f.ID()), data, ack, since)}
}

// String is a finding in a line.
func (v *findingValue) String() string {
	return fmt.Sprintf("finding(%q, %q, %q)", v.f.Severity, v.f.ID(), strings.TrimSpace(v.f.Message))
}

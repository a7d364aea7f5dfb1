// Package audits has the values of audits: findings, metrics and rates of counters; and the
// report of a run.
//
//	finding.go   finding(): its arguments, and the value; unjudged.go, not_judged() and detail()
//	subject.go   makes a subject from a value
//	collector.go collects findings while audits run
//	metric.go    metric(): its arguments, and the value
//	report.go    the report of a run; text.go, for people; health.go, hosts with states;
//	             acks.go, acknowledgements
//	thishost.go  this_host(), the ports of the host
//	past.go      observations of earlier runs; poll.go, counters read repeatedly
//	rates.go     perf_rates(); ratesread.go, its two reads; ratesstate.go, those of
//	             the previous run
//	expect.go    expect.findings(), for tests of audits
//	portrates.go the rates of a port; portcounts.go, the summary of its counters;
//	             ber.go, its bit error rates
//	thresholds.go  load_thresholds()
package audits

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/audit"
)

// GroupAudit is the heading of audits in the overview.
const GroupAudit = "Audits"

// kindCause is a finding, or the ID of one.
var kindCause = &lang.Kind{}

// kindSeverity is a word.
var kindSeverity = &lang.Kind{Convert: lang.ToText, Type: lang.KindText.Type, Default: lang.TextDefault}

// Finding is finding(), which reports a fault.
var Finding = lang.Builtin{
	Name:  "finding",
	Group: GroupAudit,
	Params: []lang.Param{
		{Name: "check", Kind: lang.KindText, Doc: `what is wrong, in lower case with dots: "link.width"`},
		{Name: "subject", Kind: lang.KindAny, Doc: `the fabric, a node, a port or a link; or "GUID" or "GUID/PORT" if it is not in the fabric`},
		{Name: "message", Kind: lang.KindText, Doc: "the fact for people, with the values that led to it"},
		{Name: "severity", Kind: kindSeverity, Default: `"error"`, Keyword: true, Doc: `"critical": data or management is broken now; "error": something does not work as it should; "warning"; "info"`},
		{Name: "cause", Kind: kindCause, Default: "None", Keyword: true, Doc: "the finding that causes this one, or its id; this one is listed below it"},
		{Name: "covers", Kind: lang.KindAny, Default: "[]", Keyword: true, Doc: "other subjects with the same fault: an acknowledgement of one of them does not hide the others"},
		{Name: "absorbs", Kind: lang.KindAny, Default: "[]", Keyword: true, Doc: "ids of findings about the same fault, which are not reported besides this one"},
		{Name: "parts", Kind: lang.KindInt, Default: "1", Keyword: true, Doc: "number of faults: so many findings must name this one in absorbs before it is left out"},
		{Name: "**data", Kind: lang.KindAny, Doc: "figures for programs, with the unit in the name: rate_gbps=100"},
	},
	Doc: `Reports a fault, and returns it as a finding.
Its id consists of the check and of the subject's GUID and port number, so it is the same in the next run. A link is one subject, whichever end is read. Several messages of a check about one subject become one finding. fabsh audit re-reads findings before it reports them; a script that is run directly reports its findings at its end, and then the exit status is 1.`,
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
	Covers   starlark.Value
	Absorbs  starlark.Value
	Parts    int
	Data     []starlark.Tuple
}

// maxMessage is the longest message, in bytes.
const maxMessage = 4096

// finding checks the arguments.
func (a *findingArgs) finding() (f audit.Finding, err error) {
	if !audit.CheckName().MatchString(a.Check) {
		return f, lang.ParamError("check", `invalid check %q; want words in lower case, separated by dots: "link.width"`, a.Check)
	}
	if len(a.Message) > maxMessage {
		return f, lang.ParamError("message", "too long: %d bytes; want at most %d", len(a.Message), maxMessage)
	}
	f = audit.Finding{Check: a.Check, Message: a.Message}
	if f.Severity, err = audit.ParseSeverity(a.Severity); err != nil {
		return f, lang.ParamError("severity", "%w", err)
	}
	if f.Subject, err = SubjectOf(a.Subject); err != nil {
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
	f.Parts = a.Parts
	for _, v := range listed(a.Covers) {
		s, err := SubjectOf(v)
		if err != nil {
			return f, lang.ParamError("covers", "%w", err)
		}
		f.Members = append(f.Members, s)
		f.Absorbed = append(f.Absorbed, f.Check+":"+s.Key())
	}
	for _, v := range listed(a.Absorbs) {
		id, ok := starlark.AsString(v)
		if !ok {
			return f, lang.ParamError("absorbs", "got %s, want ids of findings", v.Type())
		}
		f.Absorbs = append(f.Absorbs, id)
	}
	for _, kv := range a.Data {
		name := string(kv[0].(starlark.String))
		if _, err := lang.Render(kv[1], lang.FormatJSONL); err != nil {
			return f, lang.ParamError(name, "%w", err)
		}
		kv[1].Freeze()
		f.Data = append(f.Data, audit.Datum{Name: name, Value: kv[1]})
	}
	f.Count = countOf(f.Data)
	return f, nil
}

// counts are the names of the figures that state how much there is of a fault.
var counts = []string{"count", "counts", "errors", "packets", "dropped", "downs", "reboots", "ticks"}

// countOf returns how much there is of a fault by its figures, per hour if they have a window;
// 0: they have no count.
func countOf(data []audit.Datum) (count float64) {
	window := 0.0
	for _, d := range data {
		switch {
		case d.Name == "window_s":
			window = sumOf(d.Value.(starlark.Value))
		case count == 0 && slices.Contains(counts, d.Name):
			count = sumOf(d.Value.(starlark.Value))
		}
	}
	if window > 0 {
		count *= 3600 / window
	}
	if math.IsInf(count, 0) || math.IsNaN(count) || count < 0 {
		return 0
	}
	return count
}

// sumOf returns a number, or the sum of those in a dict, which may contain dicts.
func sumOf(v starlark.Value) (sum float64) {
	if d, ok := v.(*starlark.Dict); ok {
		for _, kv := range d.Items() {
			sum += sumOf(kv[1])
		}
		return sum
	}
	sum, _ = starlark.AsFloat(v)
	return sum
}

// listed returns the elements of a list, none of another value.
func listed(v starlark.Value) []starlark.Value {
	if list, ok := v.(starlark.Iterable); ok {
		return lang.Collect(list)
	}
	return nil
}

// FindingType is the type of the result of finding().
var FindingType = &lang.ResultType{
	Name: "finding",
	Doc:  "A fault that an audit found: one check, one subject.",
	Members: []lang.ResultMember{
		{Name: "severity", Type: "string", Doc: `"critical", "error", "warning" or "info"`},
		{Name: "check", Type: "string", Doc: `what is wrong: "link.width"`},
		{Name: "subject", Doc: `name of the subject: "leaf-3/7 - node-0012 HCA-1/1", "fabric"; with the label of the port's panel, if known: "leaf-3/7 (cage 4/1)"`},
		{Name: "message", Type: "string", Doc: "for people"},
		{Name: "audit", Doc: "name of the audit; None outside of audits"},
		{Name: "cause", Doc: "id of the finding that causes it, None if unknown"},
		{Name: "kind", Type: "string", Doc: `kind of the subject: "fabric", "node", "port" or "link"`},
		{Name: "port", Doc: "port number of the subject, or of the first end of a link; None for a node or the fabric"},
		{Name: "peer_port", Doc: "port number of the other end of a link, else None"},
		{Name: "node_guid", Type: "string", Doc: "GUID of the subject's node, or of that at the first end of a link; None for the fabric"},
		{Name: "peer_guid", Type: "string", Doc: "GUID of the node at the other end of a link, else None"},
		{Name: "id", Doc: "the same for the same fault in the next run: check, GUID and port"},
		{Name: "data", Doc: "a dict of figures, with the unit in their names"},
		{Name: "ack", Doc: "its acknowledgement: a dict of by, reason, until, and count, how much there was of the fault; of a finding that is reported, one that it has outgrown; None if it is not acknowledged"},
		{Name: "since", Doc: "time of the first of the consecutive runs that found it, in RFC 3339; None if runs keep no state"},
		{Name: "absorbed", Doc: "ids for which this finding also stands: of the same fault, or of other nodes of a model"},
	},
}

// findingValue is the value `finding`.
type findingValue struct {
	*lang.Result
	f audit.Finding
}

// wrapFinding returns f as a value for scripts; a may be nil.
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
		ack = lang.DictOf("by", starlark.String(a.By), "reason", starlark.String(a.Reason), "until", starlark.String(a.Until.Format("2006-01-02")), "count", lang.OrNone(a.Count > 0, starlark.Float(a.Count)))
	}
	return &findingValue{f: f, Result: lang.NewResult(FindingType,
		starlark.String(f.Severity.String()), starlark.String(f.Check), starlark.String(f.Subject.Name()), starlark.String(f.Message),
		lang.TextOrNone(f.Audit), lang.TextOrNone(f.Cause), starlark.String(f.Subject.Kind), port, peerPort, guid, peerGUID,
		starlark.String(f.ID()), data, ack, since, lang.Texts(f.Absorbed))}
}

// String returns the finding in one line.
func (v *findingValue) String() string {
	return fmt.Sprintf("finding(%q, %q, %q)", v.f.Severity, v.f.ID(), strings.TrimSpace(v.f.Message))
}

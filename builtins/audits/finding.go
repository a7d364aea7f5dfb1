// Package audits runs audits on a fabric, and has the values that they work with: findings,
// metrics, rates of counters, the ports of the host, and the report of a run.
//
// [LoadAudits] loads the audits of a command line, and [Selection.Run] runs them: it sweeps the
// fabric, calls the audits, reads findings again before they are reported, and returns an
// audit.Report. Scripts report faults by finding(), figures by metric(), and read counters by
// perf_rates(). [WrapReport] shows a report; [WriteReportMetrics] writes it for Prometheus;
// [ExitStatus] and [RunStatus] determine the exit status. fabric.matrix() draws the links of a
// fabric. ReadFabric, ReadRates, ReadRoutes, ReadLanes and ReadAnswers read for commands written in
// Go, with the warnings, the counts of unanswered requests and the error texts that scripts get.
//
// Rules for findings, coverage and state between runs are in fabric/audit. What scripts report is
// kept with the lang.Runtime of the session, until a function of this package takes it.
//
// Some audits of a run are executed at the same time, each with a runtime of its own; otherwise the
// functions are called by the goroutine that runs the scripts of the session.
package audits

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/topology"
	"fabsh/fabric/audit"
)

// GroupAudit is the heading of audits in the overview.
const GroupAudit = "Audits"

// kindCause is the kind of a parameter that takes a finding, or the ID of one.
var kindCause = &lang.Kind{}

// kindSeverity is the kind of a parameter that takes a severity.
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
Its id consists of the check and of the subject's GUID and port number, so it is the same in the next run. A link is one subject, whichever end is read. Several messages of a check about one subject become one finding. fabsh audit re-reads findings before it reports them; elsewhere a script, the code of -c or a statement reports its findings when it ends, and then the exit status is 1.`,
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
		return collectorOf(c.Fiber()).add(f), nil
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
	for _, v := range elementsOf(a.Covers) {
		s, err := SubjectOf(v)
		if err != nil {
			return f, lang.ParamError("covers", "%w", err)
		}
		f.Members = append(f.Members, s)
		f.Absorbed = append(f.Absorbed, f.Check+":"+s.Key())
	}
	for _, v := range elementsOf(a.Absorbs) {
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

// countNames are the names of the figures that state how much there is of a fault.
var countNames = []string{"count", "counts", "errors", "packets", "dropped", "downs", "reboots", "ticks"}

// countOf returns how much there is of a fault by its figures, per hour if they have a window;
// 0: they have no count.
func countOf(data []audit.Datum) (count float64) {
	window := 0.0
	for _, d := range data {
		switch {
		case d.Name == "window_s":
			window = sumOf(d.Value.(starlark.Value))
		case count == 0 && slices.Contains(countNames, d.Name):
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

// sumOf returns a number, or the sum of the numbers in a dict, which may contain dicts.
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

// elementsOf returns the elements of a list, none of another value.
func elementsOf(v starlark.Value) []starlark.Value {
	if list, ok := v.(starlark.Iterable); ok {
		return lang.Collect(list)
	}
	return nil
}

// FindingType is the type of the result of finding().
var FindingType = &lang.ResultType{
	Name:      "finding",
	Doc:       "A fault that an audit found: one check, one subject.",
	Important: []string{"severity", "subject", "message", "check"},
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

// SubjectOf returns the subject that a value names.
func SubjectOf(v starlark.Value) (audit.Subject, error) {
	switch v := v.(type) {
	case *topology.Fabric:
		return audit.OfFabric(), nil
	case topology.Node:
		return audit.OfNode(v.Node), nil
	case topology.Port:
		return audit.OfPort(v.Port), nil
	case topology.Link:
		return audit.OfLink(v.A, v.B), nil
	case starlark.String:
		text, port, hasPort := strings.Cut(string(v), "/")
		num := audit.NoPort
		if hasPort {
			n, err := strconv.ParseUint(port, 10, 8)
			if err != nil {
				return audit.Subject{}, fmt.Errorf("invalid subject %s; want GUID/PORT", v)
			}
			num = int(n)
		}
		g, ok := records.GUIDText(text)
		if !ok {
			return audit.Subject{}, fmt.Errorf("invalid subject %s; want a GUID or GUID/PORT, or the node, port or link: names are not unique", v)
		}
		return audit.OfGUID(g, num, ""), nil
	}
	return audit.Subject{}, lang.WantType(v, "the fabric, a node, a port or a link of it, or a GUID")
}

// NotJudged is not_judged(), which reports a check that was not done.
var NotJudged = lang.Builtin{
	Name:  "not_judged",
	Group: GroupAudit,
	Params: []lang.Param{
		{Name: "check", Kind: lang.KindText, Doc: `the check: "cc.uniform"`},
		{Name: "lacked", Kind: lang.KindText, Doc: "what was missing, in words"},
	},
	Doc: `Reports a check that could not be done, so that its silence is not taken for health.
The report of fabsh audit lists it, and is not complete. For information that a file may lack, an audit declares instead what its checks need, in a global dict needs.`,
	Example: `
> not_judged("site.power", "the nodes did not answer")
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Check, Lacked string }) (starlark.Value, error) {
		if !audit.CheckName().MatchString(a.Check) {
			return nil, lang.ParamError("check", `invalid check %q; want words in lower case, separated by dots: "link.width"`, a.Check)
		}
		x := collectorOf(c.Fiber())
		u := audit.Unjudged{Audit: x.audit, Check: a.Check, Needs: "answers", Lacked: a.Lacked}
		if !slices.Contains(x.skipped, u) {
			x.skipped = append(x.skipped, u)
		}
		return starlark.None, nil
	}),
}

// Detail is detail(): requests for details of findings.
var Detail = lang.Builtin{
	Name:  "detail",
	Group: GroupAudit,
	Params: []lang.Param{
		{Name: "fn", Kind: lang.KindFunction, Doc: "the function to call"},
		{Name: "*args", Kind: lang.KindAny, Doc: "its arguments"},
		{Name: "**kwargs", Kind: lang.KindAny, Doc: "its keyword arguments"},
	},
	Doc: `Calls a function as catch() does, for requests that only add detail to findings.
In an audit, missing answers to such requests are a note of the report: they do not change the coverage or the exit status.`,
	Example: `
> type(detail(reg_get, "PDDR", "leaf-1", page_select="link_down"))
"error"
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		FN     starlark.Callable
		Args   starlark.Tuple
		Kwargs []starlark.Tuple
	}) (starlark.Value, error) {
		if o := topology.ObserverOf(c); o != nil {
			o.Detail++
			defer func() { o.Detail-- }()
		}
		return lang.CallCatching(c, a.FN, a.Args, a.Kwargs)
	}),
}

// AckType is the type of an acknowledgement in a list.
var AckType = &lang.ResultType{
	Name:      "audit_ack",
	Doc:       "An acknowledgement of findings, as fabsh audit ack list shows it.",
	Important: []string{"id", "subject", "until", "by", "reason"},
	Members: []lang.ResultMember{
		{Name: "id", Type: "string", Doc: "ids of the findings; * is any text"},
		{Name: "subject", Doc: "name of the subject when it was acknowledged; None if unknown"},
		{Name: "holds", Type: "bool", Doc: "True until the end of the last day"},
		{Name: "until", Type: "string", Doc: "the last day"},
		{Name: "by", Type: "string", Doc: "who acknowledged it"},
		{Name: "reason", Type: "string", Doc: "why"},
		{Name: "count", Doc: "how much there was of the fault: errors per hour, or the number of findings; None if unknown, until a run of a job finds it. Ten times as much is reported again"},
	},
}

// WrapAcks returns acks as a list of AckType.
func WrapAcks(acks audit.Acks, now time.Time) *starlark.List {
	return lang.List(acks, func(a audit.Ack) starlark.Value {
		return lang.NewResult(AckType, starlark.String(a.Pattern), lang.TextOrNone(a.Name), starlark.Bool(a.InForce(now)),
			starlark.String(a.Until.Format(time.DateOnly)), starlark.String(a.By), starlark.String(a.Reason), lang.OrNone(a.Count > 0, starlark.Float(a.Count)))
	})
}

// collector collects what code reports: of a run of audits, of one of its audits, or of another
// function that is called for its findings.
type collector struct {
	audit   string // the one that runs
	found   audit.Collection
	skipped []audit.Unjudged // by not_judged()
	metrics *measurements
	job     *jobRun // of a run of audits; nil: of other code
}

// sessionReports are what code outside of runs reports, until ReportFindings and WriteMetrics.
type sessionReports struct {
	collector
	measured measurements
}

// reportsOf returns what code of the session r reports outside of runs.
func reportsOf(r *lang.Runtime) *sessionReports {
	s := lang.StateOf[sessionReports](r)
	s.metrics = &s.measured
	return s
}

// collectorOf returns the collector of the run that f belongs to, or that of the session.
func collectorOf(f *lang.Fiber) *collector {
	if c := lang.RunOf[collector](f); c != nil {
		return c
	}
	return &reportsOf(f.Runtime).collector
}

// add records a finding of the audit that runs, and returns its value.
func (c *collector) add(f audit.Finding) *findingValue {
	f.Audit = c.audit
	c.found.Add(f)
	return wrapFinding(f, nil)
}

// part returns a collector for one of several audits that run together.
func (c *collector) part(name string) *collector {
	return &collector{audit: name, metrics: new(measurements), job: c.job}
}

// join adds what a part has collected.
func (c *collector) join(part *collector) {
	c.found.Join(&part.found)
	c.skipped = append(c.skipped, part.skipped...)
	for i := range part.metrics.list {
		c.metrics.set(&part.metrics.list[i])
	}
}

// takeFindings returns the findings since its last call.
func (c *collector) takeFindings() []audit.Finding {
	list := c.found.List()
	c.found = audit.Collection{}
	return list
}

// forget drops the checks that an audit has named, because it runs again.
func (c *collector) forget(name string) {
	c.skipped = slices.DeleteFunc(c.skipped, func(u audit.Unjudged) bool { return u.Audit == name })
}

// ReportFindings shows the findings that code has reported outside of runs since its last call,
// and returns an error with the exit status if there are any. A program calls it when a script, or a
// statement, ends.
func ReportFindings(r *lang.Runtime) error {
	found := reportsOf(r).takeFindings()
	if len(found) == 0 {
		return nil
	}
	return errors.Join(r.Show(WrapFindings(found)), &lang.ExitError{Code: lang.StatusFindings})
}

// WillReport reports whether v is a finding, or a list of findings, that ReportFindings will show.
func WillReport(r *lang.Runtime, v starlark.Value) bool {
	found := &reportsOf(r).found
	switch v := v.(type) {
	case *findingValue:
		return found.Has(v.f.ID())
	case starlark.Indexable: // a list or a tuple
		for i := range v.Len() {
			if f, ok := v.Index(i).(*findingValue); !ok || !found.Has(f.f.ID()) {
				return false
			}
		}
		return v.Len() > 0
	}
	return false
}

// collect calls fn, which runs code of f, and returns the findings of that code; own collects what
// else it reports.
func collect(f *lang.Fiber, own *collector, fn func() error) ([]audit.Finding, error) {
	err := f.Within(lang.WithRun(f.Context, f.Runtime, own), fn)
	return own.found.List(), err
}

// WrapFindings returns findings as a list for scripts.
func WrapFindings(found []audit.Finding) starlark.Value {
	return &findings{lang.List(found, func(f audit.Finding) starlark.Value { return wrapFinding(f, nil) }), found}
}

// findings is a list of findings, displayed as in a report.
type findings struct {
	*starlark.List
	found []audit.Finding
}

// Display returns the findings as text.
func (v *findings) Display() string { return findingsText(v.found, false) }

// ExpectFindings is expect.findings.
var ExpectFindings = lang.Builtin{
	Name:    "expect.findings",
	Returns: "list of finding",
	Group:   lang.GroupTest,
	Params: []lang.Param{
		{Name: "audit", Kind: lang.KindFunction, Doc: `an audit: load("@std//audit/links.star", links="audit")`},
		{Name: "want", Kind: lang.KindAny, Default: "[]", Doc: `expected findings: texts of check and subject as in a report, "link.width leaf-1/3" (one end of a link is enough); or pairs of check and a node, port, link or the fabric`},
		{Name: "fabric", Kind: lang.KindAny, Default: "None", Keyword: true, Doc: "the fabric; by default, a sweep reads the current one"},
		{Name: "**options", Kind: lang.KindAny, Doc: "options of the audit, and those that the command passes: deep=True, baseline=F"},
	},
	Doc: `Runs an audit, and fails unless its findings are exactly the expected ones.
The error lists missing and unexpected findings. Findings are not re-read. They are returned, and not reported elsewhere.`,
	Example: `
> down = lambda fabric: [finding("port.down", p, "there is no link") for p in fabric.switches[0].ports if not p.peer]
> expect.findings(down)
> sim.unlink("leaf-1/5")
> expect.findings(down, ["port.down leaf-1/5"])[0].severity
"error"
> print(catch(expect.findings, down, ["link.width leaf-1/3"]).message)
expect.findings: 1 missing, 1 too many
  missing:  link.width leaf-1/3
  too many: port.down leaf-1/5: there is no link
`,
	Run: lang.Do(func(c *lang.Call, a *expectArgs) (starlark.Value, error) {
		want, err := expectedFindings(a.Want)
		if err != nil {
			return nil, lang.ParamError("want", "%w", err)
		}
		found, err := a.run(c)
		if err != nil {
			return nil, err
		}
		if text := compareFindings(want, found); text != "" {
			return nil, lang.Errorf("%s", text)
		}
		return WrapFindings(found), nil
	}),
}

// expectArgs are the arguments of expect.findings.
type expectArgs struct {
	Audit   starlark.Callable
	Want    starlark.Value
	Fabric  starlark.Value
	Options []starlark.Tuple
}

// run returns the findings of the audit. Earlier findings stay unchanged.
func (a *expectArgs) run(c *lang.Call) ([]audit.Finding, error) {
	var err error
	f, ok := a.Fabric.(*topology.Fabric)
	switch {
	case a.Fabric == nil:
		if f, err = topology.Sweep(c.Thread); err != nil {
			return nil, err
		}
	case !ok:
		return nil, lang.ParamError("fabric", "%w", lang.WantType(a.Fabric, "a fabric"))
	}
	outer := collectorOf(c.Fiber())
	own := &collector{audit: outer.audit, metrics: new(measurements), job: outer.job}
	return collect(c.Fiber(), own, func() error {
		_, err := starlark.Call(c.Thread, a.Audit, starlark.Tuple{f}, a.Options)
		return err
	})
}

// expectedFinding is an expected finding: a check, and the subject, or the subject's name.
type expectedFinding struct {
	check, name string
	subject     *audit.Subject // nil: by name
}

func (w *expectedFinding) String() string { return w.check + " " + w.name }

// matches reports whether f is the expected finding.
func (w *expectedFinding) matches(f *audit.Finding) bool {
	switch {
	case f.Check != w.check:
		return false
	case w.subject != nil:
		return f.Subject.Key() == w.subject.Key() || f.Subject.Kind == audit.KindLink && w.subject.Kind == audit.KindPort && f.Subject.Covers(*w.subject)
	case f.Subject.Name() == w.name:
		return true
	}
	return f.Subject.Kind == audit.KindLink && slices.ContainsFunc(f.Subject.Ends, func(e audit.End) bool { return e.Label() == w.name })
}

// expectedFindings reads the argument want.
func expectedFindings(v starlark.Value) (list []*expectedFinding, err error) {
	items, ok := v.(starlark.Iterable)
	if v != nil && !ok {
		return nil, lang.WantType(v, "a list")
	}
	if v == nil {
		return nil, nil
	}
	for i, x := range lang.Collect(items) {
		w := new(expectedFinding)
		switch x := x.(type) {
		case starlark.String:
			w.check, w.name, _ = strings.Cut(string(x), " ")
			w.name = strings.TrimSpace(w.name)
		case starlark.Tuple:
			check, ok := starlark.String(""), len(x) == 2
			if ok {
				check, ok = x[0].(starlark.String)
			}
			if !ok {
				return nil, fmt.Errorf("element %d: invalid pair %s; want (check, subject)", i, lang.Brief(x))
			}
			subject, err := SubjectOf(x[1])
			if err != nil {
				return nil, fmt.Errorf("element %d: %w", i, err)
			}
			w.check, w.name, w.subject = string(check), subject.Name(), &subject
		}
		if w.name == "" || !audit.CheckName().MatchString(w.check) {
			return nil, fmt.Errorf("element %d: invalid finding %s; want check and subject: \"link.width leaf-1/3\"", i, lang.Brief(x))
		}
		list = append(list, w)
	}
	return list, nil
}

// maxListed is the largest number of findings of a kind that an error lists.
const maxListed = 20

// compareFindings returns how findings differ from the expected ones, "" if they do not.
func compareFindings(want []*expectedFinding, found []audit.Finding) string {
	var missing, more []string
	matched := make([]bool, len(found))
	for _, w := range want {
		i := slices.IndexFunc(found, func(f audit.Finding) bool { return w.matches(&f) })
		if i < 0 {
			missing = append(missing, w.String())
		} else {
			matched[i] = true
		}
	}
	for i := range found {
		if f := &found[i]; !matched[i] {
			more = append(more, fmt.Sprintf("%s %s: %s", f.Check, f.Subject.Name(), f.Message))
		}
	}
	var parts []string
	text := ""
	for _, k := range []struct {
		count, label string
		list         []string
	}{{"missing", "missing: ", missing}, {"too many", "too many:", more}} {
		if len(k.list) == 0 {
			continue
		}
		parts = append(parts, fmt.Sprintf("%d %s", len(k.list), k.count))
		for i, line := range k.list {
			if i == maxListed {
				text += fmt.Sprintf("\n  and %d more", len(k.list)-i)
				break
			}
			text += "\n  " + k.label + " " + line
		}
	}
	if text == "" {
		return ""
	}
	return strings.Join(parts, ", ") + text
}

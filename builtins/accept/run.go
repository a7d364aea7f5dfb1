package accept

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/builtins/script"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/accept"
	"fabsh/fabric/audit"
	"fabsh/fabric/format"
	"fabsh/fabric/plural"
)

// Options are the settings of a run.
type Options struct {
	Plan    string        // file of the plan of cables; "": none
	Digest  string        // of its content
	Soak    time.Duration // how long to watch; 0: one sample
	Every   time.Duration // between samples
	Restart bool          // begin a new run, whatever the file has
	Subnet  string        // a name for the subnet; may be ""
	State   string        // directory of the run, acks and counters; "": nothing is kept
	// Sampled is called after each sample but the last; nil: never.
	Sampled func(*accept.Result)
}

// window is how long counters are compared if there is one sample.
const window = 10 * time.Second

// Run takes samples until the run is done, and judges it. A run that was interrupted goes on.
func (p *Profile) Run(ctx context.Context, in *script.Interpreter, o Options) (*accept.Result, error) {
	r, env := in.Runtime, topology.EnvOf(in.Runtime)
	result := &accept.Result{Profile: &p.Profile, Version: env.Version, Plan: o.Plan}
	var path string
	var held *format.FileLock
	defer func() { held.Release() }()
	kept := new(audit.State) // reads of counters, where nothing is kept in files
	for {
		set, err := audits.LoadAudits(ctx, in, p.words(o), nil, p.Deep)
		if err != nil {
			return nil, err
		}
		options := audits.RunOptions{Subnet: o.Subnet, Job: audit.JobOf("accept", p.Name)}
		if o.State == "" {
			options.Kept = kept
		}
		options.Begin = func(subnet fabric.Subnet) (audit.Acks, error) {
			if o.State == "" {
				result.Run = cmp.Or(result.Run, accept.NewRun(&p.Profile, o.Digest, o.Soak, o.Every, r.Clock.Now()))
				return audit.Acks{}, nil
			}
			if result.Run == nil {
				path = accept.FileOf(o.State, subnet, p.Name)
				if err := format.MakeDirectory(filepath.Dir(path), 0o755); err != nil {
					return audit.Acks{}, &audits.StateError{Err: format.FileError(err)}
				}
				if held, err = format.AcquireLock(path + ".lock"); err != nil {
					return audit.Acks{}, &audits.StateError{Err: err}
				}
				if err := p.begin(result, path, o, r.Clock.Now()); err != nil {
					return audit.Acks{}, err
				}
			} else if accept.FileOf(o.State, subnet, p.Name) != path {
				return audit.Acks{}, &audits.StateError{Err: fmt.Errorf("the port is in another subnet now, %s; the run of %s is kept", subnet.Key(), result.Subnet)}
			}
			return audits.RunAcks(r, o.State, subnet), nil
		}
		report, err := set.Run(ctx, in, options)
		if err != nil {
			return nil, err
		}
		if result.Run == nil { // the sweep was cut short
			return nil, report.Failures[0].Err
		}
		result.Fabric, result.Subnet, result.Port = report.Fabric, report.Subnet.Key(), report.Port
		result.Run.Add(&p.Profile, report, o.Plan != "", r.Clock.Now())
		done := env.Engine == nil || result.Run.Done()
		if done {
			result.Run.Ended = r.Clock.Now().UTC().Truncate(time.Second)
		}
		if path != "" {
			if err := result.Run.Save(path); err != nil {
				return nil, &audits.StateError{Err: err}
			}
		}
		result.Verdicts = result.Run.Judge(&p.Profile)
		if done {
			return result, nil
		}
		if o.Sampled != nil {
			o.Sampled(result)
		}
		if err := r.Clock.Sleep(ctx, min(result.Run.Every, max(time.Second, result.Run.Soak-result.Run.Watched()))); err != nil {
			return nil, err
		}
	}
}

// begin sets the run of the result: the one in the file if it goes on, else a new one.
func (p *Profile) begin(result *accept.Result, path string, o Options, now time.Time) error {
	kept, err := accept.Load(path)
	if err != nil && !o.Restart {
		return &audits.StateError{Err: fmt.Errorf("%w; --restart begins a new run", err)}
	}
	if kept == nil || o.Restart {
		result.Run = accept.NewRun(&p.Profile, o.Digest, o.Soak, o.Every, now)
		return nil
	}
	var why string
	if result.Run, why = kept.Next(&p.Profile, o.Digest, o.Soak, o.Every, now); why != "" {
		result.Notes = append(result.Notes, why)
	}
	if result.Run == kept {
		result.Notes = append(result.Notes, fmt.Sprintf("the run of %s goes on", kept.Began.Format(time.RFC3339)))
	}
	return nil
}

// words are the audits and their options, as a command line has them.
func (p *Profile) words(o Options) []string {
	words := slices.Concat(p.Audits, p.Options)
	if slices.Contains(p.Audits, "topology") && o.Plan != "" {
		words = append(words, "--expect="+o.Plan)
	}
	if slices.Contains(p.Audits, "counters") || slices.Contains(p.Audits, "health") {
		over := window.String()
		if o.Soak > 0 {
			over = "last"
		}
		words = append(words, "--over="+over)
	}
	return words
}

// Status returns the exit status: 1 if an item fails, 3 if one that datagrams can judge is not judged.
func Status(r *accept.Result) int {
	switch {
	case r.Count(accept.NotJudged) > 0:
		return lang.StatusFabric
	case r.Count(accept.Fail) > 0:
		return lang.StatusFindings
	}
	return lang.StatusClean
}

// ResultType is the type of the result of fabsh accept.
var ResultType = &lang.ResultType{
	Name: "acceptance",
	Doc:  "The judgement of a fabric by a profile. jsonl and csv have one line for each item.",
	Members: []lang.ResultMember{
		{Name: "profile", Doc: "name of the profile"},
		{Name: "title", Doc: "what it is, in one line"},
		{Name: "fabric", Doc: "the fabric, in one line"},
		{Name: "subnet", Doc: "key of the subnet for its state"},
		{Name: "port", Doc: "the local port of the run; None for a file"},
		{Name: "plan", Doc: "the plan of the cables; None without one"},
		{Name: "recording", Doc: "the recording of --record: a dict of file, since (RFC 3339), bytes, sha256 of that many first bytes, fault; None without one"},
		{Name: "began", Doc: "when the run began, RFC 3339"},
		{Name: "ended", Doc: "when it ended; None if it goes on"},
		{Name: "soak_s", Doc: "how long the fabric is to be watched, in seconds"},
		{Name: "watched_s", Doc: "how long it was watched, in seconds, without gaps"},
		{Name: "samples", Doc: "number of samples: runs of the audits"},
		{Name: "gaps", Doc: "times that were not watched: dicts of from and to"},
		{Name: "before", Doc: "when the run before ended; None: no such run"},
		{Name: "items", Type: "list of acceptance_item", Doc: "in the order of the profile"},
		{Name: "notes", Doc: "other remarks"},
	},
}

// ItemType is the type of an item of the result.
var ItemType = &lang.ResultType{
	Name:      "acceptance_item",
	Doc:       "The judgement of an item of a profile.",
	Important: []string{"item", "outcome", "reason"},
	Members: []lang.ResultMember{
		{Name: "item", Type: "string", Doc: "name of the item"},
		{Name: "outcome", Type: "string", Doc: `"pass"; "fail"; "not judged"`, Words: []string{"fail", "not judged", "pass"}},
		{Name: "title", Type: "string", Doc: "what is required"},
		{Name: "reason", Doc: "why it is not judged, or a remark; None: nothing"},
		{Name: "criterion", Type: "string", Doc: "what it is judged by"},
		{Name: "source", Type: "string", Doc: "where the criterion is published"},
		{Name: "checks", Doc: "the checks that judge it"},
		{Name: "beyond", Type: "bool", Doc: "True if datagrams cannot judge it"},
		{Name: "watch_s", Doc: "how long it must be watched, in seconds; 0: one sample"},
		{Name: "watched_s", Doc: "how long its checks were done, in seconds"},
		{Name: "before", Doc: "the outcome in the run before; None: no such run"},
		{Name: "findings", Doc: "the worst first: dicts of id, severity, subject, message, first, last (RFC 3339), now: the last sample had it"},
	},
}

// value is the value of a result.
type value struct {
	*lang.Result
	r *accept.Result
}

// Wrap returns r as a value to show in a format: one value, or for formats with lines its items.
func Wrap(r *accept.Result, format lang.Format) starlark.Value {
	items := lang.List(r.Verdicts, func(v accept.Verdict) starlark.Value {
		found := lang.List(v.Seen, func(s accept.Seen) starlark.Value {
			return lang.DictOf("id", starlark.String(s.ID), "severity", starlark.String(s.Severity.String()), "subject", starlark.String(s.Subject), "message", starlark.String(s.Message),
				"first", timeValue(s.First), "last", timeValue(s.Last), "now", starlark.Bool(s.Now(r.Run)))
		})
		return lang.NewResult(ItemType, starlark.String(v.Name), starlark.String(v.Outcome), starlark.String(v.Title), lang.TextOrNone(v.Reason), starlark.String(v.Criterion), starlark.String(v.Source),
			lang.Texts(v.Checks), starlark.Bool(v.Beyond != ""), secondsOf(v.Watch), secondsOf(v.Watched), lang.TextOrNone(string(v.Before)), found)
	})
	if format == lang.FormatJSONL || format == lang.FormatCSV || format == lang.FormatRawCSV {
		return items
	}
	gaps := lang.List(r.Run.Gaps(), func(s accept.Span) starlark.Value {
		return lang.DictOf("from", timeValue(s.From), "to", timeValue(s.To))
	})
	samples := 0
	for _, s := range r.Run.Samples {
		samples += s.Count
	}
	before := starlark.Value(starlark.None)
	if r.Run.Before != nil {
		before = timeValue(r.Run.Before.Ended)
	}
	return &value{lang.NewResult(ResultType, starlark.String(r.Profile.Name), starlark.String(r.Profile.Title), starlark.String(r.Fabric), starlark.String(r.Subnet), lang.TextOrNone(r.Port), lang.TextOrNone(r.Plan), recordingValue(r.Recording),
		timeValue(r.Run.Began), timeValue(r.Run.Ended), secondsOf(r.Run.Soak), secondsOf(r.Run.Watched()), starlark.MakeInt(samples), gaps, before, items, lang.Texts(r.Notes)), r}
}

// recordingValue is a recording as a value; None without one.
func recordingValue(r *accept.Recording) starlark.Value {
	if r == nil {
		return starlark.None
	}
	return lang.DictOf("file", starlark.String(r.File), "since", timeValue(r.Since), "bytes", starlark.MakeInt64(r.Bytes), "sha256", lang.TextOrNone(r.Sum), "fault", lang.TextOrNone(r.Fault))
}

func secondsOf(d time.Duration) starlark.Value { return starlark.MakeInt64(int64(d / time.Second)) }

// timeValue is a time as text; None: zero.
func timeValue(t time.Time) starlark.Value {
	if t.IsZero() {
		return starlark.None
	}
	return starlark.String(t.UTC().Format(time.RFC3339))
}

// maxFindings is how many findings of an item the text has; JSON has all.
const maxFindings = 5

// Display returns the result as text: what was judged, then the items, each with its findings.
func (v *value) Display() string {
	r := v.r
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-10s  %s\n", name, lang.OneLine(fmt.Sprintf(format, args...)))
	}
	line("profile", "%s: %s", r.Profile.Name, r.Profile.Title)
	line("fabric", "%s", strings.TrimPrefix(r.Fabric, "fabric: "))
	if r.Plan != "" {
		line("plan", "%s", r.Plan)
	}
	if x := r.Recording; x != nil {
		text := x.File
		if r.Partial() {
			text += ", from " + x.Since.UTC().Format(time.RFC3339) + " on"
		}
		if x.Fault != "" {
			text += ": " + x.Fault
		}
		line("recording", "%s", text)
	}
	line("watched", "%s", WatchedText(r.Run))
	for _, g := range r.Run.Gaps() {
		line("gap", "not watched from %s to %s", g.From.Format(time.RFC3339), g.To.Format(time.RFC3339))
	}
	for _, n := range r.Notes {
		line("note", "%s", n)
	}
	for _, c := range r.Changed() {
		line("changed", "%s: %s; in the run that ended %s: %s", c.Name, c.Outcome, r.Run.Before.Ended.Format(time.RFC3339), c.Before)
	}
	line("items", "%s", r.Summary())
	b.WriteString("\n")
	for i := range r.Verdicts {
		x := &r.Verdicts[i]
		text := x.Title
		if x.Outcome != accept.Pass || x.Reason != "" {
			text = strings.TrimSuffix(text+": "+x.Reason, ": ")
		}
		line(string(x.Outcome), "%s  %s", x.Name, text)
		for j := range x.Seen {
			s := &x.Seen[j]
			if j == maxFindings {
				fmt.Fprintf(&b, "%-10s    %d more; -o json has all\n", "", len(x.Seen)-j)
				break
			}
			when := ""
			if !s.Now(r.Run) {
				when = fmt.Sprintf(" (from %s to %s)", s.First.Format(time.RFC3339), s.Last.Format(time.RFC3339))
			}
			fmt.Fprintf(&b, "%-10s    %s  %s: %s%s\n", "", s.ID, lang.OneLine(s.Subject), lang.OneLine(s.Message), when)
		}
	}
	return b.String()
}

// WatchedText is how long the fabric was watched, in words.
func WatchedText(r *accept.Run) string {
	samples := 0
	for _, s := range r.Samples {
		samples += s.Count
	}
	if r.Soak == 0 {
		return plural.Count(samples, "sample", "samples")
	}
	text := fmt.Sprintf("%s of %s, %s", r.Watched().Round(time.Second), r.Soak, plural.Count(samples, "sample", "samples"))
	if r.Ended.IsZero() {
		text += ", not finished"
	}
	return text
}

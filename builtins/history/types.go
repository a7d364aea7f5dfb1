// Package history has what scripts and commands show of a history: load_history() and its answers.
package history

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/history"
	"fabsh/fabric/picture"
	"fabsh/mad"
)

const docTime = "with the offset of this host"

// EventType is the type of what happened to a node or a link.
var EventType = &lang.ResultType{
	Name:      "history_event",
	Doc:       "What happened to a node or a link. A sweep found it at its time; it happened since the one before.",
	Important: []string{"time", "kind", "subject", "was", "now"},
	Members: []lang.ResultMember{
		{Name: "time", Type: "string", Doc: "of the sweep that found it, " + docTime},
		{Name: "kind", Type: "string", Doc: `"link.down", "node.gone", "sm.moved" and others; "gap": nothing was recorded from was to now`},
		{Name: "subject", Type: "string", Doc: `"leaf-3/7 - node-0012 HCA-1/1", as it was called then`},
		{Name: "was", Type: "string", Doc: "before"},
		{Name: "now", Type: "string", Doc: "after"},
		{Name: "guid", Type: "string", Doc: "node GUID, of links of the first end; None without one", Long: true},
		{Name: "port", Doc: "port number of the first end; None without one", Long: true},
	},
}

// GapType is the type of a time in which nothing was recorded.
var GapType = &lang.ResultType{
	Name: "history_gap",
	Doc:  "A time in which nothing was recorded: no answer has what happened then.",
	Members: []lang.ResultMember{
		{Name: "since", Type: "string", Doc: "its begin, " + docTime},
		{Name: "until", Type: "string", Doc: "its end"},
	},
}

// FlapType is the type of a link that went down several times.
var FlapType = &lang.ResultType{
	Name: "history_flap",
	Doc:  "A link that went down several times.",
	Members: []lang.ResultMember{
		{Name: "link", Type: "string", Doc: "as it was called then"},
		{Name: "downs", Type: "int", Doc: "how often it went down, not with a node or a disabled port"},
		{Name: "first", Type: "string", Doc: "when first"},
		{Name: "last", Type: "string", Doc: "when last"},
		{Name: "guid", Type: "string", Doc: "node GUID of its first end", Long: true},
		{Name: "port", Type: "int", Doc: "port number of it", Long: true},
	},
}

// LinkType is the type of a time in which a port had a link.
var LinkType = &lang.ResultType{
	Name: "history_link",
	Doc:  "A time in which a link was up between two ports.",
	Members: []lang.ResultMember{
		{Name: "link", Type: "string", Doc: "by the names of the last sweep"},
		{Name: "since", Type: "string", Doc: "when a sweep found it"},
		{Name: "until", Doc: "when a sweep did not find it; None: it is there"},
	},
}

// CableType is the type of a time in which a cable or module was between two ports.
var CableType = &lang.ResultType{
	Name:      "history_cable",
	Doc:       "A time in which a cable or module was between two ports, and its faults there.",
	Important: []string{"serial", "link", "downs", "errors", "since", "until"},
	Members: []lang.ResultMember{
		{Name: "serial", Type: "string", Doc: "its serial number"},
		{Name: "part", Type: "string", Doc: "its part number; empty: not known"},
		{Name: "link", Type: "string", Doc: "the two ports, by the names of the last sweep"},
		{Name: "since", Type: "string", Doc: "when it was found there"},
		{Name: "until", Doc: "when it was not; None: it is there"},
		{Name: "downs", Doc: "involuntary link-downs; None: not counted in this answer"},
		{Name: "errors", Doc: "errors of both ports besides link-downs; None: not counted in this answer"},
	},
}

// ErrorsType is the type of what a counter grew by.
var ErrorsType = &lang.ResultType{
	Name: "history_errors",
	Doc:  "What a counter of a port grew by in a day, or an hour.",
	Members: []lang.ResultMember{
		{Name: "time", Type: "string", Doc: "begin of the day (UTC) or hour"},
		{Name: "counter", Type: "string", Doc: `"symbol_error_counter", as in port_rates`},
		{Name: "count", Type: "int", Doc: "how much it grew"},
		{Name: "hours", Type: "int", Doc: "in how many hours"},
	},
}

// BERType is the type of a bit error rate.
var BERType = &lang.ResultType{
	Name:      "history_ber",
	Doc:       "The bit error rate of a port.",
	Important: []string{"port", "rate", "why", "source", "up", "time"},
	Members: []lang.ResultMember{
		{Name: "port", Type: "string", Doc: "by the names of the last sweep"},
		{Name: "time", Type: "string", Doc: "when it was read"},
		{Name: "up", Doc: "how long the link had been up, in seconds; None: not known"},
		{Name: "raw", Doc: "before error correction; None: not known"},
		{Name: "effective", Doc: "after error correction; None: not known"},
		{Name: "symbol", Doc: "symbol errors; None: not known"},
		{Name: "rate", Doc: "the rate that counts: effective, or else symbol; None: not judged"},
		{Name: "source", Type: "string", Doc: "what the rate is from", Words: []string{"register", "counter"}},
		{Name: "why", Doc: "why it is not judged; None: it is"},
	},
}

// FindingType is the type of a time in which a finding was open.
var FindingType = &lang.ResultType{
	Name:      "history_finding",
	Doc:       "A time in which a finding of audits was open.",
	Important: []string{"severity", "key", "message", "since", "until"},
	Members: []lang.ResultMember{
		{Name: "severity", Type: "string", Doc: "as in finding", Words: []string{"info", "warning", "error"}},
		{Name: "key", Type: "string", Doc: `check and subject: "flaps:0x.../7"`},
		{Name: "subject", Type: "string", Doc: "as it was called then"},
		{Name: "message", Type: "string", Doc: "what was found"},
		{Name: "since", Type: "string", Doc: "when an audit found it"},
		{Name: "until", Doc: "when an audit did not; None: it is open"},
		{Name: "checked", Type: "string", Doc: "when an audit judged it last"},
		{Name: "job", Type: "string", Doc: "of the audit; empty without one"},
	},
}

// AckType is the type of an acknowledgement.
var AckType = &lang.ResultType{
	Name: "history_ack",
	Doc:  "An acknowledgement of findings.",
	Members: []lang.ResultMember{
		{Name: "pattern", Type: "string", Doc: "of keys of findings"},
		{Name: "who", Type: "string", Doc: "who acknowledged them"},
		{Name: "reason", Type: "string", Doc: "why"},
		{Name: "since", Type: "string", Doc: "when"},
		{Name: "expires", Doc: "when it expires; None: never"},
		{Name: "until", Doc: "when it was removed; None: it was not"},
	},
}

// ActionType is the type of a plan or remedy.
var ActionType = &lang.ResultType{
	Name: "history_action",
	Doc:  "A plan or remedy, or its outcome.",
	Members: []lang.ResultMember{
		{Name: "time", Type: "string", Doc: "when"},
		{Name: "action", Type: "string", Doc: "what was done", Words: []string{"plan", "apply", "confirm", "revert", "remedy", "restore", "log"}},
		{Name: "subject", Type: "string", Doc: "of what"},
		{Name: "who", Type: "string", Doc: "by whom"},
		{Name: "outcome", Type: "string", Doc: "how it ended"},
	},
}

// OffenderType is the type of a link, cable, host or switch that had faults.
var OffenderType = &lang.ResultType{
	Name:      "history_offender",
	Doc:       "A link, cable, host or switch that had faults.",
	Important: []string{"subject", "days", "flaps", "errors", "links", "last"},
	Members: []lang.ResultMember{
		{Name: "subject", Type: "string", Doc: "the link or node by the names of the last sweep, the cable by serial number"},
		{Name: "days", Type: "int", Doc: "days with errors or involuntary link-downs"},
		{Name: "flaps", Type: "int", Doc: "involuntary link-downs"},
		{Name: "errors", Type: "int", Doc: "errors of all kinds, without link-downs"},
		{Name: "links", Type: "int", Doc: "of how many links it was a part while it had faults: more than one of a cable shows that the fault moved with it"},
		{Name: "first", Type: "string", Doc: "when first"},
		{Name: "last", Type: "string", Doc: "when last; errors count from the begin of their day"},
		{Name: "at", Doc: "of cables, the last link; None of others"},
		{Name: "key", Type: "string", Doc: "GUIDs and port numbers, or the serial number", Long: true},
		{Name: "subnet", Doc: "the subnet, in an answer about several; None in others"},
	},
}

// PortLifeType is the type of what happened to a port.
var PortLifeType = &lang.ResultType{
	Name: "history_port",
	Doc:  "What happened to a port and the links that it had.",
	Members: []lang.ResultMember{
		{Name: "port", Type: "string", Doc: "its name"},
		{Name: "events", Type: "list of history_event", Doc: "the oldest first"},
		{Name: "links", Type: "list of history_link", Doc: "when links were up"},
		{Name: "cables", Type: "list of history_cable", Doc: "cables and modules, by serial number"},
		{Name: "errors", Type: "list of history_errors", Doc: "by days, of the time that was asked for"},
		{Name: "ber", Type: "list of history_ber", Doc: "bit error rates"},
		{Name: "findings", Type: "list of history_finding", Doc: "findings of audits"},
		{Name: "acks", Type: "list of history_ack", Doc: "acknowledgements of these"},
		{Name: "actions", Type: "list of history_action", Doc: "plans and remedies"},
		{Name: "gaps", Type: "list of history_gap", Doc: "when nothing was recorded, in the time that was asked for"},
	},
}

// NodeLifeType is the type of what happened to a node.
var NodeLifeType = &lang.ResultType{
	Name: "history_node",
	Doc:  "What happened to a node.",
	Members: []lang.ResultMember{
		{Name: "node", Type: "string", Doc: "its name"},
		{Name: "guid", Type: "string", Doc: "its GUID"},
		{Name: "first", Type: "string", Doc: "when a sweep found it first"},
		{Name: "events", Type: "list of history_event", Doc: "of the node and its links, the oldest first"},
		{Name: "errors", Type: "dict", Doc: "errors of all kinds by port number, without link-downs, of the time that was asked for"},
		{Name: "findings", Type: "list of history_finding", Doc: "findings of audits"},
		{Name: "acks", Type: "list of history_ack", Doc: "acknowledgements of these"},
		{Name: "actions", Type: "list of history_action", Doc: "plans and remedies"},
		{Name: "gaps", Type: "list of history_gap", Doc: "when nothing was recorded, in the time that was asked for"},
	},
}

// CableLifeType is the type of what happened to a cable.
var CableLifeType = &lang.ResultType{
	Name: "history_cable_life",
	Doc:  "What happened to a cable or module, wherever it was.",
	Members: []lang.ResultMember{
		{Name: "serial", Type: "string", Doc: "its serial number"},
		{Name: "places", Type: "list of history_cable", Doc: "where it was, the first first"},
		{Name: "events", Type: "list of history_event", Doc: "of its links while it was there"},
		{Name: "errors", Type: "list of history_errors", Doc: "by days, of both ports while it was there"},
		{Name: "gaps", Type: "list of history_gap", Doc: "when nothing was recorded"},
	},
}

// SeriesType is the type of a course of values.
var SeriesType = &lang.ResultType{
	Name: "history_series",
	Doc:  "A course of a counter or a kind of sample of a port.",
	Members: []lang.ResultMember{
		{Name: "port", Type: "string", Doc: "its name"},
		{Name: "what", Type: "string", Doc: "the counter or the kind of sample"},
		{Name: "unit", Type: "string", Doc: "of the values; empty of counters"},
		{Name: "rounded", Doc: "whether values are within 5 %, as samples are kept"},
		{Name: "times", Type: "list of string", Doc: "begins of the hours or days"},
		{Name: "values", Type: "list of float", Doc: "at these times; times without a value were not recorded"},
		{Name: "gaps", Type: "list of history_gap", Doc: "when nothing was recorded"},
	},
}

// Types are the types of answers.
var Types = []*lang.ResultType{EventType, GapType, FlapType, LinkType, CableType, ErrorsType, BERType, FindingType, AckType, ActionType, OffenderType, PortLifeType, NodeLifeType, CableLifeType, SeriesType}

// Time is a time in the zone of this host, with its offset; None for the zero time.
func Time(t time.Time) starlark.Value {
	if t.IsZero() {
		return starlark.None
	}
	return starlark.String(TimeText(t))
}

// TimeText is a time in the zone of this host, with its offset.
func TimeText(t time.Time) string { return t.Local().Format(time.RFC3339) }

func guidOrNone(g mad.GUID) starlark.Value { return lang.OrNone(g != 0, topology.GUIDValue(g)) }

func text(s string) starlark.Value { return starlark.String(s) }

func rateOrNone(v float64) starlark.Value { return lang.OrNone(v >= 0, starlark.Float(v)) }

// Events returns events, and gaps as events of their own kind, by time.
func Events(events []history.Event, gaps []history.Gap) *starlark.List {
	events = slices.Clone(events)
	for _, g := range gaps {
		events = append(events, history.Event{Time: g.To, Kind: "gap", Subject: "nothing was recorded", Was: TimeText(g.From), Now: TimeText(g.To), Port: -1})
	}
	slices.SortStableFunc(events, func(a, b history.Event) int { return a.Time.Compare(b.Time) })
	return lang.List(events, func(e history.Event) starlark.Value {
		return lang.NewResult(EventType, Time(e.Time), text(e.Kind), text(e.Subject), text(e.Was), text(e.Now), guidOrNone(e.Node), lang.OrNone(e.Port >= 0, starlark.MakeInt(e.Port)))
	})
}

// Gaps returns times in which nothing was recorded.
func Gaps(list []history.Gap) *starlark.List {
	return lang.List(list, func(g history.Gap) starlark.Value { return lang.NewResult(GapType, Time(g.From), Time(g.To)) })
}

// Flaps returns links that flapped.
func Flaps(list []history.Flap) *starlark.List {
	return lang.List(list, func(f history.Flap) starlark.Value {
		return lang.NewResult(FlapType, text(f.Subject), starlark.MakeInt(f.Downs), Time(f.First), Time(f.Last), topology.GUIDValue(f.Node), starlark.MakeInt(f.Port))
	})
}

func errorsList(list []history.Errors) *starlark.List {
	return lang.List(list, func(e history.Errors) starlark.Value {
		return lang.NewResult(ErrorsType, Time(e.Time), text(e.Counter), starlark.MakeUint64(e.Count), starlark.MakeInt(e.Hours))
	})
}

func berValue(n *history.Named, b *history.JudgedBER) starlark.Value {
	return lang.NewResult(BERType, text(n.Of(b.End)), Time(b.Time), lang.OrNone(b.Up >= 0, starlark.Float(b.Up.Seconds())),
		rateOrNone(b.Raw), rateOrNone(b.Effective), rateOrNone(b.Symbol), lang.OrNone(b.Why == "", starlark.Float(b.Rate)), text(b.Source), lang.TextOrNone(b.Why))
}

// BER returns bit error rates.
func BER(n *history.Named, list []history.JudgedBER) *starlark.List {
	return lang.List(list, func(b history.JudgedBER) starlark.Value { return berValue(n, &b) })
}

// Findings returns what audits found.
func Findings(list []history.Found) *starlark.List {
	return lang.List(list, func(f history.Found) starlark.Value {
		return lang.NewResult(FindingType, text(f.Severity.String()), text(f.Key), text(f.Subject), text(f.Message), Time(f.From), Time(f.Till), Time(f.Checked), text(f.Job))
	})
}

func acks(list []history.Acked) *starlark.List {
	return lang.List(list, func(a history.Acked) starlark.Value {
		return lang.NewResult(AckType, text(a.Pattern), text(a.Who), text(a.Reason), Time(a.From), Time(a.Until), Time(a.Till))
	})
}

func actions(list []history.Action) *starlark.List {
	return lang.List(list, func(a history.Action) starlark.Value {
		return lang.NewResult(ActionType, Time(a.Time), text(a.Action), text(a.Subject), text(a.Who), text(a.Outcome))
	})
}

// Offenders returns what had faults. subnet is "" in an answer about one.
func Offenders(n *history.Named, subnet string, list []history.Offender) *starlark.List {
	return lang.List(list, func(o history.Offender) starlark.Value {
		subject, place := o.Key, starlark.Value(starlark.None)
		if name := n.Link(o.Ends[0], append(o.Ends, history.End{})[1]); o.IsCable {
			place = text(name)
		} else {
			subject = name
		}
		return lang.NewResult(OffenderType, text(subject), starlark.MakeInt(o.Days), starlark.MakeInt(o.Flaps), starlark.MakeUint64(o.Errors), starlark.MakeInt(o.Links), Time(o.First), Time(o.Last), place, text(o.Key), lang.TextOrNone(subnet))
	})
}

func cables(n *history.Named, list []history.Cable) *starlark.List {
	return lang.List(list, func(c history.Cable) starlark.Value { return cableValue(n, c, starlark.None, starlark.None) })
}

func cableValue(n *history.Named, c history.Cable, downs, errors starlark.Value) starlark.Value {
	return lang.NewResult(CableType, text(c.Serial), text(c.Part), text(n.Link(c.A, c.B)), Time(c.From), Time(c.Till), downs, errors)
}

// PortLife returns what happened to a port.
func PortLife(n *history.Named, l *history.PortLife) starlark.Value {
	return sections{lang.NewResult(PortLifeType, text(n.Of(l.End)), Events(l.Events, nil),
		lang.List(l.Links, func(x history.Life) starlark.Value {
			return lang.NewResult(LinkType, text(n.Link(history.End{Node: x.A, Port: x.APort}, history.End{Node: x.B, Port: x.BPort})), Time(x.From), Time(x.Till))
		}), cables(n, l.Cables), errorsList(l.Errors),
		lang.List(l.BER, func(b history.PortBER) starlark.Value {
			j := history.JudgedBER{PortBER: b, Source: "register", Why: "an earlier reading (history ber judges the newest)"}
			return berValue(n, &j)
		}), Findings(l.Findings), acks(l.Acks), actions(l.Actions), Gaps(l.Gaps))}
}

// NodeLife returns what happened to a node.
func NodeLife(n *history.Named, l *history.NodeLife) starlark.Value {
	errors := new(starlark.Dict)
	var ports []int
	for num := range l.Errors {
		ports = append(ports, num)
	}
	slices.Sort(ports)
	for _, num := range ports {
		errors.SetKey(starlark.MakeInt(num), starlark.MakeUint64(l.Errors[num]))
	}
	return sections{lang.NewResult(NodeLifeType, text(n.Of(history.End{Node: l.Node, Port: -1})), topology.GUIDValue(l.Node), Time(l.First), Events(l.Events, nil), errors, Findings(l.Findings), acks(l.Acks), actions(l.Actions), Gaps(l.Gaps))}
}

// CableLife returns what happened to a cable.
func CableLife(n *history.Named, l *history.CableLife) starlark.Value {
	var events []history.Event
	var errors []history.Errors
	places := lang.List(l.Spans, func(x history.CableSpan) starlark.Value {
		events, errors = append(events, x.Events...), append(errors, x.Errors...)
		sum := uint64(0)
		for _, e := range x.Errors {
			if e.Counter != "link_downed_counter" {
				sum += e.Count
			}
		}
		return cableValue(n, x.Cable, starlark.MakeInt(x.Downs), starlark.MakeUint64(sum))
	})
	return sections{lang.NewResult(CableLifeType, text(l.Serial), places, Events(events, nil), errorsList(errors), Gaps(l.Gaps))}
}

// Course is the value `history_series`, which show() draws and save() writes as an image.
type Course struct {
	*lang.Result
	chart *picture.Chart
}

// ChartOf returns a course of values as a chart, with events that are marked.
func ChartOf(title string, s *history.Series, since, until time.Time, events []history.Event) *picture.Chart {
	c := &picture.Chart{Title: lang.OneLine(title), Unit: s.Unit, From: since.Local(), To: until.Local()}
	if since.IsZero() && len(s.Points) > 0 {
		c.From = s.Points[0].Time.Local()
	}
	if s.Rounded {
		c.Title += " (within 5 %)"
	}
	for _, p := range s.Points {
		c.Points = append(c.Points, picture.ChartPoint{Time: p.Time.Local(), Width: p.Width, Value: p.Value})
	}
	for _, g := range s.Gaps {
		c.Gaps = append(c.Gaps, [2]time.Time{g.From.Local(), g.To.Local()})
	}
	for _, e := range events {
		if !e.Time.Before(since) && e.Time.Before(until) {
			c.Marks = append(c.Marks, picture.ChartMark{Time: e.Time.Local(), Text: lang.OneLine(e.Kind + " " + e.Subject)})
		}
	}
	return c
}

// Series returns a course of values, with events that are marked where it is drawn.
func Series(n *history.Named, s *history.Series, since, until time.Time, events []history.Event) *Course {
	name := n.Of(history.End{Node: s.Node, Port: s.Port})
	return &Course{
		lang.NewResult(SeriesType, text(name), text(s.What), text(s.Unit), starlark.Bool(s.Rounded),
			lang.List(s.Points, func(p history.Point) starlark.Value { return Time(p.Time) }),
			lang.List(s.Points, func(p history.Point) starlark.Value { return starlark.Float(p.Value) }), Gaps(s.Gaps)),
		ChartOf(name+": "+s.What, s, since, until, events),
	}
}

// Draw returns the course as text.
func (c *Course) Draw(width int, shaded bool) string {
	if width <= 0 {
		width = 80
	}
	return c.chart.Text(width, shaded)
}

// Display returns the course as text without blocks.
func (c *Course) Display() string { return c.Draw(0, false) }

// SaveAs returns what writes the course as an image; nil: the format of the suffix is not supported.
func (c *Course) SaveAs(suffix string) func(io.Writer) error {
	if suffix != "svg" {
		return nil
	}
	return c.chart.SVG
}

// sections is a result that is shown with a heading for each of its lists.
type sections struct{ *lang.Result }

// Display returns the lists that have elements, each below its name.
func (s sections) Display() string {
	var b strings.Builder
	for _, f := range s.Facts() {
		list, ok := f.Value.(*starlark.List)
		switch {
		case !ok:
			fmt.Fprintf(&b, "%s: %s\n", f.Name, f.Cell())
		case list.Len() > 0:
			fmt.Fprintf(&b, "\n%s:\n%s", f.Name, lang.RenderText(list))
		}
	}
	return b.String()
}

// GapText is a gap in words.
func GapText(g history.Gap) string {
	return fmt.Sprintf("nothing was recorded from %s to %s", TimeText(g.From), TimeText(g.To))
}

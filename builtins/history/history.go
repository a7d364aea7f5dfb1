package history

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/audit"
	"fabsh/fabric/history"
)

// Load is load_history().
var Load = lang.Builtin{
	Name:    "load_history",
	Returns: "history",
	Group:   topology.GroupFabric,
	Params: []lang.Param{
		{Name: "path", Kind: lang.KindPath, Default: `""`, Doc: "the file; the rules of fs.read apply; empty: the history of the only subnet in the directory of --state"},
		{Name: "subnet", Kind: lang.KindText, Default: `""`, Keyword: true, Doc: "without a path: the history of the subnet of this name in the directory of --state"},
	},
	Doc: `Opens what "fabsh history record" keeps: what the fabric was, and what happened to each link. It sends nothing.
Its methods take times as people type them: "2026-05-01", "2026-05-01T14:05+02:00", "yesterday", or "36h" or "7d" for as long before now. gaps() lists the times in which nothing was recorded: no answer has what happened then, and a gap is not an absence of changes.`,
	Example: `
> type(catch(load_history, "none.db"))
"error"
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Path, Subnet string }) (starlark.Value, error) {
		path := c.Runtime().Files.Abs(a.Path)
		err := c.Block(func(ctx context.Context) (err error) {
			if a.Path == "" {
				path, err = history.Find(topology.EnvOf(c.Runtime()).State, a.Subnet)
				return err
			}
			if a.Subnet != "" {
				return fmt.Errorf("path and subnet exclude each other")
			}
			file, err := c.Runtime().Files.Open(ctx, a.Path) // may the script read it?
			if err == nil {
				file.Close()
			}
			return err
		})
		if err != nil {
			return nil, lang.Errorf("%w", err)
		}
		h := &History{path: path}
		err = h.use(c, func(ctx context.Context, s *history.Store) (err error) {
			h.overview, err = s.Overview(ctx)
			return err
		})
		return h, err
	}),
}

// History is the value `history`. The file is open only while a method reads it.
type History struct {
	path     string
	overview *history.Overview
}

// Wrap returns the value of a history that a command has opened.
func Wrap(path string, o *history.Overview) *History { return &History{path, o} }

var (
	_ starlark.HasAttrs = (*History)(nil)
	_ lang.Factual      = (*History)(nil)
)

func (h *History) String() string        { return fmt.Sprintf("history(%q)", h.path) }
func (h *History) Type() string          { return "history" }
func (h *History) Freeze()               {}
func (h *History) Truth() starlark.Bool  { return true }
func (h *History) Hash() (uint32, error) { return 0, lang.Unhashable(h) }
func (h *History) Attr(name string) (starlark.Value, error) {
	return HistoryType.Attr(h, name)
}
func (h *History) AttrNames() []string   { return HistoryType.Names }
func (h *History) Schema() string        { return HistoryType.Schema() }
func (h *History) Facts() []lang.Fact    { return HistoryType.Facts(h) }
func (h *History) TypeDoc() lang.TypeDoc { return HistoryType.TypeDoc() }

type member = lang.Member[*History]

func fact(name, typ, doc string, get func(*history.Overview) starlark.Value) member {
	return member{Name: name, Type: typ, Doc: doc, Column: true, Get: func(h *History) starlark.Value { return get(h.overview) }}
}

// HistoryType is the type of a history.
var HistoryType = lang.NewType("history", "What the fabric of a subnet was, and what happened to each link: what load_history() returns. Its attributes are those of the time when it was loaded; its methods read the file.",
	member{Name: "file", Type: "string", Doc: "its path", Column: true, Get: func(h *History) starlark.Value { return text(h.path) }},
	fact("subnet", "string", "the subnet", func(o *history.Overview) starlark.Value { return text(o.Subnet) }),
	fact("first", "string", "time of the first sweep; None without one", func(o *history.Overview) starlark.Value { return Time(o.From) }),
	fact("last", "string", "time of the last sweep; None without one", func(o *history.Overview) starlark.Value { return Time(o.To) }),
	fact("every", "string", `usual time between sweeps: "5m0s"`, func(o *history.Overview) starlark.Value { return text(o.Every.String()) }),
	fact("sweeps", "int", "number of sweeps", func(o *history.Overview) starlark.Value { return starlark.MakeInt(o.Cycles) }),
	fact("incomplete", "int", "number of sweeps that were not complete", func(o *history.Overview) starlark.Value { return starlark.MakeInt(o.Incomplete) }),
	fact("events", "int", "number of events", func(o *history.Overview) starlark.Value { return starlark.MakeInt(o.Events) }),
	fact("nodes", "int", "number of nodes that were ever found", func(o *history.Overview) starlark.Value { return starlark.MakeInt(o.Nodes) }),
	fact("links", "int", "number of links that are there now", func(o *history.Overview) starlark.Value { return starlark.MakeInt(o.Links) }),
	fact("bytes", "int", "size of the file", func(o *history.Overview) starlark.Value { return starlark.MakeInt64(o.Bytes) }),
).Important("file", "first", "last", "sweeps")

func init() {
	HistoryType.AddMethods(&atMethod, &changesMethod, &linkMethod, &cableMethod, &nodeMethod, &flapsMethod, &berMethod, &offendersMethod, &seriesMethod, &errorsMethod, &gapsMethod)
}

// use opens the history for one answer.
func (h *History) use(c *lang.Call, do func(context.Context, *history.Store) error) error {
	err := c.Block(func(ctx context.Context) error {
		s, err := history.Open(ctx, h.path)
		if err != nil {
			return err
		}
		defer s.Close()
		return do(ctx, s)
	})
	if err != nil {
		return lang.Errorf("%w", err)
	}
	return nil
}

// ParseTime reads a time of a parameter; "" is no limit.
func parseTime(c *lang.Call, param, word string) (time.Time, error) {
	if word == "" {
		return time.Time{}, nil
	}
	t, err := history.ParseTime(word, c.Runtime().Clock.Now())
	if err != nil {
		return t, lang.ParamError(param, "%w", err)
	}
	return t, nil
}

// limits are the parameters of a time.
type limits struct{ Since, Until string }

func (l *limits) parse(c *lang.Call) (since, until time.Time, err error) {
	if since, err = parseTime(c, "since", l.Since); err == nil {
		until, err = parseTime(c, "until", l.Until)
	}
	return since, until, err
}

var (
	sinceParam = lang.Param{Name: "since", Kind: lang.KindText, Default: `""`, Doc: `from this time on: "2026-05-01", "7d"; empty: from the first sweep on`}
	untilParam = lang.Param{Name: "until", Kind: lang.KindText, Default: `""`, Doc: "before this time; empty: until now"}
	overParam  = lang.Param{Name: "over", Kind: lang.KindText, Default: `"90d"`, Keyword: true, Doc: `how far back: "30d", "36h", or a time from which on`}
	portParam  = lang.Param{Name: "port", Kind: lang.KindAny, Doc: `a port, of any fabric of the subnet; or its name in the last sweep: "leaf-3/7"; or node GUID and number: "0x0002c90300001234/7"`}
)

// endOf returns the port of a parameter.
func endOf(n *history.Named, v starlark.Value) (history.End, error) {
	switch v := v.(type) {
	case topology.Port:
		return history.End{Node: v.Port.Node().GUID(), Port: v.Port.Num()}, nil
	case starlark.String:
		e, err := n.Port(string(v))
		if err != nil {
			return e, lang.ParamError("port", "%w", err)
		}
		return e, nil
	}
	return history.End{}, lang.ParamError("port", "got %s, want a port or its name", v.Type())
}

const examplePrefix = `
> h = catch(load_history, "history.db")
`

var atMethod = lang.Builtin{
	Name:    "at",
	Returns: "fabric",
	Params:  []lang.Param{{Name: "time", Kind: lang.KindText, Doc: `"2026-05-01T14:05", whose zone is that of this host without an offset; "36h"`}},
	Doc: `Returns the fabric as the last sweep at or before a time found it.
It has no counters, and tables only if they were recorded. If nothing was recorded around that time, this is in its problems, and the fabric is not complete.`,
	Example: example("at", `"yesterday"`),
	Run: lang.Do(func(c *lang.Call, a *struct{ Time string }) (v starlark.Value, err error) {
		t, err := parseTime(c, "time", cmp.Or(a.Time, " "))
		if err != nil {
			return nil, err
		}
		err = c.Recv.(*History).use(c, func(ctx context.Context, s *history.Store) error {
			f, _, err := s.At(ctx, t)
			if err == nil {
				v = topology.NewFabric(f.Renamed(topology.EnvOf(c.Runtime()).Names))
			}
			return err
		})
		return v, err
	}),
}

// example is the example of a method: the history of a session that has none.
func example(method, args string) string {
	return examplePrefix + "> [h." + method + "(" + args + ") for h in [h] if h]\n[]\n"
}

var changesMethod = lang.Builtin{
	Name:    "changes",
	Returns: "list of history_event",
	Params: []lang.Param{sinceParam, untilParam,
		{Name: "kinds", Kind: lang.KindItems, Default: "None", Keyword: true, Doc: `only these kinds: ["link", "node.gone"]; None for all`},
		{Name: "gaps", Kind: lang.KindBool, Default: "True", Keyword: true, Doc: `whether times in which nothing was recorded are among them, with kind "gap"`},
	},
	Doc:     "Returns what happened to nodes and links, the oldest first.",
	Example: example("changes", `"7d", kinds=["link.down"]`),
	Run: lang.Do(func(c *lang.Call, a *struct {
		Since, Until string
		Kinds        []starlark.Value
		Gaps         bool
	}) (v starlark.Value, err error) {
		l := limits{a.Since, a.Until}
		since, until, err := l.parse(c)
		if err != nil {
			return nil, err
		}
		var kinds []string
		for _, k := range a.Kinds {
			word, ok := starlark.AsString(k)
			if !ok {
				return nil, lang.ParamError("kinds", "an element is %s, want string", k.Type())
			}
			kinds = append(kinds, word)
		}
		err = c.Recv.(*History).use(c, func(ctx context.Context, s *history.Store) error {
			events, err := s.Changes(ctx, since, until, kinds...)
			if err != nil {
				return err
			}
			var gaps []history.Gap
			if a.Gaps {
				if gaps, err = s.Gaps(ctx, since, until); err != nil {
					return err
				}
			}
			v = Events(events, gaps)
			return nil
		})
		return v, err
	}),
}

var linkMethod = lang.Builtin{
	Name:    "link",
	Returns: "history_port",
	Params:  []lang.Param{portParam, overParam},
	Doc: `Returns what happened to a port and the links that it had: events, cables, errors by days, bit error rates, findings, acknowledgements, plans and remedies.
over limits the errors; the rest is whole.`,
	Example: example("link", `"leaf-3/7"`),
	Run: lang.Do(func(c *lang.Call, a *struct {
		Port starlark.Value
		Over string
	}) (v starlark.Value, err error) {
		since, err := parseTime(c, "over", a.Over)
		if err != nil {
			return nil, err
		}
		err = c.Recv.(*History).use(c, func(ctx context.Context, s *history.Store) error {
			n, err := s.Names(ctx)
			if err != nil {
				return err
			}
			e, err := endOf(n, a.Port)
			if err != nil {
				return err
			}
			l, err := s.LifeOf(ctx, e.Node, e.Port, since, c.Runtime().Clock.Now())
			if err == nil {
				v = PortLife(n, l)
			}
			return err
		})
		return v, err
	}),
}

var cableMethod = lang.Builtin{
	Name:    "cable",
	Returns: "history_cable_life",
	Params:  []lang.Param{{Name: "serial", Kind: lang.KindText, Doc: "serial number of the cable or module"}},
	Doc:     "Returns what happened to a cable or module, wherever it was: link-downs and errors that moved with it are its own.",
	Example: example("cable", `"MT2210VS00042"`),
	Run: lang.Do(func(c *lang.Call, a *struct{ Serial string }) (v starlark.Value, err error) {
		err = c.Recv.(*History).use(c, func(ctx context.Context, s *history.Store) error {
			n, err := s.Names(ctx)
			if err != nil {
				return err
			}
			l, err := s.CableLife(ctx, a.Serial)
			if err == nil {
				v = CableLife(n, l)
			}
			return err
		})
		return v, err
	}),
}

var nodeMethod = lang.Builtin{
	Name:    "node",
	Returns: "history_node",
	Params:  []lang.Param{{Name: "node", Kind: lang.KindAny, Doc: "a node, of any fabric of the subnet; or its name in the last sweep; or its GUID"}, overParam},
	Doc:     "Returns what happened to a node and its links. over limits the errors; the rest is whole.",
	Example: example("node", `"leaf-3"`),
	Run: lang.Do(func(c *lang.Call, a *struct {
		Node starlark.Value
		Over string
	}) (v starlark.Value, err error) {
		since, err := parseTime(c, "over", a.Over)
		if err != nil {
			return nil, err
		}
		err = c.Recv.(*History).use(c, func(ctx context.Context, s *history.Store) error {
			n, err := s.Names(ctx)
			if err != nil {
				return err
			}
			var e history.End
			switch x := a.Node.(type) {
			case topology.Node:
				e.Node = x.Node.GUID()
			case starlark.String:
				if e.Node, err = n.Node(string(x)); err != nil {
					return lang.ParamError("node", "%w", err)
				}
			default:
				return lang.ParamError("node", "got %s, want a node or its name", x.Type())
			}
			l, err := s.NodeLife(ctx, e.Node, since, c.Runtime().Clock.Now())
			if err == nil {
				v = NodeLife(n, l)
			}
			return err
		})
		return v, err
	}),
}

var flapsMethod = lang.Builtin{
	Name:    "flaps",
	Returns: "list of history_flap",
	Params: []lang.Param{
		{Name: "times", Kind: lang.KindInt, Default: strconv.Itoa(audit.FlapDowns), Keyword: true, Doc: "links that went down at least as often"},
		{Name: "within", Kind: lang.KindText, Default: `"24h"`, Keyword: true, Doc: `in the last hours or days: "24h", "7d"`},
	},
	Doc: `Returns the links that went down several times, the most frequent first: by default twice in 24 hours, the criterion of NVIDIA's bring-up guide.
A link that went down with a host or switch, or whose port was disabled, does not count.`,
	Example: example("flaps", `within="7d"`),
	Run: lang.Do(func(c *lang.Call, a *struct {
		Times  int
		Within string
	}) (v starlark.Value, err error) {
		since, err := parseTime(c, "within", a.Within)
		if err != nil {
			return nil, err
		}
		err = c.Recv.(*History).use(c, func(ctx context.Context, s *history.Store) error {
			list, err := s.Flaps(ctx, a.Times, since, c.Runtime().Clock.Now().Add(time.Second))
			v = Flaps(list)
			return err
		})
		return v, err
	}),
}

var berMethod = lang.Builtin{
	Name:    "ber",
	Returns: "list of history_ber",
	Params: []lang.Param{
		{Name: "above", Kind: lang.KindAny, Default: "1e-12", Keyword: true, Doc: "links whose rate is above this one"},
		{Name: "up", Kind: lang.KindDuration, Default: `"125m"`, Keyword: true, Doc: "judge links that have been up for as long"},
	},
	Doc: `Returns the links whose bit error rate is above a rate, the worst first, and then those that are not judged yet, whose why states the reason.
The rate is the newest one after error correction, as the port estimates it; of ports that do not, it is that of the symbol errors of the last 30 days. A rate counts once the link has been up for 125 minutes (NVIDIA's bring-up guide).`,
	Example: example("ber", "above=1e-14"),
	Run: lang.Do(func(c *lang.Call, a *struct {
		Above starlark.Value
		Up    time.Duration
	}) (v starlark.Value, err error) {
		above, ok := starlark.AsFloat(a.Above)
		if !ok || !(above > 0) {
			return nil, lang.ParamError("above", "got %s, want a rate such as 1e-12", lang.Brief(a.Above))
		}
		err = c.Recv.(*History).use(c, func(ctx context.Context, s *history.Store) error {
			judged, unjudged, err := s.BER(ctx, above, a.Up, c.Runtime().Clock.Now())
			if err != nil {
				return err
			}
			n, err := s.Names(ctx)
			v = BER(n, append(judged, unjudged...))
			return err
		})
		return v, err
	}),
}

var offendersMethod = lang.Builtin{
	Name:    "offenders",
	Returns: "list of history_offender",
	Params: []lang.Param{
		{Name: "of", Kind: lang.KindChoice, Default: `"link"`, Doc: `what has the faults: "link", "cable" (by serial number: the fault that moves with the cable), "host" or "switch"`},
		{Name: "by", Kind: lang.KindChoice, Default: `"days"`, Keyword: true, Doc: `sort by "days" with faults, "flaps" or "errors"`},
		{Name: "over", Kind: lang.KindText, Default: `"180d"`, Keyword: true, Doc: overParam.Doc},
	},
	Doc:     "Returns what had errors or involuntary link-downs over months, the worst first.",
	Example: example("offenders", `"cable", over="365d"`),
	Run: lang.Do(func(c *lang.Call, a *struct{ Of, By, Over string }) (v starlark.Value, err error) {
		since, err := parseTime(c, "over", a.Over)
		if err != nil {
			return nil, err
		}
		err = c.Recv.(*History).use(c, func(ctx context.Context, s *history.Store) error {
			list, err := s.Offenders(ctx, history.OffenderQuery{Of: a.Of, By: a.By, Since: since, Until: c.Runtime().Clock.Now().Add(time.Second)})
			if err != nil {
				return err
			}
			n, err := s.Names(ctx)
			v = Offenders(n, "", list)
			return err
		})
		return v, err
	}),
}

var seriesMethod = lang.Builtin{
	Name:    "series",
	Returns: "history_series",
	Params: []lang.Param{portParam,
		{Name: "what", Kind: lang.KindText, Doc: `a counter, by hours: "symbol_error_counter"; "xmit_mean" and "xmit_most" (data sent, MB/s), "wait" (%), by hours; or "temperature" (°C), "rx_power", "tx_power" (mW), "ber_grade", by days`},
		{Name: "over", Kind: lang.KindText, Default: `"30d"`, Keyword: true, Doc: overParam.Doc},
	},
	Doc:     "Returns the course of a counter or a kind of sample of a port: times and values, and the gaps between them. show() draws it, with events marked; save() writes it as an image (.svg).",
	Example: example("series", `"leaf-3/7", "xmit_mean"`),
	Run: lang.Do(func(c *lang.Call, a *struct {
		Port       starlark.Value
		What, Over string
	}) (v starlark.Value, err error) {
		since, err := parseTime(c, "over", a.Over)
		if err != nil {
			return nil, err
		}
		err = c.Recv.(*History).use(c, func(ctx context.Context, s *history.Store) error {
			n, err := s.Names(ctx)
			if err != nil {
				return err
			}
			e, err := endOf(n, a.Port)
			if err != nil {
				return err
			}
			now := c.Runtime().Clock.Now()
			x, err := s.Series(ctx, e.Node, e.Port, a.What, since, now)
			if err != nil {
				return err
			}
			events, err := s.EventsOf(ctx, e.Node, e.Port)
			v = Series(n, x, since, now, events)
			return err
		})
		return v, err
	}),
}

var errorsMethod = lang.Builtin{
	Name:    "errors",
	Returns: "list of history_errors",
	Params: []lang.Param{portParam,
		{Name: "every", Kind: lang.KindDuration, Default: `"1h"`, Keyword: true, Doc: `by "5m" (kept for 30 days), "1h" or "24h"`},
		{Name: "over", Kind: lang.KindText, Default: `"30d"`, Keyword: true, Doc: overParam.Doc},
	},
	Doc:     "Returns what the counters of a port grew by; counters that did not grow are not in it.",
	Example: example("errors", `"leaf-3/7", every="24h"`),
	Run: lang.Do(func(c *lang.Call, a *struct {
		Port  starlark.Value
		Every time.Duration
		Over  string
	}) (v starlark.Value, err error) {
		since, err := parseTime(c, "over", a.Over)
		if err != nil {
			return nil, err
		}
		err = c.Recv.(*History).use(c, func(ctx context.Context, s *history.Store) error {
			n, err := s.Names(ctx)
			if err != nil {
				return err
			}
			e, err := endOf(n, a.Port)
			if err != nil {
				return err
			}
			list, err := s.Errors(ctx, e.Node, e.Port, since, c.Runtime().Clock.Now(), a.Every)
			v = errorsList(list)
			return err
		})
		return v, err
	}),
}

var gapsMethod = lang.Builtin{
	Name:    "gaps",
	Returns: "list of history_gap",
	Params:  []lang.Param{sinceParam, untilParam},
	Doc:     "Returns the times in which nothing was recorded: no answer has what happened then.",
	Example: example("gaps", `"30d"`),
	Run: lang.Do(func(c *lang.Call, a *limits) (v starlark.Value, err error) {
		since, until, err := a.parse(c)
		if err != nil {
			return nil, err
		}
		err = c.Recv.(*History).use(c, func(ctx context.Context, s *history.Store) error {
			list, err := s.Gaps(ctx, since, until)
			v = Gaps(list)
			return err
		})
		return v, err
	}),
}

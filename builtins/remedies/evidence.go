package remedies

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/audits"
	values "fabsh/builtins/history"
	"fabsh/builtins/lang"
	"fabsh/builtins/script"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/history"
	"fabsh/fabric/page"
	"fabsh/fabric/remedy"
)

// EvidenceType is the type of the result of fabsh evidence.
var EvidenceType = &lang.ResultType{
	Name: "evidence",
	Doc:  "What is known of a link, a port or a node, for the support of its vendor. Names and GUIDs of hosts that are not concerned are removed.",
	Members: []lang.ResultMember{
		{Name: "target", Doc: "the link, port or node"},
		{Name: "fabric", Doc: "the fabric, in one line"},
		{Name: "time", Doc: "when it was read, RFC 3339"},
		{Name: "sections", Type: "list of evidence_section", Doc: "tables"},
	},
}

// EvidenceSectionType is the type of a part of it.
var EvidenceSectionType = &lang.ResultType{
	Name:      "evidence_section",
	Doc:       "A table of evidence.",
	Important: []string{"title", "note"},
	Members: []lang.ResultMember{
		{Name: "title", Type: "string", Doc: "what it is"},
		{Name: "note", Type: "string", Doc: "where the values are from; or why they were not read"},
		{Name: "columns", Type: "list of string", Doc: "names of the columns"},
		{Name: "rows", Type: "list", Doc: "lists of texts, one for each column; empty: unknown"},
	},
}

// EvidenceOptions are the settings of CollectEvidence.
type EvidenceOptions struct {
	Target string // a link, port or node
	Over   string // between the two reads of counters; "": 10 s, or one read of a file
	Subnet string // a name for the subnet; may be ""
	State  string // directory of acks, remedies and the history; "": none
}

// evidenceScript collects what scripts can read.
const evidenceScript = "@std//lib/evidence.star"

// CollectEvidence collects what is known of a part of the fabric. It sends only queries.
func CollectEvidence(ctx context.Context, in *script.Interpreter, o EvidenceOptions) (*page.Evidence, error) {
	rt, env := in.Runtime, topology.EnvOf(in.Runtime)
	f, err := audits.ReadFabric(ctx, rt)
	if err != nil {
		return nil, err
	}
	named := starlark.Value(starlark.String(o.Target))
	if lid, err := strconv.Atoi(o.Target); err == nil {
		named = starlark.MakeInt(lid)
	}
	n, p, err := topology.FindPart(f, named)
	if err != nil {
		return nil, err
	}
	x := &evidence{f: f, node: n, port: p, keep: map[*fabric.Node]bool{n: true}}
	if p != nil {
		x.keep[p.Node()] = true
		if q := p.Peer(); q != nil {
			x.keep[q.Node()] = true
		}
	}
	if o.Over == "" && env.Engine != nil {
		o.Over = "10s"
	}
	subnet := fabric.SubnetOf(f, o.Subnet)
	past, why := historyOf(ctx, env, o.State, subnet)
	if err := x.run(ctx, in, o.Over, past); err != nil {
		return nil, err
	}
	if why != nil {
		x.add(page.EvidenceSection{Title: "History", Note: "not read: " + why.Error()})
	}
	if err := x.addState(rt, o.State, subnet); err != nil {
		x.add(page.EvidenceSection{Title: "Remedies", Note: "not read: " + err.Error()})
	}
	e := &page.Evidence{Target: x.name(), Fabric: strings.TrimPrefix(env.ValueOf(f).String(), "fabric: "), Version: env.Version, Time: rt.Clock.Now().UTC().Truncate(time.Second), Sections: x.sections}
	x.hide(e)
	return e, nil
}

// historyOf returns the history of the session or of the subnet as a value of scripts; None: no history.
func historyOf(ctx context.Context, env *topology.Env, state string, subnet fabric.Subnet) (starlark.Value, error) {
	path := ""
	switch {
	case env.History != nil:
		path = env.History.Path
	case state != "" && subnet.IsKnown():
		path = filepath.Join(subnet.Folder(state), history.FileName)
		if _, err := os.Stat(path); err != nil {
			return starlark.None, nil
		}
	default:
		return starlark.None, nil
	}
	h, err := history.Open(ctx, path)
	if err != nil {
		return starlark.None, err
	}
	defer h.Close()
	overview, err := h.Overview(ctx)
	if err != nil {
		return starlark.None, err
	}
	return values.Wrap(path, overview), nil
}

// evidence is what was collected.
type evidence struct {
	f        *fabric.Fabric
	node     *fabric.Node // nil: port is set
	port     *fabric.Port
	keep     map[*fabric.Node]bool // the nodes that are concerned
	sections []page.EvidenceSection
}

func (x *evidence) add(s page.EvidenceSection) { x.sections = append(x.sections, s) }

// name returns what the evidence is about.
func (x *evidence) name() string {
	switch {
	case x.port == nil:
		return x.node.Name()
	case x.port.Peer() != nil:
		return x.port.Name() + " - " + x.port.Peer().Name()
	}
	return x.port.Name()
}

// run runs the script, and adds its sections.
func (x *evidence) run(ctx context.Context, in *script.Interpreter, over string, past starlark.Value) error {
	var node, port starlark.Value = starlark.None, starlark.None
	if x.port != nil {
		port = topology.PortOf(x.port)
	} else {
		node = topology.NodeOf(x.node)
	}
	env := topology.EnvOf(in.Runtime)
	return in.Open(ctx, evidenceScript, func(t *starlark.Thread, src string) error {
		s, err := in.Run(t, evidenceScript, src)
		if err != nil {
			return err
		}
		v, err := starlark.Call(t, s.Function("evidence"), starlark.Tuple{env.ValueOf(x.f), node, port, starlark.String(over), past}, nil)
		if err != nil {
			return err
		}
		for _, section := range lang.Collect(v.(starlark.Iterable)) {
			d := section.(*starlark.Dict)
			text := func(key string) string {
				v, _, _ := d.Get(starlark.String(key))
				s, _ := starlark.AsString(v)
				return s
			}
			list := func(v starlark.Value) (texts []string) {
				for _, x := range lang.Collect(v.(starlark.Iterable)) {
					s, _ := starlark.AsString(x)
					texts = append(texts, s)
				}
				return texts
			}
			columns, _, _ := d.Get(starlark.String("columns"))
			rows, _, _ := d.Get(starlark.String("rows"))
			made := page.EvidenceSection{Title: text("title"), Note: text("note"), Columns: list(columns)}
			for _, row := range lang.Collect(rows.(starlark.Iterable)) {
				made.Rows = append(made.Rows, list(row))
			}
			x.add(made)
		}
		return nil
	})
}

// addState adds the acknowledgements that hold, and the decisions of remedies, from the directory of state.
func (x *evidence) addState(rt *lang.Runtime, state string, subnet fabric.Subnet) error {
	if state == "" || !subnet.IsKnown() {
		x.add(page.EvidenceSection{Title: "Acknowledgements and remedies", Note: "not read: no directory for state; give --state DIR"})
		return nil
	}
	acks := page.EvidenceSection{Title: "Acknowledgements", Note: "fabsh audit ack, those that hold", Columns: []string{"finding", "until", "by", "reason"}}
	for _, a := range audits.RunAcks(rt, state, subnet) {
		if x.concerns(a.Pattern + " " + a.Name) {
			acks.Rows = append(acks.Rows, []string{a.Pattern, a.Until.Format(time.DateOnly), a.By, a.Reason})
		}
	}
	x.add(acks)
	log, err := remedy.Current(remedy.LogFile(state, subnet), state)
	if err != nil {
		return err
	}
	done := page.EvidenceSection{Title: "Remedies", Note: "fabsh remedy log: what was tried or declined, and why", Columns: []string{"time", "kind", "action", "subject", "reason", "rule", "why"}}
	for _, e := range log.Entries {
		if e.Kind != remedy.KindRun && e.Kind != remedy.KindState && (x.at(e.Port) || x.at(e.Peer) || x.concerns(e.Subject)) {
			done.Rows = append(done.Rows, []string{e.At.UTC().Format(time.RFC3339), string(e.Kind), string(e.Action), e.Name, e.Reason, e.Rule, e.Why})
		}
	}
	x.add(done)
	return nil
}

// at reports whether a place is of the target.
func (x *evidence) at(place remedy.Place) bool {
	p := place.In(x.f)
	switch {
	case p == nil:
		return false
	case x.port == nil:
		return p.Node() == x.node
	}
	return p == x.port || p == x.port.Peer()
}

// concerns reports whether the ID or the name of a finding has the target.
func (x *evidence) concerns(text string) bool {
	has := func(name string) bool {
		i := strings.Index(text, name)
		end := i + len(name)
		return i >= 0 && (end == len(text) || text[end] < '0' || text[end] > '9')
	}
	if x.port == nil {
		return has(x.node.GUID().String()) || has(x.node.Name())
	}
	for _, p := range []*fabric.Port{x.port, x.port.Peer()} {
		if p != nil && (has(remedy.PlaceOf(p).String()) || has(p.Name())) {
			return true
		}
	}
	return false
}

// otherHost takes the place of names of hosts that are not concerned.
const otherHost = "(other host)"

// nameLike matches a word that may be a name of a host, or a GUID.
var nameLike = regexp.MustCompile(`[\pL\pN_.\-]+`)

// hide removes names and GUIDs of CAs and routers that are not concerned, and makes texts harmless.
func (x *evidence) hide(e *page.Evidence) {
	known, hidden := map[string]bool{}, map[string]bool{}
	for i := range x.f.Nodes() {
		n := &x.f.Nodes()[i]
		list := hidden
		if n.IsSwitch() || x.keep[n] {
			list = known
		}
		host, _ := fabric.HostName(n.Name())
		for _, word := range append(nameLike.FindAllString(host, -1), n.GUID().String(), host) {
			list[word] = true
		}
		for p := range n.Ports() {
			list[p.GUID().String()] = true
		}
	}
	clean := func(text string) string {
		return lang.OneLine(nameLike.ReplaceAllStringFunc(text, func(word string) string {
			if hidden[word] && !known[word] {
				return otherHost
			}
			return word
		}))
	}
	e.Target, e.Fabric = lang.OneLine(e.Target), lang.OneLine(e.Fabric)
	for i := range e.Sections {
		s := &e.Sections[i]
		s.Title, s.Note = clean(s.Title), clean(s.Note)
		for _, row := range s.Rows {
			for j := range row {
				row[j] = clean(row[j])
			}
		}
	}
}

// WrapEvidence returns e as a value.
func WrapEvidence(e *page.Evidence) starlark.Value {
	sections := lang.List(e.Sections, func(s page.EvidenceSection) starlark.Value {
		return lang.NewResult(EvidenceSectionType, starlark.String(s.Title), starlark.String(s.Note), lang.Texts(s.Columns), lang.List(s.Rows, func(row []string) starlark.Value { return lang.Texts(row) }))
	})
	return &evidenceValue{lang.NewResult(EvidenceType, starlark.String(e.Target), starlark.String(e.Fabric), starlark.String(e.Time.Format(time.RFC3339)), sections), e}
}

// evidenceValue is the value `evidence`.
type evidenceValue struct {
	*lang.Result
	e *page.Evidence
}

// Display returns the sections, one below the other.
func (v *evidenceValue) Display() string {
	var b strings.Builder
	fmt.Fprintf(&b, "evidence: %s\nfabric: %s\ntime: %s\n", v.e.Target, v.e.Fabric, v.e.Time.Format(time.RFC3339))
	for _, s := range v.e.Sections {
		fmt.Fprintf(&b, "\n%s\n%s\n", s.Title, s.Note)
		if len(s.Rows) == 0 {
			continue
		}
		rows := make([][]lang.Fact, len(s.Rows))
		for i, row := range s.Rows {
			for k, cell := range row {
				rows[i] = append(rows[i], lang.Fact{Name: s.Columns[k], Value: starlark.String(cell)})
			}
		}
		b.WriteString(lang.TableText("", s.Columns, rows))
	}
	return b.String()
}

// ErrNoTarget is the error of a command without a target.
var ErrNoTarget = errors.New(`missing LINK, PORT or NODE, such as leaf-1/7, "leaf-1/7 - spine-1/2" or leaf-1`)

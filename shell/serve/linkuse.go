package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html/template"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/builtins/remedies"
	"fabsh/fabric"
	"fabsh/fabric/page"
	"fabsh/fabric/plural"
	"fabsh/fabric/remedy"
	"fabsh/mad"
)

// useView is what uses a link: the routes over it, what is lost without it, and what may repair it.
type useView struct {
	Routes   []item
	Pairs    []choice
	Unknown  string // why routes are not known
	Age      string
	Old      bool
	WhatIf   template.URL
	Evidence template.URL
	Jobs     *jobsView // nil: not known, or not of this node
	Command  string    // to judge jobs; "": they are known
	Next     string    // step of repair; "": nothing is to be repaired, as far as is known
	NextNote string
	Steps    []stepView
}

// stepView is a step of the ladder of repair.
type stepView struct {
	Step, Text     string
	Proposed, Done time.Time
	Current        bool
}

// stepTexts are the steps of the ladder in words.
var stepTexts = map[remedy.Step]string{
	remedy.StepReset: "train the link again, and clear its counters", remedy.StepReseat: "pull out and plug in the cable and the modules of both ends",
	remedy.StepClean: "clean the fibre and the modules", remedy.StepSwap: "replace the modules of both ends, or a cable with fixed ends",
	remedy.StepReplace: "replace the fibre, then the adapter or switch", remedy.StepSupport: "contact the vendor",
}

// SetRepairs sets the steps of repair that the log of remedies has.
func (s *Site) SetRepairs(state *remedy.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.repairs = state
}

// use returns what uses the link of a port, or a node.
func (s *Site) use(v *view, p *fabric.Port, n *fabric.Node, worst mark) *useView {
	target := key(n)
	u := &useView{Evidence: v.to("evidence", target)}
	if p != nil {
		target = portKey(p)
		u.Evidence = v.to("evidence", key(n), strconv.Itoa(p.Num()))
	}
	if s.jobsOf(v) == nil {
		u.Command = "fabsh report impact '" + strings.ReplaceAll(target, "'", "") + "' --jobs FILE"
	}
	t, err := s.tablesOf(v)
	if err != nil {
		u.Unknown = clean(err.Error())
	} else {
		u.Age, u.Old = v.ageOf(t)
		u.WhatIf = v.address("paths", "without", target)
		if p != nil && p.Peer() != nil {
			s.routesOver(v, u, t, p)
		}
	}
	u.Jobs = s.jobsHere(v, t, n, p)
	if p != nil {
		s.repair(v, u, p, worst)
	}
	return u
}

// maxPairs is how many pairs of hosts a page shows of a link.
const maxPairs = 5

// routesOver adds the routes over a link.
func (s *Site) routesOver(v *view, u *useView, t *Tables, p *fabric.Port) {
	g := t.Routes.Graph()
	for _, e := range []*fabric.Port{p, p.Peer()} {
		if !e.Node().IsSwitch() {
			u.Routes = []item{{Key: "Paths", Text: "Each path from and to " + nodeName(e.Node()) + " of this port."}}
			return
		}
	}
	loads, err := compute(v.ctx, &s.work, workKey{t, "loads"}, workWait/8, func(ctx context.Context) ([]int64, error) { return countRoutes(ctx, t) })
	for _, e := range []*fabric.Port{p, p.Peer()} {
		out := samePort(t.Fabric(), e)
		if out == nil || g.ChannelOf(out) < 0 {
			u.Unknown = "The tables were read before this link was up."
			return
		}
		count := "not counted"
		switch {
		case errors.Is(err, errPending):
			count = "being counted; reload this page in a few seconds"
		case err == nil:
			count = plural.Count(int(loads[g.ChannelOf(out)]), "route from a host to a LID of another", "routes from a host to a LID of another")
		}
		u.Routes = append(u.Routes, item{Key: "Out of " + nodeName(e.Node()), Text: count})
		u.Pairs = append(u.Pairs, v.pairsOver(t, out, maxPairs-len(u.Pairs)/2)...)
	}
	u.Pairs = u.Pairs[:min(len(u.Pairs), maxPairs)]
}

// pairsOver returns a few pairs of ports whose packets leave a switch by a port. It follows at most some
// hundreds of paths.
func (v *view) pairsOver(t *Tables, out *fabric.Port, most int) (list []choice) {
	g := t.Routes.Graph()
	s := g.SwitchOf(out.Node())
	row := t.Routes.Row(s)
	terminals := g.Terminals()
	tries := 400
	for lid := 1; lid < len(row) && len(list) < most && tries > 0; lid++ {
		to := g.TerminalByLID(mad.LID(lid))
		if int(row[lid]) != out.Num() || to < 0 || terminals[to].Port.Node().IsSwitch() {
			continue
		}
		step := max(1, len(terminals)/40)
		for from := lid % step; from < len(terminals) && tries > 0; from += step {
			x := &terminals[from]
			if from == to || x.Port.Node().IsSwitch() || x.LID == 0 {
				continue
			}
			tries--
			path, err := t.Routes.Trace(x.LID, mad.LID(lid))
			if err != nil || path.Broken != "" {
				continue
			}
			crosses := false
			for _, h := range path.Hops {
				crosses = crosses || h.Switch == s && int(h.Out) == out.Num()
			}
			if crosses {
				a, b := x.Port, terminals[to].Port
				text := nodeName(a.Node()) + " → " + nodeName(b.Node())
				if terminals[to].Count > 1 {
					text += fmt.Sprintf(" (LID %d)", lid)
				}
				list = append(list, choice{Text: text, URL: v.address("paths", "from", portKey(a), "to", portKey(b))})
				break
			}
		}
	}
	return list
}

// repair adds the ladder of repair: what was proposed and done, and what is next.
func (s *Site) repair(v *view, u *useView, p *fabric.Port, worst mark) {
	s.mu.Lock()
	state := s.repairs
	s.mu.Unlock()
	past := map[remedy.Step]*remedy.PastStep{}
	if state != nil && !v.moment.isPast {
		for _, x := range state.StepsOf(p) {
			past[x.Step] = x
		}
	}
	if len(past) == 0 && worst < isSlow {
		return
	}
	for _, step := range remedy.Steps() {
		x := stepView{Step: string(step), Text: stepTexts[step]}
		if was := past[step]; was != nil {
			x.Proposed, x.Done = was.Proposed, was.Done
		}
		if u.Next == "" && x.Done.IsZero() && !x.Proposed.IsZero() {
			x.Current, u.Next = true, x.Step+": "+x.Text
		}
		u.Steps = append(u.Steps, x)
	}
	switch {
	case u.Next != "":
		u.NextNote = "A remedy proposed it. When it is done: fabsh remedy log add."
	case len(past) > 0:
		u.Next = "All steps that were proposed are done."
		u.NextNote = "fabsh remedy proposes the next one if findings remain."
	default:
		u.Next = "No step was proposed."
		u.NextNote = "fabsh remedy proposes the first one that fits the diagnosis of the device."
		u.Steps = nil
	}
}

// withTables returns a fabric with tables, if they are of the same links. t may be nil.
func withTables(f *fabric.Fabric, t *Tables) *fabric.Fabric {
	if f == nil || f.HasLFTs() || t == nil || shapeOf(f) != shapeOf(t.Fabric()) {
		return f
	}
	rows := make([][]byte, len(f.Nodes()))
	g := t.Routes.Graph()
	for i, n := range g.Switches() {
		if same := f.NodeByGUID(n.GUID()); len(same) == 1 && (t.Routes.Unread == nil || !t.Routes.Unread[i]) {
			rows[same[0].ID()] = t.Routes.Row(i)
		}
	}
	return f.With(fabric.Reading{LFTs: rows})
}

// evidence answers with what a vendor's support asks for, as a file.
func (s *Site) evidence(v *view) error {
	v.Tab = "map"
	n, err := v.findNode(v.request.PathValue("node"))
	if err != nil {
		return err
	}
	target, p := n.GUID().String(), (*fabric.Port)(nil)
	if num := v.request.PathValue("port"); num != "" {
		i, err := strconv.Atoi(num)
		if err != nil || i < 0 || i > 255 || n.Port(i) == nil {
			return notFound("%s has no port %q", nodeName(n), fabric.Clip(num))
		}
		p = n.Port(i)
		target = p.Name()
	}
	t, err := s.tablesOf(v)
	if err != nil {
		t = nil // the evidence says so
	}
	f := withTables(v.moment.fabric, t)
	e, err := compute(v.ctx, &s.work, workKey{v.moment, "evidence " + target}, renderTime/2, func(ctx context.Context) ([]byte, error) {
		return s.collect(ctx, v, f, target, n, p)
	})
	if errors.Is(err, errPending) {
		return &pageError{status: http.StatusServiceUnavailable, text: "The evidence is still being collected. Load this address again in a few seconds."}
	}
	if err != nil {
		return err
	}
	name := strings.Map(func(c rune) rune {
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_' {
			return c
		}
		return '-'
	}, target)
	v.file, v.fileName = e, "evidence-"+name+".html"
	return nil
}

// collect collects the evidence as a page.
func (s *Site) collect(ctx context.Context, v *view, f *fabric.Fabric, target string, n *fabric.Node, p *fabric.Port) ([]byte, error) {
	session, err := s.offline(f)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	e, err := remedies.CollectEvidence(ctx, session.Interpreter, remedies.EvidenceOptions{Target: target, Subnet: s.Subnet, State: s.State})
	if err != nil {
		return nil, err
	}
	e.Time = v.moment.time.UTC().Truncate(time.Second)
	e.Sections = slices.Insert(e.Sections, 0, page.EvidenceSection{Title: "Source", Note: "a reading of fabsh serve; nothing was sent for this page. What is not read here, such as registers of devices, fabsh evidence '" + strings.ReplaceAll(target, "'", "") + "' reads"}, v.counted(n, p))
	value, err := audits.RenderMetrics(remedies.WrapEvidence(e), lang.FormatJSON, "evidence")
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = e.WriteHTML(&b, []byte(value))
	return b.Bytes(), err
}

// counted returns what cycles have counted at the ports of a link or a node.
func (v *view) counted(n *fabric.Node, p *fabric.Port) page.EvidenceSection {
	x := page.EvidenceSection{Title: "Load and errors", Note: "counters between the last two cycles: the share of the rate that was sent, and the sum of error counters", Columns: []string{"port", "seconds", "load", "errors"}}
	var ports []*fabric.Port
	if p != nil {
		ports = append(ports, p)
		if p.Peer() != nil {
			ports = append(ports, p.Peer())
		}
	} else {
		ports = slices.Collect(n.Ports())
	}
	for _, q := range ports {
		f, ok := v.moment.figuresOf(q)
		if !ok || f.window == 0 {
			continue
		}
		row := []string{q.Name(), fmt.Sprintf("%.0f", f.window.Seconds()), "", ""}
		if !math.IsNaN(float64(f.load)) {
			row[2] = fmt.Sprintf("%.1f %%", 100*f.load)
		}
		if !math.IsNaN(float64(f.errors)) {
			row[3] = fmt.Sprintf("%.0f", f.errors)
		}
		x.Rows = append(x.Rows, row)
	}
	if len(x.Rows) == 0 {
		x.Note += "; not read"
	}
	for _, row := range x.Rows {
		for i := range row {
			row[i] = lang.OneLine(row[i])
		}
	}
	return x
}

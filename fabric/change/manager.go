package change

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/opensm"
	"fabsh/fabric/routing/repair"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// ManagerRouting is what is known of the routing of the subnet manager, an OpenSM.
type ManagerRouting struct {
	// LID is a LID of the subnet manager; 0: unknown, so it is assumed to reach all nodes.
	LID mad.LID
	// Engines are its routing engines in the order in which it tries them; nil: unknown, so
	// they are inferred from the tables in force. Source is the source of them, in words.
	Engines []string
	Source  string
	// Options are its other options that matter; nil: unknown.
	Options *ManagerOptions
}

// ManagerOptions are options of OpenSM that matter for its tables after a loss.
type ManagerOptions struct {
	Roots        []mad.GUID // of root_guid_file; nil: no such file
	Order        []mad.GUID // of guid_routing_order_file
	Scatter      uint32     // scatter_ports
	Shifting     bool       // port_shifting
	ConnectRoots bool       // connect_roots
	Cache        bool       // use_ucast_cache
	Unmodelled   []string   // names of others that are set and change tables
}

// ParseManagerEngine parses a routing engine of OpenSM, or several, separated by commas, as
// routing_engine has them. "auto" and "" are nil: unknown.
func ParseManagerEngine(text string) (list []string, err error) {
	if text == "" || text == AutoEngine {
		return nil, nil
	}
	return parseEngines(text, AutoEngine+", or a list of")
}

// ParseEngines is ParseManagerEngine without "auto".
func ParseEngines(text string) (list []string, err error) {
	return parseEngines(text, "one or a list of")
}

func parseEngines(text, wanted string) (list []string, err error) {
	known := slices.Concat(opensm.Engines(), opensm.NotModelled())
	for name := range strings.SplitSeq(text, ",") {
		at := slices.IndexFunc(known, func(k string) bool { return strings.EqualFold(k, name) })
		if at < 0 {
			return nil, fmt.Errorf("unknown engine %q of OpenSM; want %s %s; not modelled: %s", name, wanted, strings.Join(opensm.Engines(), ", "), strings.Join(opensm.NotModelled(), ", "))
		}
		list = append(list, known[at])
	}
	return list, nil
}

// AutoEngine stands for the engine that is inferred from the tables in force.
const AutoEngine = "auto"

// model is a way in which OpenSM may route.
type model struct {
	name string // for people
	opensm.Settings
	cache bool
}

// lanes reports whether the engine gives paths virtual lanes.
func (m *model) lanes() bool {
	return slices.Contains(m.Engines, opensm.DFSSSP) || slices.Contains(m.Engines, opensm.LASH)
}

// managed is the network that the subnet manager reaches, and the tables of its switches.
type managed struct {
	*opensm.Network
	graph    *graph.Graph
	switches []int // the switch of the graph, by switch of the network
	tables   [][]uint8
	reached  []bool // by terminal of the graph
}

// managedPart returns the part of g that the subnet manager reaches, with the tables of r.
func managedPart(g *graph.Graph, r *routes.Routes, sm mad.LID) *managed {
	usable := func(p *fabric.Port) bool {
		s := g.SwitchOf(p.Node())
		return s >= 0 && g.Target(int32(s), uint8(p.Num())) != graph.NoTarget
	}
	lids := func(p *fabric.Port) (mad.LID, int) {
		if t := g.TerminalOf(p); t >= 0 {
			return g.Terminals()[t].LID, g.Terminals()[t].Count
		}
		return 0, 0
	}
	whole, number := opensm.Of(g.Fabric(), sm, usable, lids)
	part, switches, _ := whole.Reached()
	m := &managed{Network: part, graph: g, reached: make([]bool, len(g.Terminals()))}
	byNumber := make([]int, len(whole.Switches))
	for s, n := range g.Switches() {
		byNumber[number[n.ID()]] = s
	}
	for _, i := range switches {
		s := byNumber[i]
		m.switches = append(m.switches, s)
		m.tables = append(m.tables, r.Row(s))
		m.mark(part.Switches[len(m.switches)-1].LID)
	}
	for i := range part.Ends {
		m.mark(part.Ends[i].LID)
	}
	return m
}

func (m *managed) mark(lid mad.LID) {
	if t := m.graph.TerminalByLID(lid); t >= 0 {
		m.reached[t] = true
	}
}

// maxComparedSteps is the product of LIDs and channels up to which all engines are compared: in
// larger networks, as a tree of 1,728 hosts, the slow ones take more than 10 s.
const maxComparedSteps = 1 << 22

// isSlow reports whether an engine is compared only on small networks.
func isSlow(name string) bool {
	return name == opensm.SSSP || name == opensm.DFSSSP || name == opensm.LASH
}

// findModels sets the models that could have made the tables in force, and p.basis if none
// does.
func (p *Predictor) findModels(ctx context.Context) error {
	m := p.options.Manager
	engineNames := [][]string{m.Engines}
	if m.Engines == nil {
		engineNames = nil
		large := len(p.routes.Graph().Dests())*len(p.routes.Graph().Channels()) > maxComparedSteps
		for _, name := range opensm.Engines() {
			if !large || !isSlow(name) {
				engineNames = append(engineNames, []string{name})
			}
		}
	}
	for _, name := range m.Engines {
		if !opensm.IsEngine(name) {
			p.basis = fmt.Sprintf("by a repair; OpenSM may choose otherwise: its engine %s is not modelled", name)
			return nil
		}
	}
	var candidates []model
	for _, names := range engineNames {
		candidates = append(candidates, p.variants(names)...)
	}
	onlyLanes, err := p.needsLanes(ctx)
	if err != nil {
		return err
	}
	// Where an engine makes these tables from nothing, no earlier losses are needed to explain them.
	for _, explains := range []func(context.Context, *model) (bool, error){p.makes, p.keeps} {
		for i := range candidates {
			c := &candidates[i]
			if onlyLanes && !c.lanes() {
				continue
			}
			ok, err := explains(ctx, c)
			if err != nil {
				return err
			}
			if ok {
				p.models = append(p.models, *c)
			}
		}
		if len(p.models) > 0 {
			break
		}
		p.unsure = m.Engines == nil
	}
	switch {
	case len(p.models) > 0:
	case m.Engines != nil: // OpenSM computes what it computes
		p.models = candidates[:1]
		p.notes = append(p.notes, fmt.Sprintf("the tables in force are not those of %s", candidates[0].name))
	default:
		p.basis = "by a repair; OpenSM may choose otherwise: none of its engines could have made the tables in force"
	}
	return nil
}

// MadeBy reports whether OpenSM makes the tables of r with the engines and options of m: at its start, or
// from tables that it keeps. modelled is false if one of the engines is not modelled.
func MadeBy(ctx context.Context, r *routes.Routes, m ManagerRouting) (made, modelled bool, err error) {
	if slices.ContainsFunc(m.Engines, func(name string) bool { return !opensm.IsEngine(name) }) {
		return false, false, nil
	}
	p := &Predictor{options: PredictOptions{Manager: m}, now: managedPart(r.Graph(), r, m.LID)}
	for _, c := range p.variants(m.Engines) {
		for _, explains := range []func(context.Context, *model) (bool, error){p.makes, p.keeps} {
			if made, err = explains(ctx, &c); made || err != nil {
				return made, true, err
			}
		}
	}
	return false, true, nil
}

// variants returns the models of engines: with the options that are known, else with and
// without the one that matters most: with root_guid_file ftree does not fall back after a loss.
// dnup covers updn with it.
func (p *Predictor) variants(names []string) (list []model) {
	m := model{name: strings.Join(names, ","), Settings: opensm.Settings{Engines: names}}
	if o := p.options.Manager.Options; o != nil {
		m.Roots, m.Order, m.Scatter, m.Shifting, m.ConnectRoots, m.cache = o.Roots, o.Order, o.Scatter, o.Shifting, o.ConnectRoots, o.Cache
		return []model{m}
	}
	list = []model{m}
	if names[0] == opensm.FTree {
		if roots := p.now.Roots(); len(roots) > 0 {
			m.name, m.Roots = m.name+" with root_guid_file", roots
			list = append(list, m)
		}
	}
	return list
}

// needsLanes reports whether the tables in force have a credit loop on one lane, and none on
// those in use.
func (p *Predictor) needsLanes(ctx context.Context) (bool, error) {
	if p.routes.SL2VL == nil || p.loop {
		return false, nil
	}
	one := *p.routes
	one.SL, one.SL2VL = nil, nil
	v, err := verify.Tables(ctx, &one, verify.Options{})
	return err == nil && !v.Acyclic, err
}

// makes reports whether the tables that a model makes from nothing are those in force.
func (p *Predictor) makes(ctx context.Context, m *model) (bool, error) {
	return opensm.Makes(ctx, p.now.Network, p.now.tables, nil, m.Settings)
}

// keeps reports whether a model keeps the tables in force, so that it could have made them after
// losses.
func (p *Predictor) keeps(ctx context.Context, m *model) (bool, error) {
	if m.Engines[0] == opensm.DOR && !p.now.ByDimension(p.now.tables) {
		return false, nil // it would keep any shortest path
	}
	return opensm.Makes(ctx, p.now.Network, p.now.tables, p.now.tables, m.Settings)
}

// outcome is what a model predicts.
type outcome struct {
	names  []string // of the models
	engine string   // that makes the tables; "": they are repaired
	tables *routes.Routes
	Effect
}

// outcomes predicts the tables for g, the graph without the links, by each model.
func (p *Predictor) outcomes(ctx context.Context, g *graph.Graph, after *managed) (list []*outcome, err error) {
	for i := range p.models {
		x, err := p.modelled(ctx, g, after, &p.models[i])
		if err != nil {
			return nil, err
		}
		same := slices.IndexFunc(list, func(o *outcome) bool { return sameTables(o.tables, x.tables) })
		if same >= 0 {
			list[same].names = append(list[same].names, x.names...)
		} else {
			list = append(list, x)
		}
	}
	if len(p.models) == 0 || p.unsure {
		r, err := repair.Tables(ctx, p.routes, g)
		if err != nil {
			return nil, err
		}
		list = append(list, &outcome{tables: r})
	}
	return list, nil
}

// sameTables reports whether tables of one graph are equal, and either both or neither have service
// levels.
func sameTables(a, b *routes.Routes) bool {
	for s := range a.Graph().Switches() {
		if !slices.Equal(a.Row(s), b.Row(s)) {
			return false
		}
	}
	return (a.SL == nil) == (b.SL == nil)
}

// modelled predicts the tables of one model. Engines with lanes fall back where the switches
// have too few.
func (p *Predictor) modelled(ctx context.Context, g *graph.Graph, after *managed, m *model) (*outcome, error) {
	x := &outcome{names: []string{m.name}}
	tables := after.tables
	made := ""
	if !m.cache || !opensm.CacheHolds(p.now.Network, after.Network) {
		r, err := opensm.Compute(ctx, after.Network, after.tables, m.Settings)
		if err != nil {
			return nil, err
		}
		tables, made = r.Tables, r.Engine
	}
	x.tables, x.engine = p.withTables(g, after, tables), cmp.Or(made, m.Engines[0])
	if (made == opensm.DFSSSP || made == opensm.LASH) && !m.TooFewLanes {
		err := engines.Layer(ctx, x.tables, dataLanes(g), 1)
		if few := new(engines.TooFewLanes); errors.As(err, &few) {
			fallback := *m
			fallback.TooFewLanes = true
			if x, err = p.modelled(ctx, g, after, &fallback); err == nil {
				return x, nil
			}
		}
		if err != nil {
			return nil, err
		}
	}
	if first := m.Engines[0]; made != "" && made != first {
		x.names[0] = fmt.Sprintf("%s (falls back to %s)", m.name, made)
	}
	return x, nil
}

// withTables returns the tables in force with those of the part that the subnet manager
// reaches.
func (p *Predictor) withTables(g *graph.Graph, part *managed, tables [][]uint8) *routes.Routes {
	r := routes.New(g, p.routes.Top())
	for s, n := range g.Switches() {
		if was := p.routes.Graph().SwitchByGUID(n.GUID()); was >= 0 {
			copy(r.Row(s), p.routes.Row(was))
		}
	}
	for i, s := range part.switches {
		row := r.Row(s)
		for lid := 1; lid < len(row); lid++ {
			row[lid] = mad.NoPort
			if lid < len(tables[i]) {
				row[lid] = tables[i][lid]
			}
		}
	}
	return r
}

// dataLanes returns the least number of data lanes of a link between switches; 0: unknown.
func dataLanes(g *graph.Graph) (least int) {
	for c := range g.Channels() {
		info := g.ChannelPort(c).Info()
		if info == nil || info.OperationalVLs == 0 {
			continue
		}
		n := min(info.OperationalVLs.Count(), engines.DefaultLanes)
		if least == 0 || n < least {
			least = n
		}
	}
	return least
}

// worstOf returns the worst that the models predict: each number is the worst of all, and
// the rest of the effect is of the model with the largest load.
func worstOf(all []*outcome) (worst *outcome, e Effect) {
	for _, x := range all {
		if worst == nil || cmp.Or(cmp.Compare(x.LoadAfter, worst.LoadAfter), cmp.Compare(x.Lost, worst.Lost), cmp.Compare(x.IdleLinks, worst.IdleLinks), cmp.Compare(x.Rerouted, worst.Rerouted)) > 0 {
			worst = x
		}
	}
	e = worst.Effect
	for _, x := range all {
		e.Lost, e.Rerouted = max(e.Lost, x.Lost), max(e.Rerouted, x.Rerouted)
		if e.CreditLoop == "" {
			e.CreditLoop = x.CreditLoop
		}
		if x.IdleLinks > e.IdleLinks {
			e.IdleLinks, e.IdleSwitches = x.IdleLinks, x.IdleSwitches
		}
	}
	return worst, e
}

// sameNumbers reports whether all numbers of e are those of x.
func (x *outcome) sameNumbers(e *Effect) bool {
	return x.Lost == e.Lost && x.Rerouted == e.Rerouted && x.CreditLoop == e.CreditLoop && x.IdleLinks == e.IdleLinks
}

// basisOf describes the worst of the outcomes, and the others; e is the effect of worstOf.
func (p *Predictor) basisOf(worst *outcome, e Effect, all []*outcome) string {
	var names []string
	for i := range p.models {
		names = append(names, p.models[i].name)
	}
	inferred := p.options.Manager.Engines == nil
	text := "by " + enumerate(worst.names, "or")
	switch {
	case len(names) == 0:
		return p.basis
	case worst.engine == "":
		return fmt.Sprintf("by a repair; OpenSM may choose otherwise: %s could have made the tables in force after losses", enumerate(names, "or"))
	case len(all) > 1 && len(names) > 1 && worst.sameNumbers(&e):
		text += ", the worst of " + enumerate(names, "and")
	case len(all) > 1 && len(names) > 1:
		text = "each number is the worst of " + enumerate(names, "and")
	}
	switch {
	case inferred && p.unsure:
		return text + ", which could have made the tables in force after losses, or by a repair; OpenSM may choose otherwise"
	case inferred:
		return text + ", which could have made the tables in force"
	}
	return text + p.options.Manager.source()
}

// source describes where the engine is from, and the options that the model lacks.
func (m *ManagerRouting) source() (text string) {
	if m.Source != "" {
		text = " (" + m.Source + ")"
	}
	switch {
	case m.Options == nil:
		return text + "; OpenSM may choose otherwise: its other options are unknown"
	case len(m.Options.Unmodelled) == 1:
		return text + fmt.Sprintf("; OpenSM may choose otherwise: its option %s is not modelled", m.Options.Unmodelled[0])
	case len(m.Options.Unmodelled) > 1:
		return text + fmt.Sprintf("; OpenSM may choose otherwise: its options %s are not modelled", enumerate(m.Options.Unmodelled, "and"))
	}
	return text
}

// countIdle counts the links and switches that carry routes before, and none after.
func (e *Effect) countIdle(before *graph.Graph, was []int64, after *graph.Graph, now []int64) {
	used := map[*fabric.Port]bool{} // a port of the link, before
	through := map[*fabric.Node]int{}
	for c, ch := range before.Channels() {
		if was[c] > 0 {
			used[before.ChannelPort(c)] = true
			through[before.Switches()[ch.From]] |= 1
			through[before.Switches()[ch.To]] |= 1
		}
	}
	for c, ch := range after.Channels() {
		if now[c] > 0 {
			through[after.Switches()[ch.From]] |= 2
			through[after.Switches()[ch.To]] |= 2
		}
		if int(ch.Reverse) < c {
			continue
		}
		e.AllLinks++
		a, b := after.ChannelPort(c), after.ChannelPort(int(ch.Reverse))
		if (used[a] || used[b]) && now[c] == 0 && now[ch.Reverse] == 0 {
			e.IdleLinks++
		}
	}
	for _, n := range before.Switches() {
		if through[n] == 1 && after.SwitchOf(n) >= 0 {
			e.IdleSwitches = append(e.IdleSwitches, n.Name())
		}
	}
}

// idle describes what falls out of use; "": nothing does.
func (e *Effect) idle() string {
	var list []string
	switch n := len(e.IdleSwitches); {
	case n > 3:
		list = append(list, fmt.Sprintf("%d switches such as %s", n, e.IdleSwitches[0]))
	case n > 0:
		list = append(list, e.IdleSwitches...)
	}
	if e.IdleLinks > 0 {
		list = append(list, fmt.Sprintf("%d of %s between switches", e.IdleLinks, plural.Count(e.AllLinks, "link", "links")))
	}
	if len(list) == 0 {
		return ""
	}
	verb := "fall out of use"
	if len(list) == 1 && (e.IdleLinks == 1 || e.IdleLinks == 0 && len(e.IdleSwitches) == 1) {
		verb = "falls out of use"
	}
	return enumerate(list, "and") + " " + verb
}

// enumerate lists words: "a, b and c".
func enumerate(list []string, last string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + " " + last + " " + list[len(list)-1]
}

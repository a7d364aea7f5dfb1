package change

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/repair"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/traffic"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// PredictOptions control a prediction.
type PredictOptions struct {
	// Managed reports that a subnet manager makes new tables when links go down; else the
	// tables stay.
	Managed bool
	// Engine is the engine of the subnet manager; "": the engine whose tables the tables in
	// force resemble, if any.
	Engine string
	// Needed are LIDs whose ports must keep their links: the LIDs of the subnet manager and
	// of this host.
	Needed []mad.LID
	// Lanes is called only where the tables have a credit loop on one lane. Nil: unknown.
	Lanes AddLanes
}

// Effect is a prediction: what links that go down do to the paths between the ports of CAs
// and routers. A pair is such a port and a LID of another such port.
type Effect struct {
	Links []string // that go down: "leaf-2/7 - spine-1/2"
	// Managed is PredictOptions.Managed. Without a subnet manager nothing is rerouted, and
	// Lost is Through.
	Managed bool
	// Engine computes the predicted tables; "": the tables in force are repaired. Basis is
	// the reason for this, in words.
	Engine, Basis string
	// Through are pairs whose packets take the links: they lose packets until new tables are
	// written.
	Through int64
	// Lost are pairs that have a path now, and none by the predicted tables. Rerouted are
	// pairs that take another path by these tables.
	Lost, Rerouted int64
	// LoadBefore and LoadAfter are the largest numbers of pairs on a link.
	LoadBefore, LoadAfter int64
	// Split names two nodes that lose their last path to each other, whatever the tables;
	// LastPath a CA or router whose last link goes down; Needed a port that the subnet
	// manager or this host needs. "": none does.
	Split, LastPath, Needed string
	// CreditLoop describes a credit loop of the predicted tables; "": they have none.
	// LoopBefore reports that the tables in force have one.
	CreditLoop string
	LoopBefore bool
	Notes      []string // what was not judged
}

// PredictEffect predicts the effect of taking down the links of ports, either end of each. live are
// the tables in force.
func PredictEffect(ctx context.Context, live *routes.Routes, down []*fabric.Port, o PredictOptions) (*Effect, error) {
	p, err := NewPredictor(ctx, live, o)
	if err != nil {
		return nil, err
	}
	return p.Without(ctx, down)
}

// Refusal returns the reason why the links must not be taken down where that can be
// avoided; "": they may.
func (e *Effect) Refusal() string {
	switch {
	case e.Needed != "":
		return "the subnet manager or this host needs " + e.Needed
	case e.LastPath != "":
		return e.LastPath + " would lose its last link"
	case e.Split != "":
		return e.Split
	case e.Lost > 0:
		return plural.Count(int(e.Lost), "pair", "pairs") + " would lose their path"
	case e.CreditLoop != "" && !e.LoopBefore:
		return "packets could deadlock: the predicted tables have " + e.CreditLoop
	}
	return ""
}

// Lines describes the effect for people: what is known first, then what is predicted.
func (e *Effect) Lines() []string {
	through := plural.Count(int(e.Through), "pair", "pairs") + " over links that go down"
	if !e.Managed {
		return append([]string{"effect: the tables route " + through + ", and no subnet manager makes new ones"}, e.notes()...)
	}
	first := "effect: the tables route " + through
	if e.Through > 0 {
		first += ": their packets are lost until the subnet manager writes new tables"
	}
	return append([]string{first, e.String()}, e.notes()...)
}

func (e *Effect) notes() (lines []string) {
	for _, note := range e.Notes {
		lines = append(lines, "prediction: "+note)
	}
	return lines
}

// String describes the prediction in one line.
func (e *Effect) String() string {
	parts := []string{
		fmt.Sprintf("%s rerouted, %d lost", plural.Count(int(e.Rerouted), "pair", "pairs"), e.Lost),
		fmt.Sprintf("largest load %d before and %d after", e.LoadBefore, e.LoadAfter),
	}
	switch {
	case e.CreditLoop == "":
		parts = append(parts, "no credit loop")
	case e.LoopBefore:
		parts = append(parts, e.CreditLoop+", as now")
	default:
		parts = append(parts, e.CreditLoop)
	}
	if e.Basis != "" {
		parts = append(parts, e.Basis)
	}
	return "prediction: " + strings.Join(parts, "; ")
}

// Predictor predicts the effects of different links that go down in one fabric. It is
// immutable.
type Predictor struct {
	*Baseline
	options PredictOptions
	load    int64
	engine  string // of the subnet manager; "": unknown
	basis   string // of predictions: Effect.Basis
}

// NewPredictor returns the predictor for the tables in force.
func NewPredictor(ctx context.Context, live *routes.Routes, o PredictOptions) (*Predictor, error) {
	b, err := NewBaseline(ctx, live, o.Lanes)
	if err != nil {
		return nil, err
	}
	p := &Predictor{Baseline: b, options: o}
	if p.load, err = largestLoad(ctx, p.routes); err != nil || !o.Managed {
		return p, err
	}
	if o.Engine != "" {
		p.engine, p.basis = o.Engine, "by "+o.Engine
		return p, nil
	}
	return p, p.recognise(ctx)
}

// Without predicts the effect of taking down the links of ports, either end of each.
func (p *Predictor) Without(ctx context.Context, ports []*fabric.Port) (*Effect, error) {
	e := &Effect{Managed: p.options.Managed, LoadBefore: p.load, LoopBefore: p.loop, Notes: slices.Clone(p.notes)}
	down := map[*fabric.Port]bool{}
	for _, port := range ports {
		peer := port.Peer()
		if peer == nil || down[port] {
			continue
		}
		down[port], down[peer] = true, true
		e.Links = append(e.Links, port.Name()+" - "+peer.Name())
	}
	f := p.routes.Graph().Fabric()
	e.Split, e.LastPath, e.Needed = CutOff(f, down), isolatedNode(f, down), p.needed(down)
	g, err := p.routes.Graph().Part(func(port *fabric.Port) bool { return !down[port] })
	if err != nil {
		return nil, err
	}
	cut := p.routes.SeenOn(g)
	d, err := p.comparePredicted(ctx, cut)
	if err != nil {
		return nil, err
	}
	e.Through = d.Lost
	after := cut
	if p.options.Managed {
		if after, err = p.predict(ctx, g, e); err != nil {
			return nil, err
		}
		if d, err = p.comparePredicted(ctx, after); err != nil {
			return nil, err
		}
		paths, err := traffic.CountRerouted(ctx, after, p.routes, func(port *fabric.Port) *fabric.Port { return port })
		if err != nil {
			return nil, err
		}
		e.Rerouted = paths.Pairs - paths.Broken
	}
	e.Lost, e.CreditLoop = d.Lost, d.CreditLoop
	e.LoadAfter, err = largestLoad(ctx, after)
	return e, err
}

// Baseline are the paths of a fabric at some time, with which later tables are compared,
// predicted or read. It is immutable.
type Baseline struct {
	routes *routes.Routes // without choices of adaptive routing
	loop   bool           // a credit loop exists
	notes  []string       // what was not judged
	lanes  AddLanes
}

// AddLanes adds virtual lanes and service levels to tables of the current fabric.
type AddLanes func(ctx context.Context, r *routes.Routes) error

// EffectDifference is the difference between later tables and the paths of a baseline.
type EffectDifference struct {
	// Lost are pairs that had a path and have none; Example is one of them.
	Lost    int64
	Example string
	// CreditLoop describes a credit loop; "": none exists. LoopBefore reports that the
	// baseline has one.
	CreditLoop string
	LoopBefore bool
}

// NewBaseline returns the paths of tables. lanes is called only where the tables have a
// credit loop on one lane; nil: lanes are unknown.
func NewBaseline(ctx context.Context, r *routes.Routes, lanes AddLanes) (*Baseline, error) {
	b := &Baseline{routes: r.StaticPart(), lanes: lanes}
	if r.HasChoices() {
		b.notes = append(b.notes, "only the forwarding tables are judged, not the choices of adaptive routing")
	}
	judged, v, note, err := verifyInLanes(ctx, b.routes, verify.Options{}, lanes)
	if err != nil {
		return nil, err
	}
	if note != "" {
		b.notes = append(b.notes, note)
	}
	b.routes, b.loop = judged, !v.Acyclic
	return b, nil
}

// Compare compares tables of the subnet of b, perhaps of a later sweep, with b.
func (b *Baseline) Compare(ctx context.Context, r *routes.Routes) (*EffectDifference, error) {
	_, v, _, err := verifyInLanes(ctx, r.StaticPart(), verify.Options{Require: func(src, dst *graph.Terminal) bool {
		return b.connects(src.LID, dst.LID)
	}}, b.lanes)
	if err != nil {
		return nil, err
	}
	d := &EffectDifference{Lost: v.Unreachable, LoopBefore: b.loop}
	if len(v.Broken) > 0 {
		d.Example = fmt.Sprintf("%s to LID %d: %s", v.Broken[0].From.Name(), v.Broken[0].LID, v.Broken[0].Why)
	}
	if !v.Acyclic {
		d.CreditLoop = fmt.Sprintf("a credit loop of %d links, such as %s -> %s", len(v.Cycle), v.Cycle[0].Port.Name(), v.Cycle[0].Port.Peer().Name())
	}
	b.addVanished(r.Graph(), d)
	return d, nil
}

// predict returns the tables that the subnet manager is expected to make for g, the graph
// without the links.
func (p *Predictor) predict(ctx context.Context, g *graph.Graph, e *Effect) (*routes.Routes, error) {
	if p.engine != "" {
		after, err := engines.Compute(ctx, g, p.engine, engines.Options{})
		if inapplicable := new(engines.Precondition); !errors.As(err, &inapplicable) {
			e.Engine, e.Basis = p.engine, p.basis
			return after, err
		}
		e.Notes = append(e.Notes, fmt.Sprintf("%v without these links", err))
	}
	if e.Basis = "by a repair of the tables in force"; p.engine == "" {
		e.Basis = p.basis
	}
	return repair.Tables(ctx, p.routes, g)
}

// comparePredicted compares predicted tables with b, without lanes: switches have only the
// lanes in force.
func (b *Baseline) comparePredicted(ctx context.Context, r *routes.Routes) (*EffectDifference, error) {
	alone := *b
	alone.lanes = nil
	return alone.Compare(ctx, r)
}

// needed names a port of the needed LIDs that is down; "": none is.
func (p *Predictor) needed(down map[*fabric.Port]bool) string {
	g := p.routes.Graph()
	for _, lid := range p.options.Needed {
		if t := g.TerminalByLID(lid); t >= 0 && down[g.Terminals()[t].Port] {
			return g.Terminals()[t].Port.Name()
		}
	}
	return ""
}

// minAgreement is the share of entries in which the tables of an engine must agree with the
// tables in force, for the subnet manager to be assumed to use it.
const minAgreement = 0.95

// maxComparedSteps is the product of LIDs and channels up to which all engines are compared:
// in larger networks, as a tree of 1,728 hosts, all take more than 10 s, and the fast ones
// under 1 s.
const maxComparedSteps = 1 << 22

// isFast reports whether an engine is compared on networks of any size.
func isFast(name string) bool { return name == "minhop" || name == "updn" || name == "ftree" }

// recognise finds the engine whose tables for the network agree with those in force in
// the most entries.
func (p *Predictor) recognise(ctx context.Context) error {
	g := p.routes.Graph()
	large := len(g.Dests())*len(g.Channels()) > maxComparedSteps
	best, engineName := 0.0, ""
	for _, e := range engines.All() {
		if e.Name == routes.FromFile || large && !isFast(e.Name) {
			continue
		}
		r, err := engines.Compute(ctx, g, e.Name, engines.Options{})
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var share float64
		if err == nil {
			share = agreement(p.routes, r)
		}
		if share <= best {
			continue
		}
		if share >= minAgreement && !p.loop { // else it is an engine with these paths that uses lanes
			v, err := verify.Tables(ctx, r, verify.Options{})
			if err != nil {
				return err
			}
			if !v.Acyclic {
				continue
			}
		}
		if best, engineName = share, e.Name; share == 1 {
			break
		}
	}
	switch {
	case best == 1:
		p.engine, p.basis = engineName, fmt.Sprintf("by %s, whose tables are those in force", engineName)
	case best >= minAgreement:
		p.engine, p.basis = engineName, fmt.Sprintf("by %s, which agrees with the tables in force in %.0f %% of the entries", engineName, 100*best)
	default:
		p.basis = fmt.Sprintf("by a repair of the tables in force, which resemble those of no engine (at most %.0f %% of the entries agree)", 100*best)
	}
	return nil
}

// agreement returns the share of the entries to CAs and routers in which two tables of one
// graph agree.
func agreement(a, b *routes.Routes) float64 {
	g := a.Graph()
	same, all := 0, 0
	for s := range g.Switches() {
		for _, d := range g.Dests() {
			if d.Out == 0 { // a switch: engines differ there
				continue
			}
			if all++; a.Entry(int32(s), d.LID) == b.Entry(int32(s), d.LID) {
				same++
			}
		}
	}
	if all == 0 {
		return 0
	}
	return float64(same) / float64(all)
}

// verifyInLanes verifies tables, with their lanes if they have a credit loop without.
func verifyInLanes(ctx context.Context, r *routes.Routes, o verify.Options, lanes AddLanes) (judged *routes.Routes, v *verify.Verdict, note string, err error) {
	if v, err = verify.Tables(ctx, r, o); err != nil || v.Acyclic || r.SL2VL != nil {
		return r, v, "", err
	}
	const unknown = "credit loops are judged as if all packets were on one virtual lane"
	if lanes == nil {
		return r, v, unknown, nil
	}
	laned := *r
	if err := lanes(ctx, &laned); ctx.Err() != nil {
		return nil, nil, "", context.Cause(ctx)
	} else if err != nil {
		return r, v, fmt.Sprintf("%s: %v", unknown, err), nil
	}
	v, err = verify.Tables(ctx, &laned, o)
	return &laned, v, "", err
}

// connects reports whether the tables of b lead from src to dst.
func (b *Baseline) connects(src, dst mad.LID) bool {
	path, err := b.routes.Trace(src, dst)
	return err == nil && path.Broken == ""
}

// addVanished adds to d the pairs of ports of CAs and routers that are not in g, or have
// another LID there.
func (b *Baseline) addVanished(g *graph.Graph, d *EffectDifference) {
	before := b.routes.Graph().Terminals()
	gone := make([]bool, len(before))
	for i := range before {
		t := &before[i]
		if !t.IsEndpoint(0) {
			continue
		}
		now := g.TerminalByLID(t.LID)
		if now < 0 {
			gone[i] = true
			continue
		}
		port := g.Terminals()[now].Port
		gone[i] = port.Node().GUID() != t.Port.Node().GUID() || port.Num() != t.Port.Num()
	}
	for i := range before {
		for j := range before {
			if i == j || !gone[i] && !gone[j] || !before[i].IsEndpoint(0) || !before[j].IsEndpoint(0) {
				continue
			}
			if b.connects(before[i].LID, before[j].LID) {
				d.Lost += int64(before[j].Count)
			}
			if gone[i] && d.Example == "" {
				d.Example = fmt.Sprintf("%s with LID %d is gone", before[i].Port.Name(), before[i].LID)
			}
		}
	}
}

package change

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/fabric/routing/graph"
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
	// Manager is what is known of its routing.
	Manager ManagerRouting
	// Needed are LIDs whose ports must keep their links: the LIDs of the subnet manager and
	// of this host.
	Needed []mad.LID
	// Lanes is called only where the tables have a credit loop on one lane. Nil: unknown.
	Lanes AddLanes
	// PKeys reads P_Keys, of hosts that lose a port. Nil: unknown, so no other port of a host keeps
	// the paths.
	PKeys PKeys
}

// Effect is a prediction: what links that go down do to the paths between the ports of CAs
// and routers. A pair is such a port and a LID of another such port.
type Effect struct {
	Links []string `json:"links"` // that go down: "leaf-2/7 - spine-1/2"
	// Managed is PredictOptions.Managed. Without a subnet manager nothing is rerouted, and
	// Lost is Through.
	Managed bool `json:"managed"`
	// Engine makes the predicted tables; "": unknown, so the tables in force are repaired.
	// Basis describes which engines were considered, in words.
	Engine string `json:"engine"`
	Basis  string `json:"basis"`
	// Through are pairs whose packets take the links: they lose packets until new tables are
	// written.
	Through int64 `json:"through"`
	// Lost are pairs that have a path now, and none by the predicted tables. Rerouted are
	// pairs that take another path by these tables. OutOfReach are pairs that have a path now,
	// and an end that the subnet manager no longer reaches.
	Lost       int64 `json:"lost"`
	Rerouted   int64 `json:"rerouted"`
	OutOfReach int64 `json:"out_of_reach,omitempty" optional:"the manager can serve all pairs"`
	// Kept are ports that hosts keep in place of others that go down: "node-1 HCA-2/1 in place of
	// node-1 HCA-1/1". Ended are the pairs of those others: they end, and are
	// neither Through nor Lost. NotKept is why other ports of a host keep nothing; "": unknown.
	Kept    []string `json:"kept,omitempty" optional:"no port that goes down has another one in its place"`
	Ended   int64    `json:"ended,omitempty" optional:"no pairs end"`
	NotKept string   `json:"not_kept,omitempty" optional:"no host has another port that does not count"`
	// LoadBefore and LoadAfter are the largest numbers of pairs on a link; where rates differ, of pairs that
	// load the fastest link as much.
	LoadBefore int64 `json:"load_before"`
	LoadAfter  int64 `json:"load_after"`
	// IdleSwitches and IdleLinks, of AllLinks between switches that stay up, carry routes now and
	// none by the predicted tables.
	IdleSwitches []string `json:"idle_switches,omitempty" optional:"no switch falls out of use"`
	IdleLinks    int      `json:"idle_links,omitempty" optional:"no link falls out of use, or that is not predicted"`
	AllLinks     int      `json:"all_links,omitempty" optional:"no link falls out of use, or that is not predicted"`
	// Split names two nodes that lose their last path to each other, whatever the tables;
	// LastPath a CA or router whose last link goes down; Needed a port that the subnet
	// manager or this host needs. "": none does.
	Split    string `json:"split"`
	LastPath string `json:"last_path"`
	Needed   string `json:"needed"`
	// CreditLoop describes a credit loop of the predicted tables; "": they have none.
	// LoopBefore reports that the tables in force have one.
	CreditLoop string   `json:"credit_loop"`
	LoopBefore bool     `json:"loop_before"`
	Notes      []string `json:"notes" max:"100"` // what was not judged
}

// PredictEffect predicts the effect of taking down the links of ports, either end of each. live are
// the tables in force.
func PredictEffect(ctx context.Context, live *routes.Routes, down []*fabric.Port, o PredictOptions) (*Effect, error) {
	p, err := NewPredictor(ctx, live, o)
	if err != nil {
		return nil, err
	}
	e, err := p.Without(ctx, down)
	if err == nil && e.Managed && len(e.Links) > 1 {
		e.Notes = append(e.Notes, "for one sweep of the subnet manager; a change takes down one link after the other, and loads may then be higher")
	}
	return e, err
}

// Refusal returns the reason why the links must not be taken down where that can be
// avoided; "": they may.
func (e *Effect) Refusal() string {
	switch {
	case e.Needed != "":
		return "the subnet manager or this host needs " + e.Needed
	case e.LastPath != "":
		return e.LastPath + " would lose its last link" + e.notKept()
	case e.Split != "":
		return e.Split
	case e.Lost > 0:
		return plural.Count(int(e.Lost), "pair", "pairs") + " would lose their path" + e.notKept()
	case e.CreditLoop != "" && !e.LoopBefore:
		return "packets could deadlock: the predicted tables have " + e.CreditLoop
	}
	return ""
}

// notKept is the end of a refusal.
func (e *Effect) notKept() string {
	if e.NotKept == "" {
		return ""
	}
	return "; no other port of the host keeps its paths: " + e.NotKept
}

// ended describes the pairs that end; "": none do.
func (e *Effect) ended() string {
	if len(e.Kept) == 0 {
		return ""
	}
	keeps := "the host keeps"
	if len(e.Kept) > 1 {
		keeps = "hosts keep"
	}
	text := fmt.Sprintf("%s end, and %s %s", plural.Count(int(e.Ended), "pair", "pairs"), keeps, strings.Join(e.Kept[:min(len(e.Kept), 3)], ", "))
	if n := len(e.Kept) - 3; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// Lines describes the effect for people: what is known first, then what is predicted.
func (e *Effect) Lines() []string {
	through := plural.Count(int(e.Through), "pair", "pairs") + " over links that go down"
	if !e.Managed {
		text := "effect: the tables route " + through + ", and no subnet manager makes new ones"
		if ended := e.ended(); ended != "" {
			text += "; " + ended
		}
		return append([]string{text}, e.notes()...)
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
	first := fmt.Sprintf("%s rerouted, %d lost", plural.Count(int(e.Rerouted), "pair", "pairs"), e.Lost)
	if e.OutOfReach > 0 {
		first += fmt.Sprintf(", %d out of reach of the subnet manager", e.OutOfReach)
	}
	if len(e.Links) > 1 {
		first = fmt.Sprintf("%d links together: %s", len(e.Links), first)
	}
	parts := []string{first}
	if ended := e.ended(); ended != "" {
		parts = append(parts, ended)
	}
	parts = append(parts, fmt.Sprintf("largest load %d before and %d after", e.LoadBefore, e.LoadAfter))
	if idle := e.idle(); idle != "" {
		parts = append(parts, idle)
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
	loads   []int64  // by channel
	now     *managed // the part that the subnet manager reaches
	models  []model  // that could have made the tables in force; none: they are repaired
	unsure  bool     // the models explain the tables in force only after losses
	basis   string   // without models: Effect.Basis
}

// NewPredictor returns the predictor for the tables in force.
func NewPredictor(ctx context.Context, live *routes.Routes, o PredictOptions) (*Predictor, error) {
	b, err := NewBaseline(ctx, live, o.Lanes)
	if err != nil {
		return nil, err
	}
	p := &Predictor{Baseline: b, options: o}
	if p.routes.Graph().Capacity().Costs() != nil {
		p.notes = append(p.notes, "rates of links differ: loads are in pairs on a link with the fastest rate")
	}
	if p.loads, err = verify.CountAllRoutes(ctx, p.routes); err != nil || !o.Managed {
		return p, err
	}
	p.now = managedPart(p.routes.Graph(), p.routes, o.Manager.LID)
	return p, p.findModels(ctx)
}

// Without predicts the effect of taking down the links of ports, either end of each.
func (p *Predictor) Without(ctx context.Context, ports []*fabric.Port) (*Effect, error) {
	e := &Effect{Managed: p.options.Managed, LoadBefore: traffic.LargestLoad(p.routes.Graph(), p.loads), LoopBefore: p.loop, Notes: slices.Clone(p.notes)}
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
	kept, err := KeepPorts(ctx, f, down, p.options.PKeys, p.lacksPaths)
	if err != nil {
		return nil, err
	}
	e.Split, e.LastPath, e.Needed, e.NotKept = CutOff(f, down, kept), isolatedNode(f, down, kept), p.needed(down), kept.Why(inOrder(down)...)
	if len(kept.By) > 0 {
		p = p.keeping(e, kept)
	}
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
	if !p.options.Managed {
		e.Lost, e.CreditLoop = d.Lost, d.CreditLoop
		e.LoadAfter, err = largestLoad(ctx, cut)
		return e, err
	}
	after := managedPart(g, cut, p.options.Manager.LID)
	if e.OutOfReach, err = p.outOfReach(ctx, after); err != nil {
		return nil, err
	}
	all, err := p.outcomes(ctx, g, after)
	if err != nil {
		return nil, err
	}
	for _, x := range all {
		if err := p.judge(ctx, e, x); err != nil {
			return nil, err
		}
	}
	worst, effect := worstOf(all)
	effect.Basis = p.basisOf(worst, effect, all)
	return &effect, nil
}

// keeping returns a predictor that ignores the pairs of kept ports, which it adds to e.
func (p *Predictor) keeping(e *Effect, kept *KeptPorts) *Predictor {
	x := *p
	x.Baseline = p.Ignoring(kept)
	all := p.routes.Graph().Terminals()
	for i := range all {
		from := &all[i]
		if q := kept.By[from.Port]; q != nil && x.ended[from.LID] {
			e.Kept = append(e.Kept, q.Name()+" in place of "+from.Port.Name())
		}
		for j := range all {
			to := &all[j]
			if i != j && (x.ended[from.LID] || x.ended[to.LID]) && from.IsEndpoint(0) && to.IsEndpoint(0) && (p.whole || p.connects(from.LID, to.LID)) {
				e.Ended += int64(to.Count)
			}
		}
	}
	return &x
}

// lacksPaths describes that a port lacks paths of another one; "": it has them.
func (p *Predictor) lacksPaths(lost, other *fabric.Port) string {
	g := p.routes.Graph()
	a, b := g.TerminalOf(lost), g.TerminalOf(other)
	if p.whole || a < 0 {
		return ""
	}
	all := g.Terminals()
	for i := range all {
		if i == a || i == b || !all[i].IsEndpoint(0) {
			continue
		}
		if b < 0 || p.connects(all[a].LID, all[i].LID) && !p.connects(all[b].LID, all[i].LID) || p.connects(all[i].LID, all[a].LID) && !p.connects(all[i].LID, all[b].LID) {
			return other.Name() + " has no path to " + all[i].Port.Name() + ", or back"
		}
	}
	return ""
}

// judge sets the effect of predicted tables; e is what does not depend on them.
func (p *Predictor) judge(ctx context.Context, e *Effect, x *outcome) error {
	x.Effect = *e
	x.Engine = x.engine
	d, err := p.comparePredicted(ctx, x.tables)
	if err != nil {
		return err
	}
	x.Lost, x.CreditLoop = d.Lost, d.CreditLoop
	paths, err := traffic.CountRerouted(ctx, x.tables, p.routes, func(port *fabric.Port) *fabric.Port { return port })
	if err != nil {
		return err
	}
	x.Rerouted = paths.Pairs - paths.Broken
	loads, err := verify.CountAllRoutes(ctx, x.tables)
	if err != nil {
		return err
	}
	x.LoadAfter = traffic.LargestLoad(x.tables.Graph(), loads)
	x.countIdle(p.routes.Graph(), p.loads, x.tables.Graph(), loads)
	return nil
}

// outOfReach counts the pairs that have a path now, and an end that the subnet manager reaches
// now, and not afterwards.
func (p *Predictor) outOfReach(ctx context.Context, after *managed) (pairs int64, err error) {
	g := p.routes.Graph()
	gone, any := make([]bool, len(g.Terminals())), false
	for i := range g.Terminals() {
		t := &g.Terminals()[i]
		if now := after.graph.TerminalByLID(t.LID); t.IsEndpoint(0) && p.now.reached[i] && (now < 0 || !after.reached[now]) {
			gone[i], any = true, true
		}
	}
	if !any {
		return 0, nil
	}
	for i := range g.Terminals() {
		from := &g.Terminals()[i]
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		for j := range g.Terminals() {
			to := &g.Terminals()[j]
			if i != j && (gone[i] || gone[j]) && from.IsEndpoint(0) && to.IsEndpoint(0) && !p.ended[from.LID] && !p.ended[to.LID] && (p.whole || p.connects(from.LID, to.LID)) {
				pairs += int64(to.Count)
			}
		}
	}
	return pairs, nil
}

// Baseline are the paths of a fabric at some time, with which later tables are compared,
// predicted or read. It is immutable.
type Baseline struct {
	routes *routes.Routes // without choices of adaptive routing
	loop   bool           // a credit loop exists
	whole  bool           // all pairs have a path
	notes  []string       // what was not judged
	lanes  AddLanes
	ended  map[mad.LID]bool // base LIDs of ports whose pairs are ignored
}

// Ignoring returns b without the pairs of ports whose hosts keep others.
func (b *Baseline) Ignoring(kept *KeptPorts) *Baseline {
	x := *b
	x.ended = map[mad.LID]bool{}
	for p := range kept.By {
		if t := b.routes.Graph().TerminalOf(p); t >= 0 {
			x.ended[b.routes.Graph().Terminals()[t].LID] = true
		}
	}
	return &x
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
	b.routes, b.loop, b.whole = judged, !v.Acyclic, v.Unreachable == 0
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

// connects reports whether the tables of b lead from src to dst, and the pair is not ignored.
func (b *Baseline) connects(src, dst mad.LID) bool {
	if b.ended[src] || b.ended[dst] {
		return false
	}
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
			if gone[i] && d.Example == "" && !b.ended[before[i].LID] {
				d.Example = fmt.Sprintf("%s with LID %d is gone", before[i].Port.Name(), before[i].LID)
			}
		}
	}
}

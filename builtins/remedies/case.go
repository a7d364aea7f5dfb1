package remedies

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/audits"
	"fabsh/builtins/changes"
	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/remedy"
	"fabsh/fabric/routing/opensm"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// newCase returns the case by which actions on the fabric of the input are judged; it was just
// swept, or read from a file. The forwarding tables are read when an action needs them.
func newCase(ctx context.Context, r *lang.Runtime, input *Input) (*remedy.Case, error) {
	p, err := newPredictors(ctx, r, input.Fabric, input.ManagerEngine)
	if err != nil {
		return nil, err
	}
	p.pkeys = map[*fabric.Port][]uint16{}
	f := input.Fabric
	c := &remedy.Case{Fabric: f, State: input.State, Manager: p.manager, Host: p.needed[0], Now: r.Clock.Now(), PKeys: p.readPKeys}
	if topology.EnvOf(r).Engine == nil && !f.HasLFTs() {
		return c, nil // the effect is unknown
	}
	c.Effect = func(ctx context.Context, ports []*fabric.Port) (refusal, cost string, err error) {
		e, err := p.predict(ctx, f, ports)
		if err != nil {
			return "", "", err
		}
		return scoped(e.Refusal(), len(ports)), costOf(e, len(ports)), nil
	}
	return c, nil
}

// costOf describes an effect, of one link or of all links of the plan so far.
func costOf(e *change.Effect, links int) string {
	text := strings.TrimPrefix(e.String(), "prediction: ")
	if _, rest, ok := strings.Cut(text, " links together: "); ok && links > 1 {
		text = rest
	}
	if links == 1 {
		return "prediction for this link alone: " + text
	}
	return fmt.Sprintf("prediction for all %d links so far: %s", links, text)
}

// scoped adds to a refusal that it is of several links.
func scoped(refusal string, links int) string {
	if refusal == "" || links == 1 {
		return refusal
	}
	return fmt.Sprintf("%s, if all %d links so far are down", refusal, links)
}

// ManagerOf returns the port of the master subnet manager, by the PortInfo of the first port
// that names it; nil: unknown.
func ManagerOf(f *fabric.Fabric) *fabric.Port {
	for i := range f.Ports() {
		if info := f.Ports()[i].Info(); info != nil && info.MasterSMLID != 0 {
			if p := f.PortByLID(info.MasterSMLID); p != nil {
				return p
			}
		}
	}
	return nil
}

// predictors predict effects. They read the tables in force when the first is needed.
type predictors struct {
	runtime *lang.Runtime
	engine  string // of the subnet manager, as the command line states it
	managed bool
	needed  []*fabric.Port // whose links must stay; some may be nil

	manager         *fabric.Port // nil: unknown
	live            *routes.Routes
	likely, minimal *change.Predictor
	// pkeys are the tables that were read, nil without an answer. Without the map no port of a host
	// keeps the paths of another: what a link that fails costs has all its pairs.
	pkeys map[*fabric.Port][]uint16
}

// newPredictors returns the predictors of effects on f, which was just swept, or read from a file.
func newPredictors(ctx context.Context, r *lang.Runtime, f *fabric.Fabric, engine string) (*predictors, error) {
	p := &predictors{runtime: r, engine: engine, manager: ManagerOf(f)}
	p.managed = p.manager != nil
	var host *fabric.Port
	if env := topology.EnvOf(r); env.Engine != nil {
		host = f.From()
		sm, err := env.SA.FindSM(ctx, f)
		if err != nil {
			return nil, err
		}
		if p.managed = sm != nil; p.managed && sm.Info != nil {
			if ports := f.PortByGUID(sm.Info.GUID); len(ports) > 0 {
				p.manager = ports[0]
			}
		}
	}
	p.needed = []*fabric.Port{host, p.manager}
	return p, nil
}

// predict predicts the effect on f. If the engine of the subnet manager is unknown, its tables
// may differ from the repaired ones, so tables of shortest paths must not have a credit loop
// either.
func (p *predictors) predict(ctx context.Context, f *fabric.Fabric, ports []*fabric.Port) (e *change.Effect, err error) {
	if p.live == nil {
		if p.live, err = audits.ReadRoutes(ctx, p.runtime, f, false); err != nil {
			return nil, err
		}
	}
	if p.likely, err = p.predictor(ctx, p.likely, ""); err != nil {
		return nil, err
	}
	e, err = p.likely.Without(ctx, ports)
	if err != nil || !p.managed || e.Engine != "" || e.Refusal() != "" {
		return e, err
	}
	if p.minimal, err = p.predictor(ctx, p.minimal, opensm.MinHop); err != nil {
		return nil, err
	}
	other, err := p.minimal.Without(ctx, ports)
	if err == nil && other.Refusal() != "" {
		return other, nil
	}
	return e, err
}

// readPKeys reads P_Key tables, each once.
func (p *predictors) readPKeys(ctx context.Context, ports []*fabric.Port) (map[*fabric.Port][]uint16, error) {
	var open []*fabric.Port
	for _, port := range ports {
		if _, known := p.pkeys[port]; !known {
			open = append(open, port)
		}
	}
	read, err := audits.ReadPKeys(ctx, p.runtime, open)
	if err != nil {
		return nil, err
	}
	for _, port := range open {
		p.pkeys[port] = read[port]
	}
	tables := map[*fabric.Port][]uint16{}
	for _, port := range ports {
		if keys := p.pkeys[port]; keys != nil {
			tables[port] = keys
		}
	}
	return tables, nil
}

// predictor returns x, or if it is nil, a new predictor for an engine of the subnet manager; "": what
// is known of its routing.
func (p *predictors) predictor(ctx context.Context, x *change.Predictor, engine string) (_ *change.Predictor, err error) {
	if x != nil {
		return x, nil
	}
	o := change.PredictOptions{Managed: p.managed}
	if p.pkeys != nil {
		o.PKeys = p.readPKeys
	}
	var sm, local mad.LID
	if p.manager != nil {
		sm = p.manager.LID()
	}
	if host := p.needed[0]; host != nil {
		local = host.LID()
	}
	if o.Manager, err = changes.ManagerRouting(p.runtime, p.engine, sm, local); err != nil {
		return nil, err
	}
	if engine != "" {
		o.Manager.Engines, o.Manager.Options = []string{engine}, nil
	}
	for _, port := range p.needed {
		if port != nil && port.LID() != 0 {
			o.Needed = append(o.Needed, port.LID())
		}
	}
	if env := topology.EnvOf(p.runtime); env.Engine != nil {
		t := change.Tables{Live: p.live}
		levels := change.Levels{Client: env.SA}
		levels.InForce(&t, env.Engine)
		o.Lanes = t.InLanes
	}
	return change.NewPredictor(ctx, p.live, o)
}

// PastType is the type of a remedy's parameter past.
var PastType = &lang.ResultType{
	Name: "remedy_past",
	Doc:  "What earlier runs decided, for remedies: def remedy(fabric, findings, *, past=None).",
	Members: []lang.ResultMember{
		{Name: "known", Doc: "links with a past: a list of remedy_link"},
		{Name: "runs", Type: "int", Doc: "how many earlier runs are known, at most 32"},
		{Name: "steps", Doc: "steps of repair that were proposed or done: a list of remedy_step"},
		{Name: "judged", Doc: "the checks of audits that were done in this run; empty with --last"},
	},
}

// LinkType is the type of the past of a link.
var LinkType = &lang.ResultType{
	Name:      "remedy_link",
	Doc:       "The past of a link that a remedy wanted to isolate.",
	Important: []string{"id", "name", "phase", "bad", "seconds"},
	Members: []lang.ResultMember{
		{Name: "id", Type: "string", Doc: "GUID and number of the port where it is disabled"},
		{Name: "name", Type: "string", Doc: "name of the link when it was last up"},
		{Name: "port", Doc: "the port where it is disabled; None if it is not in the fabric"},
		{Name: "other", Doc: "the port at the other end; None if it is not in the fabric"},
		{Name: "phase", Doc: `"isolated", "testing" (enabled for a test), "planned" (to be isolated, within the last day), "restoring" (to be enabled, within the last day), or None`},
		{Name: "seconds", Doc: "how long it has been in this phase; None without a phase"},
		{Name: "bad", Doc: "the earlier runs that proposed to isolate it: 0 is the latest"},
		{Name: "declined", Doc: "the rule for all remedies that last declined to isolate it; None if none has since it was planned"},
		{Name: "times", Type: "int", Doc: "how often it was isolated"},
		{Name: "since_isolated", Doc: "seconds since it was last isolated; None if it was not"},
		{Name: "since_restored", Doc: "seconds since it last passed its test; None if it did not"},
	},
}

// StepType is the type of a step of repair.
var StepType = &lang.ResultType{
	Name: "remedy_step",
	Doc:  "A step of repair of a link that a ticket proposed, or that was done (fabsh remedy log add).",
	Members: []lang.ResultMember{
		{Name: "name", Type: "string", Doc: "name of the link when the step was last proposed or done"},
		{Name: "port", Doc: "the port at an end; None if it is not in the fabric"},
		{Name: "other", Doc: "the port at the other end; None if it is not in the fabric"},
		{Name: "step", Type: "string", Doc: stepWords},
		{Name: "since_proposed", Doc: "seconds since it was last proposed; None if it was not"},
		{Name: "since_done", Doc: "seconds since it was last done; None if it was not"},
	},
}

// stepWords lists the steps for help.
const stepWords = `"reset", "reseat", "clean", "swap", "replace" or "support"`

// pastOf returns the decisions of earlier runs as a value for remedies.
func pastOf(input *Input, now time.Time) starlark.Value {
	s := input.State
	runs := slices.DeleteFunc(slices.Clone(s.Runs), func(t time.Time) bool { return t.Equal(input.Of) }) // this one
	slices.Reverse(runs)
	links := lang.List(s.Ports, func(p *remedy.Past) starlark.Value {
		var bad []starlark.Value
		for i, t := range runs {
			if slices.ContainsFunc(p.Bad, t.Equal) {
				bad = append(bad, starlark.MakeInt(i))
			}
		}
		phase, at := phaseOf(p, input.Fabric, now)
		return lang.NewResult(LinkType, starlark.String(p.Port.String()), starlark.String(p.Name), portValue(p.Port, input.Fabric), portValue(p.Peer, input.Fabric),
			lang.TextOrNone(phase), secondsSince(at, now), starlark.NewList(bad), lang.TextOrNone(p.Declined), starlark.MakeInt(p.Times), secondsSince(p.Last, now), secondsSince(p.Restored, now))
	})
	steps := lang.List(s.Steps, func(x *remedy.PastStep) starlark.Value {
		return lang.NewResult(StepType, starlark.String(x.Name), portValue(x.Port, input.Fabric), portValue(x.Peer, input.Fabric), starlark.String(x.Step), secondsSince(x.Proposed, now), secondsSince(x.Done, now))
	})
	return lang.NewResult(PastType, links, starlark.MakeInt(len(runs)), steps, lang.Texts(input.Judged))
}

// phaseOf returns the phase of a link, and when it began.
func phaseOf(p *remedy.Past, f *fabric.Fabric, now time.Time) (phase string, at time.Time) {
	switch {
	case remedy.Pending(p.Restoring, now):
		return "restoring", p.Restoring
	case !p.Isolated.IsZero():
		return "isolated", p.Isolated
	case remedy.Pending(p.Planned, now):
		return "planned", p.Planned
	case !p.Testing.IsZero():
		return "testing", p.Testing
	}
	return "", time.Time{}
}

// portValue returns the port at a place in f, None if f does not have it.
func portValue(p remedy.Place, f *fabric.Fabric) starlark.Value {
	if port := p.In(f); port != nil {
		return topology.PortOf(port)
	}
	return starlark.None
}

// secondsSince returns the seconds from a time until now, None for no time.
func secondsSince(t, now time.Time) starlark.Value {
	if t.IsZero() {
		return starlark.None
	}
	return starlark.Float(max(0, now.Sub(t).Seconds()))
}

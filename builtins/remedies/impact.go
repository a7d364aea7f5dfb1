package remedies

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/changes"
	"fabsh/builtins/lang"
	"fabsh/builtins/routing"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/hosts"
	"fabsh/fabric/jobs"
	"fabsh/fabric/plural"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
)

// ImpactType is the type of the result of fabric.impact().
var ImpactType = &lang.ResultType{
	Name: "impact",
	Doc:  "What a fabric loses without some links, switches or hosts. A host is the first word of the name of an adapter.",
	Members: []lang.ResultMember{
		{Name: "targets", Type: "list of string", Doc: "names of the nodes and ports that are gone"},
		{Name: "effect", Type: "link_effect", Doc: "pairs without a path and pairs that are rerouted, loads, credit loops, switches out of use"},
		{Name: "cut_off", Type: "list of string", Doc: "other nodes that lose their last link"},
		{Name: "hosts_lost", Type: "list of string", Doc: "hosts that lose their last link, or are gone"},
		{Name: "hosts_degraded", Type: "list of string", Doc: "hosts that lose a link and keep another one"},
		{Name: "jobs", Type: "list of job_impact", Doc: "jobs with such hosts, or with traffic over the links; None: jobs are unknown"},
	},
}

// JobImpactType is the type of the elements of impact.jobs.
var JobImpactType = &lang.ResultType{
	Name: "job_impact",
	Doc:  "What a job loses without some links, switches or hosts.",
	Members: []lang.ResultMember{
		{Name: "id", Type: "string", Doc: "the job's id"},
		{Name: "name", Type: "string", Doc: "its name; None if unknown"},
		{Name: "hosts_lost", Type: "list of string", Doc: "its hosts that lose their last link"},
		{Name: "hosts_degraded", Type: "list of string", Doc: "its hosts that lose a link and keep another one"},
		{Name: "traffic", Type: "float", Doc: "its most traffic on a link between switches that goes down, if all its hosts send to each other; 1 is the bandwidth of a port of a host, and per capacity where rates differ, as of job_traffic()"},
	},
}

// ImpactMethod is fabric.impact().
var ImpactMethod = lang.Builtin{
	Name:    "impact",
	Returns: "impact",
	Params: []lang.Param{
		{Name: "target", Kind: topology.KindTarget, Doc: `a node, or a port for its link; also by name, GUID or LID, or a link such as "leaf-1/7 - spine-1/2"; or a list of them, which go down together`},
		{Name: "jobs", Kind: lang.KindAny, Default: "None", Keyword: true, Doc: "the jobs that run: a list of job, from load_jobs()"},
		{Name: "engine", Kind: lang.KindText, Default: `""`, Keyword: true, Doc: "routing engine of the subnet manager, as in its option routing_engine (default: what the tables show)"},
	},
	Doc: `Predicts the effect of links, switches or hosts that are gone: an impact. Nothing is changed.
It reads the forwarding tables of all switches, or uses those of the file; it is an error if they are unknown. With a subnet manager, new tables are predicted, as for plan(); without, the tables stay.`,
	Example: `
> i = discover().impact("leaf-1")
> i.effect.lost, i.cut_off, i.hosts_lost[:2]
(236, ["node-0001 HCA-1", "node-0002 HCA-1", "node-0003 HCA-1", "node-0004 HCA-1"], ["node-0001", "node-0002"])
> discover().impact("leaf-1/5 - spine-1/1").effect.lost
0
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Target, Jobs starlark.Value
		Engine       string
	}) (starlark.Value, error) {
		f := c.Recv.(*topology.Fabric).Fabric
		im := &impact{f: f, down: map[*fabric.Port]bool{}, gone: map[*fabric.Node]bool{}}
		targets := []starlark.Value{a.Target}
		if list, ok := a.Target.(starlark.Iterable); ok {
			targets = lang.Collect(list)
		}
		for _, v := range targets {
			if err := im.add(v); err != nil {
				return nil, lang.ParamError("target", "%w", err)
			}
		}
		if len(im.down) == 0 {
			return nil, lang.ParamError("target", "%s: no link; a target needs at least one", strings.Join(im.names, ", "))
		}
		list, err := jobsOf(a.Jobs)
		if err != nil {
			return nil, lang.ParamError("jobs", "%w", err)
		}
		if env := topology.EnvOf(c.Runtime()); env.Engine == nil && !f.HasLFTs() {
			return nil, lang.Errorf("the file has no forwarding tables, so the impact is unknown; fabsh snapshot stores them")
		}
		var v *Impact
		err = c.Block(func(ctx context.Context) error {
			c.Runtime().Progress("predicting the impact")
			defer c.Runtime().Progress("")
			p, err := newPredictors(ctx, c.Runtime(), f, a.Engine)
			if err != nil {
				return err
			}
			v, err = im.value(ctx, p, list)
			return err
		})
		if err != nil {
			return nil, lang.Errorf("%w", err)
		}
		return v, nil
	}),
}

// jobsOf returns the jobs of a parameter; nil: they are unknown.
func jobsOf(v starlark.Value) ([]jobs.Job, error) {
	if v == nil || v == starlark.None {
		return nil, nil
	}
	list, err := routing.KindJobs.Convert(v)
	if err != nil {
		return nil, err
	}
	return list.([]jobs.Job), nil
}

// impact is what goes down in a fabric.
type impact struct {
	f     *fabric.Fabric
	names []string
	ports []*fabric.Port        // one of each link
	down  map[*fabric.Port]bool // both ends
	gone  map[*fabric.Node]bool
}

// add adds a target.
func (im *impact) add(v starlark.Value) error {
	n, p, err := topology.FindPart(im.f, v)
	if err != nil {
		return err
	}
	if p != nil {
		im.names = append(im.names, p.Name())
		im.cut(p)
		return nil
	}
	im.names, im.gone[n] = append(im.names, n.Name()), true
	for p := range n.Ports() {
		im.cut(p)
	}
	return nil
}

// cut takes the link of p down, if it has one.
func (im *impact) cut(p *fabric.Port) {
	if peer := p.Peer(); peer != nil && !im.down[p] {
		im.ports = append(im.ports, p)
		im.down[p], im.down[peer] = true, true
	}
}

// Impacts predicts the effects of different parts of a fabric that are gone, on tables that were read
// before: it sends nothing if the session of rt has no live fabric. One prediction runs at a time.
type Impacts struct{ p *predictors }

// NewImpacts returns the predictions on the tables live.
func NewImpacts(ctx context.Context, rt *lang.Runtime, live *routes.Routes) (*Impacts, error) {
	p, err := newPredictors(ctx, rt, live.Graph().Fabric(), "")
	if err != nil {
		return nil, err
	}
	p.live = live
	return &Impacts{p}, nil
}

// Without predicts the effect of targets that are gone: nodes, or ports for their links, by name, GUID or
// LID, or links such as "leaf-1/7 - spine-1/2". The jobs that run are unknown.
func (x *Impacts) Without(ctx context.Context, targets ...string) (*Impact, error) {
	im := &impact{f: x.p.live.Graph().Fabric(), down: map[*fabric.Port]bool{}, gone: map[*fabric.Node]bool{}}
	for _, t := range targets {
		if err := im.add(starlark.String(t)); err != nil {
			return nil, &TargetError{err}
		}
	}
	if len(im.down) == 0 {
		return nil, &TargetError{fmt.Errorf("%s: no link; a target needs at least one", strings.Join(im.names, ", "))}
	}
	return im.value(ctx, x.p, nil)
}

// TargetError reports that the fabric does not have a target.
type TargetError struct{ Err error }

func (e *TargetError) Error() string { return e.Err.Error() }
func (e *TargetError) Unwrap() error { return e.Err }

// value predicts the effect.
func (im *impact) value(ctx context.Context, p *predictors, list []jobs.Job) (*Impact, error) {
	effect, err := p.predict(ctx, im.f, im.ports)
	if err != nil {
		return nil, err
	}
	lost, degraded := im.hosts()
	v := im.wrap(effect, lost, degraded, nil, nil)
	if list == nil {
		return v, nil
	}
	t, err := jobs.Measure(ctx, p.live, list, jobs.AllToAll, 0)
	if err != nil {
		return nil, err
	}
	return v.With(p.live.Graph(), list, t), nil
}

// wrap returns the value. list nil: the jobs are unknown.
func (im *impact) wrap(effect *change.Effect, lost, degraded []string, list []jobs.Job, concerned []JobImpact) *Impact {
	values := lang.List(concerned, func(j JobImpact) starlark.Value {
		return lang.NewResult(JobImpactType, starlark.String(j.ID), lang.TextOrNone(j.Name), lang.Texts(j.HostsLost), lang.Texts(j.HostsDegraded), starlark.Float(j.Traffic))
	})
	return &Impact{
		Result: lang.NewResult(ImpactType, lang.Texts(im.names), changes.EffectValue(effect), lang.Texts(im.cutOff()), lang.Texts(lost), lang.Texts(degraded), lang.OrNone(list != nil, values)),
		impact: im, Effect: effect, HostsLost: lost, HostsDegraded: degraded, known: list != nil, concerned: concerned,
	}
}

// With returns the impact with the jobs that run. t is their traffic on the tables of the prediction, of which
// g is the graph.
func (v *Impact) With(g *graph.Graph, list []jobs.Job, t *jobs.Traffic) *Impact {
	if list == nil {
		list = []jobs.Job{} // known: none runs
	}
	return v.wrap(v.Effect, v.HostsLost, v.HostsDegraded, list, v.jobs(g, list, t, v.HostsLost, v.HostsDegraded))
}

// Impact is the value `impact`.
type Impact struct {
	*lang.Result
	*impact
	Effect                   *change.Effect
	HostsLost, HostsDegraded []string
	known                    bool // the jobs are known
	concerned                []JobImpact
}

// Targets are the names of the nodes and ports that are gone.
func (v *Impact) Targets() []string { return v.names }

// CutOff are the names of other nodes that lose their last link.
func (v *Impact) CutOff() []string { return v.cutOff() }

// Jobs are the jobs that are concerned, in the order of the scheduler.
func (v *Impact) Jobs() []JobImpact { return v.concerned }

// JobImpact is a job that is concerned.
type JobImpact struct {
	jobs.Job
	HostsLost, HostsDegraded []string // of its hosts
	Traffic                  float64  // its most on a link between switches that goes down; 1: the bandwidth of a port of a host, per capacity
}

// Display returns the impact for people: figures, then the effect in words.
func (v *Impact) Display() string {
	var facts []lang.Fact
	add := func(name string, n int64, detail string) {
		text := strconv.FormatInt(n, 10)
		if detail != "" {
			text += ": " + detail
		}
		facts = append(facts, lang.Fact{Name: name, Value: starlark.String(text)})
	}
	e, cutOff := v.Effect, v.cutOff()
	add("links that go down", int64(len(e.Links)), someOf(e.Links))
	add("pairs through them", e.Through, "")
	add("pairs lost", e.Lost, "")
	add("pairs rerouted", e.Rerouted, "")
	add("pairs out of reach of the subnet manager", e.OutOfReach, "")
	facts = append(facts, lang.Fact{Name: "largest load", Value: starlark.String(fmt.Sprintf("%d pairs on a link; %d before", e.LoadAfter, e.LoadBefore))})
	if e.CreditLoop != "" {
		facts = append(facts, lang.Fact{Name: "credit loop", Value: starlark.String(e.CreditLoop)})
	}
	idle := slices.DeleteFunc(slices.Clone(e.IdleSwitches), func(name string) bool { return slices.Contains(v.names, name) })
	add("other switches out of use", int64(len(idle)), someOf(idle))
	add("links out of use", int64(e.IdleLinks), "")
	add("other nodes cut off", int64(len(cutOff)), someOf(cutOff))
	add("hosts lost", int64(len(v.HostsLost)), hosts.Fold(v.HostsLost))
	add("hosts degraded", int64(len(v.HostsDegraded)), hosts.Fold(v.HostsDegraded))
	if v.known {
		add("jobs concerned", int64(len(v.concerned)), "")
		for _, j := range v.concerned {
			facts = append(facts, lang.Fact{Name: "job " + lang.OneLine(j.ID), Value: starlark.String(fmt.Sprintf("%s lost, %d degraded; traffic %.3g on a link that goes down", plural.Count(len(j.HostsLost), "host", "hosts"), len(j.HostsDegraded), j.Traffic))})
		}
	} else {
		facts = append(facts, lang.Fact{Name: "jobs concerned", Value: starlark.String("not judged: no jobs given")})
	}
	if reason := e.Refusal(); reason != "" && len(v.gone) == 0 { // a node that is gone always loses its paths
		facts = append(facts, lang.Fact{Name: "reason to keep", Value: starlark.String(reason)})
	}
	text := "without " + lang.OneLine(someOf(v.names)) + ":\n" + lang.Aligned(facts)
	for _, line := range e.Lines() {
		text += lang.Harmless(line) + "\n"
	}
	return text
}

// someOf returns names, at most four.
func someOf(names []string) string {
	if len(names) > 4 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:4], ", "), len(names)-4)
	}
	return strings.Join(names, ", ")
}

// links reports whether a node has a link that stays up, and whether it has one that goes down.
func (im *impact) links(n *fabric.Node) (keeps, loses bool) {
	for p := range n.Ports() {
		keeps = keeps || p.Peer() != nil && !im.down[p]
		loses = loses || im.down[p]
	}
	return keeps, loses
}

// cutOff returns the names of nodes that lose their last link.
func (im *impact) cutOff() (names []string) {
	for i := range im.f.Nodes() {
		n := &im.f.Nodes()[i]
		if keeps, loses := im.links(n); loses && !keeps && !im.gone[n] {
			names = append(names, n.Name())
		}
	}
	return names
}

// hosts returns the names of the hosts that lose their last link, and of those that keep another.
func (im *impact) hosts() (lost, degraded []string) {
	type state struct{ keeps, loses bool }
	all := map[string]state{}
	for i := range im.f.Nodes() {
		n := &im.f.Nodes()[i]
		host, ok := fabric.HostName(n.Name())
		if n.IsSwitch() || !ok {
			continue
		}
		keeps, loses := im.links(n)
		s := all[host]
		all[host] = state{s.keeps || keeps, s.loses || loses}
	}
	for name, s := range all {
		switch {
		case s.loses && s.keeps:
			degraded = append(degraded, name)
		case s.loses:
			lost = append(lost, name)
		}
	}
	slices.SortFunc(lost, fabric.CompareNames)
	slices.SortFunc(degraded, fabric.CompareNames)
	return lost, degraded
}

// jobs returns the jobs that are concerned.
func (im *impact) jobs(g *graph.Graph, list []jobs.Job, t *jobs.Traffic, lost, degraded []string) (concerned []JobImpact) {
	isLost, isDegraded := setOf(lost), setOf(degraded)
	for i, j := range t.Jobs {
		x := JobImpact{Job: list[i], HostsLost: common(j.Hosts, isLost), HostsDegraded: common(j.Hosts, isDegraded)}
		for _, l := range j.Loads {
			if im.down[g.ChannelPort(int(l.Channel))] {
				x.Traffic = max(x.Traffic, g.Capacity().Load(l.Channel, l.Traffic))
			}
		}
		if x.Traffic > 0 || len(x.HostsLost)+len(x.HostsDegraded) > 0 {
			concerned = append(concerned, x)
		}
	}
	return concerned
}

func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, x := range names {
		set[x] = true
	}
	return set
}

// common returns the names that are in a set.
func common(names []string, set map[string]bool) (both []string) {
	for _, x := range names {
		if set[x] {
			both = append(both, x)
		}
	}
	return both
}

package engines

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// ComputeChain computes the tables of a chain: each step routes its topology, in the order of
// their ids, and what steps have in common is left as the last of them makes it. So a
// packet that comes into the topology of a step stays on that step's paths. The first
// step routes the whole fabric, as OpenSM wants it, and all LIDs of a port; others the
// one that their path-bit says.
//
// A step whose engine does not apply is made up for by the step that falls back to it;
// without one that is the error, a *routing.Precondition.
func ComputeChain(ctx context.Context, g *graph.Graph, p *ChainPolicy, open format.Opener) (*routes.Routes, error) {
	switch {
	case len(p.Steps) == 0:
		return nil, errors.New("chain: no unicast-step")
	case p.Steps[0].Topology != 0:
		return nil, fmt.Errorf("%s: the first step must route the whole fabric: topology: 0", p.Steps[0].at)
	}
	x := &chain{g: g, policy: p, open: open, groups: newGroups(ctx, g.Fabric(), p), routes: routes.New(g, 0)}
	x.routes.Engine = "chain"
	for i := range p.Steps {
		s := &p.Steps[i]
		if s.Fallback != 0 {
			x.checkFallback(s)
			continue
		}
		err := x.run(ctx, s)
		for err != nil {
			var not *Precondition
			if !errors.As(err, &not) {
				return nil, fmt.Errorf("%s: step %d: %w", s.at, s.ID, err)
			}
			next := slices.IndexFunc(p.Steps, func(o chainStep) bool { return o.Fallback == s.ID && x.tried[o.ID] == nil })
			if next < 0 {
				return nil, fmt.Errorf("%s: step %d: %w", s.at, s.ID, err)
			}
			f := &p.Steps[next]
			x.note("step %d: %v; step %d takes its place", s.ID, err, f.ID)
			if x.tried == nil {
				x.tried = map[int]error{}
			}
			x.tried[f.ID] = err
			err = x.run(ctx, f)
		}
	}
	x.routes.Notes = append(x.routes.Notes, x.groups.notes...)
	return x.routes, nil
}

// chain is the state of a Compute.
type chain struct {
	g      *graph.Graph
	policy *ChainPolicy
	open   format.Opener
	groups *groups
	routes *routes.Routes
	done   bool          // the first step
	tried  map[int]error // steps that took the place of others, by id
}

func (x *chain) note(format string, args ...any) {
	x.routes.Notes = append(x.routes.Notes, "chain: "+fmt.Sprintf(format, args...))
}

// checkFallback notes a step that never takes the place of another.
func (x *chain) checkFallback(s *chainStep) {
	i := slices.IndexFunc(x.policy.Steps, func(o chainStep) bool { return o.ID == s.Fallback })
	switch {
	case i < 0:
		x.note("step %d is left out: its fallback, step %d, does not exist", s.ID, s.Fallback)
	case x.policy.Steps[i].Fallback != 0:
		x.note("step %d is left out: its fallback, step %d, is itself a fallback", s.ID, s.Fallback)
	}
}

// run routes the topology of a step.
func (x *chain) run(ctx context.Context, s *chainStep) error {
	o, err := x.options(s)
	if err != nil {
		return err
	}
	if s.Topology == 0 {
		r, err := computeChain(ctx, x.g, s, o)
		if err != nil {
			return err
		}
		x.take(r, s)
		return nil
	}
	i := slices.IndexFunc(x.policy.Topologies, func(t chainTopology) bool { return t.ID == s.Topology })
	if i < 0 {
		return fmt.Errorf("unknown topology %d", s.Topology)
	}
	t := &x.policy.Topologies[i]
	switches, err := x.groups.of(t.Switches)
	if err != nil {
		return fmt.Errorf("%s: sw-grp: %w", t.at, err)
	}
	cas, err := x.groups.of(t.CAs)
	if err != nil {
		return fmt.Errorf("%s: hca-grp: %w", t.at, err)
	}
	part, err := x.g.Part(func(p *fabric.Port) bool { return used(p, switches, cas) })
	if err != nil {
		return err
	}
	r, err := computeChain(ctx, part, s, o)
	if err != nil {
		return err
	}
	x.take(r, s)
	return nil
}

// used reports whether a topology uses the link of port p, for p's side.
func used(p *fabric.Port, switches, cas members) bool {
	q := p.Peer()
	switch {
	case q == nil:
		return false
	case !p.Node().IsSwitch():
		return cas[p.ID()]
	case q.Node().IsSwitch():
		return switches[p.ID()]
	}
	return switches[p.Node().Port(0).ID()]
}

// computeChain is routing.Compute of an engine whose paths need no lanes: the steps of a chain
// have one service level.
func computeChain(ctx context.Context, g *graph.Graph, s *chainStep, o Options) (*routes.Routes, error) {
	r, err := Compute(ctx, g, s.Engine, o)
	if err == nil && (r.SL != nil || r.SL2VL != nil) {
		err = fmt.Errorf("%s gives paths service levels, which steps of a chain cannot have; use an engine that needs one lane", s.Engine)
	}
	return r, err
}

// take copies the entries of r to the LIDs of the step. Switches that are not in its
// topology have none in r.
func (x *chain) take(r *routes.Routes, s *chainStep) {
	if s.PathBit > 0 && !slices.ContainsFunc(x.g.Terminals(), func(t graph.Terminal) bool { return t.Count > s.PathBit }) {
		x.note("step %d routes nothing: no port has a LID for path-bit %d (LMC)", s.ID, s.PathBit)
	}
	var lids []mad.LID
	for _, t := range x.g.Terminals() {
		for i := range t.Count {
			if !x.done || i == s.PathBit || t.Out == 0 {
				lids = append(lids, t.LID+mad.LID(i))
			}
		}
	}
	for at := range x.g.Switches() {
		from, to := r.Row(at), x.routes.EditRow(at)
		for _, lid := range lids {
			if p := from.Port(lid); p != routes.NoPort {
				to[lid] = p
			}
		}
	}
	for _, note := range r.Notes {
		x.note("step %d: %s", s.ID, note)
	}
	x.done = true
}

// chainRootsOption is the one option of a step's own file that is supported.
const chainRootsOption = "root_guid_file"

// options are those of a step: of its config file, the roots.
func (x *chain) options(s *chainStep) (o Options, err error) {
	if s.Config == "" {
		return o, nil
	}
	in, err := x.open(s.Config)
	if err != nil {
		return o, err
	}
	defer in.Close()
	roots := ""
	var others []string
	lines := bufio.NewScanner(io.LimitReader(in, 1<<20))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) < 2 || strings.HasPrefix(fields[0], "#") || fields[1] == "(null)":
		case fields[0] == chainRootsOption:
			roots = fields[1]
		case !slices.Contains(others, fabric.Clip(fields[0])) && len(others) < 10:
			others = append(others, fabric.Clip(fields[0]))
		}
	}
	if lines.Err() != nil {
		return o, fmt.Errorf("%s: %w", s.Config, lines.Err())
	}
	if len(others) > 0 {
		x.note("step %d: %s: only %s is supported, not %s", s.ID, s.Config, chainRootsOption, strings.Join(others, ", "))
	}
	if roots == "" {
		return o, nil
	}
	file, err := x.open(roots)
	if err != nil {
		return o, err
	}
	defer file.Close()
	guids, err := format.ReadGUIDs(file, roots)
	if err != nil {
		return o, err
	}
	for _, guid := range guids {
		if at := x.g.SwitchByGUID(guid); at >= 0 {
			o.Roots = append(o.Roots, at)
		}
	}
	if len(o.Roots) == 0 {
		return o, fmt.Errorf("%s: none of its GUIDs is a switch of the fabric", roots)
	}
	return o, nil
}

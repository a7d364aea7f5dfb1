package engines

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// ChainPolicy is the content of the three files of a routing chain: pgrp_policy_file,
// topo_policy_file and rch_policy_file. A chain routes parts of a fabric by different
// engines, one after the other, as the routing chains of NVIDIA's OpenSM do: groups of
// ports, topologies of these, and steps that each route one.
//
// Sources: NVIDIA UFM Enterprise User Manual, appendix Routing Chains; routing-chains.txt
// and port-groups.txt of MLNX_OFED's opensm.
type ChainPolicy struct {
	Groups     []portGroup
	Topologies []chainTopology
	Steps      []chainStep // by ID
}

// portGroup is a port-group: its name, and the rules for which ports are in it.
type portGroup struct {
	Name  string
	Rules []portRule
	at    string // in the file
}

// portRule is one rule of a group, such as "port-guid" and its list.
type portRule struct{ Kind, Value string }

// chainTopology is a part of the fabric: the groups of its switches and of its CAs.
type chainTopology struct {
	ID            int
	Switches, CAs string
	at            string
}

// chainStep routes a topology by an engine.
type chainStep struct {
	ID       int
	Engine   string
	Topology int    // 0: all of the fabric
	Config   string // a file of options of its own
	Fallback int    // the step that must have failed; 0: no fallback
	PathBit  int    // which LID of each port it routes (LMC)
	at       string
}

// Read adds the content of a file, whichever of the three it is.
func (p *ChainPolicy) Read(r io.Reader, name string) error {
	parts, err := readParagraphs(r, name)
	if err != nil {
		return err
	}
	for _, x := range parts {
		switch x.kind {
		case "port-group":
			err = p.addGroup(&x)
		case "topology":
			err = p.addTopology(&x)
		default:
			err = p.addStep(&x)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", x.at, err)
		}
	}
	slices.SortStableFunc(p.Steps, func(a, b chainStep) int { return a.ID - b.ID })
	return nil
}

// ComputeChain computes the tables of a chain: each step routes its topology, in the order of
// their ids; entries that several steps set stay as the last of them sets them. So a
// packet that comes into the topology of a step stays on that step's paths. The first
// step routes the whole fabric, as OpenSM requires, and all LIDs of a port; the others
// route the LID that their path-bit selects.
//
// A step whose engine does not apply is replaced by the step that falls back to it; without
// such a step the error is a *Precondition.
func ComputeChain(ctx context.Context, g *graph.Graph, p *ChainPolicy, open format.Opener) (*routes.Routes, error) {
	switch {
	case len(p.Steps) == 0:
		return nil, errors.New("chain: no unicast-step")
	case p.Steps[0].Topology != 0:
		return nil, fmt.Errorf("%s: the first step must route the whole fabric: topology: 0", p.Steps[0].at)
	}
	x := &chain{g: g, policy: p, open: open, groups: newPortGroups(ctx, g.Fabric(), p), routes: routes.New(g, 0)}
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

// chain is the state of ComputeChain.
type chain struct {
	g      *graph.Graph
	policy *ChainPolicy
	open   format.Opener
	groups *portGroups
	routes *routes.Routes
	done   bool          // the first step
	tried  map[int]error // by id of a step that replaced another: why that did not apply
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
		r, err := computeStep(ctx, x.g, s, o)
		if err != nil {
			return err
		}
		x.copyEntries(r, s)
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
	part, err := x.g.Part(func(p *fabric.Port) bool { return usesLink(p, switches, cas) })
	if err != nil {
		return err
	}
	r, err := computeStep(ctx, part, s, o)
	if err != nil {
		return err
	}
	x.copyEntries(r, s)
	return nil
}

// usesLink reports whether a topology uses the link of port p, for p's side.
func usesLink(p *fabric.Port, switches, cas groupMembers) bool {
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

// computeStep is Compute for a step, whose paths must need no lanes: the steps of a chain have
// one service level.
func computeStep(ctx context.Context, g *graph.Graph, s *chainStep, o Options) (*routes.Routes, error) {
	r, err := Compute(ctx, g, s.Engine, o)
	if err == nil && (r.SL != nil || r.SL2VL != nil) {
		err = fmt.Errorf("%s gives paths service levels, which steps of a chain cannot have; use an engine that needs one lane", s.Engine)
	}
	return r, err
}

// copyEntries copies the entries of r to the LIDs of the step. Switches that are not in its
// topology have none in r.
func (x *chain) copyEntries(r *routes.Routes, s *chainStep) {
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

// chainRootsOption is the only supported option of a step's own file.
const chainRootsOption = "root_guid_file"

// options are the options of a step: the roots of its config file.
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

// Bounds of a file.
const (
	maxChainFile  = 64 << 20 // bytes
	maxParagraphs = 4096     // groups, topologies, steps
	maxQualifiers = 16       // qualifiers of one
)

// ruleKinds are the qualifiers that define the members of a group.
var ruleKinds = []string{"port-guid", "port-guid-range", "port-name", "port-regexp", "union-rule", "subtract-rule", "obj_list"}

// qualifiers are the qualifiers of each kind of paragraph.
var qualifiers = map[string][]string{
	"port-group":   append([]string{"name", "use"}, ruleKinds...),
	"topology":     {"id", "sw-grp", "hca-grp"},
	"unicast-step": {"id", "engine", "use", "config", "topology", "fallback-to", "path-bit"},
}

// paragraph is a paragraph of a file.
type paragraph struct {
	kind   string
	values []portRule // qualifiers, in order
	at     string     // file and line
}

// readParagraphs reads the paragraphs. A line without a qualifier continues the line before.
func readParagraphs(r io.Reader, name string) (parts []paragraph, err error) {
	limited := &io.LimitedReader{R: r, N: maxChainFile + 1}
	lines := bufio.NewScanner(limited)
	lines.Buffer(nil, 1<<20)
	var in *paragraph
	n := 0
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%s:%d: "+format, append([]any{name, n}, args...)...)
	}
	for lines.Scan() {
		n++
		line, _, _ := strings.Cut(lines.Text(), "#")
		line = strings.TrimSpace(line)
		key, value, isValue := strings.Cut(line, ":")
		switch key = strings.TrimSpace(key); {
		case line == "":
		case in == nil && qualifiers[line] != nil:
			if len(parts) == maxParagraphs {
				return nil, fail("expected at most %d paragraphs", maxParagraphs)
			}
			in = &paragraph{kind: line, at: fmt.Sprintf("%s:%d", name, n)}
		case in == nil && (line == "port-groups" || line == "end-port-groups"): // of a file that has more
		case in == nil:
			return nil, fail("expected port-group, topology or unicast-step, not %q", fabric.Clip(line))
		case line == "end-"+in.kind:
			parts = append(parts, *in)
			in = nil
		case isValue && slices.Contains(qualifiers[in.kind], key):
			if len(in.values) == maxQualifiers {
				return nil, fail("expected at most %d lines in a %s", maxQualifiers, in.kind)
			}
			in.values = append(in.values, portRule{key, strings.TrimSpace(value)})
		case len(in.values) > 0 && in.values[len(in.values)-1].Kind == "obj_list":
			last := &in.values[len(in.values)-1]
			last.Value += "\n" + line
		default:
			return nil, fail("expected end-%s or one of %s, not %q", in.kind, strings.Join(qualifiers[in.kind], ", "), fabric.Clip(line))
		}
	}
	switch {
	case lines.Err() != nil:
		n++
		if errors.Is(lines.Err(), bufio.ErrTooLong) {
			return nil, fail("the line is longer than %d bytes", 1<<20)
		}
		return nil, fmt.Errorf("%s: %w", name, lines.Err())
	case limited.N == 0:
		return nil, fmt.Errorf("%s: it is larger than %d bytes", name, maxChainFile)
	case in != nil:
		return nil, fmt.Errorf("%s: expected end-%s before the end of the file", in.at, in.kind)
	}
	return parts, nil
}

// value is the value of a qualifier, which may occur once.
func (x *paragraph) value(key string) (value string, given bool, err error) {
	for _, v := range x.values {
		switch {
		case v.Kind != key:
		case given:
			return "", true, fmt.Errorf("%s: %s is given twice", x.kind, key)
		default:
			value, given = v.Value, true
		}
	}
	return value, given, nil
}

// must is value, of a qualifier that must be there.
func (x *paragraph) must(key string) (string, error) {
	value, _, err := x.value(key)
	if err == nil && value == "" {
		err = fmt.Errorf("%s: expected a line %s: with a value", x.kind, key)
	}
	return value, err
}

// number is the value of a qualifier from least to most; usual where it is not there.
func (x *paragraph) number(key string, usual, least, most int) (int, error) {
	value, given, err := x.value(key)
	if !given || err != nil {
		return usual, err
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%s: expected a number from %d to %d behind %s:, not %q", x.kind, least, most, key, fabric.Clip(value))
	}
	return n, nil
}

func (p *ChainPolicy) addGroup(x *paragraph) error {
	name, err := x.must("name")
	switch {
	case err != nil:
		return err
	case slices.Contains(predefinedGroups, name):
		return fmt.Errorf("port-group: %s is predefined and cannot be defined again", name)
	case slices.ContainsFunc(p.Groups, func(g portGroup) bool { return g.Name == name }):
		return fmt.Errorf("port-group: two have the name %q", fabric.Clip(name))
	}
	g := portGroup{Name: name, at: x.at}
	for _, v := range x.values {
		if slices.Contains(ruleKinds, v.Kind) {
			g.Rules = append(g.Rules, v)
		}
	}
	p.Groups = append(p.Groups, g)
	return nil
}

const maxID = 1<<31 - 1

func (p *ChainPolicy) addTopology(x *paragraph) (err error) {
	t := chainTopology{at: x.at}
	if t.ID, err = x.number("id", 0, 1, maxID); err != nil {
		return err
	}
	if t.ID == 0 {
		return errors.New("topology: expected a line id: with a number from 1")
	}
	if t.Switches, err = x.must("sw-grp"); err != nil {
		return err
	}
	if t.CAs, err = x.must("hca-grp"); err != nil {
		return err
	}
	if slices.ContainsFunc(p.Topologies, func(o chainTopology) bool { return o.ID == t.ID }) {
		return fmt.Errorf("topology: two have the id %d", t.ID)
	}
	p.Topologies = append(p.Topologies, t)
	return nil
}

func (p *ChainPolicy) addStep(x *paragraph) (err error) {
	s := chainStep{at: x.at}
	if s.ID, err = x.number("id", 0, 1, maxID); err != nil {
		return err
	}
	if s.ID == 0 {
		return errors.New("unicast-step: expected a line id: with a number from 1")
	}
	if s.Engine, err = x.must("engine"); err != nil {
		return err
	}
	if s.Config, _, err = x.value("config"); err != nil {
		return err
	}
	if s.Topology, err = x.number("topology", 0, 0, maxID); err != nil {
		return err
	}
	if s.Fallback, err = x.number("fallback-to", 0, 1, maxID); err != nil {
		return err
	}
	if s.PathBit, err = x.number("path-bit", 0, 0, 127); err != nil {
		return err
	}
	if slices.ContainsFunc(p.Steps, func(o chainStep) bool { return o.ID == s.ID }) {
		return fmt.Errorf("unicast-step: there are two of the id %d", s.ID)
	}
	p.Steps = append(p.Steps, s)
	return nil
}

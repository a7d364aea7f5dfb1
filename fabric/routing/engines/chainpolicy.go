// Package chain routes parts of a fabric by different engines, one after the other, as
// the routing chains of NVIDIA's OpenSM do: groups of ports, topologies of these, and
// steps that each route one.
//
//	policy.go  the three files: pgrp_policy_file, topo_policy_file, rch_policy_file
//	group.go   which ports are in a group
//	chain.go   Compute: the tables
//
// Sources: NVIDIA UFM Enterprise User Manual, appendix Routing Chains; routing-chains.txt
// and port-groups.txt of MLNX_OFED's opensm.

package engines

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"fabsh/fabric"
)

// ChainPolicy is the content of the files of a chain.
type ChainPolicy struct {
	Groups     []portGroup
	Topologies []chainTopology
	Steps      []chainStep // by ID
}

// Group is a port-group: its name, and the rules for which ports are in it.
type portGroup struct {
	Name  string
	Rules []portRule
	at    string // in the file
}

// Rule is one rule of a group, such as "port-guid" and its list.
type portRule struct{ Kind, Value string }

// Topology is a part of the fabric: the groups of its switches and of its CAs.
type chainTopology struct {
	ID            int
	Switches, CAs string
	at            string
}

// Step routes a topology by an engine.
type chainStep struct {
	ID       int
	Engine   string
	Topology int    // 0: all of the fabric
	Config   string // a file of options of its own
	Fallback int    // the step that must have failed; 0: no fallback
	PathBit  int    // which LID of each port it routes (LMC)
	at       string
}

// Bounds of a file.
const (
	maxFile   = 64 << 20 // bytes
	maxParts  = 4096     // groups, topologies, steps
	maxValues = 16       // qualifiers of one
)

// ruleKinds are the qualifiers that define the members of a group.
var ruleKinds = []string{"port-guid", "port-guid-range", "port-name", "port-regexp", "union-rule", "subtract-rule", "obj_list"}

// sections are the qualifiers of each kind of paragraph.
var sections = map[string][]string{
	"port-group":   append([]string{"name", "use"}, ruleKinds...),
	"topology":     {"id", "sw-grp", "hca-grp"},
	"unicast-step": {"id", "engine", "use", "config", "topology", "fallback-to", "path-bit"},
}

// part is a paragraph of a file.
type part struct {
	kind   string
	values []portRule // qualifiers, in order
	at     string     // file and line
}

// Read adds the content of a file, whichever of the three it is.
func (p *ChainPolicy) Read(r io.Reader, name string) error {
	parts, err := readParts(r, name)
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

// readParts reads the paragraphs. A line without a qualifier goes on with the one before.
func readParts(r io.Reader, name string) (parts []part, err error) {
	limited := &io.LimitedReader{R: r, N: maxFile + 1}
	lines := bufio.NewScanner(limited)
	lines.Buffer(nil, 1<<20)
	var in *part
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
		case in == nil && sections[line] != nil:
			if len(parts) == maxParts {
				return nil, fail("expected at most %d paragraphs", maxParts)
			}
			in = &part{kind: line, at: fmt.Sprintf("%s:%d", name, n)}
		case in == nil && (line == "port-groups" || line == "end-port-groups"): // of a file that has more
		case in == nil:
			return nil, fail("expected port-group, topology or unicast-step, not %q", fabric.Clip(line))
		case line == "end-"+in.kind:
			parts = append(parts, *in)
			in = nil
		case isValue && slices.Contains(sections[in.kind], key):
			if len(in.values) == maxValues {
				return nil, fail("expected at most %d lines in a %s", maxValues, in.kind)
			}
			in.values = append(in.values, portRule{key, strings.TrimSpace(value)})
		case len(in.values) > 0 && in.values[len(in.values)-1].Kind == "obj_list":
			last := &in.values[len(in.values)-1]
			last.Value += "\n" + line
		default:
			return nil, fail("expected end-%s or one of %s, not %q", in.kind, strings.Join(sections[in.kind], ", "), fabric.Clip(line))
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
		return nil, fmt.Errorf("%s: it is larger than %d bytes", name, maxFile)
	case in != nil:
		return nil, fmt.Errorf("%s: expected end-%s before the end of the file", in.at, in.kind)
	}
	return parts, nil
}

// value is that of a qualifier, once at most.
func (x *part) value(key string) (value string, given bool, err error) {
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
func (x *part) must(key string) (string, error) {
	value, _, err := x.value(key)
	if err == nil && value == "" {
		err = fmt.Errorf("%s: expected a line %s: with a value", x.kind, key)
	}
	return value, err
}

// number is the value of a qualifier from least to most; usual where it is not there.
func (x *part) number(key string, usual, least, most int) (int, error) {
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

func (p *ChainPolicy) addGroup(x *part) error {
	name, err := x.must("name")
	switch {
	case err != nil:
		return err
	case slices.Contains(predefined, name):
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

func (p *ChainPolicy) addTopology(x *part) (err error) {
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

func (p *ChainPolicy) addStep(x *part) (err error) {
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

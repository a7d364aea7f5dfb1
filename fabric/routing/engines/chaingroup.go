package engines

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"fabsh/fabric"
	"fabsh/mad"
)

// predefinedGroups are the groups that always exist.
var predefinedGroups = []string{"ALL", "ALL_SWITCHES", "ALL_CAS"}

// groupMembers are the ports of a group, by port id.
type groupMembers []bool

// portGroups finds the members of groups, each once.
type portGroups struct {
	ctx   context.Context
	f     *fabric.Fabric
	hosts map[string][]*fabric.Node // CAs by the first word of their names
	rules map[string]*portGroup
	known map[string]groupMembers
	open  []string // groups whose rules are being followed: none may name one of these
	notes []string
}

func newPortGroups(ctx context.Context, f *fabric.Fabric, p *ChainPolicy) *portGroups {
	g := &portGroups{ctx: ctx, f: f, hosts: map[string][]*fabric.Node{}, rules: map[string]*portGroup{}, known: map[string]groupMembers{}}
	for i := range p.Groups {
		g.rules[p.Groups[i].Name] = &p.Groups[i]
	}
	for i := range f.Nodes() {
		if n := &f.Nodes()[i]; !n.IsSwitch() {
			host, _, _ := strings.Cut(n.Name(), " ")
			g.hosts[host] = append(g.hosts[host], n)
		}
	}
	return g
}

// maxGroupDepth is how deep groups may be made of groups.
const maxGroupDepth = 100

// of returns the members of a group by its name.
func (g *portGroups) of(name string) (groupMembers, error) {
	if m := g.known[name]; m != nil {
		return m, nil
	}
	m := make(groupMembers, len(g.f.Ports()))
	if slices.Contains(predefinedGroups, name) {
		for i := range g.f.Ports() {
			isSwitch := g.f.Ports()[i].Node().IsSwitch()
			m[i] = name == "ALL" || isSwitch == (name == "ALL_SWITCHES")
		}
		g.known[name] = m
		return m, nil
	}
	group := g.rules[name]
	switch {
	case group == nil:
		return nil, fmt.Errorf("unknown port-group %q", fabric.Clip(name))
	case slices.Contains(g.open, name):
		return nil, fmt.Errorf("%s: port-group %q contains itself", group.at, fabric.Clip(name))
	case len(g.open) == maxGroupDepth:
		return nil, fmt.Errorf("%s: port-groups are nested more than %d deep", group.at, maxGroupDepth)
	case len(group.Rules) == 0:
		return nil, fmt.Errorf("%s: port-group %q has no rule for its members", group.at, fabric.Clip(name))
	}
	g.open = append(g.open, name)
	defer func() { g.open = g.open[:len(g.open)-1] }()
	for _, rule := range group.Rules {
		if err := g.apply(m, rule); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", group.at, rule.Kind, err)
		}
	}
	if !slices.Contains(m, true) {
		g.notes = append(g.notes, fmt.Sprintf("chain: no port of the fabric is in port-group %q", fabric.Clip(name)))
	}
	g.known[name] = m
	return m, nil
}

// apply adds the ports of a rule.
func (g *portGroups) apply(m groupMembers, rule portRule) error {
	if g.ctx.Err() != nil {
		return context.Cause(g.ctx)
	}
	switch rule.Kind {
	case "port-guid":
		return g.addGUIDs(m, rule.Value)
	case "port-guid-range":
		return g.addRange(m, rule.Value)
	case "port-name":
		return g.addNames(m, rule.Value)
	case "port-regexp":
		return g.addRegexp(m, rule.Value)
	case "obj_list":
		return g.addObjects(m, rule.Value)
	}
	names := strings.Split(rule.Value, ",")
	if len(names) != 2 {
		return fmt.Errorf("expected two groups, A, B, not %q", fabric.Clip(rule.Value))
	}
	a, err := g.of(strings.TrimSpace(names[0]))
	if err != nil {
		return err
	}
	b, err := g.of(strings.TrimSpace(names[1]))
	if err != nil {
		return err
	}
	for i := range m {
		if rule.Kind == "union-rule" {
			m[i] = m[i] || a[i] || b[i]
		} else {
			m[i] = m[i] || a[i] && !b[i]
		}
	}
	return nil
}

// add adds the ports of n that the numbers name; nil: all.
func (m groupMembers) add(n *fabric.Node, numbers func(int) bool) {
	for num := range n.NumPorts() + 1 {
		if p := n.Port(num); p != nil && (numbers == nil || num == 0 || numbers(num)) {
			m[p.ID()] = true
		}
	}
}

// addGUIDs adds a list such as "0x283@5-8/12, 0x286": ports of nodes, by the GUID of a
// port or of a node.
func (g *portGroups) addGUIDs(m groupMembers, list string) error {
	for item := range strings.SplitSeq(list, ",") {
		text, ports, some := strings.Cut(strings.TrimSpace(item), "@")
		guid, err := strconv.ParseUint(strings.TrimSpace(text), 0, 64)
		if err != nil {
			return fmt.Errorf("expected a GUID such as 0x283@1/5-7, not %q", fabric.Clip(item))
		}
		var numbers func(int) bool
		if some {
			if numbers, err = portNumbers(ports); err != nil {
				return err
			}
		}
		g.addGUID(m, mad.GUID(guid), numbers)
	}
	return nil
}

// addGUID adds the port with this GUID, or the ports of the node that has it.
func (g *portGroups) addGUID(m groupMembers, guid mad.GUID, numbers func(int) bool) {
	nodes := g.f.NodeByGUID(guid)
	for _, n := range nodes {
		m.add(n, numbers)
	}
	if len(nodes) > 0 {
		return
	}
	for _, p := range g.f.PortByGUID(guid) {
		if numbers == nil || numbers(p.Num()) {
			m[p.ID()] = true
		}
	}
}

// portNumbers reads a list such as "2-5/7".
func portNumbers(list string) (func(int) bool, error) {
	var has [256]bool
	for item := range strings.SplitSeq(list, "/") {
		from, to, isRange := strings.Cut(strings.TrimSpace(item), "-")
		if !isRange {
			to = from
		}
		first, err := strconv.ParseUint(strings.TrimSpace(from), 10, 8)
		last, err2 := strconv.ParseUint(strings.TrimSpace(to), 10, 8)
		if err != nil || err2 != nil || first > last {
			return nil, fmt.Errorf("expected ports such as 1/5-7, not %q", fabric.Clip(list))
		}
		for n := first; n <= last; n++ {
			has[n] = true
		}
	}
	return func(num int) bool { return num < len(has) && has[num] }, nil
}

// addRange adds "0x283-0x289".
func (g *portGroups) addRange(m groupMembers, text string) error {
	from, to, _ := strings.Cut(text, "-")
	first, err := strconv.ParseUint(strings.TrimSpace(from), 0, 64)
	last, err2 := strconv.ParseUint(strings.TrimSpace(to), 0, 64)
	if err != nil || err2 != nil || first > last {
		return fmt.Errorf("expected one range of GUIDs such as 0x283-0x289, not %q", fabric.Clip(text))
	}
	within := func(guid mad.GUID) bool { return guid >= mad.GUID(first) && guid <= mad.GUID(last) }
	for i := range g.f.Ports() {
		p := &g.f.Ports()[i]
		if within(p.GUID()) || within(p.Node().GUID()) {
			m[i] = true
		}
	}
	return nil
}

// addNames adds a list such as "hostname=kuku; port=2; hca_idx=1, hostname=host1": ports
// of CAs whose node description is the host's name and, behind the last dash or as the
// last digits, the number of the adapter.
func (g *portGroups) addNames(m groupMembers, list string) error {
	for item := range strings.SplitSeq(list, ",") {
		host, port, index := "", 0, ""
		for field := range strings.FieldsFuncSeq(item, func(r rune) bool { return r == ';' || r == ' ' || r == '\t' }) {
			key, value, _ := strings.Cut(field, "=")
			var err error
			switch key {
			case "hostname":
				host = value
			case "port":
				if port, err = strconv.Atoi(value); err != nil || port < 1 || port > 254 {
					return fmt.Errorf("expected port=1..254, not %q", fabric.Clip(field))
				}
			case "hca_idx":
				index = value
			default:
				return fmt.Errorf("expected hostname=, port= and hca_idx=, not %q", fabric.Clip(field))
			}
		}
		if host == "" {
			return fmt.Errorf("expected hostname=NAME in %q", fabric.Clip(strings.TrimSpace(item)))
		}
		for _, n := range g.hosts[host] {
			digits := n.Name()[len(strings.TrimRight(n.Name(), "0123456789")):]
			if index == "" || index == digits && n.Name() != host {
				m.add(n, func(num int) bool { return port == 0 || num == port })
			}
		}
	}
	return nil
}

// addRegexp adds "SW.*" or, of one port, "SW.*:3": nodes whose description it matches.
func (g *portGroups) addRegexp(m groupMembers, text string) error {
	port := 0
	if i := strings.LastIndex(text, ":"); i >= 0 {
		n, err := strconv.Atoi(strings.TrimSpace(text[i+1:]))
		if err != nil || n < 1 || n > 254 {
			return fmt.Errorf("expected a port from 1 to 254 behind the colon, not %q", fabric.Clip(text[i+1:]))
		}
		port, text = n, text[:i]
	}
	re, err := regexp.CompilePOSIX(strings.TrimSpace(text))
	if err != nil {
		return err
	}
	for i := range g.f.Nodes() {
		if n := &g.f.Nodes()[i]; re.MatchString(n.Name()) {
			m.add(n, func(num int) bool { return port == 0 || num == port })
		}
	}
	return nil
}

// addObjects adds objects such as "name=leaf-1 pmask=0x3e;" or "name=host1/U1:P1": a node
// by its name, without ibutils' /U1, with one of its ports or a mask of them.
func (g *portGroups) addObjects(m groupMembers, list string) error {
	for object := range strings.SplitSeq(strings.ReplaceAll(list, "name=", "\x00name="), "\x00") {
		object = strings.Trim(object, " \t\n;,")
		if object == "" {
			continue
		}
		text, isName := strings.CutPrefix(object, "name=")
		if !isName {
			return fmt.Errorf("expected name=NAME, not %q", fabric.Clip(object))
		}
		name, mask, masked := strings.Cut(text, "pmask=")
		name = strings.Trim(name, " \t\n:;,")
		var numbers func(int) bool
		if masked {
			bits, err := strconv.ParseUint(strings.TrimSpace(mask), 0, 64)
			if err != nil {
				return fmt.Errorf("expected pmask=0x and 64 bits, not %q", fabric.Clip(mask))
			}
			numbers = func(num int) bool { return num < 64 && bits>>num&1 != 0 }
		} else if i := strings.LastIndex(name, ":P"); i >= 0 {
			n, err := strconv.Atoi(name[i+2:])
			if err != nil || n < 1 || n > 254 {
				return fmt.Errorf("expected a port from 1 to 254, not %q", fabric.Clip(name[i+1:]))
			}
			name, numbers = name[:i], func(num int) bool { return num == n }
		}
		nodes := g.f.NodeByName(name)
		if len(nodes) == 0 {
			nodes = g.f.NodeByName(strings.TrimSuffix(name, "/U1"))
		}
		for _, n := range nodes {
			m.add(n, numbers)
		}
		if len(nodes) == 0 {
			g.notes = append(g.notes, fmt.Sprintf("chain: no node is named %q", fabric.Clip(name)))
		}
	}
	return nil
}

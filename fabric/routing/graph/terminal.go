package graph

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// Terminal is where paths begin and end: port 0 of a switch, or a port of a CA or router with a cable.
type Terminal struct {
	Port   *fabric.Port
	LID    mad.LID // the first; 0: none yet
	Count  int     // of LIDs, 1<<LMC; 0: not an endpoint
	Switch int     // the switch it is on, or -1 if its cable leads to none
	Out    uint8   // that switch's port to it; 0: it is port 0 of the switch itself
	Class  Class
}

// Dest is a destination LID on a switch.
type Dest struct {
	LID      mad.LID
	Out      uint8 // as of its Terminal
	Terminal int32
}

// Terminals are all terminals, in the order of the fabric's ports.
func (g *Graph) Terminals() []Terminal { return g.terminals }

// TerminalByLID is the number of the terminal with that LID, or -1.
func (g *Graph) TerminalByLID(lid mad.LID) int {
	if int(lid) >= len(g.byLID) {
		return -1
	}
	return int(g.byLID[lid])
}

// TerminalOf is the number of the terminal of port p, or -1. All ports of a switch
// have the terminal of its port 0.
func (g *Graph) TerminalOf(p *fabric.Port) int {
	if p.Node().IsSwitch() {
		p = p.Node().Port(0)
	}
	t, ok := slices.BinarySearchFunc(g.terminals, p.ID(), func(t Terminal, id int) int { return cmp.Compare(t.Port.ID(), id) })
	if !ok {
		return -1
	}
	return t
}

// Top is the highest LID.
func (g *Graph) Top() mad.LID { return mad.LID(len(g.byLID) - 1) }

// Dests are all destinations, by switch, then port, then LID.
func (g *Graph) Dests() []Dest { return g.dests }

// FirstDest is the place in Dests of the first destination on switch s. The others
// follow, up to FirstDest(s+1).
func (g *Graph) FirstDest(s int) int32 { return g.destBase[s] }

// DestsOf are the LIDs on switch s, by port, then LID.
func (g *Graph) DestsOf(s int) []Dest { return g.dests[g.destBase[s]:g.destBase[s+1]] }

// LIDs are all LIDs of terminals of class c that are on switches, in the order
// of switches and their ports; of class 0, all.
func (g *Graph) LIDs(c Class) []mad.LID {
	var lids []mad.LID
	for _, d := range g.dests {
		if c == 0 || g.terminals[d.Terminal].Class&c != 0 {
			lids = append(lids, d.LID)
		}
	}
	return lids
}

// IsEndpoint reports whether packets of class go from and to t: it has a LID. Class 0 are all ports
// of CAs and routers, aggregation nodes included. Nothing is routed to a port that has no LID yet,
// and no packet comes from it; so engines, verdicts and loads all ignore it.
func (t *Terminal) IsEndpoint(class Class) bool {
	if class == 0 {
		return t.Count > 0 && t.Class&ClassSwitch == 0
	}
	return t.Count > 0 && t.Class&class != 0
}

// Endpoints counts the endpoints of class 0, by the switch they are on.
func (g *Graph) Endpoints() []int64 {
	on := make([]int64, len(g.switches))
	for i := range g.terminals {
		if t := &g.terminals[i]; t.Switch >= 0 && t.IsEndpoint(0) {
			on[t.Switch]++
		}
	}
	return on
}

// Class is the purpose of a terminal. It is a set of bits: a compute node may run
// the subnet manager too.
type Class uint8

const (
	ClassCN      Class = 1 << iota // compute node
	ClassIO                        // storage and other services
	ClassAN                        // aggregation node of a switch (SHARP): a CA, often on a spine
	ClassGateway                   // gateways to other networks, and routers
	ClassSM                        // can run a subnet manager
	ClassSwitch                    // port 0 of a switch
)

var classNames = []string{"cn", "io", "an", "gateway", "sm", "switch"}

// ParseClass reads names joined by +: "cn+io".
func ParseClass(s string) (Class, error) {
	var c Class
	for name := range strings.SplitSeq(s, "+") {
		i := slices.Index(classNames, name)
		if i < 0 {
			return 0, fmt.Errorf("unknown class %q; supported: %s", name, strings.Join(classNames, ", "))
		}
		c |= 1 << i
	}
	return c, nil
}

func (c Class) String() string {
	var names []string
	for i, name := range classNames {
		if c>>i&1 != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, "+")
}

// Rule gives a class to the terminals that fit all its conditions.
type Rule struct {
	Class  Class
	Name   string          // of the node; * stands for any text, ? for any byte, case does not matter. "": any
	Type   mad.NodeType    // 0: any
	Vendor uint32          // 0: any
	Device uint16          // 0: any
	Kind   fabric.NodeKind // KindUnknown: any
	GUIDs  []mad.GUID      // of nodes or ports; nil: any
	SM     bool            // only ports that can run a subnet manager
	Also   bool            // the rules that follow are tried too
	Leaf   bool            // Name and GUIDs are those of the switch that the port is linked to

	text string // of a Name that is this text between stars; set by prepareRules
	has  uint64 // its letters
}

// prepareRules are rules whose patterns need not be matched for each name.
func prepareRules(rules []Rule) []Rule {
	rules = slices.Clone(rules)
	for i := range rules {
		if text, ok := within(rules[i].Name); ok {
			rules[i].text, rules[i].has = text, letters(text)
		}
	}
	return rules
}

// letters has a bit for each letter in s.
func letters(s string) (has uint64) {
	for i := range len(s) {
		has |= 1 << (lower(s[i]) % 64)
	}
	return has
}

// names reports whether s, which has these letters, is a name that the rule is for.
func (r *Rule) names(s string, has uint64) bool {
	if r.text != "" {
		return has&r.has == r.has && contains(s, r.text)
	}
	return r.Name == "" || Glob(r.Name, s)
}

// DefaultRules are the rules where none are given. The first that fits decides,
// except for rules with Also, which add their class and go on. Only its name distinguishes
// a storage host from a compute node.
func DefaultRules() []Rule {
	return []Rule{
		{Class: ClassSM, SM: true, Also: true},
		{Class: ClassAN, Kind: fabric.KindAggregation},
		{Class: ClassGateway, Kind: fabric.KindRouter},
		{Class: ClassGateway, Kind: fabric.KindGateway},
		{Class: ClassIO, Name: "*storage*"},
		{Class: ClassCN},
	}
}

// fits reports whether the rule is for p, a port of a CA or router in whose name are these
// letters.
func (r *Rule) fits(p *fabric.Port, has uint64) bool {
	n := p.Node()
	if r.Leaf {
		q := p.Peer()
		return q != nil && q.Node().IsSwitch() && (r.GUIDs == nil || slices.Contains(r.GUIDs, q.Node().GUID())) && r.names(q.Node().Name(), letters(q.Node().Name()))
	}
	switch {
	case r.Type != 0 && r.Type != n.Type():
	case r.Vendor != 0 && r.Vendor != n.Info().VendorID:
	case r.Device != 0 && r.Device != n.Info().DeviceID:
	case r.Kind != fabric.KindUnknown && r.Kind != n.Kind():
	case r.SM && (p.Info() == nil || p.Info().CapabilityMask&mad.CapabilityMaskIsSM == 0):
	case r.GUIDs != nil && !slices.Contains(r.GUIDs, p.GUID()) && !slices.Contains(r.GUIDs, n.GUID()):
	case !r.names(n.Name(), has):
	default:
		return true
	}
	return false
}

// Fits reports whether the rule is for p, a port of a CA or router.
func (r *Rule) Fits(p *fabric.Port) bool { return r.fits(p, letters(p.Node().Name())) }

// Classify returns the class of p, a port with LIDs, by the rules.
func Classify(rules []Rule, p *fabric.Port) (c Class) {
	if p.Node().IsSwitch() {
		return ClassSwitch
	}
	has := letters(p.Node().Name())
	for i := range rules {
		if rules[i].fits(p, has) {
			c |= rules[i].Class
			if !rules[i].Also {
				break
			}
		}
	}
	return c
}

// Glob reports whether s matches pattern: * is any text, ? any byte, and case does
// not matter. Slashes, which names of director switches have, are ordinary bytes.
func Glob(pattern, s string) bool {
	if text, ok := within(pattern); ok {
		return contains(s, text)
	}
	p, i := 0, 0
	star, resume := -1, 0 // the last *, and where what follows it is tried next
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, resume = p, i
			p++
		case p < len(pattern) && (pattern[p] == '?' || lower(pattern[p]) == lower(s[i])):
			p++
			i++
		case star >= 0:
			resume++
			p, i = star+1, resume
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// within is the text of a pattern that is one text between stars, as most are.
func within(pattern string) (text string, ok bool) {
	text = strings.TrimSuffix(strings.TrimPrefix(pattern, "*"), "*")
	return text, len(text) > 0 && len(text) == len(pattern)-2 && !strings.ContainsAny(text, "*?")
}

// contains reports whether text is in s; case does not matter.
func contains(s, text string) bool {
	for first := lower(text[0]); len(s) >= len(text); s = s[1:] {
		i := 0
		for lower(s[0]) == first && i < len(text) && lower(s[i]) == lower(text[i]) {
			i++
		}
		if i == len(text) {
			return true
		}
	}
	return false
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// addTerminals finds the ports that have LIDs, or gives LIDs where no port has one.
func (g *Graph) addTerminals(usable func(*fabric.Port) bool, lids func(*fabric.Port) (mad.LID, int), rules []Rule) {
	var noLID, detached int
	g.terminals = make([]Terminal, 0, len(g.fabric.Nodes()))
	for i := range g.fabric.Ports() {
		p := &g.fabric.Ports()[i]
		isSwitch := p.Node().IsSwitch()
		if isSwitch && p.Num() > 0 || !isSwitch && p.Peer() == nil {
			continue
		}
		lid, lmc := lids(p)
		t := Terminal{Port: p, LID: lid, Count: 1 << lmc, Switch: -1, Class: Classify(rules, p)}
		switch {
		case isSwitch:
			t.Switch = g.SwitchOf(p.Node())
		case usable(p) && p.Peer().Node().IsSwitch():
			t.Switch, t.Out = g.SwitchOf(p.Peer().Node()), uint8(p.Peer().Num())
		}
		if t.LID == 0 {
			noLID++
		}
		if t.Switch < 0 {
			detached++
		}
		g.terminals = append(g.terminals, t)
	}
	switch {
	case noLID == 0:
	case noLID == len(g.terminals):
		g.note("no port has a LID; LIDs are assigned from 1, in the order of the fabric")
		for i := range g.terminals {
			g.terminals[i].LID = mad.LID(i + 1)
			if i+1 > int(mad.MaxUnicastLID) {
				g.terminals[i].LID = 0
			}
		}
	default:
		g.note("ports without a LID: %d of %d: nothing is routed there; a subnet manager must assign LIDs first", noLID, len(g.terminals))
		for i := range g.terminals {
			if t := &g.terminals[i]; t.LID == 0 && t.Class&ClassSwitch == 0 {
				g.leaveOut("%s has no LID: nothing is routed to it; a subnet manager must assign one first", t.Port.Label())
			}
		}
	}
	if detached > 0 {
		g.note("%s on no switch", plural.Count(detached, "port of CAs and routers is", "ports of CAs and routers are"))
	}
	g.addLIDs()
}

// addLIDs indexes the terminals by LID and by switch.
func (g *Graph) addLIDs() {
	g.byLID = append(g.byLID, -1)
	of := make([][]Dest, len(g.switches))
	for i := range g.terminals {
		t := &g.terminals[i]
		if t.Out > 0 {
			g.targets[g.portBase[t.Switch]+int32(t.Out)] = ToTerminal(int32(i))
		} else if t.Switch >= 0 {
			g.targets[g.portBase[t.Switch]] = ToTerminal(int32(i))
		}
		if t.LID == 0 {
			t.Count = 0
		}
		if int(t.LID)%max(1, t.Count) != 0 {
			g.leaveOut("LID %d of %s is not a multiple of %d: with LMC %d the port masks the low bits", t.LID, t.Port.Label(), t.Count, bits.Len(uint(t.Count))-1)
		}
		if last := int(t.LID) + t.Count - 1; last > int(mad.MaxUnicastLID) {
			g.leaveOut("LID %d of %s is beyond %d, the highest unicast LID", last, t.Port.Label(), mad.MaxUnicastLID)
		}
		t.Count = max(0, min(t.Count, int(mad.MaxUnicastLID)-int(t.LID)+1))
		for j := range t.Count {
			lid := int(t.LID) + j
			for len(g.byLID) <= lid {
				g.byLID = append(g.byLID, -1)
			}
			if other := g.byLID[lid]; other >= 0 {
				g.leaveOut("LID %d of %s also belongs to %s, which gets it", lid, t.Port.Label(), g.terminals[other].Port.Label())
				t.Count = j
				break
			}
			g.byLID[lid] = int32(i)
			if t.Switch >= 0 {
				of[t.Switch] = append(of[t.Switch], Dest{mad.LID(lid), t.Out, int32(i)})
			}
		}
	}
	for _, d := range of {
		slices.SortFunc(d, func(a, b Dest) int { return cmp.Or(cmp.Compare(a.Out, b.Out), cmp.Compare(a.LID, b.LID)) })
		g.destBase = append(g.destBase, int32(len(g.dests)))
		g.dests = append(g.dests, d...)
	}
	g.destBase = append(g.destBase, int32(len(g.dests)))
}

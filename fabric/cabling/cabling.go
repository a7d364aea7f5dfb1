// Package cabling compares a plan of cables with a fabric, and makes work orders of the differences.
//
// Compare matches the devices of both, then their cables. The cables that differ are a graph in which
// each port has at most one planned cable and at most one that was found, so it consists of paths and
// cycles in which both alternate. A path or a cycle is a chain of Actions: each cable that is plugged
// wrong takes one move of one plug, two exchanged cables one swap. That is the least number.
//
// Unread parts are listed in Report.Unread, without a judgement. All functions are deterministic,
// have no state, and are safe for concurrent use.
package cabling

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"fabsh/fabric"
	"fabsh/mad"
)

// Kind is a kind of difference, in the words of the field.
type Kind string

const (
	Missing   Kind = "missing"    // planned, and not there
	Undefined Kind = "undefined"  // there, and not planned
	Miswired  Kind = "miswired"   // another device or port at the other end
	Down      Kind = "down"       // there, and without a link
	Slower    Kind = "slower"     // narrower or slower than planned
	PlaneDown Kind = "plane down" // some planes of a cable have no link
)

// Verb is what hands do.
type Verb string

const (
	Swap    Verb = "swap"     // exchange two plugs
	Move    Verb = "move"     // move a plug to another port
	Connect Verb = "connect"  // put in a cable
	Remove  Verb = "remove"   // take out a cable
	Reseat  Verb = "reseat"   // pull both plugs of a cable and plug them in again
	PowerOn Verb = "power on" // a device without any link, or connect it
)

// End is one end of a cable, as hands find it. Fields that are unknown are "" or 0.
type End struct {
	fabric.Place
	Device string // as the plan names it, if it does
	Port   int    // the IB port number
	Panel  string // what is printed beside the port
	// GUID is that of the device in the fabric; 0: it was not found.
	GUID mad.GUID
	// Node is the name of the device in the fabric; "": it was not found.
	Node string
}

// String returns the device and port: "leaf-7/31".
func (e End) String() string {
	if e.Device == "" || e.Port == 0 {
		return e.Device
	}
	return e.Device + "/" + strconv.Itoa(e.Port)
}

// Action is one thing to do at two ends.
type Action struct {
	// ID is stable between runs: a hash of the planned ends, of those found if nothing is planned.
	ID string
	// Chain has the IDs of actions that depend on each other equal: do them in this order.
	Chain       string
	Step, Steps int // in the chain, from 1
	Kind        Kind
	Verb        Verb
	// From and To are, of a move, where the plug is and where it belongs; of a swap, where the two
	// plugs are; else the ends of the cable.
	From, To End
	// Stays is the other end of the cable that moves, of a swap that of the plug at From.
	Stays End
	// First is what must be done before, in words; "": nothing.
	First   string
	Found   string // what is found, in words
	Planned string // what should be, in words
	Check   string // how to check afterwards, in words
	Label   string // of the planned cable
	Source  string // where the plan has the cable
	Links   int    // of the cable: more than 1 are planes

	want         [][2]End // the links when it is done; nil: From and To are not linked
	width, speed string   // planned, of a slower cable; "": not stated
}

// Report is the result of a comparison.
type Report struct {
	Actions   []*Action             // by place of the first action of each chain, chains in their order
	Conflicts []fabric.PlanConflict // ends that the plan uses more than once
	PlanFault []string              // rows of the plan that cannot be right, in words
	Devices   []Difference          // what the plan states of devices besides cables, and the fabric has otherwise
	// NotCompared is what the plan states and the fabric does not, in words.
	NotCompared []string
	Names       []Name   // devices under other names, and devices not found
	Strangers   []string // devices that the plan does not have
	Unread      []string // unread parts, in words; their cables are in Unjudged
	Planned     int      // cables of the plan
	Right       int      // of them, those that are as planned
	Unjudged    int      // of them, those of devices that were not found, or unread
}

// Same reports whether no difference was found. Strangers do not count: a plan may leave out whole kinds
// of devices.
func (r *Report) Same() bool {
	return len(r.Actions) == 0 && len(r.Conflicts) == 0 && len(r.PlanFault) == 0 && len(r.Names) == 0 && len(r.Devices) == 0
}

// Complete reports whether everything that the plan names was read.
func (r *Report) Complete() bool { return len(r.Unread) == 0 }

// Compare compares a plan with a fabric. Time: O(P) for P ports, besides sorting.
func Compare(plan, live *fabric.Fabric) *Report {
	c := &comparison{Report: new(Report), match: matchNodes(plan, live)}
	if p := plan.Plan(); p != nil {
		c.Conflicts = p.Conflicts
		c.PlanFault = slices.Clone(p.Unread)
	}
	if why := unreadable(live); why != "" {
		c.Unread = append(c.Unread, why)
	}
	c.findAbsent()
	c.devices()
	c.readPlan()
	c.readFabric()
	c.chains()
	c.bundle()
	c.darkDevices()
	c.sort()
	connected := map[string]bool{} // by an action, which names them
	for _, x := range c.Actions {
		connected[x.From.Device], connected[x.To.Device] = true, true
	}
	c.unmatched(func(n *fabric.Node) bool { return c.away[int32(n.ID())] && connected[nodeName(n)] })
	c.Names, c.Strangers = c.names, c.strangers()
	return c.Report
}

// comparison is one that is under way. Ports have the IDs of the fabric; ports of the plan whose
// device is out of reach have an ID behind them.
type comparison struct {
	*Report
	*match
	away    map[int32]bool // nodes of the plan without a match that are only out of reach
	want    []int32        // by port: the port that the plan has at the other end; none
	have    []int32        // by port: the port at the other end; none. Cables that are as planned are left out of both
	source  []int32        // by port: the port of the plan; none
	virtual []int32        // by ID behind the ports of the fabric: the port of the plan
	ids     map[int32]int32
	unread  map[[2]string]bool // devices of rows that could not be used; nil: not made yet
}

// findAbsent finds the nodes of the plan that are out of reach: without a match, and each far end of
// their cables is down, connected to a device of the plan, or of a device that is out of reach. At one
// that is connected to a device that the plan does not have, that may be the one, under another name.
func (c *comparison) findAbsent() {
	c.away = map[int32]bool{}
	for found := true; found; {
		found = false
		for i := range c.plan.Nodes() {
			if n := &c.plan.Nodes()[i]; c.toLive[i] == none && c.ambiguous[int32(i)] == nil && !c.away[int32(i)] && c.outOfReach(n) {
				c.away[int32(i)], found = true, true
			}
		}
	}
}

func (c *comparison) outOfReach(n *fabric.Node) bool {
	any := false
	for p := range n.Ports() {
		if p.Peer() == nil {
			continue
		}
		q := c.portOf(p.Peer())
		switch {
		case q == nil:
			any = any || c.away[int32(p.Peer().Node().ID())]
		case unknownPeer(q), q.Peer() != nil && c.toPlan[q.Peer().Node().ID()] == none:
			return false
		default:
			any = true
		}
	}
	return any
}

// portOf returns the port of the fabric that p of the plan is; or nil.
func (c *comparison) portOf(p *fabric.Port) *fabric.Port {
	if p == nil {
		return nil
	}
	if n := c.node(p.Node()); n != nil {
		return n.Port(p.Num())
	}
	return nil
}

// unknownPeer reports whether the link of p is up and the other end was not read.
func unknownPeer(p *fabric.Port) bool {
	return p.Peer() == nil && p.PhysicalState() == mad.PortPhysicalStateLinkUp
}

// readPlan sets want, and judges the cables that are as planned.
func (c *comparison) readPlan() {
	size := len(c.live.Ports())
	c.want = slices.Repeat([]int32{none}, size)
	c.source = slices.Clone(c.want)
	c.ids = map[int32]int32{}
	for i := range c.plan.Ports() {
		p := &c.plan.Ports()[i]
		q := p.Peer()
		if q == nil || q.ID() <= p.ID() {
			continue
		}
		c.Planned++
		x, okX := c.end(p)
		y, okY := c.end(q)
		if !okX || !okY {
			c.Unjudged++
			for _, end := range []*fabric.Port{c.portOf(p), c.portOf(q)} {
				if end != nil && unknownPeer(end) {
					c.unreadCable(p)
				}
			}
			continue
		}
		a, b := c.port(x), c.port(y)
		switch {
		case a == nil && b == nil:
			c.Unjudged++
		case a != nil && a.Peer() != nil && a.Peer() == b:
			c.source[x], c.source[y] = int32(p.ID()), int32(q.ID())
			c.want[x], c.want[y] = y, x
			c.rate(a, b, p)
		case a != nil && unknownPeer(a), b != nil && unknownPeer(b):
			c.Unjudged++
			c.unreadCable(p)
		default:
			c.source[x], c.source[y] = int32(p.ID()), int32(q.ID())
			c.want[x], c.want[y] = y, x
		}
	}
}

func (c *comparison) unreadCable(p *fabric.Port) {
	c.Unread = append(c.Unread, fmt.Sprintf("cable %s - %s: the device at the other end did not answer", portName(p), portName(p.Peer())))
}

// end returns the ID of the port that p of the plan is. It is false if the device was not found, and
// if it has no such port, which is a fault of the plan.
func (c *comparison) end(p *fabric.Port) (int32, bool) {
	if q := c.portOf(p); q != nil {
		return int32(q.ID()), true
	}
	if n := c.node(p.Node()); n != nil {
		where := ""
		if s := p.PlanCable().Source; s != "" {
			where = s + ": "
		}
		c.PlanFault = append(c.PlanFault, fmt.Sprintf("%sport %d of %s: the device has %s", where, p.Num(), nodeName(p.Node()), count(n.NumPorts(), "port")))
		return 0, false
	}
	if !c.away[int32(p.Node().ID())] {
		return 0, false
	}
	id, ok := c.ids[int32(p.ID())]
	if !ok {
		id = int32(len(c.live.Ports()) + len(c.virtual))
		c.ids[int32(p.ID())] = id
		c.virtual = append(c.virtual, int32(p.ID()))
		c.want, c.source = append(c.want, none), append(c.source, none)
	}
	return id, true
}

// port returns a port of the fabric by its ID; nil: its device is out of reach.
func (c *comparison) port(id int32) *fabric.Port {
	if int(id) < len(c.live.Ports()) {
		return &c.live.Ports()[id]
	}
	return nil
}

// rate judges a cable that is where the plan has it.
func (c *comparison) rate(a, b, p *fabric.Port) {
	is, known := slower(a, p)
	if !is {
		other, knows := slower(b, p.Peer())
		is, known = other, known && knows
	}
	switch {
	case is:
		x := c.action(Slower, Reseat, int32(a.ID()), int32(b.ID()))
		x.Found, x.Planned = rate(a), rate(p)
		x.width, x.speed = p.Width(), p.Speed()
		if x.Found == rate(p) {
			x.Found = rate(b)
		}
		c.single(x)
	case !known:
		c.Unjudged++
		c.Unread = append(c.Unread, fmt.Sprintf("cable %s - %s: width and speed are unknown", portName(p), portName(p.Peer())))
	default:
		c.Right++
	}
}

// readFabric sets have, for cables that are not as planned.
func (c *comparison) readFabric() {
	c.have = slices.Repeat([]int32{none}, len(c.want))
	for i := range c.live.Ports() {
		a := &c.live.Ports()[i]
		b := a.Peer()
		if b == nil || b.ID() < a.ID() {
			continue
		}
		x, y := int32(a.ID()), int32(b.ID())
		if c.want[x] == y && x != y {
			c.want[x], c.want[y] = none, none
			continue
		}
		if c.want[x] == none && c.want[y] == none && !c.judged(a, b) {
			continue
		}
		c.have[x], c.have[y] = y, x
	}
}

// judged reports whether a cable at ports that the plan does not use is one that the plan would have:
// both devices are in the plan, and its cables are not of devices that were not found.
func (c *comparison) judged(a, b *fabric.Port) bool {
	if p := c.plan.Plan(); p != nil && p.Partial != "" {
		return false
	}
	for _, p := range []*fabric.Port{a, b} {
		if c.toPlan[p.Node().ID()] == none {
			return false
		}
		if q := c.plan.Nodes()[c.toPlan[p.Node().ID()]].Port(p.Num()); q != nil && q.Peer() != nil {
			return false // planned, to a device that was not found
		}
	}
	return !c.unreadBetween(a, b)
}

// unreadBetween reports whether a row of the plan that could not be used names both devices of a cable, so
// that it may be planned.
func (c *comparison) unreadBetween(a, b *fabric.Port) bool {
	p := c.plan.Plan()
	if p == nil || len(p.UnreadBetween) == 0 {
		return false
	}
	if c.unread == nil {
		c.unread = map[[2]string]bool{}
		for _, pair := range p.UnreadBetween {
			c.unread[[2]string{strings.ToLower(pair[0]), strings.ToLower(pair[1])}] = true
		}
	}
	names := func(q *fabric.Port) []string {
		return append(spellings(c.plan.Nodes()[c.toPlan[q.Node().ID()]].Name()), "")
	}
	for _, x := range names(a) {
		for _, y := range names(b) {
			if c.unread[[2]string{x, y}] || c.unread[[2]string{y, x}] {
				return true
			}
		}
	}
	return false
}

// action returns an action at two ports. Its ID is that of the planned cable at the first, or of the
// ports.
func (c *comparison) action(kind Kind, verb Verb, from, to int32) *Action {
	x := &Action{Kind: kind, Verb: verb, From: c.endAt(from), To: c.endAt(to), Step: 1, Steps: 1, Links: 1}
	c.identify(x, from, to)
	return x
}

// identify sets the ID, label and source of an action by the two ends of a cable.
func (c *comparison) identify(x *Action, a, b int32) {
	keys := []string{c.endAt(a).String(), c.endAt(b).String()}
	slices.Sort(keys)
	sum := sha256.Sum256([]byte(strings.Join(keys, "\x00")))
	x.ID = hex.EncodeToString(sum[:4])
	if s := c.source[a]; s != none && c.source[b] != none {
		cable := c.plan.Ports()[s].PlanCable()
		x.Label, x.Source = cable.Label, cable.Source
	}
}

// single adds an action that depends on no other.
func (c *comparison) single(x *Action) {
	x.Chain = x.ID
	if x.want == nil && x.Verb != Remove {
		x.want = [][2]End{{x.From, x.To}}
	}
	if x.Check == "" {
		x.Check = c.check(x.From, x.To, cmp.Or(x.Planned, ""))
	}
	c.Actions = append(c.Actions, x)
}

// check is how to check a link.
func (c *comparison) check(a, b End, rate string) string {
	s := a.String() + " is linked with " + b.String()
	if rate != "" {
		s += " at " + rate
	}
	return s
}

// endAt returns a port for people.
func (c *comparison) endAt(id int32) End {
	p := c.port(id)
	var planned *fabric.Port
	if p == nil {
		planned = &c.plan.Ports()[c.virtual[int(id)-len(c.live.Ports())]]
	} else if n := c.toPlan[p.Node().ID()]; n != none {
		planned = c.plan.Nodes()[n].Port(p.Num())
		e := End{Place: c.plan.Nodes()[n].Place(), Device: nodeName(&c.plan.Nodes()[n]), Port: p.Num(), GUID: p.Node().GUID(), Node: nodeName(p.Node())}
		if planned != nil {
			e.Panel = planned.PanelLabel()
		}
		e.Panel = cmp.Or(e.Panel, p.Panel())
		return e
	}
	if planned == nil {
		return End{Device: nodeName(p.Node()), Port: p.Num(), Panel: p.Panel(), GUID: p.Node().GUID(), Node: nodeName(p.Node())}
	}
	return End{Place: planned.Node().Place(), Device: nodeName(planned.Node()), Port: planned.Num(), Panel: cmp.Or(planned.PanelLabel(), planned.Panel())}
}

// portName is a port of the plan in texts.
func portName(p *fabric.Port) string { return nodeName(p.Node()) + "/" + strconv.Itoa(p.Num()) }

// bundle makes one action of the links of one cable that has several planes: the plan has all of them
// in one row. If only some are down, that is a plane.
func (c *comparison) bundle() {
	links := map[string]int{} // by row of the plan
	for i := range c.plan.Ports() {
		p := &c.plan.Ports()[i]
		if q := p.Peer(); q != nil && q.ID() > p.ID() {
			if s := p.PlanCable().Source; s != "" {
				links[s]++
			}
		}
	}
	type key struct {
		source string
		kind   Kind
		verb   Verb
	}
	first := map[key]*Action{}
	c.Actions = slices.DeleteFunc(c.Actions, func(x *Action) bool {
		if x.Steps > 1 || links[x.Source] < 2 {
			return false
		}
		k := key{x.Source, x.Kind, x.Verb}
		if y := first[k]; y != nil {
			y.Links++
			y.want = append(y.want, x.want...)
			return true
		}
		first[k] = x
		return false
	})
	for _, x := range c.Actions {
		if all := links[x.Source]; all > 1 && x.Steps == 1 && x.Links < all && (x.Kind == Missing || x.Kind == Down) {
			x.Kind, x.Verb = PlaneDown, Reseat
			x.Found = fmt.Sprintf("%d of %d planes have no link", x.Links, all)
		}
	}
}

// darkDevices makes one action of the cables of a device that has no link at all, if there are several.
func (c *comparison) darkDevices() {
	dark := map[string][]*Action{}
	name := func(x *Action) string {
		switch {
		case x.Verb != Connect || x.Steps > 1:
		case x.From.Node == "":
			return x.From.Device
		case x.To.Node == "":
			return x.To.Device
		}
		return ""
	}
	for _, x := range c.Actions {
		dark[name(x)] = append(dark[name(x)], x)
	}
	c.Actions = slices.DeleteFunc(c.Actions, func(x *Action) bool {
		list := dark[name(x)]
		if name(x) == "" || len(list) < 2 || x != list[0] {
			return name(x) != "" && len(list) > 1
		}
		if x.From.Node != "" {
			x.From, x.To = x.To, x.From
		}
		device := x.From.Device
		x.From.Port, x.From.Panel, x.To, x.Label, x.Source = 0, "", End{}, "", ""
		x.Verb = PowerOn
		for _, y := range list[1:] {
			x.Links += y.Links
			x.want = append(x.want, y.want...)
		}
		x.Found = fmt.Sprintf("%s was not found: its %d cables have no link", device, x.Links)
		x.Planned, x.Check = device+" is on and connected", device+" has links"
		sum := sha256.Sum256([]byte(device))
		x.ID = hex.EncodeToString(sum[:4])
		x.Chain = x.ID
		return false
	})
}

// sort orders the chains by the place where they begin.
func (c *comparison) sort() {
	at := map[string]int{} // chain: its first action
	for i, x := range c.Actions {
		if _, ok := at[x.Chain]; !ok {
			at[x.Chain] = i
		}
	}
	all := slices.Clone(c.Actions)
	slices.SortStableFunc(c.Actions, func(a, b *Action) int {
		x, y := all[at[a.Chain]], all[at[b.Chain]]
		return cmp.Or(comparePlaces(x.From.Place, y.From.Place), fabric.CompareNames(x.From.Device, y.From.Device), cmp.Compare(x.From.Port, y.From.Port), cmp.Compare(x.Chain, y.Chain), cmp.Compare(a.Step, b.Step))
	})
}

func comparePlaces(a, b fabric.Place) int {
	return cmp.Or(fabric.CompareNames(a.Hall, b.Hall), fabric.CompareNames(a.Row, b.Row), fabric.CompareNames(a.Rack, b.Rack), fabric.CompareNames(b.Unit, a.Unit))
}

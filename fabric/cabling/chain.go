package cabling

import (
	"slices"
	"strconv"

	"fabsh/fabric"
	"fabsh/mad"
)

// chains makes actions of the paths and cycles of cables that are not as planned.
func (c *comparison) chains() {
	seen := make([]bool, len(c.want))
	for id := range c.want {
		if !seen[id] && (c.want[id] == none) != (c.have[id] == none) {
			c.path(c.follow(int32(id), c.want[id] != none, seen))
		}
	}
	for id := range c.want {
		if !seen[id] && c.want[id] != none {
			ports, _ := c.follow(int32(id), true, seen)
			c.cycle(ports)
		}
	}
}

// follow returns the ports along planned and found cables by turns, from a port on; planned: the
// first cable is a planned one. It ends where no cable follows, or where it began.
func (c *comparison) follow(at int32, planned bool, seen []bool) (ports []int32, first bool) {
	first = planned
	for at != none && !seen[at] {
		seen[at] = true
		ports = append(ports, at)
		if planned {
			at = c.want[at]
		} else {
			at = c.have[at]
		}
		planned = !planned
	}
	return ports, first
}

// path makes the actions of a path. The end of a planned cable at which nothing is plugged in is free:
// the plug that belongs there moves there, which frees the port of the next one. A plug that belongs
// nowhere is removed first; a cable that is left over is connected last.
func (c *comparison) path(ports []int32, planned bool) {
	last := len(ports) - 1
	if last == 0 { // a plug that connects a port with itself
		x := c.action(Undefined, Remove, ports[0], ports[0])
		x.Found, x.Planned, x.Check = "a plug connects the port with itself", "no cable", "no link at "+x.From.String()
		c.single(x)
		return
	}
	endsPlanned := planned == (last%2 == 1)
	switch {
	case last == 1 && planned:
		c.single(c.connect(ports[0], ports[1]))
		return
	case last == 1:
		c.single(c.remove(ports[0], ports[1]))
		return
	case !planned && endsPlanned, planned && endsPlanned && c.port(ports[0]) == nil && c.port(ports[last]) != nil:
		slices.Reverse(ports) // begins with a planned cable, and not at a device that is out of reach
		planned = true
	case !planned && c.toPlan[c.port(ports[last]).Node().ID()] == none:
		slices.Reverse(ports) // removes the cable of a device that the plan does not have
	}
	var list []*Action
	if !planned {
		list = append(list, c.remove(ports[0], ports[1]))
		ports = ports[1:]
	}
	for len(ports) > 2 {
		list = append(list, c.move(ports[2], ports[0], ports[1]))
		ports = ports[2:]
	}
	if len(ports) == 2 {
		list = append(list, c.connect(ports[0], ports[1]))
	}
	c.chain(list)
}

// cycle makes the actions of a cycle: the planned cables are from ports[2*i] to ports[2*i+1], those
// found from ports[2*i+1] to ports[2*i+2]. Every second plug moves; of the two ways, the one with
// the shorter walk is chosen.
func (c *comparison) cycle(ports []int32) {
	other := slices.Clone(ports)
	slices.Reverse(other) // the other way has the other ports first
	if c.walk(other) < c.walk(ports) {
		ports = other
	}
	low := 0 // begin at the lowest, whatever port was found first
	for i := 2; i < len(ports); i += 2 {
		if ports[i] < ports[low] {
			low = i
		}
	}
	ports = slices.Concat(ports[low:], ports[:low])
	n := len(ports)
	if n == 4 {
		x := c.action(Miswired, Swap, ports[0], ports[2])
		x.Stays = c.endAt(c.have[ports[0]])
		// The cable at ports[0] is with ports[3], that at ports[2] with ports[1].
		c.identifySwap(x, ports)
		x.Found = c.pair(ports[0], ports[3]) + ", " + c.pair(ports[2], ports[1])
		x.Planned = c.pair(ports[0], ports[1]) + ", " + c.pair(ports[2], ports[3])
		x.Check = c.check(c.endAt(ports[0]), c.endAt(ports[1]), "") + ", " + c.check(c.endAt(ports[2]), c.endAt(ports[3]), "")
		x.want = [][2]End{{c.endAt(ports[0]), c.endAt(ports[1])}, {c.endAt(ports[2]), c.endAt(ports[3])}}
		c.single(x)
		return
	}
	var list []*Action
	for i := 0; i+2 < n; i += 2 {
		list = append(list, c.move(ports[i+2], ports[i], ports[i+1]))
	}
	list = append(list, c.move(ports[0], ports[n-2], ports[n-1]))
	list[0].First = "unplug the cable at " + c.endAt(ports[0]).String() + " and keep its plug for step " + strconv.Itoa(len(list))
	c.chain(list)
}

// identifySwap gives a swap the lower ID of its two cables.
func (c *comparison) identifySwap(x *Action, ports []int32) {
	y := *x
	c.identify(x, ports[0], ports[1])
	c.identify(&y, ports[2], ports[3])
	if y.ID < x.ID {
		x.ID, x.Label, x.Source = y.ID, y.Label, y.Source
	}
}

// walk is how far apart the plugs at every second port are, and how hard to reach: the number of
// racks, then of devices, then of hosts.
func (c *comparison) walk(ports []int32) int {
	racks, nodes, hosts := map[fabric.Place]bool{}, map[string]bool{}, 0
	for i := 0; i < len(ports); i += 2 {
		e := c.endAt(ports[i])
		nodes[e.Device] = true
		e.Place.Unit = ""
		racks[e.Place] = true
		if p := c.port(ports[i]); p == nil || !p.Node().IsSwitch() {
			hosts++
		}
	}
	return len(racks)<<40 + len(nodes)<<20 + hosts
}

// chain adds actions in their order. Their ID as a chain is that of the last one, which stays when
// the others are done.
func (c *comparison) chain(list []*Action) {
	for i, x := range list {
		x.Chain, x.Step, x.Steps = list[len(list)-1].ID, i+1, len(list)
	}
	c.Actions = append(c.Actions, list...)
}

// move moves a plug of the cable that stays at a port.
func (c *comparison) move(from, to, stays int32) *Action {
	x := c.action(Miswired, Move, from, to)
	x.Stays = c.endAt(stays)
	c.identify(x, to, stays)
	x.Found, x.Planned = c.pair(stays, from), c.pair(stays, to)
	if c.port(to) == nil {
		x.Found += "; " + x.To.Device + " was not found"
	}
	x.Check = c.check(x.Stays, x.To, "")
	x.want = [][2]End{{x.Stays, x.To}}
	return x
}

// connect puts a cable where both ports are free.
func (c *comparison) connect(a, b int32) *Action {
	x := c.action(Missing, Connect, a, b)
	x.Planned = c.pair(a, b)
	x.Check = c.check(x.From, x.To, "")
	x.want = [][2]End{{x.From, x.To}}
	x.Found = "no link"
	for _, id := range []int32{a, b} {
		p := c.port(id)
		if p == nil {
			x.Found = "no link; " + c.endAt(id).Device + " was not found: is it on?"
			continue
		}
		if c.have[id] == id {
			x.First = "remove the plug that connects " + c.endAt(id).String() + " with itself"
		}
		switch state := p.PhysicalState(); state {
		case mad.PortPhysicalStateDisabled:
			x.Kind, x.Verb = Down, Reseat
			x.Found, x.First = "port "+c.endAt(id).String()+" is disabled", "enable the port"
		case mad.PortPhysicalStatePortConfigurationTraining, mad.PortPhysicalStateLinkErrorRecovery:
			x.Kind, x.Verb = Down, Reseat
			x.Found = "the link does not come up: " + state.String()
		}
	}
	return x
}

// remove takes out a cable.
func (c *comparison) remove(a, b int32) *Action {
	if c.toPlan[c.port(a).Node().ID()] == none {
		a, b = b, a
	}
	x := c.action(Undefined, Remove, a, b)
	x.Found, x.Planned = c.pair(a, b), "no cable"
	x.Check = "no link at " + x.From.String() + " and " + x.To.String()
	return x
}

// pair names a cable by its ends.
func (c *comparison) pair(a, b int32) string {
	return c.endAt(a).String() + " - " + c.endAt(b).String()
}

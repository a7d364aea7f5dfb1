package sim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"fabsh/fabric/sim/agent"
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// Cables changes the cables of a subnet, the power of its nodes and the speed of links, while it
// runs. The switches at the ends of changed links report to their subnet manager.
type Cables struct {
	subnet  *state.Subnet
	traffic *state.Traffic
	sm      *agent.Manager
	keys    managementKey // what the subnet manager sets in ports
}

// managementKey is an M_Key and its protection level.
type managementKey struct {
	Key   uint64
	Level uint8
}

// newCables returns the Cables of a subnet.
func newCables(s *state.Subnet, t *state.Traffic, m *agent.Manager, keys managementKey) *Cables {
	return &Cables{subnet: s, traffic: t, sm: m, keys: keys}
}

// Unlink unplugs the cable of a port of the node with that GUID; Link plugs it in again.
// The agents of the switches at its ends send traps to the subnet manager, which reports
// them to its subscribers and sweeps: it activates the links that came up, and computes
// the forwarding tables of all switches again.
func (c *Cables) Unlink(node mad.GUID, num int) error {
	return c.changeCable(node, num, func(p *state.Port) {
		c.unplug(p)
	})
}

// unplug pulls the cable out of p.
func (c *Cables) unplug(p *state.Port) {
	p.Unplugged, p.Peer.Unplugged = true, true
	if p.Up {
		p.LinkDown(mad.PortPhysicalStatePolling)
		c.sm.LinksChanged(p, p.Peer)
	}
}

// Link plugs in the cable that Unlink unplugged.
func (c *Cables) Link(node mad.GUID, num int) error {
	return c.changeCable(node, num, func(p *state.Port) {
		p.Unplugged, p.Peer.Unplugged = false, false
		if !p.Up {
			if p.Train(); p.Up {
				c.sm.LinksChanged(p, p.Peer)
			}
		}
	})
}

// Recover has the link at a port recover from errors without going down.
func (c *Cables) Recover(node mad.GUID, num int) error {
	var recovered error
	err := c.changeCable(node, num, func(p *state.Port) { recovered = p.Recover() })
	return cmp.Or(err, recovered)
}

// Silence makes a port lose all MADs, in both directions, while its link stays up
// (Options.Dead), or ends this.
func (c *Cables) Silence(node mad.GUID, num int, silent bool) error {
	return c.changeCable(node, num, func(p *state.Port) { p.Dead = silent })
}

// SetEthernet moves a port of an adapter to an Ethernet network, as when its type is changed: its
// link goes down, and does not train. Or it moves the port back.
func (c *Cables) SetEthernet(node mad.GUID, num int, on bool) error {
	return c.traffic.Change(func() (*state.Port, error) {
		p, err := c.subnet.PortByGUID(node, num)
		if err == nil && (p.Node.IsSwitch || num == 0) {
			err = fmt.Errorf("port %d of %s is not a port of an adapter", num, p.Node.Label)
		}
		return p, err
	}, func(p *state.Port) error {
		was := p.Up
		if p.Ethernet = on; on {
			p.LinkDown(mad.PortPhysicalStateDisabled)
		} else if !was {
			p.LinkDown(mad.PortPhysicalStatePolling)
		}
		if was != p.Up {
			c.sm.LinksChanged(p, p.Peer)
		}
		return nil
	})
}

func (c *Cables) changeCable(node mad.GUID, num int, change func(*state.Port)) error {
	return c.traffic.Change(func() (*state.Port, error) {
		n := c.subnet.NodeByGUID(node)
		switch {
		case n == nil:
			return nil, fmt.Errorf("the simulated fabric has no node with GUID %v", node)
		case num < 1 || num >= len(n.Ports):
			return nil, fmt.Errorf("%s has ports 1 to %d, no port %d", n.Label, len(n.Ports)-1, num)
		case n.Ports[num].Peer == nil:
			return nil, fmt.Errorf("port %d of %s has no cable", num, n.Label)
		}
		return &n.Ports[num], nil
	}, func(p *state.Port) error {
		change(p)
		return nil
	})
}

// Recable pulls all cables at the given ports, and plugs in new ones, one for
// each pair. The switches at the old and the new ends report to the subnet manager, as
// with Unlink and Link.
func (c *Cables) Recable(pairs ...[2]state.Cable) error {
	c.subnet.Lock()
	defer c.subnet.Unlock()
	var ports [][2]*state.Port
	taken := map[*state.Port]bool{}
	for _, pair := range pairs {
		var ends [2]*state.Port
		for i, end := range pair {
			p, err := c.subnet.PortByGUID(end.Node, end.Num)
			switch {
			case err != nil:
				return err
			case p.Num == 0:
				return fmt.Errorf("port 0 of %s takes no cable", p.Node.Label)
			case taken[p]:
				return fmt.Errorf("port %d of %s is named twice, but takes one end of a cable", p.Num, p.Node.Label)
			}
			ends[i], taken[p] = p, true
		}
		ports = append(ports, ends)
	}
	c.traffic.BeforeChange()
	var changed []*state.Port
	for _, pair := range ports {
		for _, p := range pair {
			q := p.Peer
			if q == nil {
				continue
			}
			if p.Up {
				changed = append(changed, p, q)
			}
			p.Unplugged, q.Unplugged = true, true
			p.LinkDown(mad.PortPhysicalStatePolling)
			p.Peer, q.Peer = nil, nil
			p.Unplugged, q.Unplugged = false, false
			p.Limit, q.Limit = nil, nil
		}
	}
	for _, pair := range ports {
		p, q := pair[0], pair[1]
		p.Peer, q.Peer = q, p
		if p.Train(); p.Up {
			changed = append(changed, p, q)
		}
	}
	c.sm.LinksChanged(changed...)
	return nil
}

// Swap exchanges the cables of two ports: each gets the other's.
func (c *Cables) Swap(a, b state.Cable) error {
	c.subnet.RLock()
	p, err := c.subnet.PortByGUID(a.Node, a.Num)
	var q *state.Port
	if err == nil {
		q, err = c.subnet.PortByGUID(b.Node, b.Num)
	}
	var far [2]state.Cable
	if err == nil {
		for i, end := range []*state.Port{p, q} {
			if end.Peer == nil {
				err = fmt.Errorf("port %d of %s has no cable", end.Num, end.Node.Label)
				break
			}
			far[i] = state.Cable{Node: end.Peer.Node.Origin, Num: int(end.Peer.Num)}
		}
	}
	c.subnet.RUnlock()
	switch {
	case err != nil:
		return err
	case p == q, p.Peer == q:
		return fmt.Errorf("the two ports are one, or joined by a cable: exchanging their cables changes nothing")
	}
	return c.Recable([2]state.Cable{a, far[1]}, [2]state.Cable{b, far[0]})
}

// Commands of a server's console. Ports are named by the index of their node, for GUIDs
// need not be unique.

var (
	errNotLinked = errors.New("is not linked")
	errWasLinked = errors.New("was not linked before")
	errLinked    = errors.New("is linked already")
)

// Pull pulls the cable out of a port; Plug plugs it in again.
func (c *Cables) Pull(at state.End) error {
	return c.handle(at, 1, func(p *state.Port) error {
		if p.Peer == nil || p.Unplugged {
			return errNotLinked
		}
		c.unplug(p)
		return nil
	})
}

// Plug plugs in again the cable that Pull pulled.
func (c *Cables) Plug(at state.End) error {
	return c.handle(at, 1, func(p *state.Port) error {
		if p.Peer == nil || !p.Unplugged {
			return errWasLinked
		}
		c.plug(p, p.Peer)
		return nil
	})
}

// Connect links two ports that are not linked.
func (c *Cables) Connect(a, b state.End) error {
	return c.handle(a, 1, func(p *state.Port) error {
		q, err := c.subnet.PortByIndex(b, 1)
		switch {
		case err != nil:
			return err
		case p == q, p.Peer != nil && !p.Unplugged, q.Peer != nil && !q.Unplugged:
			return errLinked
		}
		for _, end := range []*state.Port{p, q} {
			if end.Peer != nil {
				end.Peer.Peer, end.Peer.Unplugged, end.Peer.Limit = nil, false, nil
				end.Limit = nil
			}
		}
		c.plug(p, q)
		return nil
	})
}

// plug links two ports.
func (c *Cables) plug(p, q *state.Port) {
	p.Peer, q.Peer, p.Unplugged, q.Unplugged = q, p, false, false
	for _, end := range []*state.Port{p, q} {
		if !end.Up {
			end.SetDown(mad.PortPhysicalStatePolling)
		}
	}
	if p.Train(); p.Up {
		c.sm.LinksChanged(p, p.Peer)
	}
}

// handle changes a port by a function; least is the lowest valid port number.
func (c *Cables) handle(at state.End, least int, change func(*state.Port) error) error {
	return c.traffic.Change(func() (*state.Port, error) { return c.subnet.PortByIndex(at, least) }, change)
}

// Kill switches a node off: its links go down, its agents do not answer. If the subnet
// manager was on it, the subnet has no subnet manager until RestartSM.
func (c *Cables) Kill(node mad.GUID) error { return c.power(node, false) }

// Reboot switches a node off, unless it is off, and on again: its agents begin with
// their default settings.
func (c *Cables) Reboot(node mad.GUID) error { return c.power(node, true) }

func (c *Cables) power(node mad.GUID, again bool) error {
	c.subnet.Lock()
	defer c.subnet.Unlock()
	n := c.subnet.NodeByGUID(node)
	if n == nil {
		return fmt.Errorf("the simulated fabric has no node with GUID %v", node)
	}
	c.traffic.BeforeChange()
	if !n.Off {
		n.Off = true
		c.linksChanged(n, func(p *state.Port) bool {
			was := p.Up
			if was {
				p.LinkDown(mad.PortPhysicalStatePolling)
			}
			return was
		})
	}
	if again {
		n.Off = false
		c.forget(n)
		c.linksChanged(n, func(p *state.Port) bool {
			if p.Peer == nil || p.Up {
				return false
			}
			p.Train()
			return p.Up
		})
	}
	return nil
}

// linksChanged changes the links of a node, and notifies the nodes at the other ends, in
// one step.
func (c *Cables) linksChanged(n *state.Node, change func(*state.Port) bool) {
	var changed []*state.Port
	for i := range n.Ports {
		if p := &n.Ports[i]; p.Num > 0 && p.Peer != nil && change(p) {
			changed = append(changed, p, p.Peer)
		}
	}
	c.sm.LinksChanged(changed...)
}

// forget resets the memory of a node: tables, counters, LIDs, M_Keys. A subnet manager in
// this process assigns its LIDs again.
func (c *Cables) forget(n *state.Node) {
	n.Measurement = nil
	for i := range n.Ports {
		p := &n.Ports[i]
		p.Counters, p.LeaseEnd, p.Light = state.Counters{}, time.Time{}, false
		info := p.PortInfo()
		info.MKey, info.MKeyProtectBits, info.MKeyLeasePeriod = 0, 0, 0
		info.MKeyViolations, info.PKeyViolations, info.QKeyViolations = 0, 0, 0
		if c.subnet.SM == nil {
			c.subnet.SetLID(p, 0, 0)
			info.LID, info.LMC, info.MasterSMLID, info.MasterSMSL = 0, 0, 0, 0
		} else if p == p.EndPort() {
			info.MKey, info.MKeyProtectBits = c.keys.Key, c.keys.Level
		}
		p.SetInfo(&info)
	}
	for key := range c.subnet.Blocks {
		if key.Port.Node == n {
			delete(c.subnet.Blocks, key)
		}
	}
	if c.subnet.SM == nil && n.IsSwitch {
		n.LFT = nil
		n.SetTop(0)
	}
}

// SetLink has the cable at a port carry no faster speed and no wider width than those of a
// limit, such as "hdr" and "2x", and trains its link. Both ends then support and have enabled
// them too; what they had enabled before stays. A limit that Once does not set lasts until
// another one, or another cable.
func (c *Cables) SetLink(node mad.GUID, num int, l state.Limit) error {
	if l.Speed != "" && (state.LaneRate(l.Speed) == 0 || !slices.Contains(mad.Speeds(), l.Speed)) {
		return fmt.Errorf("unknown speed %q; speeds: %q", l.Speed, mad.Speeds())
	}
	if l.Width != "" && mad.WidthLanes(l.Width) == 0 {
		return fmt.Errorf("unknown width %q; widths: %q", l.Width, mad.Widths())
	}
	return c.changeCable(node, num, func(p *state.Port) {
		if before := p.Limit; before != nil {
			l.Speed, l.Width = cmp.Or(l.Speed, before.Speed), cmp.Or(l.Width, before.Width)
		}
		for _, end := range []*state.Port{p, p.Peer} {
			end.Support(l.Speed, l.Width)
			end.Limit = &l
		}
		if p.Up {
			p.LinkDown(mad.PortPhysicalStatePolling)
			c.sm.LinksChanged(p, p.Peer)
		}
	})
}

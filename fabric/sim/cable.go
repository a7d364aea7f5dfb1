// Package cable changes the cables of a simulated subnet and the power of its nodes, while it
// runs. The switches at the ends of changed links report to their subnet manager.
//
//	cable.go    Cables: pulled, plugged, exchanged, by the GUIDs of nodes
//	console.go  the same by the indexes of nodes
//	power.go    nodes without power, and rebooted
//	speed.go    slow links

package sim

import (
	"fmt"

	"fabsh/fabric/sim/agent"
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// Cables changes the cables of a subnet.
type Cables struct {
	subnet  *state.Subnet
	traffic *state.Traffic
	sm      *agent.Manager
	keys    mkey // that the subnet manager sets in ports
}

// mkey is an M_Key and its protection level.
type mkey struct {
	Key   uint64
	Level uint8
}

// newCables returns the cables of a subnet.
func newCables(s *state.Subnet, t *state.Traffic, m *agent.Manager, keys mkey) *Cables {
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

// Silence makes a port lose all MADs, in both directions, while its link stays up
// (Options.Dead), or ends this.
func (c *Cables) Silence(node mad.GUID, num int, silent bool) error {
	return c.changeCable(node, num, func(p *state.Port) { p.Dead = silent })
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
			far[i] = state.Cable{Node: end.Peer.Node.GUID(), Num: int(end.Peer.Num)}
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

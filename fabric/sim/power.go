package sim

import (
	"fmt"
	"time"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

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

package sim

import (
	"errors"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

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
				end.Peer.Peer, end.Peer.Unplugged = nil, false
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

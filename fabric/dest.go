package fabric

import (
	"iter"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// Dest is how SMPs reach a node: along Route, by LID where that is nil.
type Dest struct {
	Route mad.DirectedRoute
	LID   mad.LID
	// Guard is the node whose M_Key they need, as far as known.
	Guard engine.Guard
}

// Put makes c an SMP to d and returns c. data is the payload of a Set.
func (d Dest) Put(c *engine.Call, m mad.Method, a *mad.Attribute, modifier uint32, data []byte) *engine.Call {
	c.PutSMP(m, a.ID, modifier, data)
	d.Address(c)
	return c
}

// Address sends c, an SMP, to d.
func (d Dest) Address(c *engine.Call) {
	c.Guard = d.Guard
	if d.Route != nil {
		c.SetRoute(d.Route)
	} else {
		c.SetLID(d.LID)
	}
}

// Guard is whose M_Key SMPs to n need, along its route or by its LID.
func (n *Node) Guard() engine.Guard {
	return engine.Guard{Port: n.info.PortGUID, Node: n.info.NodeGUID}
}

// Guard is whose M_Key SMPs to p need.
func (p *Port) Guard() engine.Guard { return engine.Guard{Port: p.GUID(), Node: p.Node().GUID()} }

// LMCs are the LIDs that ports have, and their LMCs, which engines need
// (engine.Engine.KnowLMCs).
func (f *Fabric) LMCs() iter.Seq2[mad.LID, uint8] {
	return func(yield func(mad.LID, uint8) bool) {
		for i := range f.ports {
			if p := &f.ports[i]; p.management() == p && p.LID() != 0 && !yield(p.LID(), uint8(p.LMC())) {
				return
			}
		}
	}
}

// NodeInfos are the NodeInfos of the nodes, which engines need (engine.Engine.KnowNodes).
func (f *Fabric) NodeInfos() iter.Seq[*mad.NodeInfo] {
	return func(yield func(*mad.NodeInfo) bool) {
		for i := range f.nodes {
			if info := f.nodes[i].Info(); info != nil && !yield(info) {
				return
			}
		}
	}
}

// PortAt is the port that a directed route comes in through, in a fabric that
// was discovered from the local port; nil where f does not know.
func (f *Fabric) PortAt(route mad.DirectedRoute) *Port {
	p := f.From()
	if p == nil || p.Node().route.Hops() > 0 || len(route) == 0 {
		return nil
	}
	for _, num := range route[1:] {
		if p = p.Node().Port(int(num)); p == nil || p.Peer() == nil {
			return nil
		}
		p = p.Peer()
	}
	return p
}

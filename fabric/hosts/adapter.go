package hosts

import (
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/routing/graph"
	"fabsh/mad"
)

// network are the switches, and the adapters at them: those of the fabric, and of the
// baseline what is absent from it.
type network struct {
	names    []string   // of switches
	guids    []mad.GUID // of switches
	links    [][]edge   // by switch
	adapters []adapter
	unit     joined // of leaves
	ports    int    // of compute nodes that are at switches
	dns      bool
	notes    notes
}

// edge is a link to a switch.
type edge struct {
	to   int
	port *fabric.Port // this end
}

// adapter is a port of a host, at a switch.
type adapter struct {
	host  string
	whole string // the name of the node
	node  *fabric.Node
	leaf  int
}

// newHealthNetwork takes the current fabric first, and of the baseline what takes no other's
// place: nodes are known by their GUIDs, and a port has one cable.
func newNetwork(f *fabric.Fabric, o GroupOptions) *network {
	n := &network{dns: o.DNS}
	now := n.add(f, o, nil, nil)
	if o.Baseline != nil {
		n.add(o.Baseline, o, f, now)
	}
	n.unit = newJoined(len(n.names))
	return n
}

// add adds a fabric. now, where it is not nil, is the one that was added before, and
// index are the numbers of its switches, by node.
func (n *network) add(f *fabric.Fabric, o GroupOptions, now *fabric.Fabric, index []int) []int {
	nodes := f.Nodes()
	own := make([]int, len(nodes))
	same := make([]*fabric.Node, len(nodes)) // in now
	for i := range nodes {
		node := &nodes[i]
		own[i] = -1
		if now != nil {
			if found := now.NodeByGUID(node.GUID()); len(found) == 1 && found[0].Type() == node.Type() {
				same[i] = found[0]
			}
		}
		switch {
		case !node.IsSwitch():
		case same[i] != nil:
			own[i] = index[same[i].ID()]
		default:
			own[i] = len(n.names)
			n.names, n.guids, n.links = append(n.names, node.Name()), append(n.guids, node.GUID()), append(n.links, nil)
		}
	}
	// taken reports whether the port now has a cable, or no longer exists.
	taken := func(p *fabric.Port) bool {
		if m := same[p.Node().ID()]; m != nil {
			q := m.Port(p.Num())
			return q == nil || q.Peer() != nil
		}
		return false
	}
	for i := range nodes {
		node := &nodes[i]
		for p := range node.Ports() {
			q := p.Peer()
			if q == nil || !q.Node().IsSwitch() || taken(p) || taken(q) {
				continue
			}
			leaf := own[q.Node().ID()]
			switch {
			case !node.IsSwitch():
				// Another adapter of the name has taken the place of this one.
				if now == nil || same[i] != nil || len(now.NodeByName(node.Name())) == 0 {
					n.attach(p, leaf, o)
				}
			case own[i] != leaf:
				n.links[own[i]] = append(n.links[own[i]], edge{leaf, p})
			}
		}
	}
	return own
}

// attach adds a port of a CA, where it is of a host.
func (n *network) attach(p *fabric.Port, leaf int, o GroupOptions) {
	if graph.Classify(o.Rules, p)&graph.ClassCN == 0 {
		if graph.Classify(ServiceRules(), p)&graph.ClassIO != 0 {
			n.notes.add("login or management host, which runs no jobs; left out (--class 'NAME=cn' includes it)", p.Node().Name())
		}
		return
	}
	n.ports++
	node := p.Node()
	host, ok := hostName(node.Name(), n.dns)
	if !ok {
		what := "name is not that of a host and its adapter; left out"
		if n.dns {
			what = "name is not that of a Kubernetes node and its adapter; left out"
		}
		n.notes.add(what, node.Name())
		return
	}
	n.adapters = append(n.adapters, adapter{host, node.Name(), node, leaf})
}

// hostName is the host in a node's name; false without one.
func hostName(name string, dns bool) (string, bool) {
	host, ok := fabric.HostName(name)
	if !ok || !dns {
		return host, ok
	}
	host = strings.ToLower(host)
	return host, fabric.IsDNSName(host)
}

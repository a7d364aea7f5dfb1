package format

import (
	"fmt"

	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// build makes the nodes and port lines of the rows.
func (p *portList) build() error {
	if err := p.findFarEnds(); err != nil {
		return err
	}
	p.deriveTypes()
	names := p.portNames()
	type group struct {
		t    mad.NodeType
		base mad.GUID // of the port, less its number: CAs number GUIDs so. Of a switch that of port 0
		name string
	}
	groups := map[group]int{}
	groupOf := func(e *portEnd) group {
		if e.t == mad.NodeTypeSwitch {
			return group{e.t, e.guid, ""}
		}
		return group{e.t, e.guid - mad.GUID(e.num), names[e.guid]}
	}
	for i := range p.rows {
		for _, e := range p.rows[i].ends() {
			k, ok := groups[groupOf(e)]
			if !ok {
				if err := p.countPorts(p.rows[i].at, 0, p.bytes); err != nil {
					return err
				}
				k = len(p.nodes)
				groups[groupOf(e)] = k
				n := node{at: p.rows[i].at, name: names[e.guid]}
				n.info = mad.NodeInfo{BaseVersion: 1, ClassVersion: 1, NodeType: e.t, NodeGUID: e.guid, PartitionCap: 1}
				if e.t == mad.NodeTypeSwitch {
					n.info.PortGUID = e.guid
				}
				p.nodes = append(p.nodes, n)
			}
			n := &p.nodes[k]
			n.info.NodeGUID = min(n.info.NodeGUID, e.guid)
			if e.t == mad.NodeTypeSwitch && e == &p.rows[i].near {
				n.lid = e.lid
			}
			if more := e.num - int(n.info.NumPorts); more > 0 {
				if err := p.countPorts(p.rows[i].at, more, p.bytes); err != nil {
					return err
				}
				n.info.NumPorts = uint8(e.num)
			}
		}
	}
	for i := range p.nodes {
		n := &p.nodes[i]
		n.id = fmt.Sprintf("%c-%016x", idLetter(n.info.NodeType), uint64(n.info.NodeGUID))
		if k, twice := p.ids[n.id]; twice {
			return fmt.Errorf("%s: expected a node with a GUID of its own, but %s is also that of the one at %s", n.at, n.info.NodeGUID, p.nodes[k].at)
		}
		p.ids[n.id] = i
	}
	return p.addLines(func(e *portEnd) int { return groups[groupOf(e)] })
}

func idLetter(t mad.NodeType) byte {
	switch t {
	case mad.NodeTypeSwitch:
		return 'S'
	case mad.NodeTypeRouter:
		return 'R'
	}
	return 'H'
}

func (r *portRow) ends() []*portEnd {
	if !r.connected {
		return []*portEnd{&r.near}
	}
	return []*portEnd{&r.near, &r.far}
}

// addLines gives nodes the lines of their ports. A port of a partial list that has none gets
// one from the other end.
func (p *portList) addLines(nodeOf func(*portEnd) int) error {
	type port struct{ node, num int }
	own := map[port]pos{}
	for i := range p.rows {
		r := &p.rows[i]
		k := port{nodeOf(&r.near), r.near.num}
		if at, twice := own[k]; twice {
			return fmt.Errorf("%s: expected one line for port %d of %s, but %s is one too", r.at, k.num, fabric.Clip(r.near.name), at)
		}
		own[k] = r.at
		l := portLine{at: r.at, num: r.near.num, guid: r.near.guid, lid: r.near.lid, rate: r.rate, state: r.state, physical: r.physical, open: !r.connected}
		if r.connected {
			l.far, l.farPort, l.farGUID = p.nodes[nodeOf(&r.far)].id, r.far.num, r.far.guid
		}
		p.nodes[k.node].lines = append(p.nodes[k.node].lines, l)
	}
	derived := 0
	var first pos
	for i := range p.rows {
		r := &p.rows[i]
		if !r.connected {
			continue
		}
		k := port{nodeOf(&r.far), r.far.num}
		if _, ok := own[k]; ok {
			continue
		}
		if derived++; derived == 1 {
			first = r.at
		}
		own[k] = r.at
		l := portLine{at: r.at, num: r.far.num, guid: r.far.guid, lid: r.far.lid, rate: r.rate, far: p.nodes[nodeOf(&r.near)].id, farPort: r.near.num, farGUID: r.near.guid}
		n := &p.nodes[k.node]
		n.lines = append(n.lines, l)
		if n.info.NodeType == mad.NodeTypeSwitch && n.lid == 0 {
			n.lid = r.far.lid
		}
	}
	if derived > 0 {
		p.problems = append(p.problems, fabric.Problem{Kind: fabric.ProblemCut, Text: fmt.Sprintf("%s: %s no line and %s derived from the other end; the list is partial, or lines are missing", first, plural.Count(derived, "port has", "ports have"), map[bool]string{true: "was", false: "were"}[derived == 1])})
	}
	return nil
}

// endKey is what iblinkinfo has of a link, from one end.
type endKey struct {
	lid, farLID   mad.LID
	num, farNum   int
	name, farName string
}

// findFarEnds gives the far ends that have no GUID those of the line that names this one
// in turn.
func (p *portList) findFarEnds() error {
	rows := map[endKey]int{}
	for i := range p.rows {
		r := &p.rows[i]
		if !r.connected || r.far.guid != 0 {
			continue
		}
		k := endKey{r.near.lid, r.far.lid, r.near.num, r.far.num, r.near.name, r.far.name}
		if j, twice := rows[k]; twice {
			return fmt.Errorf("%s: expected one link from port %d of %q to port %d of %q, but %s has one too: several nodes have these names; make the list with iblinkinfo -l, which has GUIDs", r.at, k.num, fabric.Clip(k.name), k.farNum, fabric.Clip(k.farName), p.rows[j].at)
		}
		rows[k] = i
	}
	for i := range p.rows {
		r := &p.rows[i]
		if !r.connected || r.far.guid != 0 {
			continue
		}
		j, ok := rows[endKey{r.far.lid, r.near.lid, r.far.num, r.near.num, r.far.name, r.near.name}]
		if ok {
			r.far.t, r.far.guid = p.rows[j].near.t, p.rows[j].near.guid
			continue
		}
		if p.orphans++; p.orphans == 1 {
			p.orphan = r.at
		}
		r.connected = false
	}
	return nil
}

// deriveTypes gives the ends without a type that of a switch where their GUID has several
// ports, else of a CA.
func (p *portList) deriveTypes() {
	nums := map[mad.GUID]int{} // the number of the port; -1: several
	for i := range p.rows {
		for _, e := range p.rows[i].ends() {
			if e.t != 0 {
				continue
			}
			p.untyped = true
			if num, ok := nums[e.guid]; ok && num != e.num {
				nums[e.guid] = -1
			} else if !ok {
				nums[e.guid] = e.num
			}
		}
	}
	for i := range p.rows {
		for _, e := range p.rows[i].ends() {
			switch {
			case e.t != 0:
			case nums[e.guid] < 0:
				e.t = mad.NodeTypeSwitch
			default:
				e.t = mad.NodeTypeCA
			}
		}
	}
}

// portNames are the names of nodes by the GUIDs of their ports: those of their own lines
// where they have some.
func (p *portList) portNames() map[mad.GUID]string {
	names := map[mad.GUID]string{}
	for i := range p.rows {
		if r := &p.rows[i]; r.connected {
			names[r.far.guid] = r.far.name
		}
	}
	for i := range p.rows {
		names[p.rows[i].near.guid] = p.rows[i].near.name
	}
	return names
}

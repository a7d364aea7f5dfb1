package change

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/change/certificate"
	"fabsh/fabric/plural"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// MaxDown returns how many links a plan may take down: 10, or one for 200 ports with a link if
// that is more (the limit of the deterministic isolation of UFM's PDR plug-in).
func MaxDown(f *fabric.Fabric) int { return max(10, 2*f.Links()/200) }

// CutOff describes nodes that lose their path to each other when links are down; "":
// none do. kept are ports whose hosts keep their paths by others: nodes that lose only these are
// not cut off.
func CutOff(f *fabric.Fabric, down map[*fabric.Port]bool, kept *KeptPorts) string {
	type group struct{ before, after string } // nodes with these are alike
	first, many := map[group]*fabric.Node{}, map[group]bool{}
	before, after := reachableParts(f, nil), reachableParts(f, down)
	sets := map[string][]int{}
	var groups []group
	for i := range f.Nodes() {
		if kept.all(&f.Nodes()[i], down) {
			continue
		}
		g := group{fmt.Sprint(before[i]), fmt.Sprint(after[i])}
		sets[g.before], sets[g.after] = before[i], after[i]
		if many[g] = first[g] != nil; !many[g] {
			first[g] = &f.Nodes()[i]
			groups = append(groups, g)
		}
	}
	share := func(a, b string) bool {
		return slices.ContainsFunc(sets[a], func(part int) bool { return slices.Contains(sets[b], part) })
	}
	for i, g := range groups {
		for _, h := range groups[:i+1] {
			if (g != h || many[g]) && share(g.before, h.before) && !share(g.after, h.after) {
				return fmt.Sprintf("%s and %s would lose the last path between them", first[h].Label(), first[g].Label())
			}
		}
	}
	return ""
}

// Isolates reports whether p takes a link down that stays down. Other links train again.
func (p *Plan) Isolates(f *fabric.Fabric) bool {
	return slices.ContainsFunc(p.Changes(), func(c certificate.Change) bool {
		port, stays := takenDown(f, &c)
		return port != nil && port.Peer() != nil && stays
	})
}

// OnlyLinks reports whether all changes of p are OfLink.
func (p *Plan) OnlyLinks() bool {
	changes := p.Changes()
	return len(changes) > 0 && !slices.ContainsFunc(changes, func(c certificate.Change) bool { return !c.OfLink() })
}

// NeedsTables reports whether p cannot be judged without the current forwarding tables.
func (p *Plan) NeedsTables(f *fabric.Fabric) bool {
	return len(p.takesDown(f)) > 0 || slices.ContainsFunc(p.Sets, func(s certificate.Change) bool {
		return s.Attr == mad.AttrLinearForwardingTable || s.Attr == mad.AttrSLtoVLMappingTable
	})
}

// checkPorts returns the reason why p must not disable or reset ports; "": it may. f is the
// current fabric. Links that are reset train one by one: for a moment nodes without another
// path lose their path. keys reads P_Keys.
func (p *Plan) checkPorts(ctx context.Context, f *fabric.Fabric, keys PKeys) (string, error) {
	down, links := map[*fabric.Port]bool{}, 0
	for _, c := range p.Changes() {
		port, stays := takenDown(f, &c)
		if port == nil || port.Peer() == nil || down[port] {
			continue
		}
		if links++; !stays {
			continue
		}
		if peer := port.Peer(); !port.Node().IsSwitch() && peer.Node().IsSwitch() {
			return fmt.Sprintf("%s: port of a %v, which perhaps only its host can enable again; disable %s, at the other end", port.Name(), port.Node().Type(), peer.Name()), nil
		}
		down[port], down[port.Peer()] = true, true
	}
	if links > MaxDown(f) {
		return fmt.Sprintf("%d links go down; the maximum is %d: 10, or 0.5 %% of the ports with a link", links, MaxDown(f)), nil
	}
	if len(down) == 0 {
		return "", nil
	}
	kept, err := KeepPorts(ctx, f, down, keys, nil)
	if err != nil {
		return "", err
	}
	reason := CutOff(f, down, kept)
	if why := kept.Why(inOrder(down)...); reason != "" && why != "" {
		reason += "; no other port of the host keeps its paths: " + why
	}
	return reason, nil
}

// takesDown returns the ports whose links p takes down, one end of each.
func (p *Plan) takesDown(f *fabric.Fabric) (ports []*fabric.Port) {
	for _, c := range p.Changes() {
		port, _ := takenDown(f, &c)
		if port != nil && port.Peer() != nil && !slices.Contains(ports, port) && !slices.Contains(ports, port.Peer()) {
			ports = append(ports, port)
		}
	}
	return ports
}

// predict gives r the effect of the links that p takes down. tables are the new tables; nil:
// the tables of t stay. Without a subnet manager, pairs whose packets take these links lose
// their path.
func (p *Plan) predict(ctx context.Context, r *Report, t *Tables, tables *routes.Routes) (err error) {
	down := p.takesDown(t.Live.Graph().Fabric())
	if len(down) == 0 {
		return nil
	}
	if tables == nil {
		tables = t.Live
	}
	o := PredictOptions{Managed: p.Base.Manager != nil, Manager: t.Manager, Needed: t.Last, Lanes: t.InLanes, PKeys: t.PKeys}
	if o.Managed {
		o.Manager.LID = p.Base.Manager.LID
	}
	r.Effect, err = PredictEffect(ctx, tables, down, o)
	if err != nil || r.Effect.Managed || r.Effect.Through == 0 {
		return err
	}
	r.OK = false
	text := fmt.Sprintf("the tables route %s over links that go down, and no subnet manager makes new ones; plan new tables first", plural.Count(int(r.Effect.Through), "pair", "pairs"))
	r.Reason = strings.TrimPrefix(r.Reason+"; "+text, "; ")
	return nil
}

// takenDown returns the port that a change takes down, permanently or to retrain its
// link; nil: none.
func takenDown(f *fabric.Fabric, c *certificate.Change) (port *fabric.Port, stays bool) {
	switch from, to, _ := c.PortState(); {
	case to == mad.PortPhysicalStateDisabled || to == mad.PortPhysicalStateSleep:
		return c.PortIn(f), true
	case to == mad.PortPhysicalStatePolling && from == mad.PortPhysicalStateLinkUp:
		return c.PortIn(f), false
	}
	return nil, false
}

// isolatedNode names a CA or router whose links all go down, and not only kept ones; "": none does.
func isolatedNode(f *fabric.Fabric, down map[*fabric.Port]bool, kept *KeptPorts) string {
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		if n.IsSwitch() {
			continue
		}
		lost, left := false, false
		for port := range n.Ports() {
			lost = lost || down[port] && kept.By[port] == nil
			left = left || port.Peer() != nil && !down[port]
		}
		if lost && !left {
			return n.Label()
		}
	}
	return ""
}

// reachableParts returns, by node id, the parts of f, connected by switches, that nodes are in
// or have a port to. Links that are down are left out.
func reachableParts(f *fabric.Fabric, down map[*fabric.Port]bool) [][]int {
	parts := switchParts(f, down)
	all := make([][]int, len(f.Nodes()))
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		if n.IsSwitch() {
			all[i] = []int{parts[i]}
			continue
		}
		for port := range n.Ports() {
			peer := port.Peer()
			if peer == nil || down[port] {
				continue
			}
			part := parts[peer.Node().ID()]
			if !peer.Node().IsSwitch() {
				part = -1 - min(port.ID(), peer.ID()) // these two alone
			}
			if !slices.Contains(all[i], part) {
				all[i] = append(all[i], part)
			}
		}
		slices.Sort(all[i])
	}
	return all
}

// switchParts numbers the parts of f that switches connect, by node id, from 1.
func switchParts(f *fabric.Fabric, down map[*fabric.Port]bool) []int {
	part := make([]int, len(f.Nodes()))
	count := 0
	switches := f.OfType(mad.NodeTypeSwitch)
	for i := range switches {
		if part[switches[i].ID()] != 0 {
			continue
		}
		count++
		part[switches[i].ID()] = count
		for queue := []*fabric.Node{&switches[i]}; len(queue) > 0; queue = queue[1:] {
			for port := range queue[0].Ports() {
				peer := port.Peer()
				if peer == nil || down[port] || !peer.Node().IsSwitch() || part[peer.Node().ID()] != 0 {
					continue
				}
				part[peer.Node().ID()] = count
				queue = append(queue, peer.Node())
			}
		}
	}
	return part
}

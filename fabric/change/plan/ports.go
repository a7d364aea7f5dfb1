package plan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/change/effect"
	"fabsh/fabric/plural"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/traffic"
	"fabsh/mad"
)

// maxDown is how many ports a plan may disable: 10, or one of 200 if that is more (the
// limit of the deterministic isolation of UFM's PDR plug-in).
func maxDown(f *fabric.Fabric) int { return max(10, 2*f.Links()/200) }

// checkPorts returns why ports must not be disabled or reset as p does; "" if they may.
// f is the current fabric. Links that are reset are up again, one after the other: for
// a moment nodes without another path lose theirs.
func (p *Plan) checkPorts(f *fabric.Fabric) string {
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
			return fmt.Sprintf("%s: port of a %v, which perhaps only its host can enable again; disable %s, at the other end", port.Name(), port.Node().Type(), peer.Name())
		}
		down[port], down[port.Peer()] = true, true
	}
	if links > maxDown(f) {
		return fmt.Sprintf("%d links go down; the maximum is %d: 10, or 0.5 %% of the ports with a link", links, maxDown(f))
	}
	if len(down) == 0 {
		return ""
	}
	return effect.CutOff(f, down)
}

// takesDown returns the ports, of both ends, whose links p takes down.
func (p *Plan) takesDown(f *fabric.Fabric) map[*fabric.Port]bool {
	down := map[*fabric.Port]bool{}
	for _, c := range p.Changes() {
		if port, _ := takenDown(f, &c); port != nil && port.Peer() != nil {
			down[port], down[port.Peer()] = true, true
		}
	}
	return down
}

// NeedsTables reports whether p cannot be judged without the current forwarding tables.
func (p *Plan) NeedsTables(f *fabric.Fabric) bool {
	return len(p.takesDown(f)) > 0 || slices.ContainsFunc(p.Sets, func(s Set) bool {
		return s.Attr == mad.AttrLinearForwardingTable || s.Attr == mad.AttrSLtoVLMappingTable
	})
}

// throughDown describes pairs whose packets the tables route over a link that p takes
// down: tables are the new ones, nil if the current ones stay. A subnet manager in
// charge makes new ones; without it these pairs lose their path.
func (p *Plan) throughDown(ctx context.Context, r *Report, live, tables *routes.Routes) error {
	down := p.takesDown(live.Graph().Fabric())
	if len(down) == 0 {
		return nil
	}
	if tables == nil {
		tables = live
	}
	cut := tables.Clone()
	for s, n := range cut.Graph().Switches() {
		row := cut.Row(s)
		for lid, port := range row {
			if out := n.Port(int(port)); port != mad.NoPort && out != nil && down[out] {
				row[lid] = mad.NoPort
			}
		}
	}
	paths, err := traffic.CountRerouted(ctx, cut, tables, func(p *fabric.Port) *fabric.Port { return p })
	if err != nil || paths.Broken == 0 {
		return err
	}
	text := fmt.Sprintf("the tables route %s over links that go down", plural.Count(int(paths.Broken), "pair", "pairs"))
	if p.Base.Manager != nil {
		r.NotJudged = append(r.NotJudged, text+": their packets are lost until the subnet manager writes new tables")
		return nil
	}
	r.OK = false
	r.Reason = strings.TrimPrefix(r.Reason+"; "+text+", and no subnet manager makes new ones; plan new tables first", "; ")
	return nil
}

// takenDown returns the port that a change takes down, permanently or to retrain its
// link; nil: none.
func takenDown(f *fabric.Fabric, c *Change) (port *fabric.Port, stays bool) {
	nodes := f.NodeByGUID(c.Target.GUID)
	if c.Attr != mad.AttrPortInfo || len(nodes) != 1 {
		return nil, false
	}
	for _, field := range c.Fields {
		if field.Name != "port_physical_state" {
			continue
		}
		switch port := nodes[0].Port(int(c.Set.Place().At)); mad.PortPhysicalState(field.New) {
		case mad.PortPhysicalStateDisabled, mad.PortPhysicalStateSleep:
			return port, true
		case mad.PortPhysicalStatePolling:
			if mad.PortPhysicalState(field.Old) == mad.PortPhysicalStateLinkUp {
				return port, false
			}
		}
	}
	return nil, false
}

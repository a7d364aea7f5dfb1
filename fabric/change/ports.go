package change

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// MaxDown returns how many links a plan may take down: 10, or one for 200 ports with a link if
// that is more (the limit of the deterministic isolation of UFM's PDR plug-in).
func MaxDown(f *fabric.Fabric) int { return max(10, 2*f.Links()/200) }

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
	if links > MaxDown(f) {
		return fmt.Sprintf("%d links go down; the maximum is %d: 10, or 0.5 %% of the ports with a link", links, MaxDown(f))
	}
	if len(down) == 0 {
		return ""
	}
	return CutOff(f, down)
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

// NeedsTables reports whether p cannot be judged without the current forwarding tables.
func (p *Plan) NeedsTables(f *fabric.Fabric) bool {
	return len(p.takesDown(f)) > 0 || slices.ContainsFunc(p.Sets, func(s Set) bool {
		return s.Attr == mad.AttrLinearForwardingTable || s.Attr == mad.AttrSLtoVLMappingTable
	})
}

// predict gives r the effect of the links that p takes down. tables are the new ones, nil if
// those of t stay. Without a subnet manager pairs whose packets take these links lose their
// path.
func (p *Plan) predict(ctx context.Context, r *Report, t *Tables, tables *routes.Routes) (err error) {
	down := p.takesDown(t.Live.Graph().Fabric())
	if len(down) == 0 {
		return nil
	}
	if tables == nil {
		tables = t.Live
	}
	r.Effect, err = PredictEffect(ctx, tables, down, PredictOptions{Managed: p.Base.Manager != nil, Needed: t.Last, Lanes: t.InLanes})
	if err != nil || r.Effect.Managed || r.Effect.Through == 0 {
		return err
	}
	r.OK = false
	text := fmt.Sprintf("the tables route %s over links that go down, and no subnet manager makes new ones; plan new tables first", plural.Count(int(r.Effect.Through), "pair", "pairs"))
	r.Reason = strings.TrimPrefix(r.Reason+"; "+text, "; ")
	return nil
}

// InLanes adds the virtual lanes of the switches to tables, and the service levels of their
// paths.
func (t *Tables) InLanes(ctx context.Context, tables *routes.Routes) error {
	if t.Lanes == nil {
		return errors.New("virtual lanes of the switches unknown")
	}
	err := t.Lanes(ctx, tables)
	if err == nil && t.Levels != nil {
		tables.SL, _, err = t.Levels(ctx, tables)
	}
	return err
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

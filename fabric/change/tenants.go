package change

import (
	"context"
	"encoding/binary"
	"maps"
	"slices"

	"fabsh/fabric"
	"fabsh/fabric/change/certificate"
	"fabsh/fabric/tenant"
	"fabsh/mad"
)

// fields of PortInfo by which a switch port checks P_Keys.
const (
	inboundField  = "partition_enforcement_inbound"
	outboundField = "partition_enforcement_outbound"
)

// TenantPorts are the ports of f whose P_Key tables decide whether p joins tenants.
func (p *Plan) TenantPorts(f *fabric.Fabric) []*fabric.Port {
	list := tenant.Ports(f)
	for _, c := range p.Changes() {
		if q := changedPort(f, &c); q != nil && q.Node().IsSwitch() && q.Num() > 0 && !slices.Contains(list, q) {
			list = append(list, q)
		}
	}
	return list
}

// JoinedTenants returns the pairs of tenants that p joins: isolated before it, and not afterwards, or not known to be.
// facts are what was read of the fabric of m, whether or not writes of p were shown in it.
func (p *Plan) JoinedTenants(ctx context.Context, m *tenant.Members, facts *tenant.Facts) (joined []tenant.Pair, err error) {
	before, err := tenant.Judge(ctx, m, p.tenantFacts(m.Fabric, facts, func(c *certificate.Change) []byte { return c.Old }))
	if err != nil {
		return nil, err
	}
	after, err := tenant.Judge(ctx, m, p.tenantFacts(m.Fabric, facts, func(c *certificate.Change) []byte { return c.New }))
	if err != nil {
		return nil, err
	}
	for i := range after.Pairs {
		if now := &after.Pairs[i]; !now.Allowed && now.Verdict > before.Pairs[i].Verdict {
			joined = append(joined, *now)
		}
	}
	return joined, nil
}

// tenantFacts returns facts with one of the values of each change.
func (p *Plan) tenantFacts(f *fabric.Fabric, facts *tenant.Facts, value func(*certificate.Change) []byte) *tenant.Facts {
	x := *facts
	x.Tables, x.Checks = maps.Clone(facts.Tables), maps.Clone(facts.Checks)
	if x.Checks == nil {
		x.Checks = map[*fabric.Port]tenant.Directions{}
	}
	if facts.Routes != nil {
		x.Routes = facts.Routes.Clone()
	}
	for _, c := range p.Changes() {
		q := changedPort(f, &c)
		switch data := value(&c); {
		case q == nil:
		case c.Attr == mad.AttrPKeyTable:
			keys, known := x.Tables[q]
			if !known {
				continue
			}
			keys = slices.Clone(keys)
			for i := range mad.PKeyBlock {
				if at := int(c.Modifier&0xffff)*mad.PKeyBlock + i; at < len(keys) {
					keys[at] = binary.BigEndian.Uint16(data[2*i:])
				}
			}
			x.Tables[q] = keys
		case c.Attr == mad.AttrPortInfo:
			d, known := x.Checks[q]
			if i := q.Info(); !known && i != nil {
				d = tenant.Directions{Inbound: i.PartitionEnforcementInbound, Outbound: i.PartitionEnforcementOutbound}
			}
			for _, name := range c.Fields {
				switch set := c.Attr.Field(name).Uint(data) != 0; name {
				case inboundField:
					d.Inbound = set
				case outboundField:
					d.Outbound = set
				}
			}
			x.Checks[q] = d
		case c.Attr == mad.AttrLinearForwardingTable && x.Routes != nil:
			s := x.Routes.Graph().SwitchByGUID(c.Node)
			if s < 0 {
				continue
			}
			row := x.Routes.EditRow(s)
			for i := range mad.LFTBlock {
				if lid := int(c.Modifier)*mad.LFTBlock + i; lid < len(row) {
					row[lid] = data[i]
				}
			}
		}
	}
	return &x
}

// changedPort returns the port of a change; port 0 for what is of a switch as a whole. nil: it is unknown.
func changedPort(f *fabric.Fabric, c *certificate.Change) *fabric.Port {
	nodes := f.NodeByGUID(c.Node)
	if len(nodes) != 1 {
		return nil
	}
	n, num := nodes[0], c.Port
	switch {
	case !n.IsSwitch():
	case c.Attr == mad.AttrPKeyTable:
		num = int(c.Modifier >> 16)
	case c.Attr == mad.AttrPortInfo:
		num = int(c.Modifier & 0xff)
	default:
		num = 0
	}
	return n.Port(num)
}

package builtins

import (
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// adaptiveFabric has adaptive routing of all kinds that one private LFT can have.
const adaptiveFabric = "fattree:k=4,ar=updn,ar_with=secondary+whbf+rn+pfrn"

// report changes what a node reports.
func (b *bench) report(n *fabric.Node, a *mad.Attribute, modifier uint32, change func(data []byte)) {
	b.t.Helper()
	b.must(b.subnet.Edit.Report(n.GUID(), a, modifier, change))
}

// field sets a field of an attribute.
func field(a *mad.Attribute, name string, value uint64) func(data []byte) {
	f := a.Field(name)
	return func(data []byte) { f.SetUint(data, value) }
}

// arFault is a fault of adaptive routing at a leaf, that the simulator injects.
func arFault(f state.AdaptiveFault, check string, words ...string) fault {
	return fault{name: check + " " + state.AdaptiveFaultNames()[f], on: adaptiveFabric, do: func(b *bench, _, leaf *fabric.Port) []string {
		b.words = words
		b.must(b.subnet.Edit.BreakAdaptive(leaf.Node().GUID(), f))
		return []string{id(check, audit.OfNode(leaf.Node()))}
	}}
}

// atSwitch is a fault of what a leaf reports.
func atSwitch(name, check string, words []string, a *mad.Attribute, modifier uint32, change func(data []byte)) fault {
	return fault{name: name, on: adaptiveFabric, do: func(b *bench, _, leaf *fabric.Port) []string {
		b.words = words
		b.report(leaf.Node(), a, modifier, change)
		return []string{id(check, audit.OfNode(leaf.Node()))}
	}}
}

// atPort is a fault of what ExtendedPortInfo of an adapter has.
func atPort(name, check string, words []string, change func(data []byte)) fault {
	return fault{name: name, on: adaptiveFabric, do: func(b *bench, ca, _ *fabric.Port) []string {
		b.words = words
		b.report(ca.Node(), mad.AttrExtendedPortInfo, uint32(ca.Num()), change)
		return []string{id(check, audit.OfPort(ca))}
	}}
}

// adaptiveFaults are those of adaptive.
var adaptiveFaults = []fault{
	arFault(state.FaultOff, "ar.mixed"),
	arFault(state.FaultSL, "ar.uniform"),
	atSwitch("ar.uniform transports", "ar.uniform", nil, mad.AttrAdaptiveRoutingInfo, 0, field(mad.AttrAdaptiveRoutingInfo, "dis_ud", 0)),
	atPort("ar.order", "ar.order", nil, field(mad.AttrExtendedPortInfo, "ooo_sl_mask", 0xfff0)),
	atPort("ar.order none", "ar.order", nil, field(mad.AttrExtendedPortInfo, "ooo_sl_mask", 0)),
	atPort("port.unhealthy", "port.unhealthy", nil, field(mad.AttrExtendedPortInfo, "unhealthy_reason", uint64(mad.UnhealthyReasonRawBER))),
	atPort("port.unhealthy recovered", "port.unhealthy", nil, field(mad.AttrExtendedPortInfo, "port_recovered", 1)),
}

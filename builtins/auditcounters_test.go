package builtins

import (
	"math"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/audit"
)

// betweenRuns is the window of seeded counters: long enough for what wants an hour.
const betweenRuns = 65 * time.Minute

func (b *bench) count(p *fabric.Port, counter string, n uint64) {
	b.must(b.subnet.Counters.Add(p.Node().GUID(), p.Num(), counter, n))
}

// countedAt is a fault of a counter at an end of a link.
func countedAt(name, check, counter string, n uint64, atLeaf bool, subject func(ca, leaf *fabric.Port) audit.Subject) fault {
	return fault{name: name, counts: true, do: func(b *bench, ca, leaf *fabric.Port) []string {
		at := ca
		if atLeaf {
			at = leaf
		}
		b.count(at, counter, n)
		return []string{id(check, subject(ca, leaf))}
	}}
}

func theLink(ca, leaf *fabric.Port) audit.Subject { return audit.OfLink(ca, leaf) }
func theLeaf(_, leaf *fabric.Port) audit.Subject  { return audit.OfPort(leaf) }
func theNode(ca, _ *fabric.Port) audit.Subject    { return audit.OfNode(ca.Node()) }

// downs: a link that went down so often, as both ends or only the CA's says.
func downs(name, check string, n uint64, both bool) fault {
	return fault{name: name, counts: true, do: func(b *bench, ca, leaf *fabric.Port) []string {
		b.count(ca, "LinkDownedCounter", n)
		ids := []string{id(check, audit.OfLink(ca, leaf))}
		if both {
			b.count(leaf, "LinkDownedCounter", n)
			return ids
		}
		return append(ids, id("port.sick.peer", audit.OfPort(ca)))
	}}
}

// trafficOf has a node count data, so that it is seen when its counters begin anew.
func trafficOf(b *bench, ca, _ *fabric.Port) { b.count(ca, "PortXmitData", 1000) }

// counterFaults are those that the audit counters claims to find.
var counterFaults = []fault{
	countedAt("ctr.ber", "ctr.ber", "SymbolErrorCounter", 60, true, theLink),
	countedAt("ctr.ber at the CA", "ctr.ber", "SymbolErrorCounter", 60, false, theLink),
	countedAt("ctr.recovery", "ctr.recovery", "LinkErrorRecoveryCounter", 400, false, theLink),
	downs("ctr.downed", "ctr.downed", 1, true),
	downs("port.sick.peer", "ctr.downed", 1, false),
	downs("link.flap", "link.flap", 3, true),
	{name: "node.reboot", counts: true, before: trafficOf, do: func(b *bench, ca, leaf *fabric.Port) []string {
		b.must(b.subnet.Counters.Reset(ca.Node().GUID(), ca.Num()))
		b.count(leaf, "LinkDownedCounter", 1)
		return []string{id("node.reboot", audit.OfNode(ca.Node()))}
	}},
	{name: "ctr.cleared", once: true, counts: true, before: trafficOf, do: func(b *bench, ca, _ *fabric.Port) []string {
		b.must(b.subnet.Counters.Reset(ca.Node().GUID(), ca.Num()))
		return []string{id("ctr.cleared", audit.OfPort(ca))}
	}},
	countedAt("ctr.rcv", "ctr.rcv", "PortRcvErrors", 5000, true, theLink),
	countedAt("ctr.rcv error", "ctr.rcv", "PortRcvErrors", 50_000, false, theLink),
	{name: "ctr.rcv.details", counts: true, do: func(b *bench, ca, leaf *fabric.Port) []string {
		b.count(leaf, "PortRcvSwitchRelayErrors", 1)
		b.count(leaf, "PortVLMappingErrors", 1)
		return []string{id("ctr.rcv.details", audit.OfLink(ca, leaf))}
	}},
	{name: "ctr.relay", counts: true, do: func(b *bench, ca, leaf *fabric.Port) []string {
		b.count(leaf, "PortRcvSwitchRelayErrors", 9)
		b.count(leaf, "PortDLIDMappingErrors", 9)
		return []string{id("ctr.relay", audit.OfPort(leaf))}
	}},
	{name: "ctr.droprate", counts: true, do: func(b *bench, ca, leaf *fabric.Port) []string {
		b.count(ca, "PortRcvPkts", 1_000_000)
		b.count(ca, "PortRcvErrors", 5)
		return []string{id("ctr.droprate", audit.OfLink(ca, leaf))}
	}},
	{name: "ctr.remote", counts: true, do: func(b *bench, ca, leaf *fabric.Port) []string {
		for q := range leaf.Node().Ports() {
			if p := q.Peer(); p != nil && q != leaf && !p.Node().IsSwitch() && !b.used[p.Node().GUID()] {
				b.used[p.Node().GUID()] = true
				b.count(leaf, "PortRcvErrors", 50_000)
				b.count(p, "PortRcvRemotePhysicalErrors", 40_000)
				return []string{id("ctr.rcv", audit.OfLink(ca, leaf)), id("ctr.remote", audit.OfPort(p))}
			}
		}
		return nil
	}},
	countedAt("ctr.discards", "ctr.discards", "PortXmitDiscards", 5000, true, theLink),
	{name: "ctr.discards HOQ", counts: true, do: func(b *bench, ca, leaf *fabric.Port) []string {
		b.count(leaf, "PortXmitDiscards", 2)
		b.count(leaf, "PortSwHOQLifetimeLimitDiscards", 1)
		return []string{id("ctr.discards", audit.OfLink(ca, leaf))}
	}},
	countedAt("ctr.integrity", "ctr.integrity", "LocalLinkIntegrityErrors", 1, false, theLink),
	countedAt("ctr.overrun", "ctr.overrun", "ExcessiveBufferOverrunErrors", 1, true, theLink),
	countedAt("ctr.constraint", "ctr.constraint", "PortRcvConstraintErrors", 11, true, theLink),
	countedAt("ctr.vl15", "ctr.vl15", "VL15Dropped", 1, true, theLeaf),
	countedAt("ctr.qp1", "ctr.qp1", "QP1Dropped", 5, false, theNode),
	countedAt("ctr.wait", "ctr.wait", "PortXmitWait", 4_200_000_000, true, theLink),
	{name: "ctr.balance", once: true, counts: true, do: func(b *bench, _, leaf *fabric.Port) []string {
		var ids []string
		up := 0
		for p := range leaf.Node().Ports() {
			if q := p.Peer(); q != nil && q.Node().IsSwitch() {
				for r := range q.Node().Ports() {
					if r.Peer() != nil && !r.Peer().Node().IsSwitch() {
						return nil // no tree
					}
				}
				if up++; up == 2 {
					b.count(p, "PortXmitData", 5_000_000_000)
					ids = append(ids, id("ctr.balance", audit.OfLink(p, q)))
				}
				b.count(p, "PortXmitData", 2_000_000_000)
			}
		}
		if up < 3 {
			return nil
		}
		return ids
	}},
	{name: "ctr.saturated", counts: true, before: func(b *bench, ca, _ *fabric.Port) {
		b.count(ca, "PortRcvSwitchRelayErrors", 99)
		b.count(ca, "PortLoopingErrors", math.MaxUint64)
	},

		do: func(b *bench, ca, _ *fabric.Port) []string { return []string{id("ctr.saturated", audit.OfPort(ca))} }},
	// What is no fault: within the limits, or explained.
	{name: "few errors", counts: true, do: func(b *bench, ca, leaf *fabric.Port) []string {
		b.count(ca, "SymbolErrorCounter", 1)
		b.count(leaf, "LinkErrorRecoveryCounter", 300)
		b.count(leaf, "PortRcvErrors", 2)
		b.count(leaf, "PortRcvPkts", 1_000_000)
		b.count(leaf, "PortXmitDiscards", 3000)
		b.count(leaf, "PortRcvConstraintErrors", 10)
		b.count(ca, "PortRcvSwitchRelayErrors", 5000)
		b.count(ca, "PortRcvRemotePhysicalErrors", 5000)
		return []string{}
	}},
}

package sim

import (
	"encoding/binary"

	"fabsh/mad"
)

// endPortByGUID is the port with that GUID that the latest sweep reached; nil: there
// is none.
func (s *Subnet) endPortByGUID(guid mad.GUID) *port {
	for _, p := range s.lids {
		if p != nil && p.inService && p.guid == guid {
			return p
		}
	}
	return nil
}

// hasPKey: p is in the partition, as a full or limited member (opensm
// osm_pkey.c osm_physp_has_pkey).
func (s *Subnet) hasPKey(p *port, pkey uint16) bool {
	if pkey&pkeyBase == 0 {
		return true
	}
	var info mad.NodeInfo
	info.Decode(p.node.info[:])
	var block [smpSize]byte
	for i := range uint32(info.PartitionCap) / mad.PKeyBlock {
		s.readBlock(pkeyBlocks, p, i, block[:])
		for j := range mad.PKeyBlock {
			if binary.BigEndian.Uint16(block[2*j:])&pkeyBase == pkey&pkeyBase {
				return true
			}
		}
	}
	return false
}

// samePartition: ports with the two P_Keys can communicate (IBA 10.9.1.1).
func samePartition(a, b uint16) bool {
	return a&pkeyBase == b&pkeyBase && (a|b)&^pkeyBase != 0
}

// matchesGroup: the components in the request are those of the group, except
// those of a member.
func (r *request) matchesGroup(g *group, mask uint64) bool {
	q := newQuery(mad.AttrMCMemberRecord, mask&^notComparedInJoin, r.data)
	q.add(&g.MCMemberRecord)
	var asked mad.MCMemberRecord
	asked.Decode(r.data)
	return len(q.records) > 0 && (mask&pkeyComponent == 0 || samePartition(asked.PKey, g.PKey))
}

var (
	groupMTU  = [2]uint64{groupComponents("mtu_selector"), groupComponents("mtu")}
	groupRate = [2]uint64{groupComponents("rate_selector"), groupComponents("rate")}
)

// matchesSelectors: MTU and rate of the group match the request's selectors. As
// in OpenSM, the packet life time does not count.
func matchesSelectors(asked *mad.MCMemberRecord, mask uint64, g *mad.MCMemberRecord) bool {
	return (mask&groupMTU[0] == 0 || selectorHolds(asked.MTUSelector, int(g.MTU), int(asked.MTU))) &&
		(mask&groupRate[0] == 0 || selectorHolds(asked.RateSelector, halfGbps(g.Rate), halfGbps(asked.Rate)))
}

// selectorHolds: the value matches the one asked for, by the selector.
func selectorHolds(s mad.Selector, value, asked int) bool {
	switch s {
	case mad.SelectorGreaterThan:
		return value > asked
	case mad.SelectorLessThan:
		return value < asked
	case mad.SelectorExactly:
		return value == asked
	}
	return true // the largest available
}

// chooseMTUAndRate gives a new group the MTU and the rate of p, or those that the
// request asks for; false if no value matches.
func chooseMTUAndRate(g *mad.MCMemberRecord, mask uint64, p *port) bool {
	mtu := p.mtu
	if hasBoth(mask, groupMTU) {
		switch g.MTUSelector {
		case mad.SelectorGreaterThan:
			if g.MTU >= p.mtu {
				return false
			}
		case mad.SelectorLessThan:
			mtu = min(g.MTU-1, p.mtu)
		case mad.SelectorExactly:
			mtu = g.MTU
		}
	}
	rate := int(p.rate)
	if hasBoth(mask, groupRate) {
		asked := halfGbps(g.Rate)
		switch g.RateSelector {
		case mad.SelectorGreaterThan:
			if asked >= rate {
				return false
			}
		case mad.SelectorLessThan:
			rate = min(asked-1, rate)
		case mad.SelectorExactly:
			rate = asked
		}
	}
	if mtu < mad.MTU256 || mtu > mad.MTU4096 || rate < halfGbps(mad.Rate2_5) {
		return false
	}
	g.MTU, g.Rate = mtu, rateCode(uint16(rate))
	return true
}

func hasBoth(mask uint64, components [2]uint64) bool {
	return mask&components[0] != 0 && mask&components[1] != 0
}

package builtins

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"fabsh/builtins/audits"
	"fabsh/builtins/script"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// many: a fabric has so many CAs that one that is different is an exception.
func (b *bench) many() bool { return len(b.fabric.OfType(mad.NodeTypeCA)) >= 20 }

func (b *bench) sw(n *fabric.Node, change func(*mad.SwitchInfo)) {
	b.must(b.subnet.Edit.Node(n.GUID(), func(_ *string, _ *mad.NodeInfo, sw *mad.SwitchInfo) { change(sw) }))
}

func (b *bench) table(a *mad.Attribute, p *fabric.Port, modifier uint32, change func([]byte)) {
	b.must(b.subnet.Edit.Table(a, p.Node().GUID(), p.Num(), modifier, change))
}

func (b *bench) pkeys(p *fabric.Port, keys ...uint16) {
	b.must(b.subnet.Edit.PKeys(p.Node().GUID(), p.Num(), keys...))
}

// only is a fault that is one where most are alike, so a fabric has it once.
func only(name, check string, atLeaf bool, change func(*mad.PortInfo)) fault {
	return fault{name: name, once: true, do: func(b *bench, ca, leaf *fabric.Port) []string {
		if !b.many() {
			return nil
		}
		p := ca
		if atLeaf {
			p = leaf
		}
		b.port(p, change)
		return []string{id(check, audit.OfPort(p))}
	}}
}

// deep is a fault that --deep finds.
func deep(name string, do func(b *bench, ca, leaf *fabric.Port) []string) fault {
	return fault{name: name, alone: true, do: func(b *bench, ca, leaf *fabric.Port) []string {
		b.words = []string{"--deep"}
		for _, d := range script.Audits.Shipped() {
			if !d.Deep && !d.Host && !d.Named { // the tables of the simulator's subnet manager have credit loops, but on trees
				b.words = append(b.words, d.Name)
			}
		}
		return do(b, ca, leaf)
	}}
}

// settingFaults are the faults that the audits config, identity and sm find.
var settingFaults = []fault{
	only("hoq.uniform stalls", "hoq.uniform", true, func(i *mad.PortInfo) { i.VLStallCount = 7 }),
	only("timers answers", "timers", false, func(i *mad.PortInfo) { i.RespTimeValue = 10 }),
	only("client.rereg", "client.rereg", false, func(i *mad.PortInfo) {
		i.CapabilityMask &^= mad.CapabilityMaskIsClientReregistrationSupported
	}),
	{name: "hoq.uniform switch", once: true, do: func(b *bench, _, leaf *fabric.Port) []string {
		if len(b.fabric.OfType(mad.NodeTypeSwitch)) < 11 {
			return nil
		}
		b.sw(leaf.Node(), func(sw *mad.SwitchInfo) { sw.LifeTimeValue = 10 })
		return []string{id("hoq.uniform", audit.OfNode(leaf.Node()))}
	}},
	{name: "hoq.infinite switch", do: func(b *bench, _, leaf *fabric.Port) []string {
		b.sw(leaf.Node(), func(sw *mad.SwitchInfo) { sw.LifeTimeValue = 20 })
		return []string{id("hoq.infinite", audit.OfNode(leaf.Node()))}
	}},
	deep("sl2vl.uniform dropped", func(b *bench, ca, _ *fabric.Port) []string {
		b.table(mad.AttrSLtoVLMappingTable, ca, 0, func(data []byte) { data[0] = 0x91 })
		return []string{id("sl2vl.uniform", audit.OfPort(ca))}
	}),
	deep("sl2vl.uniform", func(b *bench, _, leaf *fabric.Port) []string {
		if !b.many() {
			return nil
		}
		for p := range leaf.Node().Ports() {
			b.table(mad.AttrSLtoVLMappingTable, leaf, uint32(p.Num())<<8|uint32(leaf.Num()), func(data []byte) { data[7] = 0 })
		}
		return []string{id("sl2vl.uniform", audit.OfPort(leaf))}
	}),
	{name: "sl2vl.uniform row", alone: true, do: func(b *bench, _, leaf *fabric.Port) []string {
		b.words = []string{"config", "--rows", "--deep", "--levels", "0,1"}
		last := leaf
		for p := range leaf.Node().Ports() {
			if p.Peer() != nil && p != leaf {
				last = p
			}
		}
		b.table(mad.AttrSLtoVLMappingTable, leaf, uint32(last.Num())<<8|uint32(leaf.Num()), func(data []byte) { data[0] = 0x0f })
		return []string{id("sl2vl.uniform", audit.OfPort(leaf))}
	}},
	deep("vlarb starved", func(b *bench, _, leaf *fabric.Port) []string {
		for _, table := range []uint32{1, 3} {
			b.table(mad.AttrVLArbitrationTable, leaf, table<<16|uint32(leaf.Num()), func(data []byte) { data[1] = 0 })
		}
		return []string{id("vlarb", audit.OfPort(leaf))}
	}),
	deep("vlarb", func(b *bench, ca, _ *fabric.Port) []string {
		if !b.many() {
			return nil
		}
		b.table(mad.AttrVLArbitrationTable, ca, 1<<16|1, func(data []byte) { data[3] = 200 })
		return []string{id("vlarb", audit.OfPort(ca))}
	}),
	deep("cc.uniform on", func(b *bench, ca, _ *fabric.Port) []string {
		b.must(b.subnet.Edit.Congestion(mad.AttrCACongestionSetting, ca.Node().GUID(), 1, 0, func(data []byte) { data[4] = 1 }))
		return []string{id("cc.uniform", audit.OfPort(ca))}
	}),
	deep("cc.uniform", func(b *bench, ca, leaf *fabric.Port) []string {
		switches := b.fabric.OfType(mad.NodeTypeSwitch)
		if len(switches) < 11 {
			return nil
		}
		for i := range switches {
			b.must(b.subnet.Edit.Congestion(mad.AttrSwitchCongestionSetting, switches[i].GUID(), 0, 0, func(data []byte) { data[75] = 4 }))
		}
		b.must(b.subnet.Edit.Congestion(mad.AttrSwitchCongestionSetting, leaf.Node().GUID(), 0, 0, func(data []byte) { data[75] = 5 }))
		return []string{id("cc.uniform", audit.OfPort(leaf.Node().Port(0)))}
	}),
	deep("cc.uniform table", func(b *bench, ca, _ *fabric.Port) []string {
		if !b.many() {
			return nil
		}
		for _, p := range b.hosts() {
			for block := range uint32(2) {
				b.must(b.subnet.Edit.Congestion(mad.AttrCongestionControlTable, p.Node().GUID(), p.Num(), block, func(data []byte) { data[9] = 3 }))
			}
		}
		b.must(b.subnet.Edit.Congestion(mad.AttrCongestionControlTable, ca.Node().GUID(), 1, 1, func(data []byte) { data[9] = 4 }))
		return []string{id("cc.uniform", audit.OfPort(ca))}
	}),
	{name: "sysimage", do: func(b *bench, ca, _ *fabric.Port) []string {
		other, _ := b.host()
		if other == nil {
			return nil
		}
		b.node(ca.Node(), func(_ *string, i *mad.NodeInfo) { i.SystemImageGUID, i.DeviceID = 0x77000+mad.GUID(ca.ID()), 0x1017 })
		b.node(other.Node(), func(_ *string, i *mad.NodeInfo) { i.SystemImageGUID = 0x77000 + mad.GUID(ca.ID()) })
		first := ca
		if other.ID() < ca.ID() {
			first = other
		}
		return []string{id("sysimage", audit.OfNode(first.Node()))}
	}},
	{name: "prefix.default", alone: true, do: func(b *bench, _, _ *fabric.Port) []string {
		own := b.fabric.From()
		b.run.Rails = []audits.Rail{
			{Port: "mlx5_0/1", Subnet: fabric.Subnet{Prefix: 0xfe80 << 48, SM: 0x77}},
			{Port: "mlx5_1/1", Subnet: fabric.Subnet{Prefix: 0xfe80 << 48, SM: own.GUID()}}, // here too
			{Port: "mlx5_2/1", Subnet: fabric.Subnet{Prefix: 0xfec0 << 48, SM: 0x78}},
		}
		return []string{id("prefix.default", audit.OfFabric())}
	}},
	{name: "name.map", alone: true, do: func(b *bench, _, leaf *fabric.Port) []string {
		var lines strings.Builder
		switches := b.fabric.OfType(mad.NodeTypeSwitch)
		for i := range switches {
			if switches[i].GUID() != leaf.Node().GUID() {
				fmt.Fprintf(&lines, "%v \"a \\\" name\"\n", switches[i].GUID())
			}
		}
		b.file("names", lines.String()+"0x77 \"it is gone\"\n")
		b.words = []string{"identity", "--names", "names"}
		return []string{id("name.map", audit.OfFabric()), id("name.map", audit.OfNode(leaf.Node()))}
	}},
	{name: "sm.alive", alone: true, do: func(b *bench, _, _ *fabric.Port) []string {
		b.words = []string{"sm", "--alive", "20s"}
		return []string{id("sm.alive", audit.OfPort(b.fabric.From()))}
	}},
	{name: "sm.unexpected", alone: true, do: func(b *bench, ca, _ *fabric.Port) []string {
		b.run.Baseline, b.words = b.fabric, []string{"sm"}
		b.must(b.subnet.SM.Add(ca.Node().GUID(), 1, mad.SMInfo{GUID: ca.GUID(), SMState: mad.SMStateStandby}))
		return []string{id("sm.unexpected", audit.OfPort(ca))}
	}},
	{name: "sm.unexpected, without a baseline", alone: true, do: func(b *bench, ca, _ *fabric.Port) []string {
		b.words = []string{"sm"}
		b.must(b.subnet.SM.Add(ca.Node().GUID(), 1, mad.SMInfo{GUID: ca.GUID(), SMState: mad.SMStateStandby}))
		return []string{id("sm.unexpected", audit.OfPort(ca))}
	}},
	{name: "sm.moved", alone: true, do: func(b *bench, ca, leaf *fabric.Port) []string {
		own := b.fabric.From()
		b.words = []string{"sm", "--expect-sm", ca.Node().GUID().String() + ", " + own.Node().Name()}
		return []string{id("sm.moved", audit.OfPort(own)), id("sm.missing", audit.OfNode(ca.Node())), id("sm.standby", audit.OfFabric())}
	}},
	{name: "lid.moved", alone: true, do: func(b *bench, ca, leaf *fabric.Port) []string {
		b.run.Baseline, b.words = b.fabric, []string{"identity"}
		b.port(ca, func(i *mad.PortInfo) { i.LID = 0x3000 })
		return []string{id("lid.moved", audit.OfPort(ca))}
	}},
	{name: "lid.moved all", alone: true, do: func(b *bench, ca, leaf *fabric.Port) []string {
		b.run.Baseline, b.words = b.fabric, []string{"identity"}
		for i, p := range b.hosts() {
			b.port(p, func(info *mad.PortInfo) { info.LID = mad.LID(0x3000 + i) })
		}
		return []string{id("lid.moved", audit.OfFabric())}
	}},
	deep("sm.links", func(b *bench, ca, _ *fabric.Port) []string {
		up := b.upLink()
		if up == nil {
			return nil
		}
		b.must(b.subnet.Cables.Silence(ca.Node().GUID(), 1, true)) // a sweep drops it, then it answers
		b.must(b.subnet.Cables.Unlink(up.Node().GUID(), up.Num()))
		b.must(b.subnet.Cables.Link(up.Node().GUID(), up.Num()))
		b.must(b.subnet.Cables.Silence(ca.Node().GUID(), 1, false))
		return []string{id("sm.links", audit.OfPort(ca)), id("sm.records", audit.OfPort(ca))}
	}),
}

// guard has the port in front of a CA check P_Keys.
func guard(in, out bool) func(*mad.PortInfo) {
	return func(i *mad.PortInfo) { i.PartitionEnforcementInbound, i.PartitionEnforcementOutbound = in, out }
}

// partitionFaults are the faults that the audit partitions finds.
var partitionFaults = []fault{
	{name: "pkey.default", do: func(b *bench, ca, _ *fabric.Port) []string {
		b.pkeys(ca) // nothing else reaches it by general services, counters included
		return []string{id("pkey.default", audit.OfPort(ca)), id("ctr.absent", audit.OfPort(ca))}
	}},
	{name: "pkey.enforce missing", do: func(b *bench, _, leaf *fabric.Port) []string {
		b.port(leaf, guard(true, true))
		b.pkeys(leaf)
		return []string{id("pkey.enforce", audit.OfPort(leaf))}
	}},
	{name: "pkey.enforce limited", do: func(b *bench, _, leaf *fabric.Port) []string {
		b.port(leaf, guard(true, true))
		b.pkeys(leaf, 0x7fff)
		return []string{id("pkey.enforce", audit.OfPort(leaf))}
	}},
	{name: "pkey.enforce one way", do: func(b *bench, _, leaf *fabric.Port) []string {
		b.port(leaf, guard(true, false))
		return []string{id("pkey.enforce", audit.OfPort(leaf))}
	}},
	{name: "pkey.enforce policy", alone: true, do: func(b *bench, ca, leaf *fabric.Port) []string {
		for _, p := range b.hosts() {
			b.port(p.Peer(), guard(false, true))
		}
		b.pkeys(ca, 0xffff, 0x8005)
		return []string{id("pkey.enforce", audit.OfFabric()), id("pkey.enforce", audit.OfPort(leaf)), id("pkey.lonely", audit.OfPort(ca))}
	}},
	{name: "pkey.limited", once: true, do: func(b *bench, ca, _ *fabric.Port) []string {
		other, _ := b.host()
		if other == nil {
			return nil
		}
		b.pkeys(ca, 0xffff, 0x0005)
		b.pkeys(other, 0xffff, 0x0005)
		return []string{id("pkey.limited", audit.OfFabric())}
	}},
	{name: "pkey.limited odd", once: true, do: func(b *bench, ca, _ *fabric.Port) []string {
		if !b.many() {
			return nil
		}
		b.pkeys(ca, 0x7fff)
		return []string{id("pkey.limited", audit.OfPort(ca))}
	}},
	{name: "pkey.limited apart", alone: true, do: func(b *bench, ca, _ *fabric.Port) []string {
		other, _ := b.host()
		if other == nil {
			return nil
		}
		b.words = []string{"partitions", "--majority", "1.1", "--talk", "no such name,^(" + regexp.QuoteMeta(ca.Node().Name()) + "|" + regexp.QuoteMeta(other.Node().Name()) + ")$"}
		b.pkeys(ca, 0x7fff)
		b.pkeys(other, 0x7fff)
		return []string{id("pkey.limited", audit.OfPort(ca)), id("pkey.limited", audit.OfPort(other)), id("pkey.limited", audit.OfFabric())}
	}},
	{name: "host.partitions", alone: true, do: func(b *bench, ca, _ *fabric.Port) []string {
		if len(b.hosts()) < 6 {
			return nil
		}
		for _, p := range b.hosts() {
			if p != ca {
				b.pkeys(p, 0xffff, 0x8005)
			}
		}
		return []string{id("host.partitions", audit.OfNode(ca.Node()))}
	}},
	{name: "pkey.lonely", do: func(b *bench, ca, _ *fabric.Port) []string {
		b.pkeys(ca, 0xffff, 0x8100|uint16(ca.ID()))
		return []string{id("pkey.lonely", audit.OfPort(ca))}
	}},
	{name: "pkey.index", once: true, do: func(b *bench, ca, _ *fabric.Port) []string {
		if !b.many() {
			return nil
		}
		b.pkeys(ca, 0, 0xffff)
		return []string{id("pkey.index", audit.OfPort(ca))}
	}},
	{name: "pkey.full", once: true, do: func(b *bench, ca, _ *fabric.Port) []string {
		keys := []uint16{0xffff}
		for len(keys) < mad.PKeyBlock {
			keys = append(keys, 0x8200+uint16(len(keys)))
		}
		b.pkeys(ca, keys...)
		b.node(ca.Node(), func(_ *string, i *mad.NodeInfo) { i.PartitionCap = mad.PKeyBlock })
		return []string{id("pkey.full", audit.OfPort(ca)), id("pkey.lonely", audit.OfPort(ca))}
	}},
	{name: "pkey.file", alone: true, do: func(b *bench, ca, leaf *fabric.Port) []string {
		third, _ := b.host()
		if third == nil {
			return nil
		}
		b.words = []string{"partitions", "--partitions", "partitions.conf"}
		b.pkeys(third, 0xffff, 0x8009)
		b.pkeys(leaf.Node().Port(0), 0xffff, 0x0006)
		b.file("partitions.conf", fmt.Sprintf(`# as it should be
Default=0x7fff, ipoib, mtu=5 : ALL=full;
storage=0x8005, defmember=full : %[1]v, SELF; # the CA does not have it, nor the SM
scratch=0x0006 :
	%[2]v,		# only of this one it is true
	%[2]v=limited;
`, ca.GUID(), leaf.Node().Port(0).GUID()))
		return []string{
			id("pkey.file", audit.OfPort(ca)), id("pkey.file", audit.OfPort(b.fabric.From())), id("pkey.file", audit.OfPort(third)),
			id("pkey.lonely", audit.OfPort(third)), id("pkey.lonely", audit.OfPort(leaf.Node().Port(0))),
		}
	}},
}

// groupFaults are the faults that the audit multicast finds.
var groupFaults = []fault{
	{name: "mc.empty", once: true, do: func(b *bench, ca, _ *fabric.Port) []string {
		b.group(mad.MCMemberRecord{MGID: otherGroup(2)}, mad.JoinStateNonMember, ca)
		return []string{id("mc.empty", audit.OfFabric())}
	}},
	{name: "mc.rate", do: func(b *bench, ca, _ *fabric.Port) []string {
		b.group(mad.MCMemberRecord{MGID: otherGroup(0x100 + int(ca.LID())), Rate: mad.Rate400}, mad.JoinStateFullMember, ca)
		return []string{id("mc.rate", audit.OfPort(ca))}
	}},
	{name: "mc.rate low", once: true, do: func(b *bench, ca, _ *fabric.Port) []string {
		b.group(mad.MCMemberRecord{MGID: otherGroup(3), Rate: mad.Rate10}, mad.JoinStateFullMember, ca)
		return []string{id("mc.rate", audit.OfFabric())}
	}},
	{name: "mc.rate broadcast", alone: true, do: func(b *bench, ca, _ *fabric.Port) []string {
		b.words = []string{"multicast"}
		for _, p := range []*fabric.Port{ca, ca.Peer()} {
			b.port(p, func(i *mad.PortInfo) { i.LinkWidthActive = mad.LinkWidth1x })
		}
		b.group(mad.MCMemberRecord{MGID: broadcast}, mad.JoinStateFullMember)
		return nil // nobody is in it, so the SM_Key hides it
	}},
	{name: "mc.rate would join", alone: true, untold: true, do: func(b *bench, ca, _ *fabric.Port) []string {
		b.words = []string{"multicast"}
		for _, p := range []*fabric.Port{ca, ca.Peer()} {
			b.port(p, func(i *mad.PortInfo) { i.LinkWidthActive = mad.LinkWidth1x })
		}
		b.group(mad.MCMemberRecord{MGID: broadcast}, mad.JoinStateFullMember)
		return []string{id("mc.rate", audit.OfPort(ca))}
	}},
	{name: "mc.mtu", once: true, do: func(b *bench, ca, leaf *fabric.Port) []string {
		b.port(ca, func(i *mad.PortInfo) { i.MTUCap, i.NeighborMTU = mad.MTU2048, mad.MTU2048 })
		b.port(leaf, func(i *mad.PortInfo) { i.NeighborMTU = mad.MTU2048 })
		b.group(mad.MCMemberRecord{MGID: otherGroup(4), MTU: mad.MTU4096}, mad.JoinStateFullMember, ca)
		return []string{id("mc.mtu", audit.OfPort(ca))}
	}},
	{name: "mc.broadcast", once: true, do: func(b *bench, ca, _ *fabric.Port) []string {
		b.subnet.Edit.DropGroup(broadcast)
		b.group(mad.MCMemberRecord{MGID: allHosts}, mad.JoinStateFullMember, ca)
		return []string{id("mc.broadcast", audit.OfFabric())}
	}},
	{name: "mc.broadcast none", alone: true, untold: true, do: func(b *bench, ca, _ *fabric.Port) []string {
		b.words = []string{"multicast"}
		b.subnet.Edit.DropGroup(broadcast)
		return []string{id("mc.broadcast", audit.OfFabric())}
	}},
	{name: "mc.gateway", alone: true, do: func(b *bench, ca, _ *fabric.Port) []string {
		other, _ := b.host()
		if other == nil {
			return nil
		}
		b.words = []string{"multicast", "--gateway", other.Node().Name() + "," + ca.Node().Name()}
		b.group(mad.MCMemberRecord{MGID: broadcast}, mad.JoinStateFullMember, other)
		return []string{id("mc.gateway", audit.OfNode(ca.Node()))}
	}},
	{name: "mc.gateway gone", alone: true, do: func(b *bench, ca, _ *fabric.Port) []string {
		b.words = []string{"multicast", "--gateway", "gw-1"}
		b.group(mad.MCMemberRecord{MGID: broadcast}, mad.JoinStateFullMember, ca)
		return []string{id("mc.gateway", audit.OfFabric())}
	}},
	{name: "mc.missing", alone: true, do: func(b *bench, ca, _ *fabric.Port) []string {
		if !b.many() {
			return nil
		}
		var members []*fabric.Port
		for _, p := range b.hosts() {
			if p.LID() != ca.LID() {
				members = append(members, p)
			}
		}
		b.group(mad.MCMemberRecord{MGID: otherGroup(5)}, mad.JoinStateFullMember, members...)
		return []string{id("mc.missing", audit.OfPort(ca))}
	}},
	{name: "mc.untold", alone: true, untold: true, do: func(b *bench, ca, _ *fabric.Port) []string {
		b.group(mad.MCMemberRecord{MGID: otherGroup(6)}, mad.JoinStateFullMember, ca)
		return []string{id("mc.untold", audit.OfFabric())}
	}},
	{name: "mlid.space shared", once: true, do: func(b *bench, ca, _ *fabric.Port) []string {
		for i := range 17 {
			b.group(mad.MCMemberRecord{MGID: otherGroup(0x40 + i), MLID: 0xc080}, mad.JoinStateFullMember, ca)
		}
		return []string{id("mlid.space", audit.OfFabric())}
	}},
	{name: "mlid.space", alone: true, do: func(b *bench, ca, leaf *fabric.Port) []string {
		b.sw(leaf.Node(), func(sw *mad.SwitchInfo) { sw.MulticastFDBCap = 2 })
		b.group(mad.MCMemberRecord{MGID: otherGroup(7)}, mad.JoinStateFullMember, ca)
		b.group(mad.MCMemberRecord{MGID: otherGroup(8)}, mad.JoinStateFullMember, ca)
		return []string{id("mlid.space", audit.OfFabric())}
	}},
	deep("mft.loop", func(b *bench, ca, _ *fabric.Port) []string {
		other, _ := b.host()
		if other == nil {
			return nil
		}
		b.group(mad.MCMemberRecord{MGID: otherGroup(9)}, mad.JoinStateFullMember, ca, other)
		switches := b.fabric.OfType(mad.NodeTypeSwitch)
		for i := range switches { // all cables between switches: there are circles
			for p := range switches[i].Ports() {
				if p.Peer() != nil && p.Peer().Node().IsSwitch() {
					b.must(b.subnet.Edit.Multicast(switches[i].GUID(), 0xc00a, uint8(p.Num()), true))
				}
			}
		}
		return []string{"mft.loop:*"}
	}),
	deep("mft.member", func(b *bench, ca, leaf *fabric.Port) []string {
		other, _ := b.host()
		if other == nil {
			return nil
		}
		b.group(mad.MCMemberRecord{MGID: otherGroup(10)}, mad.JoinStateFullMember, ca, other)
		b.must(b.subnet.Edit.Multicast(leaf.Node().GUID(), 0xc00b, uint8(leaf.Num()), false))
		return []string{id("mft.member", audit.OfPort(ca))}
	}),
	deep("mft.member stray", func(b *bench, ca, _ *fabric.Port) []string {
		other, at := b.host()
		if other == nil {
			return nil
		}
		b.group(mad.MCMemberRecord{MGID: otherGroup(11)}, mad.JoinStateFullMember, ca)
		b.must(b.subnet.Edit.Multicast(at.Node().GUID(), 0xc00c, uint8(at.Num()), true))
		return []string{id("mft.member", audit.OfPort(other))}
	}),
	deep("mft.member one way", func(b *bench, ca, leaf *fabric.Port) []string {
		other, _ := b.host()
		if other == nil {
			return nil
		}
		b.group(mad.MCMemberRecord{MGID: otherGroup(12)}, mad.JoinStateFullMember, ca, other)
		last := leaf // of the member with the higher LID: the walk begins at the other
		if other.LID() > ca.LID() {
			last = other.Peer()
		}
		for p := range last.Node().Ports() {
			if p.Peer() != nil && p.Peer().Node().IsSwitch() {
				b.must(b.subnet.Edit.Multicast(last.Node().GUID(), 0xc00d, uint8(p.Num()), false))
			}
		}
		return []string{"mft.member:" + last.Node().GUID().String() + "*"}
	}),
}

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

// counterFaults are the faults that the audit counters claims to find.
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

// registered is a fabric whose devices have registers.
const registered = "fattree:registers=yes"

// health is a fault that registers show.
func health(name string, do func(b *bench, ca, leaf *fabric.Port) []string) fault {
	return fault{name: name, on: registered, alone: true, do: func(b *bench, ca, leaf *fabric.Port) []string {
		b.words = []string{"health"}
		return do(b, ca, leaf)
	}}
}

func (b *bench) hardware(p *fabric.Port, change func(h *state.Hardware)) {
	b.must(b.subnet.Edit.Hardware(p.Node().GUID(), p.Num(), func(h *state.Hardware) error { change(h); return nil }))
}

func (b *bench) module(p *fabric.Port, change func(m *state.Module)) {
	b.hardware(p, func(h *state.Hardware) {
		m := h.Module(p.Num())
		change(&m)
		h.SetModule(p.Num(), m)
	})
}

// registerFaults are the faults that the audits health and virtual find.
var registerFaults = []fault{
	health("env.temp chip", func(b *bench, _, leaf *fabric.Port) []string {
		b.hardware(leaf, func(h *state.Hardware) { h.Temperature = 90.5 })
		return []string{id("env.temp", audit.OfNode(leaf.Node()))}
	}),
	health("env.temp module", func(b *bench, ca, _ *fabric.Port) []string {
		b.module(ca, func(m *state.Module) { m.Temperature = 75.5 }) // over its own limit alone
		return []string{id("env.temp", audit.OfPort(ca))}
	}),
	health("env.fan", func(b *bench, _, leaf *fabric.Port) []string {
		b.hardware(leaf, func(h *state.Hardware) { h.Fans[3] = 0 })
		return []string{id("env.fan", audit.OfNode(leaf.Node()))}
	}),
	health("env.fan slow", func(b *bench, _, leaf *fabric.Port) []string {
		b.hardware(leaf, func(h *state.Hardware) { h.Fans[0] = 2900 })
		return []string{id("env.fan", audit.OfNode(leaf.Node()))}
	}),
	health("env.fan missing", func(b *bench, _, leaf *fabric.Port) []string {
		b.hardware(leaf, func(h *state.Hardware) { h.Fans = h.Fans[:3] })
		return []string{id("env.fan", audit.OfNode(leaf.Node()))}
	}),
	health("env.psu", func(b *bench, _, leaf *fabric.Port) []string {
		b.hardware(leaf, func(h *state.Hardware) { h.Supplies[0] = false })
		return []string{id("env.psu", audit.OfNode(leaf.Node()))}
	}),
	health("cable.eeprom dark", func(b *bench, ca, _ *fabric.Port) []string {
		b.module(ca, func(m *state.Module) { m.RxPower[3] = 0 })
		return []string{id("cable.eeprom", audit.OfPort(ca))}
	}),
	health("cable.eeprom ends", func(b *bench, ca, leaf *fabric.Port) []string {
		b.module(leaf, func(m *state.Module) { m.VendorName = "ACME\x1b[2J" })
		return []string{id("cable.eeprom", audit.OfLink(ca, leaf))}
	}),
	health("cable.eeprom vendor", func(b *bench, ca, leaf *fabric.Port) []string {
		b.module(ca, func(m *state.Module) { m.VendorName = "" })
		return []string{id("cable.eeprom", audit.OfPort(ca))}
	}),
	health("cable.eeprom --vendors", func(b *bench, ca, leaf *fabric.Port) []string {
		b.words = []string{"health", "--vendors", "Mellanox, NVIDIA"}
		for _, p := range []*fabric.Port{ca, leaf} {
			b.module(p, func(m *state.Module) { m.VendorName = "ACME" })
		}
		return []string{id("cable.eeprom", audit.OfPort(ca)), id("cable.eeprom", audit.OfPort(leaf))}
	}),
	health("ctr.fec.raw", func(b *bench, ca, leaf *fabric.Port) []string {
		b.module(ca, func(m *state.Module) { m.BER = 2e-5 })
		return []string{id("ctr.fec.raw", audit.OfLink(ca, leaf))}
	}),
	health("ctr.fec.histogram", func(b *bench, ca, leaf *fabric.Port) []string {
		b.module(leaf, func(m *state.Module) { m.BER = 2e-4 })
		return []string{id("ctr.fec.raw", audit.OfLink(ca, leaf)), id("ctr.fec.histogram", audit.OfLink(ca, leaf))}
	}),
	health("ctr.fec.uncorrectable", func(b *bench, ca, leaf *fabric.Port) []string {
		b.module(leaf, func(m *state.Module) { m.BER = 1e-3 })
		return []string{id("ctr.fec.raw", audit.OfLink(ca, leaf)), id("ctr.fec.histogram", audit.OfLink(ca, leaf)), id("ctr.fec.symbol", audit.OfLink(ca, leaf)), id("ctr.fec.uncorrectable", audit.OfLink(ca, leaf))}
	}),
	{name: "vport.state", on: "fattree:vports=4", alone: true, do: func(b *bench, ca, _ *fabric.Port) []string {
		b.words = []string{"virtual"}
		b.must(b.subnet.Edit.VirtualPort(ca.Node().GUID(), ca.Num(), 2, func(v *state.VirtualPort) { v.State = mad.PortStateDown }))
		return []string{id("vport.state", audit.OfPort(ca))}
	}},
	health("fw.outlier", func(b *bench, ca, _ *fabric.Port) []string {
		b.hardware(ca, func(h *state.Hardware) { h.Firmware[2] = 999 })
		return []string{id("fw.outlier", audit.OfNode(ca.Node()))}
	}),
}

// TestHealthWell: nothing is found where nothing is wrong, with registers, with
// modules by CMIS, and without registers, where nothing is judged.
func TestHealthWell(t *testing.T) {
	for _, spec := range []string{"fattree:k=4,registers=yes", "fattree:k=4,registers=yes,speed=ndr", "fattree:k=4"} {
		onSimWith(t, spec, nil, nil, nil, func(t *testing.T, f *fixture) {
			r := audited(t, f, audits.RunOptions{}, "health")
			if registers := strings.Contains(spec, "registers"); len(r.Findings) > 0 || r.Complete() != registers || len(r.Notes) > 0 {
				t.Errorf("%s: %s\nmissing %v, notes %q", spec, told(r), r.Coverage.Missing(), r.Notes)
			}
		})
	}
}

// TestDownReason: what a switch's register tells of a link that went down is in the
// finding.
func TestDownReason(t *testing.T) {
	onSimWith(t, registered, smKey, nil, func(o *SessionOptions) { o.State = t.TempDir() }, func(t *testing.T, f *fixture) {
		audited(t, f, audits.RunOptions{Job: "x"}, "links")
		time.Sleep(betweenRuns)
		s := f.Env.Sim
		leaf := s.NodeGUIDs("leaf-1")[0]
		if err := s.Cables.Unlink(leaf, 3); err != nil {
			t.Fatal(err)
		}
		err := s.Edit.Hardware(leaf, 3, func(h *state.Hardware) error {
			m := h.Module(3)
			m.Reason, m.RemoteReason = mad.LinkDownReasonCableWasUnplugged, mad.LinkDownReasonHiBer
			h.SetModule(3, m)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		r := audited(t, f, audits.RunOptions{Job: "x"}, "links")
		if got := told(r); !strings.Contains(got, "ago, to 0x0002c90310000020, which is not in the fabric now; reason: cable was unplugged at this end and hi ber at the other end") {
			t.Errorf("the reason is not told:\n%s", got)
		}
	})
}

package builtins

import (
	"fmt"
	"regexp"
	"strings"

	"fabsh/builtins/audits"
	"fabsh/builtins/script"
	"fabsh/fabric"
	"fabsh/fabric/audit"
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
			if !d.Deep && !d.Host { // the tables of the simulator's subnet manager have credit loops, but on trees
				b.words = append(b.words, d.Name)
			}
		}
		return do(b, ca, leaf)
	}}
}

// settingFaults are those of config, identity and sm.
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

// partitionFaults are those of partitions.
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

// groupFaults are those of multicast.
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

package builtins

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/builtins/audits"
	"fabsh/builtins/topology"
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

// announce lets a node announce capabilities.
func (b *bench) announce(n *fabric.Node, capabilities ...int) {
	b.t.Helper()
	b.report(n, mad.AttrGeneralInfo, mad.GeneralInfoFormCapabilities, func(data []byte) {
		for _, c := range capabilities {
			data[4*(c/32)+3-c%32/8] |= 1 << (c % 8)
		}
	})
}

// announced is a fault of an attribute that a leaf announces by a capability.
func announced(name, check string, capability int, a *mad.Attribute, change func(data []byte)) fault {
	return fault{name: name, on: adaptiveFabric, do: func(b *bench, _, leaf *fabric.Port) []string {
		b.words = deepAdaptive
		b.announce(leaf.Node(), capability)
		b.report(leaf.Node(), a, 0, change)
		return []string{id(check, audit.OfNode(leaf.Node()))}
	}}
}

var deepAdaptive = []string{"adaptive", "--deep"}

// privateFabric has private forwarding tables.
const privateFabric = "fattree:k=4,ar=updn,ar_with=plft"

// onPrivate is a fault of private forwarding tables.
func onPrivate(name, check string, a *mad.Attribute, modifier uint32, change func(data []byte)) fault {
	x := atSwitch(name, check, deepAdaptive, a, modifier, change)
	x.on = privateFabric
	return x
}

// farText is an expression: the tables of all switches as ibdiagnet2.far.
const farText = `(lambda switches: {"far": "File version: 2\n" + "".join(["Switch %s - %s\nGroups Definition:\n------\n%s\nLFT Definition: PLFT_NUM: 0, top: 0x%x\n------\n%s\n" % (
    sw.guid, sw.name, "".join(["%d 0 0 %s\n" % (g, "".join(["%d," % p for p in subs[0]])) for g, subs in a.groups.items()]),
    a.top, "".join(["0x%x %d %s %d\n" % (lid, a[lid].port, a[lid].state.title(), a[lid].group) for lid in a.lids])) for sw, a in zip(switches, get_ar(switches))])})(discover().switches)`

// adaptiveFaults are those of adaptive.
var adaptiveFaults = []fault{
	arFault(state.FaultOff, "ar.mixed"),
	arFault(state.FaultOff, "ar.mixed", deepAdaptive...),
	arFault(state.FaultSL, "ar.uniform"),
	arFault(state.FaultSL, "ar.uniform", deepAdaptive...),
	atSwitch("ar.uniform transports", "ar.uniform", nil, mad.AttrAdaptiveRoutingInfo, 0, field(mad.AttrAdaptiveRoutingInfo, "dis_ud", 0)),
	atPort("ar.order", "ar.order", nil, field(mad.AttrExtendedPortInfo, "ooo_sl_mask", 0xfff0)),
	atPort("ar.order none", "ar.order", nil, field(mad.AttrExtendedPortInfo, "ooo_sl_mask", 0)),
	atPort("port.unhealthy ar.", "port.unhealthy", nil, field(mad.AttrExtendedPortInfo, "unhealthy_reason", uint64(mad.UnhealthyReasonRawBER))),
	atPort("port.unhealthy recovered", "port.unhealthy", nil, field(mad.AttrExtendedPortInfo, "port_recovered", 1)),

	arFault(state.FaultTop, "ar.group", deepAdaptive...),
	arFault(state.FaultEmpty, "ar.empty", deepAdaptive...),
	arFault(state.FaultDead, "ar.member", deepAdaptive...),
	arFault(state.FaultIllegal, "ar.illegal", deepAdaptive...),
	arFault(state.FaultStale, "ar.static", deepAdaptive...),
	atSwitch("ar.group cap", "ar.group", deepAdaptive, mad.AttrAdaptiveRoutingInfo, 0, field(mad.AttrAdaptiveRoutingInfo, "group_cap", 1)),
	atSwitch("ar.subgroups", "ar.subgroups", deepAdaptive, mad.AttrAdaptiveRoutingInfo, 0, field(mad.AttrAdaptiveRoutingInfo, "sub_grps_sup", 1)),
	{name: "ar.copy", on: "fattree:k=4,ar=updn", do: func(b *bench, ca, leaf *fabric.Port) []string {
		b.words = deepAdaptive
		far, _ := b.host()
		lid, up, group := uint32(far.LID()), byte(0), byte(0)
		if leaf.Node().Name() == "leaf-1" { // it has no group for itself
			group = 1
		}
		for p := range leaf.Node().Ports() {
			if p.Peer() != nil && p.Peer().Node().IsSwitch() {
				up = byte(p.Num())
			}
		}
		b.report(leaf.Node(), mad.AttrAdaptiveRoutingLFT, lid/16, func(data []byte) {
			at := lid % 16 * 4
			data[at+1], data[at+2], data[at+3] = up, 0, group
		})
		b.report(leaf.Node(), mad.AttrAdaptiveRoutingGroupTable, 0, func(data []byte) {
			half := data[32*group:][:32]
			clear(half)
			half[31-up/8] = 1 << (up % 8)
		})
		return []string{id("ar.copy", audit.OfNode(leaf.Node()))}
	}},
	{name: "ar.device", on: adaptiveFabric, do: func(b *bench, ca, _ *fabric.Port) []string {
		b.words = deepAdaptive
		b.report(ca.Node(), mad.AttrGeneralInfo, mad.GeneralInfoFormCapabilities, func(data []byte) { data[0] &^= 1 << 6 })
		return []string{id("ar.device", audit.OfPort(ca))}
	}},
	atSwitch("ar.plft off", "ar.plft", deepAdaptive, mad.AttrPortSLToPrivateLFTMap, 0, func(data []byte) { data[16] = 1 }),
	onPrivate("ar.plft number", "ar.plft", mad.AttrPortSLToPrivateLFTMap, 0, func(data []byte) { data[16] = 9 }),
	onPrivate("ar.plft top", "ar.plft", mad.AttrPrivateLFTMap, 0, field(mad.AttrPrivateLFTMap, "lft_top", 3)),
	onPrivate("ar.plft bank", "ar.plft", mad.AttrPrivateLFTDef, 0, func(data []byte) { data[3] = 96 }),
	onPrivate("ar.plft.map", "ar.plft.map", mad.AttrPrivateLFTDef, 0, func(data []byte) { data[1] = 0 }),
	{name: "ar.drift", on: "fattree:k=4,ar=updn", do: func(b *bench, _, leaf *fabric.Port) []string {
		far := b.texts(farText)["far"]
		b.file("same.far", far)
		b.words = []string{"adaptive", "--deep", "--far", "same.far"}
		if r := audited(b.t, b.f, audits.RunOptions{}, b.words...); len(r.Findings) > 0 {
			b.t.Errorf("the same tables: %v", idsOf(r.Findings))
		}
		head := "Switch " + leaf.Node().GUID().String()
		before, after, _ := strings.Cut(far, head)
		b.file("other.far", before+head+strings.Replace(after, "3,4,", "4,", 1))
		b.words[3] = "other.far"
		return []string{id("ar.drift", audit.OfNode(leaf.Node()))}
	}},
	{name: "ar.lanes", on: "dragonfly:a=4,ar=minhop", do: func(b *bench, _, _ *fabric.Port) []string {
		b.words = deepAdaptive
		return []string{id("ar.lanes", audit.OfFabric())}
	}},
	{name: "ar.lanes planes", on: privateFabric, do: func(b *bench, _, _ *fabric.Port) []string {
		b.words = deepAdaptive
		up := b.upLink()
		b.port(up, func(i *mad.PortInfo) { i.OperationalVLs = mad.OperationalVLs(1) })
		return []string{id("ar.lanes", audit.OfPort(up))}
	}},
	atSwitch("ar.recovery", "ar.recovery", deepAdaptive, mad.AttrAdaptiveRoutingInfo, 0, field(mad.AttrAdaptiveRoutingInfo, "fr_enabled", 0)),
	atSwitch("hbf.uniform ar.", "hbf.uniform", deepAdaptive, mad.AttrHBFConfig, 0, field(mad.AttrHBFConfig, "hash_type", 1)),
	atSwitch("hbf.uniform ar. mask", "hbf.uniform", deepAdaptive, mad.AttrAdaptiveRoutingInfo, 0, field(mad.AttrAdaptiveRoutingInfo, "enable_by_sl_mask_hbf", 1)),
	{name: "hbf.uniform ar. seed", on: adaptiveFabric, do: func(b *bench, _, _ *fabric.Port) []string {
		b.words = deepAdaptive
		for i := range b.fabric.OfType(mad.NodeTypeSwitch) {
			b.report(&b.fabric.OfType(mad.NodeTypeSwitch)[i], mad.AttrHBFConfig, 0, field(mad.AttrHBFConfig, "seed", 7))
		}
		return []string{id("hbf.uniform", audit.OfFabric())}
	}},
	atSwitch("hbf.weights ar.", "hbf.weights", deepAdaptive, mad.AttrWeightedHBFConfig, 0, func(data []byte) { clear(data) }),
	atSwitch("pfrn.uniform ar.", "pfrn.uniform", deepAdaptive, mad.AttrPFRNConfig, 0, field(mad.AttrPFRNConfig, "sl", 3)),
	atSwitch("pfrn.uniform ar. off", "pfrn.uniform", deepAdaptive, mad.AttrAdaptiveRoutingInfo, 0, field(mad.AttrAdaptiveRoutingInfo, "pfrn_en", 0)),
	{name: "pfrn.timeouts ar.", on: "ring:n=3,ar=updn,ar_with=pfrn", do: func(b *bench, _, _ *fabric.Port) (ids []string) {
		b.words = deepAdaptive
		for i := range b.fabric.OfType(mad.NodeTypeSwitch) {
			n := &b.fabric.OfType(mad.NodeTypeSwitch)[i]
			b.report(n, mad.AttrPFRNConfig, 0, field(mad.AttrPFRNConfig, "mask_force_clear_timeout", 60))
			ids = append(ids, id("pfrn.timeouts", audit.OfNode(n)))
		}
		return ids
	}},
	{name: "pfrn.neighbour ar.", on: adaptiveFabric, do: func(b *bench, _, _ *fabric.Port) []string {
		b.words = deepAdaptive
		up := b.upLink()
		b.report(up.Node(), mad.AttrNeighborsInfo, 0, func(data []byte) { data[16*up.Num()+3]++ })
		return []string{id("pfrn.neighbour", audit.OfPort(up))}
	}},
	atSwitch("rn.strings ar.", "rn.strings", deepAdaptive, mad.AttrRNGenStringTable, 0, func(data []byte) { data[1] = 0x55 }),
	atPort("port.admin ar.", "port.admin", deepAdaptive, field(mad.AttrExtendedPortInfo, "nmx_admin_state", uint64(mad.NMXAdminStateDown))),
	{name: "port.drained ar.", on: adaptiveFabric, do: func(b *bench, _, leaf *fabric.Port) []string {
		b.words = deepAdaptive
		b.announce(leaf.Node(), 59)
		b.report(leaf.Node(), mad.ByName("ContainAndDrainInfo"), 0, func(data []byte) { data[leaf.Num()/2] |= 1 << (4 * (1 - leaf.Num()%2)) })
		return []string{id("port.drained", audit.OfPort(leaf))}
	}},
	{name: "port.thresholds ar.", on: adaptiveFabric, do: func(b *bench, _, leaf *fabric.Port) []string {
		b.words = deepAdaptive
		b.announce(leaf.Node(), 52, 53)
		b.report(leaf.Node(), mad.AttrProfilesConfig, 0, func(data []byte) {})
		b.report(leaf.Node(), mad.AttrCreditWatchdogConfig, 0, func(data []byte) {
			for name, v := range map[string]uint64{"en_thr": 3, "error_thr": 4, "warning_thr": 4} {
				field(mad.AttrCreditWatchdogConfig, name, v)(data)
			}
		})
		return []string{id("port.thresholds", audit.OfNode(leaf.Node()))}
	}},
	{name: "port.thresholds ar. BER", on: adaptiveFabric, do: func(b *bench, _, leaf *fabric.Port) []string {
		b.words = deepAdaptive
		for i := range b.fabric.OfType(mad.NodeTypeSwitch) {
			n := &b.fabric.OfType(mad.NodeTypeSwitch)[i]
			b.announce(n, 52, 61)
			b.report(n, mad.AttrProfilesConfig, 0, func(data []byte) {})
			for kind := range uint32(3) {
				b.report(n, mad.AttrBERConfig, kind<<8, func(data []byte) {
					for name, v := range map[string]uint64{"en_thr": 3, "err_mantissa": 1, "err_exponent": 10, "warn_mantissa": 5, "warn_exponent": 12} {
						field(mad.AttrBERConfig, name, v)(data)
					}
				})
			}
		}
		b.report(leaf.Node(), mad.AttrBERConfig, 1<<8, field(mad.AttrBERConfig, "err_exponent", 11))
		return []string{id("port.thresholds", audit.OfNode(leaf.Node()))}
	}},
	{name: "qos.uniform ar.", on: adaptiveFabric, do: func(b *bench, _, leaf *fabric.Port) []string {
		b.words = deepAdaptive
		for i := range b.fabric.OfType(mad.NodeTypeSwitch) {
			n := &b.fabric.OfType(mad.NodeTypeSwitch)[i]
			b.announce(n, 51)
			b.report(n, mad.AttrQoSConfigVL, 1<<31|1, func(data []byte) { data[0] = 10 })
		}
		b.report(leaf.Node(), mad.AttrQoSConfigVL, 1<<31|1, func(data []byte) { data[0] = 20 })
		return []string{id("qos.uniform", audit.OfNode(leaf.Node()))}
	}},
	announced("device.update ar.", "device.update", 67, mad.AttrExtendedSwitchInfo, field(mad.AttrExtendedSwitchInfo, "issu_request", 1)),
	announced("fm.state ar.", "fm.state", 68, mad.ByName("FabricManagerInfo"), func(data []byte) { data[7] = 5 }),
	announced("lft.split ar.", "lft.split", 49, mad.ByName("LinearForwardingTableSplit"), func(data []byte) {
		data[11], data[15], data[23] = 99, 50, 200 // 0..99 and 50..200
	}),
}

var deepKeys = []string{"keys", "adaptive", "--deep"}

// keyFaults are those of keys.
var keyFaults = []fault{
	{name: "mkey.exposed", once: true, do: func(b *bench, ca, _ *fabric.Port) []string {
		b.port(ca, func(i *mad.PortInfo) { i.MKey = 0x1234 })
		return []string{id("mkey.exposed", audit.OfPort(ca))}
	}},
	atCA("mkey.exposed lease", "mkey.exposed", false, func(i *mad.PortInfo) { i.MKey, i.MKeyProtectBits = 0x1234, 1 }),
	{name: "mkey.uniform", alone: true, do: func(b *bench, ca, _ *fabric.Port) []string {
		if !b.many() {
			return nil
		}
		b.words = []string{"keys"}
		for i := range b.fabric.Nodes() {
			n := &b.fabric.Nodes()[i]
			for p := range n.Ports() {
				b.port(p, func(i *mad.PortInfo) { i.MKeyProtectBits, i.MKeyLeasePeriod = 2, 60 })
			}
			if n.IsSwitch() {
				b.port(n.Port(0), func(i *mad.PortInfo) { i.MKeyProtectBits, i.MKeyLeasePeriod = 2, 60 })
			}
		}
		b.port(ca, func(i *mad.PortInfo) { i.MKeyProtectBits = 1 })
		return []string{id("mkey.uniform", audit.OfPort(ca))}
	}},
	deep("mkey.level", func(b *bench, ca, _ *fabric.Port) []string {
		b.port(ca, func(i *mad.PortInfo) { i.MKeyProtectBits, i.MKeyLeasePeriod = 1, 60 })
		return []string{id("mkey.level", audit.OfPort(ca))}
	}),
	atCA("mkey.violated", "mkey.violated", false, func(i *mad.PortInfo) { i.MKeyViolations = 3 }),
	arFault(state.FaultKey, "key.protect", deepKeys...),
	deep("key.protect CC", func(b *bench, ca, _ *fabric.Port) []string {
		b.must(b.subnet.Edit.Congestion(mad.AttrCongestionKeyInfo, ca.Node().GUID(), 1, 0, func(data []byte) { data[7] = 9 }))
		return []string{id("key.protect", audit.OfNode(ca.Node()))}
	}),
	atSwitch("key.lease", "key.lease", deepKeys, mad.AttrVSKeyInfo, 0, field(mad.AttrVSKeyInfo, "lease_period", 0)),
	atSwitch("key.violated", "key.violated", deepKeys, mad.AttrN2NKeyInfo, 0, field(mad.AttrN2NKeyInfo, "node_key_violations", 2)),
	{name: "key.options", alone: true, do: func(b *bench, _, _ *fabric.Port) []string {
		b.file("opensm.conf", goodOptions)
		b.words = []string{"keys", "--opensm", "opensm.conf"}
		if r := audited(b.t, b.f, audits.RunOptions{}, b.words...); len(r.Findings) > 0 {
			b.t.Errorf("options that protect: %s", told(r))
		}
		b.file("opensm.conf", goodOptions+"periodic_key_update 5\n")
		return []string{id("key.options", audit.OfFabric())}
	}},
}

// TestKeyTraps: notices of wrong keys are counted by node, others are not.
func TestKeyTraps(t *testing.T) {
	onSimWith(t, "fattree", smKey, nil, nil, func(t *testing.T, f *fixture) {
		swept, err := topology.SweepQuietly(t.Context(), f.Runtime)
		if err != nil {
			t.Fatal(err)
		}
		leaf := swept.NodeByName("leaf-3")[0].GUID()
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 3 {
				time.Sleep(2 * time.Second)
				f.Env.Sim.Notices.SendTrap(256, leaf, 0, nil)
				f.Env.Sim.Notices.SendTrap(129, leaf, 7, nil)
			}
		}()
		r := audited(t, f, audits.RunOptions{}, "keys", "--traps", "30s")
		if got, want := told(r), "warning key.traps leaf-3: 3 notices of wrong keys in 30s: bad m key\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		<-done
	})
}

// TestSnapshotAdaptive: a snapshot has what finds the faults that the simulator injects, and
// names what it lacks.
func TestSnapshotAdaptive(t *testing.T) {
	onSimWith(t, "fattree:k=4,ar=updn,ar_faults=sl@leaf-1+empty@leaf-2+dead@leaf-3+stale@leaf-4+illegal@spine-1", smKey, nil, nil, func(t *testing.T, f *fixture) {
		file := ofFile(t, kept(t, f))
		defer file.Close()
		live, stored := audited(t, f, audits.RunOptions{}, deepAdaptive...), audited(t, file, audits.RunOptions{}, deepAdaptive...)
		if diff := cmp.Diff(told(live), told(stored)); diff != "" || len(stored.Findings) != 5 {
			t.Errorf("-live +file\n%s", diff)
		}
		var lacks []string
		for _, u := range stored.UnjudgedChecks() {
			if strings.Contains(u.Lacked, "not in the file") {
				lacks = append(lacks, u.Checks...)
			}
		}
		slices.Sort(lacks)
		if got, want := strings.Join(slices.Compact(lacks), " "), "ar.plft ar.plft.map"; got != want {
			t.Errorf("not judged: %s, want %s", got, want)
		}
	})
}

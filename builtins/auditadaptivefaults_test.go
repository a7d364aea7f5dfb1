package builtins

import (
	"encoding/binary"
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

// adaptiveFaults are the faults that the audit adaptive finds.
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
	{name: "ar.off", on: adaptiveFabric, once: true, do: func(b *bench, _, _ *fabric.Port) []string {
		b.words = deepAdaptive
		switches := b.fabric.OfType(mad.NodeTypeSwitch)
		for i := range switches {
			b.report(&switches[i], mad.AttrAdaptiveRoutingInfo, 0, field(mad.AttrAdaptiveRoutingInfo, "fr_enabled", 0))
		}
		return []string{id("ar.off", audit.OfFabric())}
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

// keyFaults are the faults that the audit keys finds.
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

// harmless is a change of what a device reports in which nothing is to be found.
func (x fault) harmless() fault {
	do := x.do
	x.do = func(b *bench, ca, leaf *fabric.Port) []string {
		do(b, ca, leaf)
		return []string{}
	}
	return x
}

// onto is the fault on another fabric.
func (x fault) onto(spec string) fault {
	x.on = spec
	return x
}

// setFields sets fields of an attribute.
func setFields(a *mad.Attribute, values map[string]uint64) func(data []byte) {
	return func(data []byte) {
		for name, v := range values {
			field(a, name, v)(data)
		}
	}
}

// ofAll is a fault of an attribute that all switches announce by capabilities, and that a leaf
// has otherwise than the others.
func ofAll(name, check string, capabilities []int, a *mad.Attribute, modifier uint32, all, one func(data []byte)) fault {
	return fault{name: name, on: adaptiveFabric, do: func(b *bench, _, leaf *fabric.Port) []string {
		b.words = deepAdaptive
		for i := range b.fabric.OfType(mad.NodeTypeSwitch) {
			n := &b.fabric.OfType(mad.NodeTypeSwitch)[i]
			b.announce(n, capabilities...)
			if a == mad.AttrCreditWatchdogConfig {
				b.report(n, mad.AttrProfilesConfig, 0, func(data []byte) {})
			}
			b.report(n, a, modifier, all)
		}
		b.report(leaf.Node(), a, modifier, one)
		return []string{id(check, audit.OfNode(leaf.Node()))}
	}}
}

// at is a fault of what a switch of a name reports.
func at(on, name, check, node string, a *mad.Attribute, modifier uint32, change func(data []byte)) fault {
	return fault{name: name, on: on, do: func(b *bench, _, _ *fabric.Port) []string {
		b.words = deepAdaptive
		n := b.fabric.NodeByName(node)[0]
		b.report(n, a, modifier, change)
		return []string{id(check, audit.OfNode(n))}
	}}
}

// subGroups is a fault of a group of leaf-1 with two sub-groups of these ports, a bit each, and
// their weights; its other groups have one.
func subGroups(name string, first, second, firstWeight, secondWeight byte) fault {
	return fault{name: name, on: adaptiveFabric, do: func(b *bench, _, _ *fabric.Port) []string {
		const group = 2
		b.words = deepAdaptive
		leaf := b.fabric.NodeByName("leaf-1")[0]
		b.report(leaf, mad.AttrAdaptiveRoutingGroupTable, group, func(data []byte) { data[31], data[63] = first, second })
		b.report(leaf, mad.AttrWeightedHBFConfig, 0, func(data []byte) { copy(data[4*group+1:], []byte{firstWeight, secondWeight}) })
		return []string{id("hbf.weights", audit.OfNode(leaf))}
	}}
}

// portMap lets a port of each byte of data be mapped to a private forwarding table.
func portMap(port int, table byte) func(data []byte) {
	return func(data []byte) {
		for sl := range mad.ServiceLevels {
			data[port%4*mad.ServiceLevels+sl] = table
		}
	}
}

const (
	dragonflyPlus = "testdata/dragonflyplus.txt:ar=updn,ar_with=plft"
	wideTree      = "fattree:k=8,ar=updn"
)

var watchdog = map[string]uint64{"en_thr": 3, "error_thr": 9, "warning_thr": 4}

// adaptiveCases are the conditions of adaptive that adaptiveFaults do not distinguish.
var adaptiveCases = []fault{
	{name: "ar.uniform of two", on: "ring:n=2,ar=updn", do: func(b *bench, _, _ *fabric.Port) []string {
		b.words = []string{"adaptive"}
		b.must(b.subnet.Edit.BreakAdaptive(b.fabric.OfType(mad.NodeTypeSwitch)[0].GUID(), state.FaultSL))
		return []string{id("ar.uniform", audit.OfFabric())}
	}},
	atSwitch("ar.uniform without a mask", "ar.uniform", []string{"adaptive"}, mad.AttrAdaptiveRoutingInfo, 0, setFields(mad.AttrAdaptiveRoutingInfo, map[string]uint64{"by_sl_en": 0, "enable_by_sl_mask": 0})).harmless(),
	atSwitch("ar.uniform all transports", "ar.uniform", []string{"adaptive"}, mad.AttrAdaptiveRoutingInfo, 0, field(mad.AttrAdaptiveRoutingInfo, "by_transp_cap", 0)),
	{name: "ar.order of adapters that cannot", on: adaptiveFabric, do: func(b *bench, ca, leaf *fabric.Port) []string {
		b.words = []string{"adaptive"}
		b.report(ca.Node(), mad.AttrExtendedPortInfo, uint32(ca.Num()), field(mad.AttrExtendedPortInfo, "ooo_sl_mask", 0))
		b.report(ca.Node(), mad.AttrGeneralInfo, mad.GeneralInfoFormCapabilities, func(data []byte) { data[0] &^= 1 << 6 })
		b.report(leaf.Node(), mad.AttrExtendedPortInfo, uint32(leaf.Num()), field(mad.AttrExtendedPortInfo, "ooo_sl_mask", 0xfff0))
		return []string{}
	}},
	at(wideTree, "ar.subgroups of a spine", "ar.subgroups", "spine-2", mad.AttrAdaptiveRoutingInfo, 0, field(mad.AttrAdaptiveRoutingInfo, "sub_grps_active", 2)),
	{name: "ar.subgroups of all spines", on: wideTree, do: func(b *bench, _, _ *fabric.Port) []string {
		b.words = deepAdaptive
		for i := range b.fabric.OfType(mad.NodeTypeSwitch) {
			if n := &b.fabric.OfType(mad.NodeTypeSwitch)[i]; strings.HasPrefix(n.Name(), "spine") {
				b.report(n, mad.AttrAdaptiveRoutingInfo, 0, field(mad.AttrAdaptiveRoutingInfo, "sub_grps_active", 2))
			}
		}
		return []string{}
	}},
	{name: "ar.plft.map ports", on: privateFabric, do: func(b *bench, _, leaf *fabric.Port) []string {
		b.words = deepAdaptive
		b.report(leaf.Node(), mad.AttrGeneralInfo, mad.GeneralInfoFormCapabilities, func(data []byte) { data[2] &^= 1 << 4 })
		b.report(leaf.Node(), mad.AttrPrivateLFTMap, 1, func(data []byte) { data[4+31] = 0b1000 }) // without port 4
		return []string{id("ar.plft.map", audit.OfNode(leaf.Node()))}
	}},
	atSwitch("ar.plft.map all ports", "ar.plft.map", deepAdaptive, mad.AttrGeneralInfo, mad.GeneralInfoFormCapabilities, func(data []byte) { data[2] &^= 1 << 4 }).onto(privateFabric).harmless(),
	at(dragonflyPlus, "ar.plft.map direction", "ar.plft.map", "spine-1-2", mad.AttrPortSLToPrivateLFTMap, 0, portMap(1, 0)),
	at(dragonflyPlus, "ar.plft.map level", "ar.plft.map", "spine-2-2", mad.AttrPortSLToPrivateLFTMap, 1, func(data []byte) { data[3] = 0 }),
	{name: "ar.plft.map turns", on: dragonflyPlus, do: func(b *bench, _, _ *fabric.Port) []string {
		b.words = deepAdaptive
		leaf := b.fabric.NodeByName("leaf-2-1")[0]
		for port := 1; port <= 2; port++ {
			b.report(leaf, mad.AttrPortSLToPrivateLFTMap, 0, portMap(port, 1))
		}
		return []string{id("ar.plft.map", audit.OfNode(leaf))}
	}},
	at(privateFabric, "ar.plft.map in a tree", "ar.plft.map", "spine-1", mad.AttrPortSLToPrivateLFTMap, 0, portMap(1, 0)).harmless(),
	atSwitch("hbf.uniform ar. off", "hbf.uniform", deepAdaptive, mad.AttrAdaptiveRoutingInfo, 0, setFields(mad.AttrAdaptiveRoutingInfo, map[string]uint64{"hbf_en": 0, "whbf_en": 0})),
	atSwitch("hbf.uniform ar. weights", "hbf.uniform", deepAdaptive, mad.AttrAdaptiveRoutingInfo, 0, field(mad.AttrAdaptiveRoutingInfo, "whbf_en", 0)),
	atSwitch("hbf.uniform ar. seed type", "hbf.uniform", deepAdaptive, mad.AttrHBFConfig, 0, field(mad.AttrHBFConfig, "seed_type", 1)),
	atSwitch("hbf.uniform ar. fields", "hbf.uniform", deepAdaptive, mad.AttrHBFConfig, 0, field(mad.AttrHBFConfig, "fields_enable", 3)),
	subGroups("hbf.weights ar. two sub-groups", 0x08, 0x10, 0, 5),
	subGroups("hbf.weights ar. first is empty", 0x00, 0x18, 0, 5).harmless(),
	subGroups("hbf.weights ar. second is empty", 0x18, 0x00, 5, 0).harmless(),
	atSwitch("pfrn.uniform ar. policy", "pfrn.uniform", deepAdaptive, mad.AttrPFRNConfig, 0, field(mad.AttrPFRNConfig, "policy", 1)),
	atSwitch("pfrn.uniform ar. timeouts", "pfrn.uniform", deepAdaptive, mad.AttrPFRNConfig, 0, field(mad.AttrPFRNConfig, "mask_clear_timeout", 240)),
	atPort("port.admin ar. diag", "port.admin", deepAdaptive, field(mad.AttrExtendedPortInfo, "nmx_admin_state", uint64(mad.NMXAdminStateDiag))),
	{name: "port.admin ar. inactive", on: adaptiveFabric, do: func(b *bench, ca, leaf *fabric.Port) []string {
		b.words = deepAdaptive
		b.report(ca.Node(), mad.AttrExtendedPortInfo, uint32(ca.Num()), field(mad.AttrExtendedPortInfo, "nmx_admin_state", uint64(mad.NMXAdminStateDown)))
		b.port(ca, func(i *mad.PortInfo) { i.PortState = mad.PortStateInitialize })
		return []string{}
	}},
	ofAll("port.thresholds ar. odd", "port.thresholds", []int{52, 53}, mad.AttrCreditWatchdogConfig, 0, setFields(mad.AttrCreditWatchdogConfig, watchdog), field(mad.AttrCreditWatchdogConfig, "error_thr", 8)),
	ofAll("port.thresholds ar. normal", "port.thresholds", []int{52, 53}, mad.AttrCreditWatchdogConfig, 0, setFields(mad.AttrCreditWatchdogConfig, watchdog), func([]byte) {}).harmless(),
	{name: "port.thresholds ar. BER order", on: adaptiveFabric, do: func(b *bench, _, _ *fabric.Port) (ids []string) {
		b.words = deepAdaptive
		for i := range b.fabric.OfType(mad.NodeTypeSwitch) {
			n := &b.fabric.OfType(mad.NodeTypeSwitch)[i]
			b.announce(n, 52, 61)
			b.report(n, mad.AttrProfilesConfig, 0, func(data []byte) {})
			for kind := range uint32(3) {
				b.report(n, mad.AttrBERConfig, kind<<8, setFields(mad.AttrBERConfig, map[string]uint64{"en_thr": 3, "err_mantissa": 5, "err_exponent": 12, "warn_mantissa": 1, "warn_exponent": 11}))
			}
			ids = append(ids, id("port.thresholds", audit.OfNode(n)))
		}
		return ids
	}},
	{name: "qos.uniform ar. adapter", on: adaptiveFabric, do: func(b *bench, ca, _ *fabric.Port) []string {
		b.words = deepAdaptive
		for i := range b.fabric.OfType(mad.NodeTypeCA) {
			n := &b.fabric.OfType(mad.NodeTypeCA)[i]
			b.announce(n, 24)
			b.report(n, mad.AttrQoSConfigSL, 1, func(data []byte) { data[3] = 10 })
		}
		b.report(ca.Node(), mad.AttrQoSConfigSL, 1, func(data []byte) { data[3] = 20 })
		return []string{id("qos.uniform", audit.OfPort(ca))}
	}},
	announced("device.update ar. failed", "device.update", 67, mad.AttrExtendedSwitchInfo, field(mad.AttrExtendedSwitchInfo, "issu_approve", 1)),
	announced("fm.state ar. timeout", "fm.state", 68, mad.ByName("FabricManagerInfo"), func(data []byte) { data[7] = 4 }),
	ofAll("lft.split ar. odd", "lft.split", []int{49}, mad.ByName("LinearForwardingTableSplit"), 0, func(data []byte) { data[11] = 99 }, func(data []byte) { data[11] = 98 }),

	atSwitch("key.protect VS", "key.protect", deepKeys, mad.AttrVSKeyInfo, 0, field(mad.AttrVSKeyInfo, "protect_bit", 0)),
	atSwitch("key.protect none", "key.protect", deepKeys, mad.AttrVSKeyInfo, 0, setFields(mad.AttrVSKeyInfo, map[string]uint64{"protect_bit": 0, "vs_key": 0})),
	atSwitch("key.violated manager", "key.violated", deepKeys, mad.AttrN2NKeyInfo, 0, field(mad.AttrN2NKeyInfo, "violations", 2)),
	atSwitch("key.lease N2N", "key.lease", deepKeys, mad.AttrN2NKeyInfo, 0, field(mad.AttrN2NKeyInfo, "lease_period", 0)),
	deep("key.violated CC", func(b *bench, ca, _ *fabric.Port) []string {
		b.must(b.subnet.Edit.Congestion(mad.AttrCongestionKeyInfo, ca.Node().GUID(), 1, 0, field(mad.AttrCongestionKeyInfo, "cc_key_violations", 2)))
		return []string{id("key.violated", audit.OfNode(ca.Node()))}
	}),
	{name: "key.lease CC", on: "fattree:k=4", do: func(b *bench, ca, _ *fabric.Port) []string {
		b.words = deepKeys
		all := map[string]uint64{"cc_key": 9, "cc_key_protect_bit": 1, "cc_key_lease_period": 60}
		for i := range b.fabric.Nodes() {
			n := &b.fabric.Nodes()[i]
			port := 1
			if n.IsSwitch() {
				port = 0
			}
			b.must(b.subnet.Edit.Congestion(mad.AttrCongestionKeyInfo, n.GUID(), port, 0, setFields(mad.AttrCongestionKeyInfo, all)))
		}
		b.must(b.subnet.Edit.Congestion(mad.AttrCongestionKeyInfo, ca.Node().GUID(), 1, 0, field(mad.AttrCongestionKeyInfo, "cc_key_lease_period", 0)))
		return []string{id("key.lease", audit.OfNode(ca.Node()))}
	}},
	deep("mkey.level lease", func(b *bench, ca, _ *fabric.Port) []string {
		b.port(ca, func(i *mad.PortInfo) { i.MKeyProtectBits, i.MKeyLeasePeriod = 2, 30 })
		return []string{id("mkey.level", audit.OfPort(ca))}
	}),
}

// TestAdaptiveUnjudged: what the audits cannot judge is named, with the reason; a fault that is
// found is not named again.
func TestAdaptiveUnjudged(t *testing.T) {
	const copies = "not judged: ar.copy, groups made by copy: switches do not report which groups these are"
	for _, x := range []struct {
		name, spec string
		do         func(b *bench)
		want       []string
	}{
		{"nothing", "fattree:k=4,ar=updn", func(*bench) {}, []string{copies}},
		{"no copies", "fattree:k=4,ar=updn", func(b *bench) {
			for i := range b.fabric.OfType(mad.NodeTypeSwitch) {
				b.report(&b.fabric.OfType(mad.NodeTypeSwitch)[i], mad.AttrAdaptiveRoutingInfo, 0, field(mad.AttrAdaptiveRoutingInfo, "group_table_copy_sup", 0))
			}
		}, nil},
		{"a group beyond the last", "fattree:k=4,ar=updn", func(b *bench) {
			b.must(b.subnet.Edit.BreakAdaptive(b.fabric.NodeByName("leaf-2")[0].GUID(), state.FaultTop))
		}, []string{"ar.group  leaf-2: group 3 of LID 3 is above GroupTop: its packets are dropped; and 1 other group of the switch", copies,
			`not judged: ar.lanes, "leaf-2" (0x0002c90300100010): the entry of LID 3 has group 3; the last group is 1`}},
		{"a group that leads back", "fattree:k=4,ar=updn", func(b *bench) {
			b.must(b.subnet.Edit.BreakAdaptive(b.fabric.NodeByName("leaf-2")[0].GUID(), state.FaultIllegal))
		}, []string{"ar.illegal  leaf-2: group 3 of LID 3 has port 1, which leads to another end port, or to a switch that may send the packets back", copies,
			"not judged: ar.lanes, a group leads packets back, which closes loops"}},
		{"aggregation nodes", "fattree:k=4,aggregation=yes,ar=updn,ar_with=plft", func(b *bench) {}, []string{copies}},
		{"dimensions", "hyperx:dims=3/3,ar=updn,ar_with=plft", func(b *bench) {}, []string{copies,
			"not judged: ar.plft.map, rules of routing engines: no public source has the order of dimensions, as of opensm kdor"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			onSimWith(t, x.spec, smKey, nil, nil, func(t *testing.T, f *fixture) {
				swept, err := topology.SweepQuietly(t.Context(), f.Runtime)
				if err != nil {
					t.Fatal(err)
				}
				x.do(&bench{t: t, f: f, subnet: f.Env.Sim, fabric: swept})
				var got []string
				for line := range strings.Lines(textOf(audited(t, f, audits.RunOptions{}, deepAdaptive...))) {
					if !strings.Contains(line, "private LFT 1 is in use") {
						got = append(got, strings.TrimSuffix(line, "\n"))
					}
				}
				if diff := cmp.Diff(x.want, got); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			})
		})
	}
}

// TestKeyOptions: each option of OpenSM that leaves keys unprotected is named.
func TestKeyOptions(t *testing.T) {
	onSim(t, "ring:n=1", nil, func(t *testing.T, f *fixture) {
		b := &bench{t: t, f: f}
		for _, x := range []struct{ change, want string }{
			{"", ""},
			{"vs_key_enable 1", "vs_key_enable is 1, not 2"},
			{"key_mgr_seed 0x0", "key_mgr_seed is not set"},
			{"m_key_per_port FALSE\nm_key 0", "m_key_per_port is FALSE, not TRUE; m_key is not set"},
			{"m_key 0", ""}, // each port has its own
			{"periodic_key_update 9", "periodic_key_update is 9; want 0, or 10 to 71582 minutes"},
			{"periodic_key_update 71583", "periodic_key_update is 71583; want 0, or 10 to 71582 minutes"},
			{"periodic_key_update soon", "periodic_key_update is soon; want 0, or 10 to 71582 minutes"},
			{"periodic_key_update 10", ""},
			{"periodic_key_update 71582", ""},
		} {
			b.file("opensm.conf", goodOptions+x.change+"\n")
			got := ""
			for _, found := range audited(t, f, audits.RunOptions{}, "keys", "--opensm", "opensm.conf").Findings {
				got += found.Check + ": " + found.Message
			}
			if want := x.want; got != want && got != "key.options: "+want {
				t.Errorf("%q: %s, want %s", x.change, got, want)
			}
		}
	})
}

const goodOptions = "# OpenSM\nm_key 0x1234\nm_key_per_port TRUE\nvs_key_enable 2\nvs_key_ci_protect_bits 1\nn2n_key_enable 2\nkey_mgr_seed 0x77\nperiodic_key_update 0 # minutes\n"

// TestKeyUpdate: keys that should be updated have a notice within their period.
func TestKeyUpdate(t *testing.T) {
	for _, x := range []struct {
		option, traps string
		notices       bool
		want          string
	}{
		{"15", "16m", false, "mute"}, // the subnet administrator does not answer
		{"0", "20m", false, ""},
		{"15", "", false, "not judged: key.update, a notice comes every 15 minutes; --traps 15m waits for it"},
		{"15", "14m", false, "not judged: key.update, a notice comes every 15 minutes; --traps 15m waits for it"},
		{"15", "14m", true, ""},
		{"15", "15m", true, ""},
		{"15", "15m", false, "key.update  fabric: keys should be updated every 15 minutes; no notice of an update came in 15m0s"},
	} {
		t.Run(x.option+" "+x.traps, func(t *testing.T) {
			onSimWith(t, "ring:n=1", smKey, nil, nil, func(t *testing.T, f *fixture) {
				swept, err := topology.SweepQuietly(t.Context(), f.Runtime)
				if err != nil {
					t.Fatal(err)
				}
				sm := swept.OfType(mad.NodeTypeCA)[0].GUID()
				if x.want == "mute" {
					f.Env.Sim.SA.Mute(true)
					x.want = "not judged: key.traps, notices of wrong M_Keys, which require the SM_Key (--keys): timed out\n" +
						"not judged: key.traps, notices of wrong keys of NVIDIA's classes: timed out\n" +
						"not judged: key.update, notices of key updates could not be subscribed to"
				}
				b := &bench{t: t, f: f}
				b.file("opensm.conf", goodOptions+"periodic_key_update "+x.option+"\n")
				words := []string{"keys", "--opensm", "opensm.conf"}
				if x.traps != "" {
					words = append(words, "--traps", x.traps)
				}
				done := make(chan struct{})
				go func() {
					defer close(done)
					time.Sleep(5 * time.Minute)
					if x.notices {
						if err := f.Env.Sim.Notices.SendTrap(144, sm, 1, keysUpdated); err != nil {
							t.Error(err)
						}
					}
				}()
				got := textOf(audited(t, f, audits.RunOptions{}, words...))
				if diff := cmp.Diff(x.want, got); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
				<-done
			})
		})
	}
}

// keysUpdated makes a notice the notice of OpenSM about updated keys.
func keysUpdated(_ *mad.Attribute, notice []byte) error {
	var n mad.Notice
	n.Decode(notice)
	n.IsGeneric, n.ProducerType, n.TrapNumber = false, 0x2c9, 0
	binary.BigEndian.PutUint16(n.DataDetails[len(n.DataDetails)-2:], uint16(mad.NVIDIANoticeNumberKeysUpdated))
	n.Encode(notice)
	return nil
}

package builtins

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/builtins/audits"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/audit"
	"fabsh/fabric/sim"
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// told draws what a report tells, without its head.
func told(r *audit.Report) string {
	var b strings.Builder
	var draw func(groups []*audit.Group, indent string)
	draw = func(groups []*audit.Group, indent string) {
		for _, g := range groups {
			b.WriteString(indent + g.Severity.String() + " " + g.Check + " " + g.Subject.Name() + ": " + g.Message + "\n")
			draw(g.Effects, indent+"  ")
		}
	}
	draw(audit.Fold(r.Findings), "")
	return b.String()
}

// end is a port by the name of its node.
func end(t *testing.T, f *fabric.Fabric, name string, num int) sim.Cable {
	t.Helper()
	nodes := f.NodeByName(name)
	if len(nodes) != 1 {
		t.Fatalf("%d nodes are named %s", len(nodes), name)
	}
	return sim.Cable{Node: nodes[0].GUID(), Num: num}
}

// TestTopologyFaults: what hands do to cables and nodes is named, once, whichever
// ends they are at.
func TestTopologyFaults(t *testing.T) {
	type cables = [][2]sim.Cable
	for _, test := range []struct {
		name string
		do   func(t *testing.T, s *sim.Subnet, at func(string, int) sim.Cable) error
		want string
	}{
		{"nothing", func(*testing.T, *sim.Subnet, func(string, int) sim.Cable) error { return nil }, ""},
		{"a cable pulled", func(_ *testing.T, s *sim.Subnet, at func(string, int) sim.Cable) error {
			return s.Cables.Unlink(at("leaf-3", 7).Node, 7)
		}, "critical link.down leaf-3/7 - spine-3/3: the link is down at both ends\n"},
		{"a host gone", func(_ *testing.T, s *sim.Subnet, at func(string, int) sim.Cable) error {
			return s.Cables.Unlink(at("leaf-3", 2).Node, 2)
		}, "error link.down leaf-3/2 - node-0010 HCA-1/1: the link is down: node-0010 HCA-1 is gone\n"},
		{"two swapped", func(_ *testing.T, s *sim.Subnet, at func(string, int) sim.Cable) error {
			return s.Cables.Recable(cables{{at("leaf-3", 5), at("spine-2", 3)}, {at("leaf-3", 6), at("spine-1", 3)}}...)
		}, "error topo.swapped leaf-3/5 - spine-2/3: cables are exchanged: swap the cables at leaf-3/5 and leaf-3/6\n"},
		{"two swapped at a spine", func(_ *testing.T, s *sim.Subnet, at func(string, int) sim.Cable) error {
			return s.Cables.Recable(cables{{at("leaf-3", 5), at("spine-1", 4)}, {at("leaf-4", 5), at("spine-1", 3)}}...)
		}, "error topo.swapped leaf-4/5 - spine-1/3: cables are exchanged: swap the cables at spine-1/3 and spine-1/4\n"},
		{"three in a circle", func(_ *testing.T, s *sim.Subnet, at func(string, int) sim.Cable) error {
			return s.Cables.Recable(cables{{at("leaf-3", 1), at("node-0010 HCA-1", 1)}, {at("leaf-3", 2), at("node-0011 HCA-1", 1)}, {at("leaf-3", 3), at("node-0009 HCA-1", 1)}}...)
		}, "error topo.swapped leaf-3/3 - node-0009 HCA-1/1: cables are exchanged: move the plug at leaf-3/3 to leaf-3/1, leaf-3/2 to leaf-3/3, leaf-3/1 to leaf-3/2\n"},
		{"a cable crossed", func(_ *testing.T, s *sim.Subnet, at func(string, int) sim.Cable) error { // leaf to leaf, spine to spine
			return s.Cables.Recable(cables{{at("leaf-3", 5), at("leaf-4", 5)}, {at("spine-1", 3), at("spine-1", 4)}}...)
		}, "warning topo.loopback spine-1/3 - spine-1/4: both ends of the cable are in one node\n"},
		{"another model", func(_ *testing.T, s *sim.Subnet, at func(string, int) sim.Cable) error {
			return s.Edit.Node(at("spine-1", 0).Node, func(_ *string, i *mad.NodeInfo, _ *mad.SwitchInfo) { i.DeviceID = 0xd2f2 })
		}, "warning topo.device spine-1: the model is 0x02c9 0xd2f2 with 8 ports; planned: 0x02c9 0xd2f0 with 8 ports\n"},
		{"a node replaced", func(_ *testing.T, s *sim.Subnet, at func(string, int) sim.Cable) error {
			return s.Edit.Node(at("node-0010 HCA-1", 0).Node, func(_ *string, i *mad.NodeInfo, _ *mad.SwitchInfo) { i.NodeGUID = 0xabcdef })
		}, "info node.replaced node-0010 HCA-1: the node of this name was 0x0002c90310000090\n"},
		{"a node new", func(_ *testing.T, s *sim.Subnet, at func(string, int) sim.Cable) error {
			return s.Edit.Node(at("node-0010 HCA-1", 0).Node, func(name *string, i *mad.NodeInfo, _ *mad.SwitchInfo) { *name, i.NodeGUID = "new\n\x1b[2J", 0xabcdef })
		}, "warning node.replaced new\n\x1b[2J: the node with these cables was node-0010 HCA-1, 0x0002c90310000090\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			onSim(t, "fattree", nil, func(t *testing.T, f *fixture) {
				base, err := topology.SweepQuietly(context.Background(), f.Runtime)
				if err != nil {
					t.Fatal(err)
				}
				if err := test.do(t, f.Env.Sim, func(name string, num int) sim.Cable { return end(t, base, name, num) }); err != nil {
					t.Fatal(err)
				}
				r := audited(t, f, audits.RunOptions{Baseline: base}, "topology")
				got := told(r)
				if test.name == "a cable crossed" { // the exchange is named too, in whatever plugs
					got = strings.Join(strings.SplitAfter(got, "\n")[1:], "")
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("-want +got\n%s", diff)
				}
			})
		})
	}
}

// TestRoutingFaults: what is wrong in tables is found by the audit that reads them.
func TestRoutingFaults(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(s *sim.Subnet, f *fabric.Fabric) error
		want []string // checks
	}{
		{"nothing", func(*sim.Subnet, *fabric.Fabric) error { return nil }, nil},
		{"a hole", func(s *sim.Subnet, f *fabric.Fabric) error {
			return s.Edit.LFT(f.NodeByName("leaf-3")[0].GUID(), f.NodeByName("node-0030 HCA-1")[0].LID(), mad.NoPort)
		}, []string{"rt.unreachable"}},
		{"a loop", func(s *sim.Subnet, f *fabric.Fabric) error {
			for _, spine := range []string{"spine-1", "spine-2", "spine-3", "spine-4"} { // back to leaf-3
				if err := s.Edit.LFT(f.NodeByName(spine)[0].GUID(), f.NodeByName("node-0030 HCA-1")[0].LID(), 3); err != nil {
					return err
				}
			}
			return nil
		}, []string{"rt.loop"}},
		{"a port that is not there", func(s *sim.Subnet, f *fabric.Fabric) error {
			return s.Edit.LFT(f.NodeByName("leaf-3")[0].GUID(), f.NodeByName("node-0030 HCA-1")[0].LID(), 77)
		}, []string{"rt.deadport", "rt.unreachable"}},
		{"a top too low", func(s *sim.Subnet, f *fabric.Fabric) error {
			return s.Edit.Node(f.NodeByName("leaf-3")[0].GUID(), func(_ *string, _ *mad.NodeInfo, sw *mad.SwitchInfo) { sw.LinearFDBTop = 3 })
		}, []string{"rt.top"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			onSim(t, "fattree", nil, func(t *testing.T, f *fixture) {
				base, err := topology.SweepQuietly(context.Background(), f.Runtime)
				if err != nil {
					t.Fatal(err)
				}
				if err := test.do(f.Env.Sim, base); err != nil {
					t.Fatal(err)
				}
				r := audited(t, f, audits.RunOptions{}, "routing")
				var got []string
				for _, x := range r.Findings {
					got = append(got, x.Check)
				}
				if test.name == "a top too low" { // and what is beyond it is unreachable
					got = got[:1]
				}
				if test.name == "a loop" {
					var loops []string
					for _, check := range got {
						if check != "rt.creditloop" { // packets in a circle wait for each other, too
							loops = append(loops, check)
						}
					}
					got = loops
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("-want +got\n%s\n%s", diff, told(r))
				}
			})
		})
	}
}

// TestRoutingAuditAdaptive: the audit routing judges the choices of switches that route
// adaptively, not their forwarding tables; live, and in a snapshot.
func TestRoutingAuditAdaptive(t *testing.T) {
	const broken = "rt.unreachable  fabric: pairs without a path: 4 of 56, such as node-0003 HCA-1/1 to LID 11, node-0004 HCA-1/1 to LID 11, node-0003 HCA-1/1 to LID 12"
	unknown := func(why string) string {
		var list []string
		for _, check := range []string{"rt.unreachable", "rt.loop", "rt.creditloop"} {
			list = append(list, fmt.Sprintf(`not judged: %s, adaptive routing is unknown: "leaf-2" (0x0002c90300100010): %s`, check, why))
		}
		return strings.Join(list, "\n")
	}
	for _, test := range []struct {
		fault string
		want  string
	}{
		{"", ""},
		{"stale", ""},
		{"off", ""},
		{"empty", broken},
		{"illegal", broken},
		{"dead", unknown(`group 3 of LID 3 has port 5; the switch has ports 0..4`)},
		{"top", unknown(`the entry of LID 3 has group 3; the last group is 1`)},
	} {
		t.Run("fault "+test.fault, func(t *testing.T) {
			onSimWith(t, "fattree:k=4,ar=updn", smKey, nil, nil, func(t *testing.T, f *fixture) {
				swept, err := topology.SweepQuietly(t.Context(), f.Runtime)
				if err != nil {
					t.Fatal(err)
				}
				if test.fault != "" {
					fault, err := state.AdaptiveFaultNamed(test.fault)
					if err == nil {
						err = f.Env.Sim.Edit.BreakAdaptive(swept.NodeByName("leaf-2")[0].GUID(), fault)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				live := textOf(audited(t, f, audits.RunOptions{}, "routing"))
				if diff := cmp.Diff(test.want, live); diff != "" {
					t.Errorf("%s (-want +got):\n%s", test.fault, diff)
				}
				file := ofFile(t, kept(t, f))
				defer file.Close()
				if diff := cmp.Diff(live, textOf(audited(t, file, audits.RunOptions{}, "routing"))); diff != "" {
					t.Errorf("%s (-live +file):\n%s", test.fault, diff)
				}
			})
		})
	}
}

// textOf lists the findings, and the checks that were not judged.
func textOf(r *audit.Report) string {
	var list []string
	for i := range r.Findings {
		if x := &r.Findings[i]; !aboutRun(x.ID()) {
			list = append(list, x.Check+"  "+x.Subject.Name()+": "+x.Message)
		}
	}
	for _, u := range r.Unjudged {
		list = append(list, fmt.Sprintf("not judged: %s, %s", u.Check, u.Lacked))
	}
	return strings.Join(list, "\n")
}

// TestStoredAR: get_ar in a session on a snapshot has what it had live.
func TestStoredAR(t *testing.T) {
	const code = `
for t in get_ar(["leaf-%d" % i for i in range(1, 5)] + ["spine-1", "spine-2"]):
    print(t.announced, t.enabled, t.sl_mask, t.sub_groups, t.group_top, t.groups, t.top, t.info, t.unknown, [(e.state, e.port, e.group) for e in t if e])`
	onSim(t, "fattree:k=4,ar=updn,ar_with=secondary", nil, func(t *testing.T, f *fixture) {
		live, explained, _ := f.run("discover()\n" + code)
		if explained != "" || !strings.Contains(live, "True True 65535") {
			t.Fatal(live, explained)
		}
		snap := kept(t, f)
		file := ofFile(t, snap)
		defer file.Close()
		stored, explained, _ := file.run(code)
		if explained != "" || stored != live {
			t.Errorf("%s\nlive %s\nfile %s", explained, live, stored)
		}
		// Without AdaptiveRoutingInfo, as of --adaptive alone.
		without := ofFile(t, snap.With(fabric.Reading{Answers: slices.DeleteFunc(slices.Clone(snap.Answers()), func(a fabric.Answer) bool { return a.ID == mad.AttrAdaptiveRoutingInfo.ID })}))
		defer without.Close()
		if out, explained, _ := without.run(`t = get_ar("leaf-1"); print(t.announced, t.enabled, t.info)`); explained != "" || strings.TrimSpace(out) != "True True None" {
			t.Error(out, explained)
		}
		static := ofFile(t, snap.With(fabric.Reading{Adaptive: make([]*adaptive.Switch, len(snap.Nodes())), Answers: []fabric.Answer{}}))
		defer static.Close()
		if _, explained, _ := static.run(`get_ar("leaf-1")`); !strings.Contains(explained, "get_ar: the file has no attributes beyond the topology") {
			t.Error(explained)
		}
	})
}

// TestAdaptiveMetrics: the exporter's metrics of adaptive routing, by one request for each
// switch; of switches that do not announce it there are none.
func TestAdaptiveMetrics(t *testing.T) {
	for _, test := range []struct {
		name, spec         string
		keys               bool // the M_Keys protect
		read               string
		want, first, later string
	}{
		{"on and off", "ring:n=2,ar=updn", false, "", `fabsh_ar_enabled{switch-1} 1
fabsh_ar_sl_mask{switch-1} 65533
fabsh_ar_enabled{switch-2} 0
fabsh_ar_sl_mask{switch-2} 65535
fabsh_mkey_unprotected_ports{} 4`, "AdaptiveRoutingInfo 2, GeneralInfo 2", "AdaptiveRoutingInfo 2"},
		{"not announced", "ring:n=2", false, "", "fabsh_mkey_unprotected_ports{} 4", "GeneralInfo 2", ""},
		{"keys", "ring:n=2", true, "", "fabsh_mkey_unprotected_ports{} 0", "GeneralInfo 2", ""},
		{"groups where none are", "ring:n=2", false, audits.ShortGroups, "fabsh_mkey_unprotected_ports{} 4", "GeneralInfo 2", ""},
		{"groups and keys", "ring:n=2,ar=updn", false, audits.ShortGroups + "," + audits.UnprotectedKeys, `fabsh_ar_enabled{switch-1} 1
fabsh_ar_sl_mask{switch-1} 65533
fabsh_ar_enabled{switch-2} 0
fabsh_ar_sl_mask{switch-2} 65535
fabsh_mkey_unprotected_ports{} 4
fabsh_ar_short_groups{switch-1} 0
fabsh_key_unprotected_nodes{vs} 1
fabsh_key_unprotected_nodes{n2n} 1
fabsh_key_unprotected_nodes{cc} 4`,
			"AdaptiveRoutingGroupTable 1, AdaptiveRoutingInfo 6, AdaptiveRoutingLFT 1, ClassPortInfo 8, GeneralInfo 2, KeyInfo 6, PrivateLFTInfo 1, pFRNConfig 1",
			"AdaptiveRoutingGroupTable 1, AdaptiveRoutingInfo 5, AdaptiveRoutingLFT 1, KeyInfo 6, PrivateLFTInfo 1, pFRNConfig 1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			onSim(t, test.spec, nil, func(t *testing.T, f *fixture) {
				sent := &vendorRequests{count: map[string]int{}}
				f.Env.Sim.Programs.Watch(sent.seen)
				f.run("discover()")
				if test.keys {
					for i := range topology.EnvOf(f.Runtime).Current.Nodes() {
						if err := f.Env.Sim.Edit.MKey(topology.EnvOf(f.Runtime).Current.Nodes()[i].GUID(), 7, 1, 60); err != nil {
							t.Fatal(err)
						}
					}
					f.run("discover()")
				}
				if switches := topology.EnvOf(f.Runtime).Current.OfType(mad.NodeTypeSwitch); strings.Contains(test.spec, "ar=") {
					faults := []state.AdaptiveFault{state.FaultSL, state.FaultOff}
					if strings.Contains(test.read, audits.UnprotectedKeys) {
						faults = append(faults, state.FaultKey)
					}
					for i, fault := range faults {
						if err := f.Env.Sim.Edit.BreakAdaptive(switches[i%len(switches)].GUID(), fault); err != nil {
							t.Fatal(err)
						}
					}
				}
				for i, requests := range []string{test.first, test.later} {
					metrics, err := audits.AdaptiveMetrics(t.Context(), f.Runtime, func(name string) bool { return slices.Contains(strings.Split(test.read, ","), name) })
					if err != nil {
						t.Fatal(err)
					}
					var got []string
					for _, m := range metrics {
						name := ""
						if len(m.Labels) > 0 {
							name = m.Labels[len(m.Labels)-1]
						}
						got = append(got, fmt.Sprintf("%s{%s} %v", m.Name, name, m.Value))
					}
					if diff := cmp.Diff(test.want, strings.Join(got, "\n")); diff != "" {
						t.Errorf("(-want +got):\n%s", diff)
					}
					if got := sent.take(); got != requests {
						t.Errorf("read %d: sent %s, want %s", i, got, requests)
					}
				}
			})
		})
	}
}

// TestRoutingAuditLanes: a loop of choices is judged on the virtual lanes of the switches, and not
// judged where these are unknown.
func TestRoutingAuditLanes(t *testing.T) {
	onSimWith(t, "dragonfly:a=4,p=2,h=1,ar=minhop", smKey, nil, nil, func(t *testing.T, f *fixture) {
		swept, err := topology.SweepQuietly(t.Context(), f.Runtime)
		if err != nil {
			t.Fatal(err)
		}
		const loop = "rt.creditloop  fabric: packets may wait for each other forever (deadlock): group-1 switch-1/3 > group-1 switch-2/6 > group-3 switch-1/3 > group-3 switch-2/6 > group-2 switch-2/3 > group-2 switch-1/6"
		if diff := cmp.Diff(loop, textOf(audited(t, f, audits.RunOptions{}, "routing"))); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		n := swept.NodeByName("group-3 switch-1")[0]
		for in := range uint32(n.NumPorts()) {
			for out := range uint32(n.NumPorts()) {
				err := f.Env.Sim.Edit.Table(mad.AttrSLtoVLMappingTable, n.GUID(), 0, (in+1)<<8|out+1, func(data []byte) {
					for i := range 8 { // two service levels each
						data[i] = 0x11
					}
				})
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		// Packets of one service level change to the same lanes at each turn: they wait nevertheless.
		if diff := cmp.Diff(loop, textOf(audited(t, f, audits.RunOptions{}, "routing"))); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		for num := 1; num <= n.NumPorts(); num++ {
			if err := f.Env.Sim.Faults.LosePackets(sim.End{Node: n.ID(), Num: num}, 100, mad.AttrSLtoVLMappingTable.ID); err != nil {
				t.Fatal(err)
			}
		}
		lost := fmt.Sprintf("not judged: rt.creditloop, the SL2VL of %s from port 1 to port 2: SubnGet(SLtoVLMappingTable out_port 2 in_port 1) to route 0,1,3,6: timed out after 6 attempts in 3s", n.Label())
		if diff := cmp.Diff(lost, textOf(audited(t, f, audits.RunOptions{}, "routing"))); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
	onSimWith(t, "ring:n=101,hosts=1,ar=minhop", smKey, nil, nil, func(t *testing.T, f *fixture) {
		const long = "rt.creditloop  fabric: packets may wait for each other forever (deadlock): switch-1/2 > switch-101/2 > switch-100/2 > switch-99/2 > switch-98/2 > switch-97/2"
		if diff := cmp.Diff(long, textOf(audited(t, f, audits.RunOptions{}, "routing"))); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

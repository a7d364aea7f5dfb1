package builtins

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/builtins/audits"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/sim"
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
		}, "error node.gone node-0010 HCA-1: the CA was not found: it is gone, or did not answer\n  warning link.down leaf-3/2 - node-0010 HCA-1/1: the link is down: a node is gone\n"},
		{"two swapped", func(_ *testing.T, s *sim.Subnet, at func(string, int) sim.Cable) error {
			return s.Cables.Recable(cables{{at("leaf-3", 5), at("spine-2", 3)}, {at("leaf-3", 6), at("spine-1", 3)}}...)
		}, "error topo.swapped leaf-3/5 - spine-2/3: cables are exchanged: swap the cables at leaf-3/5 and leaf-3/6\n"},
		{"two swapped at a spine", func(_ *testing.T, s *sim.Subnet, at func(string, int) sim.Cable) error {
			return s.Cables.Recable(cables{{at("leaf-3", 5), at("spine-1", 4)}, {at("leaf-4", 5), at("spine-1", 3)}}...)
		}, "error topo.swapped leaf-3/5 - spine-1/4: cables are exchanged: swap the cables at spine-1/4 and spine-1/3\n"},
		{"three in a circle", func(_ *testing.T, s *sim.Subnet, at func(string, int) sim.Cable) error {
			return s.Cables.Recable(cables{{at("leaf-3", 1), at("node-0010 HCA-1", 1)}, {at("leaf-3", 2), at("node-0011 HCA-1", 1)}, {at("leaf-3", 3), at("node-0009 HCA-1", 1)}}...)
		}, "error topo.swapped leaf-3/1 - node-0010 HCA-1/1: cables are exchanged: move the plug at leaf-3/1 to leaf-3/2, leaf-3/2 to leaf-3/3, leaf-3/3 to leaf-3/1\n"},
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
		}, "error node.gone node-0010 HCA-1: the CA was not found: it is gone, or did not answer\ninfo node.new new\n\x1b[2J: the CA is not in the plan\n"},
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

package builtins

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/builtins/audits"
	"fabsh/builtins/topology"
	"fabsh/fabric/format"
	"fabsh/fabric/sim"
)

// TestPlansOfCables: a fabric against plans of its cables, as fabsh and UFM write them.
func TestPlansOfCables(t *testing.T) {
	// ufm spells a plan of fabsh as UFM does, in upper case, with drivers' names of HCAs.
	ufm := func(own string) string {
		var b strings.Builder
		b.WriteString("#StartDevice,StartPort,EndDevice,EndPort,LinkType\n")
		for line := range strings.Lines(own) {
			if f := strings.Split(line, ","); f[1] != "a_port" {
				b.WriteString(strings.ReplaceAll(strings.ToUpper(f[0]+".SITE.ORG,Port "+f[1]+","+f[2]), " HCA-1", " mlx5_0") + ",Port " + f[3] + ",Data\n")
			}
		}
		return b.String()
	}
	only := func(words ...string) func(string) string { // the lines with one of these
		return func(own string) string {
			var b strings.Builder
			for line := range strings.Lines(own) {
				for _, w := range append(words, "a_port") {
					if strings.Contains(line, w) {
						b.WriteString(line)
						break
					}
				}
			}
			return b.String()
		}
	}
	const spelt = "info topo.names fabric: the plan spells 44 names differently: \"LEAF-1.SITE.ORG\" for \"leaf-1\", \"SPINE-1\" for \"spine-1\", \"SPINE-2\" for \"spine-2\"\n"
	replaced := func(pairs ...string) func(string) string { return strings.NewReplacer(pairs...).Replace }
	for _, test := range []struct {
		name string
		plan func(own string) string
		do   func(s *sim.Subnet, at func(string, int) sim.Cable) error
		want string
	}{
		{"as it is", func(own string) string { return own }, nil, ""},
		{"as UFM spells it", ufm, nil, spelt},
		{"two swapped", ufm, func(s *sim.Subnet, at func(string, int) sim.Cable) error {
			return s.Cables.Recable([][2]sim.Cable{{at("leaf-3", 5), at("spine-2", 3)}, {at("leaf-3", 6), at("spine-1", 3)}}...)
		}, "error topo.swapped leaf-3/5 - spine-2/3: cables are exchanged: swap the cables at leaf-3/5 and leaf-3/6\n" + spelt},
		{"a cable pulled", func(own string) string { return own }, func(s *sim.Subnet, at func(string, int) sim.Cable) error {
			return s.Cables.Unlink(at("leaf-3", 7).Node, 7)
		}, "warning topo.unverifiable spine-3/3: the link of the plan is down at both ends: the cable is missing or dead\n"},
		{"between switches alone", only("spine"), nil, "info node.new fabric: 32 nodes are not in the plan, such as node-0001 HCA-1, node-0002 HCA-1, node-0003 HCA-1\n"},
		{"another name", replaced("leaf-3,", "leaf-33,"), nil, "warning topo.names leaf-3: the cables are those of \"leaf-33\" in the plan: one of the names is wrong\n"},
		{"another name, and a port of it", replaced("leaf-3,5,", "leaf-33,9,", "leaf-3,", "leaf-33,"), nil,
			"critical node.gone fabric: the switch \"leaf-33\" was not found: it is gone, or did not answer\ninfo node.new leaf-3: the switch is not in the plan\n"},
		{"a host without the number of its HCA", replaced("node-0010 HCA-1", "NODE-0010"), nil, "info topo.names fabric: the plan spells 1 name differently: \"NODE-0010\" for \"node-0010 HCA-1\"\n"},
		{"a GUID", func(own string) string { return strings.ReplaceAll(own, "leaf-3,", "0x2c90300100020,") }, nil, ""},
		{"another GUID", replaced("leaf-3,", "0x2c90300100021,"), nil, "info node.replaced leaf-3: the node with these cables was 0x0002c90300100021\n"},
		{"a port that is not there", replaced("leaf-3,5,", "leaf-3,50,"), nil, "error topo.missing leaf-3: the plan has a cable at port 50; the node has only 8 ports\nwarning topo.extra leaf-3/5 - spine-1/3: the cable is not in the plan\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			onSim(t, "fattree", nil, func(t *testing.T, f *fixture) {
				base, err := topology.SweepQuietly(context.Background(), f.Runtime)
				if err != nil {
					t.Fatal(err)
				}
				var own strings.Builder
				if err := format.Dump(&own, base, format.KindCables); err != nil {
					t.Fatal(err)
				}
				write(t, f.fs, "/work/plan.csv", test.plan(own.String()))
				if test.do != nil {
					if err := test.do(f.Env.Sim, func(name string, num int) sim.Cable { return end(t, base, name, num) }); err != nil {
						t.Fatal(err)
					}
				}
				got := told(audited(t, f, audits.RunOptions{}, "topology", "--expect", "plan.csv"))
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("-want +got\n%s", diff)
				}
			})
		})
	}
}

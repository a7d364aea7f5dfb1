package builtins

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/builtins/program"
	"fabsh/fabric"
	"fabsh/fabric/hosts"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/ibsim/ibsimtest"
)

// railed is a network of units of hosts with several adapters, each at a leaf of its
// rail; the spines of rails are joined by a core.
func railed(units, perUnit, rails int) *fabric.Fabric {
	b := fabric.NewBuilder()
	guid := mad.GUID(0x100)
	add := func(kind mad.NodeType, ports uint8, name string) int {
		guid++
		return b.AddNode(fabric.NodeSpec{Name: name, Info: mad.NodeInfo{NodeType: kind, NumPorts: ports, NodeGUID: guid}})
	}
	core := add(mad.NodeTypeSwitch, 40, "core")
	for r := range rails {
		spine := add(mad.NodeTypeSwitch, 40, fmt.Sprintf("spine r%d", r+1))
		b.Link(core, r+1, spine, 40)
		for u := range units {
			leaf := add(mad.NodeTypeSwitch, 40, fmt.Sprintf("SU%d leaf r%d", u+1, r+1))
			b.Link(spine, u+1, leaf, 40)
			for h := range perUnit {
				b.Link(leaf, h+1, add(mad.NodeTypeCA, 1, fmt.Sprintf("dgx-%02d mlx5_%d", u*perUnit+h+1, r)), 1)
			}
		}
	}
	return b.Build()
}

// TestSlurmTopology: Slurm's controller, given our topology.conf, has the tree that we
// have. The others of these networks take FABSH_SOAK, for a controller starts for each.
func TestSlurmTopology(t *testing.T) {
	networks := []struct {
		name string
		f    *fabric.Fabric
	}{{"rails", railed(3, 5, 8)}}
	specs := []string{"fattree:k=4,levels=2", "fattree:k=4,levels=4", "pgft:m=4/3/2,w=1/2/2,p=1/1/1,remove_links=20,seed=3"}
	if os.Getenv("FABSH_SOAK") != "" {
		specs = append(specs, "fattree:k=8,levels=3", "pgft:m=18/18/6,w=1/18/18,p=1/1/1", "pgft:m=4/4/4,w=1/2/2,p=1/1/1,remove_links=30,seed=1")
	}
	for _, spec := range specs {
		f, _, err := sim.Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		networks = append(networks, struct {
			name string
			f    *fabric.Fabric
		}{spec, f})
	}
	for _, n := range networks {
		t.Run(n.name, func(t *testing.T) {
			t.Parallel()
			session := plain(t, nil)
			kind, err := program.LoadTopology(t.Context(), session.Interpreter, "slurm-conf", nil)
			if err != nil {
				t.Fatal(err)
			}
			g, err := hosts.Find(n.f, hosts.GroupOptions{})
			if err != nil {
				t.Fatal(err)
			}
			text, _, err := kind.Write(t.Context(), g)
			if err != nil {
				t.Fatal(err)
			}
			var all []string
			for _, root := range g.Roots {
				all = append(all, root.Hosts...)
			}
			slurm := ibsimtest.StartSlurm(t, text, hosts.Fold(all))
			if diff := cmp.Diff(shownBySlurm(g), slurm.Topology(t)); diff != "" {
				t.Errorf("(-ours +Slurm's):\n%s", diff)
			}
			log := strings.ToLower(slurm.Log(t))
			for _, complaint := range []string{"lack access", "multiple leaf", "invalid host", "not a tree"} { // of switch_record.c
				if strings.Contains(log, complaint) {
					t.Errorf("Slurm says:\n%s", log)
				}
			}
		})
	}
}

// shownBySlurm are groups as scontrol shows switches: from the leaves up.
func shownBySlurm(g *hosts.Groups) string {
	var lines []string
	for level := g.Roots; len(level) > 0; {
		var own []string
		var below []*hosts.Group
		for _, x := range level {
			line := fmt.Sprintf("SwitchName=%s Level=%d LinkSpeed=1 Nodes=%s", x.Name, x.Level, hosts.Fold(x.Hosts))
			if len(x.Groups) > 0 {
				var names []string
				for _, child := range x.Groups {
					names = append(names, child.Name)
				}
				line += " Switches=" + hosts.Fold(names)
			}
			own = append(own, line+"\n")
			below = append(below, x.Groups...)
		}
		lines = append(own, lines...)
		level = below
	}
	return strings.Join(lines, "")
}

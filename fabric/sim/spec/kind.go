package spec

import (
	"fmt"
	"slices"

	"fabsh/fabric"
)

// TopologyKind is a kind of generated topology.
type TopologyKind struct {
	Name, Doc string
	Keys      []Key // its own
	build     func(v *values) (*fabric.Fabric, error)
}

// Kinds returns the kinds of generated topologies; the first is the default.
func Kinds() []TopologyKind { return slices.Clone(kinds) }

// Keys that several kinds have.
var (
	hostsOfSwitch = Key{"hosts", "4", "hosts of each switch", "hosts=2"}
	railsOfHosts  = Key{"rails", "1", "adapters of each host: HCA-1 at the first leaf of a group of as many, HCA-2 at the second, and so on", "rails=2"}
	cablesOfLink  = Key{"links", "1", "parallel cables of each link", "links=2"}
)

var kinds = []TopologyKind{
	{"fattree", "a fat tree: k=8,levels=3 has 128 hosts", []Key{
		{"k", "8", "ports of a switch, an even number", "k=16"},
		{"levels", "2", "levels of switches", "levels=3"},
		railsOfHosts,
	}, func(v *values) (*fabric.Fabric, error) {
		k, levels := v.number("k", 2, maxSwitchPorts), v.number("levels", 1, 15)
		if k%2 != 0 {
			v.fail("k", "is odd, but half of a switch's ports go up and half go down")
		}
		return v.tree(fatTree(k, levels))
	}},
	{"pgft", "a parallel generalized fat tree, by level, hosts first", []Key{
		{"m", "4/8", "children of the switches of each level", "m=4/8"},
		{"w", "1/4", "parents of the hosts, of the lowest switches, and so on", "w=1/4"},
		{"p", "1/1", "parallel cables of each level", "p=1/2"},
		railsOfHosts,
	}, func(v *values) (*fabric.Fabric, error) {
		t := tree{M: v.numbers("m"), W: v.numbers("w"), P: v.numbers("p")}
		if len(t.M) != len(t.W) || len(t.M) != len(t.P) {
			v.fail("m", fmt.Sprintf("has %d levels, but w has %d and p has %d", len(t.M), len(t.W), len(t.P)))
		}
		if t.W[0] != 1 {
			v.fail("w", "gives hosts several parents; what they are in would be as many subnets")
		}
		return v.tree(t)
	}},
	{"ring", "switches in a circle", []Key{
		{"n", "4", "switches", "n=6"},
		{"hosts", "1", hostsOfSwitch.Doc, hostsOfSwitch.Example},
	}, func(v *values) (*fabric.Fabric, error) {
		n, hosts := v.number("n", 1, maxLIDs), v.number("hosts", 0, maxSwitchPorts)
		if v.err != nil {
			return nil, v.err
		}
		return ring(n, hosts)
	}},
	{"mesh", "switches in lines", []Key{{"dims", "4/4", "switches in each dimension", "dims=3/3"}, hostsOfSwitch, cablesOfLink}, func(v *values) (*fabric.Fabric, error) {
		return v.lattice(mesh)
	}},
	{"torus", "switches in circles", []Key{{"dims", "4/4/4", "switches in each dimension", "dims=3/3/3"}, hostsOfSwitch, cablesOfLink}, func(v *values) (*fabric.Fabric, error) {
		return v.lattice(torus)
	}},
	{"hyperx", "all switches of a line linked to each other, in each dimension", []Key{{"dims", "4/4", "switches in each dimension", "dims=3/3"}, hostsOfSwitch, cablesOfLink}, func(v *values) (*fabric.Fabric, error) {
		return v.lattice(hyperX)
	}},
	{"dragonfly", "groups of switches, all of a group linked to each other", []Key{
		{"a", "4", "switches of a group", "a=3"},
		{"p", "2", "hosts of a switch", "p=1"},
		{"h", "2", "cables of a switch to other groups", "h=1"},
		{"groups", "0", "groups; 0: a*h+1", "groups=5"},
	}, func(v *values) (*fabric.Fabric, error) {
		a, p := v.number("a", 1, maxSwitchPorts), v.number("p", 0, maxSwitchPorts)
		h, groups := v.number("h", 0, maxSwitchPorts), v.number("groups", 0, maxLIDs)
		if v.err != nil {
			return nil, v.err
		}
		return dragonfly(a, p, h, groups)
	}},
	{"random", "switches with random cables, chosen by seed=", []Key{
		{"n", "16", "switches", "n=8"},
		{"degree", "4", "cables of each switch to others", "degree=3"},
		hostsOfSwitch,
	}, func(v *values) (*fabric.Fabric, error) {
		n, degree, hosts := v.number("n", 1, maxLIDs), v.number("degree", 0, maxSwitchPorts), v.number("hosts", 0, maxSwitchPorts)
		seed := v.seed()
		if v.err != nil {
			return nil, v.err
		}
		return randomRegular(n, degree, hosts, seed)
	}},
}

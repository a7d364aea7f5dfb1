// Package spec reads the text that describes a simulated subnet: a topology and its options.
//
//	spec.go      Parse: kinds of topologies, files
//	values.go    the keys of a spec, and their values
//	topology.go  the keys of topologies
//	options.go   Options: loss, delay, dead ports, M_Keys, redirection
//	ports.go     the keys that name ports and nodes
//	rate.go      rates and bandwidths
package spec

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/fabric/sim/generate"
)

// topology is a type of generated topology.
type topology struct {
	name  string
	keys  map[string]string // with their defaults
	build func(v *values) (*fabric.Fabric, error)
}

var topologies = []topology{
	{"fattree", map[string]string{"k": "8", "levels": "2"}, func(v *values) (*fabric.Fabric, error) {
		k, levels := v.number("k", 2, generate.MaxSwitchPorts), v.number("levels", 1, 15)
		if k%2 != 0 {
			v.fail("k", "is odd, but half of a switch's ports go up and half go down")
		}
		return v.tree(generate.FatTree(k, levels))
	}},
	{"pgft", map[string]string{"m": "4/8", "w": "1/4", "p": "1/1"}, func(v *values) (*fabric.Fabric, error) {
		t := generate.Tree{M: v.numbers("m"), W: v.numbers("w"), P: v.numbers("p")}
		if len(t.M) != len(t.W) || len(t.M) != len(t.P) {
			v.fail("m", fmt.Sprintf("has %d levels, but w has %d and p has %d", len(t.M), len(t.W), len(t.P)))
		}
		if t.W[0] != 1 {
			v.fail("w", "gives hosts several parents; what they are in would be as many subnets")
		}
		return v.tree(t)
	}},
	{"ring", map[string]string{"n": "4", "hosts": "1"}, func(v *values) (*fabric.Fabric, error) {
		n, hosts := v.number("n", 1, generate.MaxLIDs), v.number("hosts", 0, generate.MaxSwitchPorts)
		if v.err != nil {
			return nil, v.err
		}
		return generate.Ring(n, hosts)
	}},
	{"mesh", map[string]string{"dims": "4/4", "hosts": "4", "links": "1"}, func(v *values) (*fabric.Fabric, error) {
		return v.lattice(generate.Mesh)
	}},
	{"torus", map[string]string{"dims": "4/4/4", "hosts": "4", "links": "1"}, func(v *values) (*fabric.Fabric, error) {
		return v.lattice(generate.Torus)
	}},
	{"hyperx", map[string]string{"dims": "4/4", "hosts": "4", "links": "1"}, func(v *values) (*fabric.Fabric, error) {
		return v.lattice(generate.HyperX)
	}},
	{"dragonfly", map[string]string{"a": "4", "p": "2", "h": "2", "groups": "0"}, func(v *values) (*fabric.Fabric, error) {
		a, p := v.number("a", 1, generate.MaxSwitchPorts), v.number("p", 0, generate.MaxSwitchPorts)
		h, groups := v.number("h", 0, generate.MaxSwitchPorts), v.number("groups", 0, generate.MaxLIDs)
		if v.err != nil {
			return nil, v.err
		}
		return generate.Dragonfly(a, p, h, groups)
	}},
	{"random", map[string]string{"n": "16", "degree": "4", "hosts": "4"}, func(v *values) (*fabric.Fabric, error) {
		n, degree, hosts := v.number("n", 1, generate.MaxLIDs), v.number("degree", 0, generate.MaxSwitchPorts), v.number("hosts", 0, generate.MaxSwitchPorts)
		seed := v.seed()
		if v.err != nil {
			return nil, v.err
		}
		return generate.Regular(n, degree, hosts, seed)
	}},
}

// Parse reads what follows "sim:" on the command line:
//
//	KIND[:KEY=VALUE,...]    a generated topology
//	FILE[:KEY=VALUE,...]    one from a file of ibnetdiscover or ibsim
//	KEY=VALUE,...           the default one, a small fat tree
//
// Every key has a default. Kinds and their keys:
//
//	fattree  k=8       ports of a switch
//	         levels=2  of switches; k=8,levels=3 has 128 hosts
//	pgft     m=4/8     children of the switches of each level, hosts first
//	         w=1/4     parents of the hosts, of the lowest switches, ...
//	         p=1/1     parallel cables
//	ring     n=4       switches in a circle
//	         hosts=1   on each of them
//	torus    dims=4/4/4  switches in each dimension, in circles
//	         hosts=4     on each of them
//	         links=1     parallel cables
//	mesh     the same with dims=4/4, in lines
//	hyperx   the same with dims=4/4, in each dimension all linked to all
//	dragonfly  a=4       switches of a group, all linked to each other
//	           p=2       hosts of a switch
//	           h=2       cables of a switch to other groups
//	           groups=0  of them; 0: a*h+1
//	random   n=16      switches
//	         degree=4  cables of each to others that the seed chooses
//	         hosts=4   on each of them
//
// With every kind, and with a file:
//
//	remove_links=0     cables between switches that the seed chooses are not
//	                   there; a number, or a share (5%)
//	remove_switches=0  nor are these switches, and the hosts on them
//	loss=0     probability (0.05 or 5%) that a MAD is lost, on each way
//	dup=0      that it arrives twice
//	busy=0     that an agent answers BUSY
//	delay=0s   from a request to its answer; jitter=0s is added at random
//	seed=1     decides what chance decides
//	dead=      ports that lose everything: NODE, NODE/PORT, several with +; or
//	           a number or a share (1%) of the hosts but the subnet manager's,
//	           chosen by the seed
//	lmc=0      each port of a CA gets 2^lmc LIDs
//	sm=        the node that the subnet manager sits on: the first CA
//	mkey=0     an M_Key that guards all ports
//	mkey_level=1  against Sets; 2 and 3: against Gets too
//	speed=     of all links: edr; width= the same: 2x
//	errors=    ports whose symbol errors grow: NODE/PORT, several with +; or a number
//	           or a share (1%) of the ports with a cable, chosen by the seed; with
//	           @RATE behind, as in 5%@10/s, that many a second, else one
//	traffic=0  what each host sends to another, the one half of all further on:
//	           10GB/s, or 80Gb/s
//	vl15=0     how many answers to SMPs may wait for a program at a time; 0: any
//	redirect=  NODE@NODE, several with +: requests to the performance
//	           management of the first are redirected to the second
//	registers=no  the devices have no registers; yes: they have, as those of Mellanox
//	           (reg_get); or what is broken of them: hot@NODE/PORT, hot@NODE, ber@NODE/PORT,
//	           dark@NODE/PORT, fan@NODE, supply@NODE, firmware@NODE, several with +
//
// Files must be regular ones.
func Parse(spec string) (*fabric.Fabric, Options, error) {
	regular := func(name string) (io.ReadCloser, error) { return format.OpenRegular(name) }
	return ParseFiles(spec, regular, regular)
}

// ParseFiles is Parse with files that open opens, and those that they name, which
// included opens.
func ParseFiles(spec string, open, included format.Opener) (*fabric.Fabric, Options, error) {
	f, o, err := parse(spec, open, included)
	if err != nil {
		return nil, Options{}, fmt.Errorf("simulated fabric %q: %w", spec, err)
	}
	return f, o, nil
}

func parse(spec string, open, included format.Opener) (*fabric.Fabric, Options, error) {
	name, keys, _ := strings.Cut(spec, ":")
	if name == "" {
		name = topologies[0].name
	}
	if k := slices.IndexFunc(topologies, func(k topology) bool { return k.name == name }); k >= 0 {
		return topologies[k].generate(keys)
	}
	f, keys, err := load(spec, open, included)
	switch {
	case err == nil:
	case !errors.Is(err, fs.ErrNotExist):
		return nil, Options{}, err
	case strings.Contains(name, "="): // the kind was left out
		return topologies[0].generate(spec)
	default:
		var names []string
		for _, k := range topologies {
			names = append(names, k.name)
		}
		return nil, Options{}, fmt.Errorf("%w, and no such file", unknown("kind", name, names))
	}
	v, err := parseValues(keys, nil)
	if err != nil {
		return nil, Options{}, err
	}
	return v.finish(f)
}

func (k *topology) generate(keys string) (*fabric.Fabric, Options, error) {
	v, err := parseValues(keys, k.keys)
	if err != nil {
		return nil, Options{}, fmt.Errorf("%s: %w", k.name, err)
	}
	f, err := k.build(v)
	if err != nil {
		return nil, Options{}, fmt.Errorf("%s: %w", k.name, err)
	}
	return v.finish(f)
}

// load reads the file that spec names, with keys behind a colon or without.
func load(spec string, open, included format.Opener) (f *fabric.Fabric, keys string, err error) {
	path := spec
	r, err := open(path)
	if colon := strings.LastIndexByte(spec, ':'); errors.Is(err, fs.ErrNotExist) && colon >= 0 {
		path, keys = spec[:colon], spec[colon+1:]
		r, err = open(path)
	}
	if err != nil {
		return nil, "", err
	}
	defer r.Close()
	f, err = format.Load(r, path, included)
	return f, keys, err
}

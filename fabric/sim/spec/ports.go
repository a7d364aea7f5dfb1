package spec

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// hardware reads the keys of speeds, errors and traffic.
func (v *values) hardware(f *fabric.Fabric, o *SubnetOptions) {
	o.VL15 = v.number("vl15", 0, 1<<20)
	if o.Speed = v.text["speed"]; o.Speed != "" && state.LaneRate(o.Speed) == 0 {
		v.fail("speed", fmt.Sprintf("is no speed: there are %q", slices.DeleteFunc(mad.Speeds(), func(s string) bool { return state.LaneRate(s) == 0 })))
	}
	if o.Width = v.text["width"]; o.Width != "" && mad.WidthLanes(o.Width) == 0 {
		v.fail("width", fmt.Sprintf("is no width: there are %q", mad.Widths()))
	}
	var ok bool
	if o.Traffic, ok = ParseBandwidth(v.text["traffic"]); !ok {
		v.fail("traffic", "is not a number of bytes a second, as 10GB/s, or of bits, as 100Gb/s")
	}
	places, rate, given := strings.Cut(v.text["errors"], "@")
	if places == "" && !given {
		return
	}
	each := 1.0
	if given {
		if each, ok = ParseRate(rate); !ok {
			v.fail("errors", "does not end in a rate, as @10/s")
		}
	}
	for _, p := range v.ports("errors", places, f, o.Seed) {
		o.Errors = append(o.Errors, PortRate{p, each})
	}
}

// registers reads the key of the devices' registers.
func (v *values) registers(f *fabric.Fabric, o *SubnetOptions) {
	text := v.text["registers"]
	if o.Registers = text != "no"; !o.Registers || text == "yes" {
		return
	}
	for one := range strings.SplitSeq(text, "+") {
		fault, name, _ := strings.Cut(one, "@")
		n, num, err := findPort(f, name)
		if err == nil && num > 0 && n.Port(num) == nil {
			err = fmt.Errorf("%s has no port %d", n.Label(), num)
		}
		if err == nil {
			err = state.NewHardware(n.GUID(), n.IsSwitch()).Break(fault, max(num, 0))
		}
		if err != nil {
			v.fail("registers", "is invalid: "+err.Error()+"; write yes, no, or FAULT@NODE/PORT")
			return
		}
		o.RegisterFaults = append(o.RegisterFaults, RegisterFault{fault, n, max(num, 0)})
	}
}

// ports returns the ports that a key selects: NODE/PORT, several with +; or a number or a
// share of those with a cable, which the seed chooses.
func (v *values) ports(key, text string, f *fabric.Fabric, seed int64) (ports []*fabric.Port) {
	var all []*fabric.Port
	for i := range f.Ports() {
		if p := &f.Ports()[i]; p.Peer() != nil {
			all = append(all, p)
		}
	}
	count, err := strconv.Atoi(text)
	if share, ok := parseShare(text); ok && strings.HasSuffix(text, "%") {
		count, err = int(math.Ceil(share*float64(len(all)))), nil
	}
	if err == nil {
		if count < 0 || count > len(all) {
			v.fail(key, fmt.Sprintf("is not a number of ports: %d have a cable", len(all)))
			return nil
		}
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		return all[:count]
	}
	for name := range strings.SplitSeq(text, "+") {
		n, num, err := findPort(f, name)
		switch {
		case err != nil:
			v.fail(key, err.Error())
			return nil
		case num < 0 || n.Port(num) == nil:
			v.fail(key, fmt.Sprintf("names no port of %s: write NODE/PORT, with a port from 1 to %d", n.Label(), n.NumPorts()))
			return nil
		}
		ports = append(ports, n.Port(num))
	}
	return ports
}

// deadPorts chooses the dead ports.
func (v *values) deadPorts(f *fabric.Fabric, o *SubnetOptions) (ports []*fabric.Port) {
	text := v.text["dead"]
	if text == "" {
		return nil
	}
	var hosts []*fabric.Node
	sm := o.SM
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		if sm == nil && !n.IsSwitch() && HasCable(n) {
			sm = n
		}
		if n != sm && n.Kind() != fabric.KindAggregation && !n.IsSwitch() {
			hosts = append(hosts, n)
		}
	}
	count, err := strconv.Atoi(text)
	if share, ok := parseShare(text); ok && strings.HasSuffix(text, "%") {
		count, err = int(math.Ceil(share*float64(len(hosts)))), nil
	}
	if err == nil {
		if count < 0 || count > len(hosts) {
			v.fail("dead", fmt.Sprintf("is not a number of hosts: beside the subnet manager's there are %d", len(hosts)))
			return nil
		}
		r := rand.New(rand.NewPCG(uint64(o.Seed), 0))
		r.Shuffle(len(hosts), func(i, j int) { hosts[i], hosts[j] = hosts[j], hosts[i] })
		for _, n := range hosts[:count] {
			ports = slices.AppendSeq(ports, n.Ports())
		}
		return ports
	}
	for name := range strings.SplitSeq(text, "+") {
		n, num, err := findPort(f, name)
		switch {
		case err != nil:
			v.fail("dead", err.Error())
			return nil
		case num < 0:
			ports = slices.AppendSeq(ports, n.Ports())
		case n.Port(num) == nil:
			v.fail("dead", fmt.Sprintf("means port %d of %s, which has ports up to %d", num, n.Label(), n.NumPorts()))
			return nil
		default:
			ports = append(ports, n.Port(num))
		}
	}
	return ports
}

// findPort finds NODE or NODE/PORT. It tries NODE first, as names may contain
// slashes; its port number is -1.
func findPort(f *fabric.Fabric, name string) (*fabric.Node, int, error) {
	n, err := findNode(f, name)
	if slash := strings.LastIndexByte(name, '/'); err != nil && slash >= 0 {
		if num, bad := strconv.ParseUint(name[slash+1:], 10, 8); bad == nil {
			n, err = findNode(f, name[:slash])
			return n, int(num), err
		}
	}
	return n, -1, err
}

// findNode finds a node by its name or GUID.
func findNode(f *fabric.Fabric, name string) (*fabric.Node, error) {
	n, err := f.FindNode(name)
	if err == nil {
		return n, nil
	}
	var e *fabric.NameError
	errors.As(err, &e)
	if len(e.Nodes) == 0 {
		if guid, err := strconv.ParseUint(name, 0, 64); err == nil {
			if nodes := f.NodeByGUID(mad.GUID(guid)); len(nodes) == 1 {
				return nodes[0], nil
			}
		}
		if near := e.Nearest(); near != "" {
			return nil, fmt.Errorf("names unknown node %q; did you mean %q?", name, near)
		}
		return nil, fmt.Errorf("names unknown node %q", name)
	}
	return nil, fmt.Errorf("names several nodes: %w", err)
}

package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"fabsh/fabric"
	"fabsh/mad"
)

// Options are the faults and settings of a simulated subnet. The zero value has
// no faults.
type Options struct {
	// Loss is the probability that a MAD is lost, in each direction.
	Loss float64
	// Delay is the time from a request to its answer. A random time up to Jitter
	// is added for each MAD, so that answers may come in another order.
	Delay, Jitter time.Duration
	// Dup is the probability that a MAD arrives twice, in each direction.
	Dup float64
	// Busy is the probability that an agent answers BUSY.
	Busy float64
	// Seed is the seed of all random choices.
	Seed int64
	// Dead ports lose all MADs, in both directions, while their links are up.
	Dead []*fabric.Port
	// SM is the node of the subnet manager; nil: the first CA.
	SM *fabric.Node
	// MKey, if not 0, is the M_Key of all ports, with protection level MKeyLevel:
	// 0 and 1 protect against Sets, 2 and 3 against Gets too.
	MKey      uint64
	MKeyLevel uint8
	// Redirects are nodes whose performance management is on another node.
	Redirects []Redirect
}

// Redirect redirects requests for the performance management of Node to a queue
// pair of At. If both are one node, it redirects to itself: such requests never
// get an answer.
type Redirect struct{ Node, At *fabric.Node }

// commonKeys are the keys of all topologies, with their defaults.
var commonKeys = map[string]string{
	"loss": "0", "delay": "0s", "jitter": "0s", "dup": "0", "busy": "0", "seed": "1", "dead": "", "sm": "", "mkey": "0", "mkey_level": "1", "redirect": "",
	"remove_links": "0", "remove_switches": "0",
}

// options reads the common keys.
func (v *values) options(f *fabric.Fabric) (Options, error) {
	o := Options{
		Loss: v.share("loss"), Dup: v.share("dup"), Busy: v.share("busy"),
		Delay: v.duration("delay"), Jitter: v.duration("jitter"),
	}
	var err error
	o.Seed = v.seed()
	if o.MKey, err = strconv.ParseUint(v.text["mkey"], 0, 64); err != nil {
		v.fail("mkey", "is not a number of 64 bits, as 0x1234")
	}
	o.MKeyLevel = uint8(v.number("mkey_level", 0, 3))
	if text := v.text["redirect"]; text != "" {
		for pair := range strings.SplitSeq(text, "+") {
			node, at, _ := strings.Cut(pair, "@")
			var r Redirect
			if r.Node, err = findNode(f, node); err == nil {
				r.At, err = findNode(f, at)
			}
			if err != nil {
				v.fail("redirect", err.Error()+": write NODE@NODE")
				break
			}
			o.Redirects = append(o.Redirects, r)
		}
	}
	if name := v.text["sm"]; name != "" {
		if o.SM, err = findNode(f, name); err != nil {
			v.fail("sm", err.Error())
		} else if !hasCable(o.SM) {
			v.fail("sm", "is a node without a cable")
		}
	}
	o.Dead = v.deadPorts(f, &o)
	return o, v.err
}

// hasCable: a program on n reaches other nodes, or n is a switch.
func hasCable(n *fabric.Node) bool {
	for p := range n.Ports() {
		if p.Peer() != nil {
			return true
		}
	}
	return n.IsSwitch()
}

// deadPorts chooses the dead ports.
func (v *values) deadPorts(f *fabric.Fabric, o *Options) (ports []*fabric.Port) {
	text := v.text["dead"]
	if text == "" {
		return nil
	}
	var hosts []*fabric.Node
	sm := o.SM
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		if sm == nil && !n.IsSwitch() && hasCable(n) {
			sm = n
		}
		if n != sm && !n.IsSwitch() {
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
	nodes := f.NodeByName(name)
	if guid, err := strconv.ParseUint(name, 0, 64); len(nodes) == 0 && err == nil {
		nodes = f.NodeByGUID(mad.GUID(guid))
	}
	switch len(nodes) {
	case 1:
		return nodes[0], nil
	case 0:
		var names []string
		for i := range f.Nodes() {
			names = append(names, f.Nodes()[i].Name())
		}
		if near := fabric.Nearest(name, names); near != "" {
			return nil, fmt.Errorf("names %q, which is no node; did you mean %q?", name, near)
		}
		return nil, fmt.Errorf("names %q, which is no node", name)
	}
	return nil, fmt.Errorf("names %q, which is %d nodes; name one by its GUID, such as %s", name, len(nodes), nodes[0].GUID())
}

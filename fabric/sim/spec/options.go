package spec

import (
	"strconv"
	"strings"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/sim/state"
)

// SubnetOptions are the faults and settings of a simulated subnet. The zero value has
// no faults.
type SubnetOptions struct {
	// Loss is the probability that a MAD is lost, in each direction.
	Loss float64
	// Delay is the time from a request to its answer. A random time up to Jitter
	// is added for each MAD, so that answers may come in another order.
	Delay, Jitter time.Duration
	// Dup is the probability that a MAD arrives twice, in each direction.
	Dup float64
	// Busy is the probability that an agent answers BUSY.
	Busy float64
	// VL15, if not 0, is how many answers to SMPs may wait for a program at a time:
	// the others are lost, as virtual lane 15 has no flow control.
	VL15 int
	// Seed is the seed of all random choices.
	Seed int64
	// Dead ports lose all MADs, in both directions, while their links are up.
	Dead []*fabric.Port
	// LMC is that of the ports of CAs and routers that have no LID: they get 1<<LMC.
	LMC uint8
	// SM is the node of the subnet manager; nil: the first CA.
	SM *fabric.Node
	// MKey, if not 0, is the M_Key of all ports, with protection level MKeyLevel:
	// 0 and 1 protect against Sets, 2 and 3 against Gets too.
	MKey      uint64
	MKeyLevel uint8
	// Redirects are nodes whose performance management is on another node.
	Redirects []Redirect
	// Speed and Width, such as "edr" and "2x", are those of all links; "": those of the
	// fabric.
	Speed, Width string
	// Errors are ports whose SymbolErrorCounter grows, by a number a second.
	Errors []PortRate
	// Traffic, if not 0, is what each CA sends to the CA that is half of all CAs further
	// on, in bytes per second.
	Traffic float64
	// Registers gives the devices registers, as those of Mellanox; RegisterFaults are the
	// faults that they show.
	Registers      bool
	RegisterFaults []RegisterFault
	// Adaptive is what is set up of adaptive routing; nil: switches do not support it.
	// AdaptiveFaults are its faults.
	Adaptive       *state.AdaptiveSettings
	AdaptiveFaults []adaptiveFault
	// VirtualPorts is the number of virtual ports of each port of an adapter.
	VirtualPorts int
	// Bare is set if no subnet manager has brought the subnet up: links are in state
	// Initialize, ports have no LIDs, switches have no routes, and this process has no
	// subnet manager.
	Bare bool
	// NoSM is set if the subnet manager has stopped: the subnet is up, with LIDs and
	// tables, and this process has no subnet manager.
	NoSM bool
}

// WithoutFaults returns the options of the same subnet without faults that hide a part of
// it from a sweep, or make the sweep long.
func (o SubnetOptions) WithoutFaults() SubnetOptions {
	o.Loss, o.Dup, o.Busy, o.Delay, o.Jitter, o.VL15 = 0, 0, 0, 0, 0, 0
	o.Dead, o.MKey = nil, 0
	return o
}

// Redirect redirects requests for the performance management of Node to a queue pair of
// At. If both are one node, it redirects to itself: such requests never get an answer.
type Redirect struct{ Node, At *fabric.Node }

// RegisterFault is a fault of state.HardwareFaults at a port, or with Num 0 at the
// node.
type RegisterFault struct {
	Fault string
	Node  *fabric.Node
	Num   int
}

// adaptiveFault is a fault of the adaptive routing of a switch.
type adaptiveFault struct {
	Fault state.AdaptiveFault
	Node  *fabric.Node
}

// PortRate is a number per second at a port.
type PortRate struct {
	Port *fabric.Port
	Rate float64
}

// options reads the common keys.
func (v *values) options(f *fabric.Fabric) (SubnetOptions, error) {
	o := SubnetOptions{
		Loss: v.share("loss"), Dup: v.share("dup"), Busy: v.share("busy"),
		Delay: v.duration("delay"), Jitter: v.duration("jitter"),
	}
	var err error
	o.Seed = v.seed()
	if o.MKey, err = strconv.ParseUint(v.text["mkey"], 0, 64); err != nil {
		v.fail("mkey", "is not a number of 64 bits, as 0x1234")
	}
	o.MKeyLevel, o.LMC = uint8(v.number("mkey_level", 0, 3)), uint8(v.number("lmc", 0, 7))
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
		} else if !HasCable(o.SM) {
			v.fail("sm", "is a node without a cable")
		}
	}
	o.Dead = v.deadPorts(f, &o)
	v.hardware(f, &o)
	v.registers(f, &o)
	v.adaptive(f, &o)
	o.VirtualPorts = v.number("vports", 0, state.MaxVirtualPorts)
	return o, v.err
}

// HasCable reports whether a program on n reaches other nodes, or n is a switch.
func HasCable(n *fabric.Node) bool {
	for p := range n.Ports() {
		if p.Peer() != nil {
			return true
		}
	}
	return n.IsSwitch()
}

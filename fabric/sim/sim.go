// Package sim is a simulated subnet in this process: an engine.Transport. It
// generates a topology, or reads one from a file, brings it up as a subnet
// manager does, and answers management datagrams as the agents of its nodes do.
//
// Parse reads a topology and Options from text, New brings up a Subnet, Subnet.Attach connects
// a program to a port. The parts of Subnet break it and change it while it runs: Cables, Editor,
// CounterEditor, Faults. Clients are foreign programs at its ports, which package server and
// package run let in.
//
// It is made of these packages:
//
//   - spec reads topologies and options from text, and generates topologies
//   - state holds nodes, ports, links, LIDs, tables, groups and counters, computes forwarding
//     tables, and forwards packets; its faults lose, delay and double MADs
//   - agent takes a request to the agent of its class and back; it has the subnet manager and
//     the subnet administrator too
//   - server lets other programs in, through ibsim's sockets; run runs programs on the subnet
//
// Nothing depends on the order of goroutines: the same requests get the same answers.
// Only the lease of an M_Key, the repetition of traps, and rates of counters depend on
// time.
package sim

import (
	"io"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/fabric/sim/agent"
	"fabsh/fabric/sim/spec"
	"fabsh/fabric/sim/state"
	"fabsh/mad/engine"
)

// Options are the faults and settings of a subnet.
type Options = spec.SubnetOptions

// Cable names a port by the GUID of its node: one end of a cable.
type Cable = state.Cable

// End names a port by the index of its node.
type End = state.End

// Flow is traffic from one port to another.
type Flow = state.Flow

// FlowRate is a flow, and how much of it arrives.
type FlowRate = state.FlowRate

// Parse is ParseFiles with regular files.
func Parse(text string) (*fabric.Fabric, Options, error) {
	regular := func(name string) (io.ReadCloser, error) { return format.OpenRegular(name) }
	return ParseFiles(text, regular, regular)
}

// ParseFiles reads what follows "sim:" on the command line; spec.ParseFiles has its syntax. open
// opens files, and included the files that they name.
func ParseFiles(text string, open, included format.Opener) (*fabric.Fabric, Options, error) {
	return spec.ParseFiles(text, open, included)
}

// Subnet is a simulated subnet, and the operations on it while it runs. Its methods and
// the methods of its parts are safe for concurrent use, except as Programs states.
type Subnet struct {
	Programs *Clients             // the programs at its ports
	Cables   *Cables              // cables, the power of nodes, the speed of links
	Edit     *Editor              // settings of ports and nodes, tables, groups
	Counters *CounterEditor       // counters, and how they grow
	Traffic  *state.Traffic       // flows between hosts
	Faults   *state.Faults        // loss, delay, BUSY
	Notices  *state.Notices       // traps
	SM       *agent.Manager       // the subnet manager in this process
	SA       *agent.Administrator // the subnet administrator in this process

	state *state.Subnet
}

// New brings up a subnet with f's topology, except with Options.Bare: each end port has a
// LID (its LID in f, if it is valid and unique), each cable is an active link, and each
// switch has forwarding tables to all LIDs.
func New(f *fabric.Fabric, o Options) *Subnet {
	subnet := bringUp(f, &o)
	s := &Subnet{state: subnet, Traffic: state.NewTraffic(subnet), Notices: state.NewNotices(subnet)}
	s.Faults = state.NewFaults(subnet, state.FaultSettings{Loss: o.Loss, Dup: o.Dup, Busy: o.Busy, Delay: o.Delay, Jitter: o.Jitter, Seed: o.Seed, VL15: o.VL15})
	s.SM = agent.NewManager(subnet, s.Traffic, s.Notices)
	s.SA = agent.NewAdministrator(subnet, s.Notices, s.SM)
	congestion := agent.CCSettings{}
	s.Traffic.Mark = congestion.PacketsPerMark
	s.Programs = newClients(&agent.Agents{Subnet: subnet, Faults: s.Faults, Traffic: s.Traffic, Notices: s.Notices, SM: s.SM, SA: s.SA, Congestion: congestion, Baseboards: agent.BMSettings{}})
	s.Cables = newCables(subnet, s.Traffic, s.SM, managementKey{Key: o.MKey, Level: o.MKeyLevel})
	s.Edit, s.Counters = newEditor(subnet, s.Traffic, s.Notices, congestion), newCounterEditor(subnet, s.Traffic, s.Notices)
	if o.Traffic > 0 {
		_ = s.Traffic.Set(s.Traffic.HostPairs(o.Traffic)) // the ports are its own, and no more than there are LIDs
	}
	return s
}

// Attach connects a program to a port of a node; port 0 of a CA stands for its first port
// with a link. There may be several attachments, even on one port; each draws its own
// faults.
func (s *Subnet) Attach(node, port int) (engine.Transport, error) {
	return s.Programs.Attach(node, port)
}

// SetClock sets the clock by which leases expire and counters grow. The subnet's time
// continues without a jump.
func (s *Subnet) SetClock(clock func() time.Time) { s.state.SetClock(clock) }

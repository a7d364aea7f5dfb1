package state

import (
	"bytes"
	"fmt"
	"slices"
	"sync/atomic"

	"fabsh/fabric"
	"fabsh/mad"
)

// Node is the state of a node.
type Node struct {
	Subnet         *Subnet
	Origin         mad.GUID // the NodeGUID when the subnet was made: callers name the node by it
	Label          string   // for messages
	IsSwitch       bool
	Kind           fabric.NodeKind
	Found          bool          // reached by the last sweep
	Off            bool          // it has no power
	Busy           atomic.Int64  // how many requests it will answer with BUSY
	Ports          []Port        // by number; a CA's port 0 is not used
	Info           [SMPSize]byte // NodeInfo, but for PortGUID and LocalPortNum
	Description    [SMPSize]byte
	SwitchInfo     [SMPSize]byte // SwitchInfo
	FDBTop         mad.LID       // SwitchInfo.LinearFDBTop
	LFT            []uint8       // entries beyond its end are mad.NoPort
	Measurement    *Measurement  // the measurement of counters of a port, or nil
	RedirectTo     *Node         // its performance management is there; nil: here
	RedirectedHere *Node         // the node whose performance management is here too; nil: none
	Hardware       *Hardware     // what its registers show; nil: it has no registers
	Capabilities   mad.GeneralInfoCapabilities
	Adaptive       *Adaptive       // of a switch; nil: it does not support adaptive routing
	VSKey          *mad.VSKeyInfo  // of the vendor's class; nil: it has no keys
	N2NKey         *mad.N2NKeyInfo // of the vendor's class between nodes
	reports        map[reportKey]func(data []byte)
}

// GUID returns the NodeGUID.
func (n *Node) GUID() mad.GUID { return mad.GUID(NodeInfoGUID.Uint(n.Info[:])) }

// Fields that are read or written one at a time.
var (
	NodeInfoGUID          = mad.AttrNodeInfo.Field("node_guid")
	nodeInfoPartitions    = mad.AttrNodeInfo.Field("partition_cap")
	switchInfoPartitions  = mad.AttrSwitchInfo.Field("partition_enforcement_cap")
	switchInfoStateChange = mad.AttrSwitchInfo.Field("port_state_change")
	switchInfoTop         = mad.AttrSwitchInfo.Field("linear_fdb_top")
)

// NodeInfo returns the node's NodeInfo, without what depends on the port.
func (n *Node) NodeInfo() (info mad.NodeInfo) {
	info.Decode(n.Info[:])
	return info
}

// Name is the node's description as text.
func (n *Node) Name() string {
	text, _, _ := bytes.Cut(n.Description[:], []byte{0})
	return string(text)
}

// EndPorts are the ports of n that have LIDs: of a switch port 0, of others all
// that have cables.
func (n *Node) EndPorts() (ports []*Port) {
	if n.IsSwitch {
		return []*Port{&n.Ports[0]}
	}
	for i := range n.Ports[1:] {
		if p := &n.Ports[1+i]; p.Peer != nil {
			ports = append(ports, p)
		}
	}
	return ports
}

// Attachment is the port of n that a program may use: a switch's port 0, or
// a port of another node.
func (n *Node) Attachment(num int) (*Port, error) {
	if num < 0 || num >= len(n.Ports) {
		return nil, fmt.Errorf("attach to port %d of %s: it has ports up to %d", num, n.Label, len(n.Ports)-1)
	}
	if n.IsSwitch {
		if num != 0 {
			return nil, fmt.Errorf("attach to port %d of switch %s: only port 0 of a switch has software behind it", num, n.Label)
		}
		return &n.Ports[0], nil
	}
	if num > 0 {
		return &n.Ports[num], nil
	}
	for i := range n.Ports[1:] {
		if p := &n.Ports[1+i]; p.Peer != nil {
			return p, nil
		}
	}
	return nil, fmt.Errorf("attach to %s: none of its ports has a link", n.Label)
}

// SetStateChange sets SwitchInfo.PortStateChange.
func (n *Node) SetStateChange() {
	if n.IsSwitch {
		switchInfoStateChange.SetUint(n.SwitchInfo[:], 1)
	}
}

// ClearStateChange clears SwitchInfo.PortStateChange, as a subnet manager does that has seen
// the change.
func (n *Node) ClearStateChange() {
	if n.IsSwitch {
		switchInfoStateChange.SetUint(n.SwitchInfo[:], 0)
	}
}

// SetTop sets the LinearFDBTop of switch n.
func (n *Node) SetTop(top mad.LID) {
	switchInfoTop.SetUint(n.SwitchInfo[:], uint64(top))
	n.FDBTop = top
}

// ReadLFT writes the block of entries from first on to data.
func (n *Node) ReadLFT(first int, data []byte) {
	n.Subnet.EnsureTables()
	rest := data[copy(data, n.LFT[min(first, len(n.LFT)):]):]
	for i := range rest {
		rest[i] = mad.NoPort
	}
}

// lftEntry returns the port through which switch n forwards packets to dlid: 0 for its
// own LID, mad.NoPort if it drops them (IBA 18.2.4.3.1).
func (n *Node) lftEntry(dlid mad.LID) uint8 {
	n.Subnet.EnsureTables()
	if dlid > n.FDBTop || int(dlid) >= len(n.LFT) {
		return mad.NoPort
	}
	return n.LFT[dlid]
}

// ConsumeBusy reports whether the node is busy for one more request.
func (n *Node) ConsumeBusy() bool {
	for {
		left := n.Busy.Load()
		if left == 0 {
			return false
		}
		if n.Busy.CompareAndSwap(left, left-1) {
			return true
		}
	}
}

// GiveRegisters gives registers to all devices that lack them.
func (s *Subnet) GiveRegisters() {
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Hardware == nil {
			n.Hardware = NewHardware(n.GUID(), n.IsSwitch)
		}
	}
}

// reportKey is an attribute that a node reports, with the modifier of the request.
type reportKey struct {
	attr     *mad.Attribute
	modifier uint32
}

// SetReport changes the answers of node n to Gets of an attribute from now on, beside earlier
// changes. An attribute that its agent does not have is 0 before the change.
func (n *Node) SetReport(a *mad.Attribute, modifier uint32, change func(data []byte)) {
	if n.reports == nil {
		n.reports = map[reportKey]func(data []byte){}
	}
	key := reportKey{a, modifier}
	if before := n.reports[key]; before != nil {
		n.reports[key] = func(data []byte) {
			before(data)
			change(data)
		}
		return
	}
	n.reports[key] = change
}

// Report is the answer to a Get of an attribute: data and status of the agent, with the
// changes of SetReport.
func (n *Node) Report(a *mad.Attribute, modifier uint32, data []byte, status mad.Status) mad.Status {
	change := n.reports[reportKey{a, modifier}]
	if change == nil {
		return status
	}
	if status != mad.StatusOK {
		clear(data)
	}
	change(data)
	return mad.StatusOK
}

// VirtualPort is a virtual port of an adapter's port, from index 1 on; index 0 stands for the
// port itself.
type VirtualPort struct {
	GUID, Node mad.GUID
	LID        mad.LID       // 0: it uses the LID of index 0
	State      mad.PortState // 0: that of the port
}

// MaxVirtualPorts is the highest index of a virtual port.
const MaxVirtualPorts = 255

// virtualGUID is the difference of the GUIDs of successive virtual ports of a port.
const virtualGUID = 1 << 40

// HasVirtualPorts reports whether the ports of a node may have virtual ports.
func (n *Node) HasVirtualPorts() bool {
	return !n.IsSwitch && n.IsMellanox() && n.Kind == fabric.KindHost
}

// AddVirtualPorts gives each port that may have them virtual ports.
func (s *Subnet) AddVirtualPorts(count int) {
	top := s.topLID()
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.HasVirtualPorts() {
			for j := range n.Ports[1:] {
				top = n.Ports[1+j].addVirtualPorts(count, top)
			}
		}
	}
}

// ExtendVirtualPorts gives a port virtual ports up to an index.
func (s *Subnet) ExtendVirtualPorts(p *Port, last int) { p.addVirtualPorts(last, s.topLID()) }

// addVirtualPorts gives a port virtual ports up to an index. Those with an odd index have a LID
// of their own, above top, as long as there are LIDs. It returns the highest LID.
func (p *Port) addVirtualPorts(last int, top mad.LID) mad.LID {
	p.Node.Capabilities.CapMask0 |= mad.Capabilities0Virtualization
	p.SetCapability2(mad.CapabilityMask2IsVirtualizationSupported)
	for index := len(p.Virtual) + 1; index <= last; index++ {
		guid := p.GUID + mad.GUID(index)*virtualGUID
		v := VirtualPort{GUID: guid, Node: guid}
		if index%2 == 1 && p.LID != 0 && top < mad.MaxUnicastLID {
			top++
			v.LID = top
		}
		p.Virtual = append(p.Virtual, v)
	}
	return top
}

// VirtualState returns the state of the virtual port with an index; index 0 is p.
func (p *Port) VirtualState(index int) mad.PortState {
	if index > 0 && p.Virtual[index-1].State != 0 {
		return p.Virtual[index-1].State
	}
	return p.State
}

// hasVirtual reports whether a virtual port of p has the LID.
func (p *Port) hasVirtual(lid mad.LID) bool {
	return p.Virtual != nil && slices.ContainsFunc(p.Virtual, func(v VirtualPort) bool { return v.LID == lid })
}

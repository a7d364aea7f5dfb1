package state

import (
	"fabsh/fabric/adaptive"
	"fabsh/mad"
)

// The capabilities that devices announce with ar=.
const (
	switchCapabilities = mad.Capabilities0PrivateLFT | mad.Capabilities0AR | mad.Capabilities0PortSLToPrivateLFT
	caCapabilities     = mad.Capabilities0GlobalOutOfOrder
)

// SetUpAdaptive gives switches adaptive routing, as OpenSM sets it up: for all service
// levels, and of the transports RC and DC, which accept packets out of order
// (ar_sl_mask 0xFFFF, ar_transport_mask 0xA of its defaults). Without on, they support it, but
// it is off.
func (s *Subnet) SetUpAdaptive(set *AdaptiveSettings, on bool) {
	s.Adaptive = set
	s.AnnouncePortInfo()
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if !n.IsMellanox() {
			continue
		}
		// Keys that are not 0, and differ between nodes.
		n.VSKey = &mad.VSKeyInfo{VSKey: uint64(n.GUID()) ^ 0x5a5a_0a0a_0000_0000, ProtectBit: true, LeasePeriod: 60}
		if !n.IsSwitch {
			n.Capabilities.CapMask0 |= caCapabilities
			continue
		}
		n.N2NKey = &mad.N2NKeyInfo{N2NMgrKey: uint64(n.GUID()) ^ 0x5a5a_0c0c_0000_0000, ProtectBit: true, LeasePeriod: 60}
		n.Capabilities.CapMask0 |= switchCapabilities
		n.Adaptive = newAdaptive(n, set, on)
	}
	for i := range s.Nodes { // those of other vendors follow their linear tables
		if n := &s.Nodes[i]; n.IsSwitch && n.Adaptive == nil {
			n.Adaptive = &Adaptive{}
		}
	}
}

// AnnouncePortInfo lets devices announce ExtendedPortInfo.
func (s *Subnet) AnnouncePortInfo() {
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.IsMellanox() {
			n.Capabilities.CapMask0 |= mad.Capabilities0ExtendedPortInfo
			if n.Planes() > 1 {
				n.Capabilities.CapMask0 |= mad.Capabilities0ExtendedNodeInfo
			}
		}
	}
}

func newAdaptive(n *Node, set *AdaptiveSettings, on bool) *Adaptive {
	subGroups := uint8(1)
	if set.Secondary {
		subGroups = 2
	}
	a := &Adaptive{
		Info: mad.AdaptiveRoutingInfo{
			ByTranspCap: true, BySLCap: true, BySLEn: true, EnableBySLMask: 0xffff,
			DisUD: !set.AllTransports, DisUC: !set.AllTransports,
			DirNumSup: 8, GroupTableCopySup: 1, SubGrpsActive: subGroups, SubGrpsSup: 2,
			FRSup: true, FREnabled: on, FRNSup: true, ARNSup: true, RNXmitEnabled: on && set.Notification, RNVersionCap: 1, ARVersionCap: 1,
			StringWidthCap: 8, GroupCap: adaptive.MaxGroups - 1, E: on, AgeingTime: 30,
			HBFSup: true, WHBFSup: true, SymmetricHashSup: true, BTHDQPHashSup: true, PFRNSup: true, PFRNEn: on && set.PFRN,
			HBFEn: on && set.HBF, WHBFEn: on && set.WHBF,
		},
		HBF:     mad.HBFConfig{Seed: uint32(n.GUID()), FieldsEnable: 0x40F00C0F}, // OpenSM's defaults
		Weights: [3]uint8{1, 1, 0},
	}
	if a.Info.HBFEn {
		a.Info.EnableBySLMaskHBF = 0xffff
	}
	if a.Info.WHBFEn {
		a.Weights = [3]uint8{3, 1, 0}
	}
	if set.PFRN {
		a.PFRN = mad.PFRNConfig{PolicySup: true, MaskClearTimeout: 180, MaskForceClearTimeout: 720}
	}
	if set.Private {
		a.Private = make([][16]uint8, len(n.Ports))
		for i := range n.Ports[1:] {
			if p := &n.Ports[1+i]; p.Peer != nil && p.Peer.Node.IsSwitch {
				for sl := range a.Private[1+i] {
					a.Private[1+i][sl] = 1
				}
			}
		}
	}
	a.Update()
	return a
}

// mellanox is NodeInfo.VendorID of Mellanox, and of NVIDIA after it.
const mellanox = 0x2c9

// IsMellanox reports whether a node is of Mellanox, or NVIDIA. Files of topologies may not
// have the vendor: then it is, too.
func (n *Node) IsMellanox() bool {
	info := n.NodeInfo()
	return info.VendorID == 0 || info.VendorID == mellanox
}

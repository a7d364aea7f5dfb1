package engine

import (
	"fmt"
	"slices"

	"fabsh/mad"
)

// Address is the remote end of a datagram.
type Address struct {
	LID       mad.LID // PermissiveLID for directed-route SMPs
	QP        uint32  // 0: the subnet management interface, 1: general services
	QKey      uint32  // of that queue pair; 0: GeneralQKey
	SL        uint8
	PKeyIndex uint16
	// HasGRH is set if there is a global route header, with GID, FlowLabel,
	// HopLimit and TrafficClass.
	HasGRH       bool
	GID          mad.GID
	FlowLabel    uint32
	HopLimit     uint8
	TrafficClass uint8
}

// String returns a as text: "LID 17", or "GID fe80::1" with a global route header, and
// the queue pair unless it is the usual one.
func (a Address) String() string {
	s := fmt.Sprintf("LID %d", a.LID)
	if a.HasGRH {
		s = fmt.Sprintf("GID %v", a.GID)
	}
	if a.QP > 1 {
		s += fmt.Sprintf(" queue pair %#x", a.QP)
	}
	return s
}

// Port is the facts of the local port.
type Port struct {
	Device    string // "mlx5_0", an ibsim node id, "sim"
	Num       uint8
	NodeGUID  mad.GUID
	PortGUID  mad.GUID
	LID       mad.LID
	LMC       uint8
	SMLID     mad.LID
	SMSL      uint8
	State     mad.PortState
	GIDPrefix uint64
	// Planarized is set if other devices send SMPs than general requests, one for
	// each plane (XDR). Nodes behind them support only directed-route SMPs.
	Planarized bool
	PKeys      []uint16
}

// PKeyIndex returns the index of a P_Key of key's partition in p: of key itself,
// otherwise with the other membership; -1 if p is not in that partition.
func (p *Port) PKeyIndex(key uint16) int {
	const full = 1 << 15 // member
	if i := slices.Index(p.PKeys, key); i >= 0 {
		return i
	}
	return slices.IndexFunc(p.PKeys, func(k uint16) bool { return k&^full == key&^full && k&^full != 0 })
}

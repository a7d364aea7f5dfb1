package engine

import (
	"fmt"
	"slices"

	"fabsh/mad"
)

// Address is the far end of a datagram.
type Address struct {
	LID       mad.LID // PermissiveLID for directed-route SMPs
	QP        uint32  // 0: the subnet management interface, 1: general services
	QKey      uint32  // of that queue pair, if it is not GeneralQKey; 0: it is
	SL        uint8
	PKeyIndex uint16
	// HasGRH: GID, and FlowLabel, HopLimit, TrafficClass of a global route header.
	HasGRH       bool
	GID          mad.GID
	FlowLabel    uint32
	HopLimit     uint8
	TrafficClass uint8
}

// String returns where datagrams to a go: "LID 17", or "GID fe80::1" where they have
// a global route header, and the queue pair unless it is the usual one.
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

// Port is what a transport knows of the local port.
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
	// Planarized: other devices send SMPs than general requests, one for each
	// plane (XDR). What is behind them heeds SMPs by directed route alone.
	Planarized bool
	PKeys      []uint16
}

// PKeyIndex returns where p has a P_Key of key's partition: key itself, else with the
// other membership; -1: it is not in that partition.
func (p *Port) PKeyIndex(key uint16) int {
	const full = 1 << 15 // member
	if i := slices.Index(p.PKeys, key); i >= 0 {
		return i
	}
	return slices.IndexFunc(p.PKeys, func(k uint16) bool { return k&^full == key&^full && k&^full != 0 })
}

// Package vendor contains the agents of Mellanox' devices: registers, which are read by
// an SMP or by a class of the vendor, ExtendedPortInfo, adaptive routing and the keys of the
// vendor's classes. Package registers has the contents of the registers.
//
//	register.go  AccessRegister
//	portinfo.go  ExtendedPortInfo
//	adaptive.go  GeneralInfo, adaptive routing, private LFTs
//	notification.go  routing notifications
//	virtual.go   virtual ports
//	key.go       keys of the vendor's classes

package agent

import (
	"time"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// hasRegisters reports whether a node has registers (the key registers= of a spec).
func hasRegisters(n *state.Node) bool { return n.Hardware != nil }

// queryRegister lets the node answer a query of a register.
func queryRegister(n *state.Node, uptime time.Duration, id uint16, content []byte) mad.RegisterStatus {
	view := state.RegisterView{Uptime: uptime, Port: func(num int) state.RegisterPort { return registerPort(n, num) }}
	view.Info.Decode(n.Info[:])
	return n.Hardware.Query(id, content, view)
}

// registerPort returns what registers need of a port.
func registerPort(n *state.Node, num int) state.RegisterPort {
	if num < 1 || num >= len(n.Ports) {
		return state.RegisterPort{}
	}
	p := &n.Ports[num]
	info := p.PortInfo()
	lanes := mad.WidthLanes(info.LinkWidthActive.String())
	// Of NDR and later the modules are OSFP.
	return state.RegisterPort{Cabled: p.Peer != nil && !p.Unplugged, Up: p.Up, Rate: float64(p.Rate) * 5e8, Lanes: lanes, CMIS: lanes > 0 && int(p.Rate) >= 200*lanes}
}

// registerStatus is the status of a datagram of the vendor's class by that of a
// register (mstflint mtcr_ib_ofed.c translate_mad_status_to_reg_status_gmp).
var registerStatus = map[mad.RegisterStatus]mad.Status{
	mad.RegisterStatusOK: mad.StatusOK, mad.RegisterStatusRegisterNotSupported: 0x14, mad.RegisterStatusBadParameter: mad.StatusBadValue,
}

// getRegister answers AccessRegister of the vendor's class: the modifier is the register.
func getRegister(n *state.Node, uptime time.Duration, modifier uint32, data []byte) mad.Status {
	var access mad.AccessRegister
	access.Decode(data)
	if access.BlockNum != 0 || modifier > 0xffff {
		return mad.StatusBadValue
	}
	status := queryRegister(n, uptime, uint16(modifier), access.Content[:])
	access.Encode(data)
	return registerStatus[status]
}

// getRegisterBySMP answers MlnxAccessRegister: the register's own status is in the answer.
func getRegisterBySMP(n *state.Node, uptime time.Duration, data []byte) mad.Status {
	var access mad.MlnxAccessRegister
	access.Decode(data)
	op := &access.Operation
	var content [mad.GMPRegisterSize]byte
	copy(content[:], access.Register[:])
	op.OperationResponse = true
	switch {
	case op.OperationType != 1 || op.OperationLen != 4 || op.RegisterType != 3:
		op.RegisterStatus = mad.RegisterStatusUnknownTLV
	case op.OperationClass != 1:
		op.RegisterStatus = mad.RegisterStatusClassNotSupported
	case op.RegisterMethod != mad.RegisterMethodRead:
		op.RegisterStatus = mad.RegisterStatusMethodNotSupported
	default:
		op.RegisterStatus = queryRegister(n, uptime, op.RegisterID, content[:])
	}
	copy(access.Register[:], content[:])
	access.Encode(data)
	return mad.StatusOK
}

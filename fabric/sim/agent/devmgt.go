package agent

import (
	"fmt"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// devmgtRequest is a Get at the agent of device management of a channel adapter that announces
// IsDeviceManagementSupported: an I/O unit with one controller, a target of the SCSI RDMA
// protocol with one service. Sources: rdma-core srp_daemon/srp_daemon.c and .h.
type devmgtRequest struct {
	At       *state.Port // the end port that it came to
	Modifier uint32
	Data     []byte // the attribute; afterwards of the answer
}

// devmgtHandlers are the attributes of device management (IBA 16.3.3).
var devmgtHandlers = handlerTable[*devmgtRequest]{
	{Attr: mad.AttrDevMgtClassPortInfo, Get: (*devmgtRequest).getClassPortInfo},
	{Attr: mad.AttrIOUnitInfo, On: isUnit, Get: (*devmgtRequest).getUnit},
	{Attr: mad.AttrIOControllerProfile, On: isUnit, Get: (*devmgtRequest).getController},
	{Attr: mad.AttrServiceEntries, On: isUnit, Get: (*devmgtRequest).getServices},
}

// isUnit reports whether the adapter announces that it is an I/O unit.
func isUnit(r *devmgtRequest) bool {
	capabilities := mad.CapabilityMask(portInfoCapabilities.Uint(r.At.Info[:]))
	return !r.At.Node.IsSwitch && capabilities&mad.CapabilityMaskIsDeviceManagementSupported != 0
}

const (
	controllerSlots = 1
	srpIOClass      = 0x0100 // SRP_REV16A_IB_IO_CLASS
	srpIOSubclass   = 0x609e // of storage by SRP (T10 SRP annex B)
	srpProtocol     = 0x0108 // SRP
)

func (r *devmgtRequest) getClassPortInfo() mad.Status {
	return encodeAnswer(r.Data, classPortInfo(mad.ClassDevMgt), r.Modifier)
}

func (r *devmgtRequest) getUnit() mad.Status {
	unit := mad.IOUnitInfo{ChangeID: 1, MaxControllers: controllerSlots}
	for i := range unit.ControllerList {
		unit.ControllerList[i] = mad.IOCSlotDoesNotExist
	}
	unit.ControllerList[0] = mad.IOCSlotPresent
	return encodeAnswer(r.Data, &unit, r.Modifier)
}

func (r *devmgtRequest) getController() mad.Status {
	clear(r.Data)
	if r.Modifier != controllerSlots {
		return mad.StatusBadValue
	}
	node := r.At.Node.NodeInfo()
	profile := mad.IOControllerProfile{
		GUID: node.NodeGUID, VendorID: node.VendorID, DeviceID: uint32(node.DeviceID),
		IOClass: srpIOClass, IOSubclass: srpIOSubclass, Protocol: srpProtocol, ProtocolVersion: 1,
		SendMessageDepth: 64, RDMAReadDepth: 16, SendMessageSize: 4096, RDMATransferSize: 1 << 20,
		ControllerOperationsMask: mad.ControllerOperationsSendTo | mad.ControllerOperationsSendFrom |
			mad.ControllerOperationsRDMAReadFrom | mad.ControllerOperationsRDMAWriteFrom,
		ServiceEntries: 1,
	}
	copy(profile.IDString[:], r.At.Node.Name())
	return encodeAnswer(r.Data, &profile, 0)
}

// getServices answers for the range of services in the modifier, which has the slot in its
// upper half.
func (r *devmgtRequest) getServices() mad.Status {
	clear(r.Data)
	first, last, slot := r.Modifier&0xff, r.Modifier>>8&0xff, r.Modifier>>16
	if slot != controllerSlots || first > last || last > 3 || first > 0 {
		return mad.StatusBadValue
	}
	guid := r.At.Node.NodeInfo().NodeGUID
	var services mad.ServiceEntries
	copy(services.ServiceEntry[0].ServiceName[:], fmt.Sprintf("SRP.T10:%016x", uint64(guid)))
	services.ServiceEntry[0].ServiceID = uint64(guid)
	return encodeAnswer(r.Data, &services, 0)
}

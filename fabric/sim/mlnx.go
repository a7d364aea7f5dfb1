package sim

import (
	"time"

	"fabsh/fabric"
	"fabsh/fabric/sim/registers"
	"fabsh/mad"
)

// onMlnx: the device has Mellanox' ExtendedPortInfo. OpenSM asks each that may.
func onMlnx(r *request) bool {
	var info mad.NodeInfo
	info.Decode(r.in.node.info[:])
	return fabric.HasExtPortInfo(&info)
}

// getMlnxPortInfo tells whether a link runs FDR10.
func (r *request) getMlnxPortInfo() mad.Status {
	p := r.portOfModifier(int(r.Modifier))
	if p == nil {
		return mad.StatusBadValue
	}
	clear(r.data)
	var info mad.MlnxExtPortInfo
	if p.fdr10 {
		info.LinkSpeedSupported, info.LinkSpeedEnabled = 1, 1
		if p.up {
			info.LinkSpeedActive = 1
		}
	}
	info.Encode(r.data)
	return mad.StatusOK
}

// setMlnxPortInfo refuses all changes: links keep their speed.
func (r *request) setMlnxPortInfo() mad.Status {
	var asked, now mad.MlnxExtPortInfo
	asked.Decode(r.data)
	status := r.getMlnxPortInfo()
	now.Decode(r.data)
	if status == mad.StatusOK && asked.LinkSpeedEnabled != now.LinkSpeedEnabled {
		return mad.StatusBadValue
	}
	return status
}

// hasRegisters: the device has registers (the key registers=).
func hasRegisters(r *request) bool { return r.in.node.hardware != nil }

// addRegisters gives all devices registers, and breaks what the options say.
func (s *Subnet) addRegisters(o *Options) {
	s.poweredAt = s.now()
	if !o.Registers {
		return
	}
	s.giveRegisters()
	for _, f := range o.RegisterFaults {
		s.nodes[f.Node.ID()].hardware.Break(f.Fault, f.Num) // what fails, options has refused
	}
}

// giveRegisters gives registers to the devices that have none.
func (s *Subnet) giveRegisters() {
	for i := range s.nodes {
		if n := &s.nodes[i]; n.hardware == nil {
			n.hardware = registers.New(n.guid(), n.isSwitch)
		}
	}
}

// EditHardware changes what the registers of a node show; num is the port that it
// is about, or 0. All devices have registers from then on, unless it fails.
func (s *Subnet) EditHardware(node mad.GUID, num int, change func(h *registers.Hardware) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.portAt(node, num)
	if err != nil {
		return err
	}
	h := p.node.hardware
	if h == nil {
		h = registers.New(p.node.guid(), p.node.isSwitch)
	}
	if err := change(h); err != nil {
		return err
	}
	p.node.hardware = h
	s.giveRegisters()
	return nil
}

// upBefore is how long devices have run when the subnet begins.
const upBefore = 100 * time.Hour

// queryRegister has the node answer a query of a register.
func (r *request) queryRegister(id uint16, content []byte) mad.RegisterStatus {
	n := r.in.node
	view := registers.View{Uptime: upBefore + r.now().Sub(r.poweredAt), Port: n.registerPort}
	view.Info.Decode(n.info[:])
	return n.hardware.Query(id, content, view)
}

// registerPort is what registers have to know of a port.
func (n *node) registerPort(num int) registers.Port {
	if num < 1 || num >= len(n.ports) {
		return registers.Port{}
	}
	p := &n.ports[num]
	var info mad.PortInfo
	info.Decode(p.info[:])
	lanes := mad.WidthLanes(info.LinkWidthActive.String())
	// Of NDR and later the modules are OSFP.
	return registers.Port{Cabled: p.peer != nil && !p.unplugged, Up: p.up, Rate: float64(p.rate) * 5e8, Lanes: lanes, CMIS: lanes > 0 && int(p.rate) >= 200*lanes}
}

// registerStatus is the status of a datagram of the vendor's class by that of a
// register (mstflint mtcr_ib_ofed.c translate_mad_status_to_reg_status_gmp).
var registerStatus = map[mad.RegisterStatus]mad.Status{
	mad.RegisterStatusOK: mad.StatusOK, mad.RegisterStatusRegisterNotSupported: 0x14, mad.RegisterStatusBadParameter: mad.StatusBadValue,
}

// getRegister is AccessRegister, by the vendor's class.
func (r *request) getRegister() mad.Status {
	var access mad.AccessRegister
	access.Decode(r.data)
	if access.BlockNum != 0 || r.Modifier > 0xffff {
		return mad.StatusBadValue
	}
	status := r.queryRegister(uint16(r.Modifier), access.Content[:])
	access.Encode(r.data)
	return registerStatus[status]
}

// getRegisterBySMP is MlnxAccessRegister: the register's own status is in the answer.
func (r *request) getRegisterBySMP() mad.Status {
	var access mad.MlnxAccessRegister
	access.Decode(r.data)
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
		op.RegisterStatus = r.queryRegister(op.RegisterID, content[:])
	}
	copy(access.Register[:], content[:])
	access.Encode(r.data)
	return mad.StatusOK
}

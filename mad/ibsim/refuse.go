package ibsim

import (
	"encoding/binary"
	"fmt"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// linearCap is the number of entries of a forwarding table, unless ibsim's option -L
// sets another. ibsim looks up, reads and writes beyond its end.
const linearCap = 30720

// refuse returns why d must not be sent: it does not fit in a message, or ibsim would be
// damaged by it. fabsh's own server has no such limits.
func (t *Transport) refuse(d *engine.Datagram) error {
	switch {
	case len(d.MAD) != mad.Size:
		return fmt.Errorf("a MAD of %d bytes; ibsim carries only MADs of %d bytes", len(d.MAD), mad.Size)
	case d.HasGRH:
		return fmt.Errorf("ibsim does not support global route headers")
	case t.fabsh:
		return nil
	}
	return damages(d)
}

// damages returns why d must not be sent to ibsim: it checks little, and unchecked values
// have overwritten its tables or ended it. Ports above the last one of the node are not
// found here.
func damages(d *engine.Datagram) error {
	m := d.MAD
	h := mad.ParseHeader(m)
	if err := refuseClass(h.Class); err != nil || h.Method.IsResponse() {
		return err
	}
	switch h.Class {
	case mad.ClassSubnDirected:
		if err := refuseRoute(d); err != nil {
			return err
		}
		fallthrough
	case mad.ClassSubn:
		return refuseSMP(h, m[mad.SMPDataOffset:])
	}
	return nil
}

// refuseClass refuses classes that ibsim confuses: it uses only the lower 4 bits of
// the class, and passes the request to its agents of subnet and performance
// management (get_handle_fn in sim_mad.c).
func refuseClass(c mad.Class) error {
	switch c {
	case mad.ClassSubn, mad.ClassSubnDirected, mad.ClassPerf:
		return nil
	}
	for _, like := range []mad.Class{mad.ClassSubn, mad.ClassPerf} {
		if c&0xf == like {
			return fmt.Errorf("ibsim would handle class %v as %v, and change its tables", c, like)
		}
	}
	return nil
}

func refuseRoute(d *engine.Datagram) error {
	hops := d.MAD[7]
	sl := binary.BigEndian.Uint16(d.MAD[mad.SMPDrSLIDOffset:])
	dl := binary.BigEndian.Uint16(d.MAD[mad.SMPDrDLIDOffset:])
	switch {
	case hops > mad.MaxHops:
		return fmt.Errorf("a directed route of %d hops; maximum: %d", hops, mad.MaxHops)
	case d.LID != mad.PermissiveLID, sl != uint16(mad.PermissiveLID), dl != uint16(mad.PermissiveLID):
		return fmt.Errorf("ibsim does not support directed routes with a LID-routed part")
	}
	return nil
}

// refuseSMP checks modifier and data of a request for subnet management.
func refuseSMP(h mad.Header, data []byte) error {
	set := h.Method == mad.MethodSet
	switch h.Attribute {
	case mad.AttrGeneralInfo.ID: // every node would be asked for it, and none answers
		return fmt.Errorf("ibsim does not answer GeneralInfo: %w", engine.ErrNotSimulated)
	case mad.AttrPKeyTable.ID:
		return refusePort(h.Modifier >> 16)
	case mad.AttrVLArbitrationTable.ID:
		return refusePort(h.Modifier & 0xffff)
	case mad.AttrSLtoVLMappingTable.ID:
		if err := refusePort(h.Modifier >> 8 & 0xff); err != nil {
			return err
		}
		return refusePort(h.Modifier & 0xff)
	case mad.AttrLinearForwardingTable.ID:
		if h.Modifier >= linearCap/64 {
			return fmt.Errorf("block %d: the forwarding tables of ibsim end with block %d", h.Modifier, linearCap/64-1)
		}
	case mad.AttrSwitchInfo.ID:
		var s mad.SwitchInfo
		if s.Decode(data); set && s.LinearFDBTop >= linearCap {
			return fmt.Errorf("LinearFDBTop %d: the forwarding tables of ibsim end with LID %d", s.LinearFDBTop, linearCap-1)
		}
	case mad.AttrPortInfo.ID:
		var p mad.PortInfo
		if p.Decode(data); set && p.LID >= linearCap {
			return fmt.Errorf("LID %d: the highest LID of ibsim is %d", p.LID, linearCap-1)
		}
	}
	return nil
}

func refusePort(n uint32) error {
	if n > maxPort {
		return fmt.Errorf("port %d: the highest valid number is %d", n, maxPort)
	}
	return nil
}

// maxPort is the highest number of a port (IBA 14.2.5.3, NumPorts).
const maxPort = 254

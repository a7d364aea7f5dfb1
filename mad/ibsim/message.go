package ibsim

import (
	"encoding/binary"
	"fmt"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// The layout of the messages on ibsim's sockets (linux-rdma/ibsim, include/ibsim.h), for
// clients of ibsim and for servers in its place.

// A message carries one MAD (struct sim_request). LIDs are big endian in the
// first two bytes of their word on little-endian hosts, in the last two on
// big-endian ones. The length is 64 bits: this is the layout of all 64-bit hosts,
// and of ARM's 32-bit ones.
const (
	MessageSize = 32 + mad.Size
	OffDLID     = 0
	OffSLID     = 4
	OffDQP      = 8
	OffSQP      = 12
	OffStatus   = 16 // 0, or StatusUndelivered
	OffLength   = 24 // of the MAD; after it is uninitialized memory of the sender
	OffMAD      = 32

	StatusUndelivered = 110 // Linux's ETIMEDOUT
)

// Control requests (enum SIM_CTL_TYPES).
const (
	CtlError = iota // in a reply: refused
	CtlConnect
	CtlDisconnect
	CtlGetPort
	CtlGetVendor
	CtlGetGID
	CtlGetGUID
	CtlGetNodeInfo
	CtlGetPortInfo
	CtlSetISSM
	CtlGetPKeys
)

// A control message (struct sim_ctl), in host byte order.
const (
	CtlSize   = 80
	CtlMagic  = 0xdeadbeef
	OffSlot   = 4
	OffType   = 8
	offSerial = 12 // ibsim returns it unread: it identifies a late reply
	OffInfo   = 16 // 64 bytes
)

// The content of CONNECT (struct sim_client_info).
const (
	OffClientID = 0 // in the reply: the slot
	OffClientQP = 4
	OffISSM     = 8
	OffNode     = 12 // NUL-terminated
	NodeSize    = 32
)

// What fabsh's own server adds to replies to CONNECT, and to refusals, after struct
// sim_client_info, where ibsim returns what the client has sent: zeros.
const (
	OffServer  = OffNode + NodeSize // Fabsh
	OffReason  = OffServer + 8      // of a refusal
	Fabsh      = "fabsh\x00"
	ReasonUser = 1 // the client is of another user
)

// MaxName leaves room in an address of 108 bytes for ":ctl", ten digits, and the
// NUL before and after.
const MaxName = 108 - 4 - 10 - 2

// PutLID writes a LID into its word.
func PutLID(b []byte, lid mad.LID) {
	var be [2]byte
	binary.BigEndian.PutUint16(be[:], uint16(lid))
	binary.NativeEndian.PutUint32(b, uint32(binary.NativeEndian.Uint16(be[:])))
}

// GetLID reads a LID that PutLID wrote.
func GetLID(b []byte) mad.LID {
	var be [2]byte
	binary.NativeEndian.PutUint16(be[:], uint16(binary.NativeEndian.Uint32(b)))
	return mad.LID(binary.BigEndian.Uint16(be[:]))
}

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
	return damageError(d)
}

// damageError returns why d must not be sent to ibsim: it checks little, and unchecked values
// have overwritten its tables or ended it. Ports above the last one of the node are not
// found here.
func damageError(d *engine.Datagram) error {
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
	case mad.AttrGeneralInfo.ID: // otherwise each node would get this query, and none answers
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

package mad

import (
	"encoding/binary"
	"slices"
	"strings"
)

// Registers are the registers of Mellanox' devices whose layout is known, by name.
func Registers() []*Attribute {
	var list []*Attribute
	for _, a := range headers {
		if a.Register != 0 {
			list = append(list, a)
		}
	}
	return list
}

// LookupRegister returns the register with a number; nil if it is unknown.
func LookupRegister(id uint16) *Attribute {
	i := slices.IndexFunc(headers, func(a *Attribute) bool { return a.Register == id && id != 0 })
	if i < 0 {
		return nil
	}
	return headers[i]
}

// RegisterNamed returns the register with a name, in either case; nil if it is unknown.
func RegisterNamed(name string) *Attribute {
	i := slices.IndexFunc(headers, func(a *Attribute) bool { return a.Register != 0 && strings.EqualFold(a.Name, name) })
	if i < 0 {
		return nil
	}
	return headers[i]
}

// registerUse is the effect of a request on the registers of a device, or on the
// configuration space behind them.
type registerUse uint8

const (
	registerNone    registerUse = iota // no effect
	registerQuery                      // only reads
	registerUnknown                    // reads, and possibly more
	registerWrite                      // writes or clears
)

// WritesRegister reports whether request m, a whole MAD, writes a register of a
// device, clears its counters, or reads an unknown register: such a read may
// clear. No program sends such a request, whatever else it may change: a wrong
// value in a register can make a device permanently unusable.
func WritesRegister(m []byte) bool { return registerUseOf(m) == registerWrite }

// registerUseOf uses only class, attribute and content: a device may ignore the
// rest.
func registerUseOf(m []byte) registerUse {
	h := ParseHeader(m)
	if h.Class.Family() == ClassSubn && h.Attribute < vendorFirst {
		return registerNone
	}
	switch a := Lookup(h.Class, h.Attribute); a {
	case AttrGeneralInfo:
		if h.Method == MethodGet {
			return registerQuery
		}
	case AttrMlnxAccessRegister, AttrAccessRegisterLong:
		// The method that counts is in the content (mstflint mreg_send_raw).
		at := a.Offset()
		if a == AttrAccessRegisterLong {
			at += 8 // the VS_Key
		}
		var op RegisterOperation
		op.Decode(m[at:])
		if op.RegisterMethod != RegisterMethodRead || op.OperationResponse || !isQuery(op.RegisterID, m[at+LayoutRegisterOperation.Size:]) {
			return registerWrite
		}
		wellFormed := op.OperationType == 1 && op.OperationLen == 4 && op.OperationClass == 1 && op.RegisterType == 3
		if h.Method == MethodGet && wellFormed {
			return registerQuery
		}
		return registerUnknown
	case AttrAccessRegister:
		if h.Method != MethodGet || h.Modifier > 0xffff || !isQuery(uint16(h.Modifier), m[a.Offset()+12:]) {
			return registerWrite
		}
		return registerQuery
	case AttrMlnxConfigSpace, AttrVendor09ConfigSpace, AttrVendor0AConfigSpace:
		if h.Method != MethodGet {
			return registerWrite
		}
	}
	return registerNone
}

// isQuery reports whether content, a request to read register id, clears and
// locks nothing.
func isQuery(id uint16, content []byte) bool {
	a := LookupRegister(id)
	if a == nil {
		return false
	}
	return !slices.ContainsFunc(a.Fields, func(f Field) bool { return f.W1C && f.Uint(content) != 0 })
}

// PutRegister writes to m the query of register a, whose content data has the
// fields that select: by SMP, otherwise by the vendor's class. m has its header.
func PutRegister(m []byte, a *Attribute, data []byte) {
	content := m[AttrAccessRegister.Offset():]
	if ParseHeader(m).Class.Family() == ClassSubn {
		content = m[AttrMlnxAccessRegister.Offset():]
		op := RegisterOperation{
			OperationType: 1, OperationLen: 4, OperationClass: 1, RegisterMethod: RegisterMethodRead, RegisterID: a.Register,
			RegisterType: 3, RegisterLen: uint16(a.Size/4 + 1),
		}
		op.Encode(content)
		copy(content[LayoutRegisterOperation.Size:][:SMPRegisterSize], data)
		return
	}
	copy(content[12:], data)
}

// SMPRegisterSize is the number of bytes of a register in an SMP,
// GMPRegisterSize in a datagram of the vendor's class.
const (
	SMPRegisterSize = 44
	GMPRegisterSize = 220
)

// RegisterContent returns register a in answer m, and the result of the query by
// the device. ok reports whether m answers the query of that register.
func RegisterContent(m []byte, a *Attribute) (content []byte, status RegisterStatus, ok bool) {
	h := ParseHeader(m)
	if h.Class.Family() != ClassSubn {
		at := AttrAccessRegister.Offset()
		blockNum := binary.BigEndian.Uint16(m[at+8:])
		return m[at+12:][:min(a.Size, GMPRegisterSize)], RegisterStatusOf(h.Status), h.Modifier == uint32(a.Register) && blockNum == 0
	}
	at := AttrMlnxAccessRegister.Offset()
	var op RegisterOperation
	op.Decode(m[at:])
	ok = op.RegisterID == a.Register && op.OperationType == 1 && op.RegisterMethod == RegisterMethodRead
	if op.RegisterStatus == RegisterStatusOK {
		// An older device has a shorter register, without some fields.
		ok = ok && op.RegisterType == 3 && op.RegisterLen >= 2 && int(op.RegisterLen-1)*4 <= SMPRegisterSize
	}
	return m[at+LayoutRegisterOperation.Size:][:min(a.Size, SMPRegisterSize)], op.RegisterStatus, ok
}

// RegisterStatusOf returns the status of a register by the status of a datagram of
// the vendor's class (mstflint mtcr_ib_ofed.c translate_mad_status_to_reg_status_gmp).
func RegisterStatusOf(s Status) RegisterStatus {
	switch s {
	case 0x04:
		return RegisterStatusClassNotSupported
	case 0x0c:
		return RegisterStatusMethodNotSupported
	case 0x14:
		return RegisterStatusRegisterNotSupported
	case 0x1c:
		return RegisterStatusBadParameter
	}
	return RegisterStatusOK
}

// Unsupported reports whether the device does not have the register.
func (s RegisterStatus) Unsupported() bool {
	switch s {
	case RegisterStatusVersionNotSupported, RegisterStatusUnknownTLV, RegisterStatusRegisterNotSupported, RegisterStatusClassNotSupported, RegisterStatusMethodNotSupported:
		return true
	}
	return false
}

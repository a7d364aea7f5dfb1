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

// LookupRegister finds a register by its number; nil if it is not known.
func LookupRegister(id uint16) *Attribute {
	i := slices.IndexFunc(headers, func(a *Attribute) bool { return a.Register == id && id != 0 })
	if i < 0 {
		return nil
	}
	return headers[i]
}

// RegisterNamed finds a register by its name, in either case; nil if there is none.
func RegisterNamed(name string) *Attribute {
	i := slices.IndexFunc(headers, func(a *Attribute) bool { return a.Register != 0 && strings.EqualFold(a.Name, name) })
	if i < 0 {
		return nil
	}
	return headers[i]
}

// registerUse is what a request does with the registers of a device, or with the
// configuration space behind them.
type registerUse uint8

const (
	registerNone    registerUse = iota // nothing
	registerQuery                      // it reads one
	registerUnknown                    // it reads, but is not known to do no more
	registerWrite                      // it writes, or clears
)

// WritesRegister: request m, a whole MAD, writes a register of a device, clears
// what it has counted, or reads one of which nothing is known: such a read may
// clear. No program sends it, whatever else it may do to the fabric: a wrong
// value in a register can stop a device for good.
func WritesRegister(m []byte) bool { return registerUseOf(m) == registerWrite }

// registerUseOf tells it by class, attribute and content alone: a device may not
// look at the rest.
func registerUseOf(m []byte) registerUse {
	h := ParseHeader(m)
	if h.Class.Family() == ClassSubn && h.Attribute < vendorFirst {
		return registerNone
	}
	switch a := Lookup(h.Class, h.Attribute); a {
	case AttrMlnxGeneralInfo:
		if h.Method == MethodGet {
			return registerQuery
		}
	case AttrMlnxAccessRegister, AttrAccessRegisterLong:
		// The method that counts stands in the content (mstflint mreg_send_raw).
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

// isQuery: content, which goes out to be filled by register id, asks for nothing
// to be cleared or locked.
func isQuery(id uint16, content []byte) bool {
	a := LookupRegister(id)
	if a == nil {
		return false
	}
	return !slices.ContainsFunc(a.Fields, func(f Field) bool { return f.W1C && f.Uint(content) != 0 })
}

// PutRegister writes the query of register a, whose content data has the fields
// that choose, to m: by SMP, or else by the vendor's class. m has its header.
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

// SMPRegisterSize is how many bytes of a register an SMP holds,
// GMPRegisterSize how many a datagram of the vendor's class.
const (
	SMPRegisterSize = 44
	GMPRegisterSize = 220
)

// RegisterContent is register a in answer m, and what the device says came of
// the query. ok: m answers the query of that register.
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
		// A shorter register is one of an older device, which has not all fields.
		ok = ok && op.RegisterType == 3 && op.RegisterLen >= 2 && int(op.RegisterLen-1)*4 <= SMPRegisterSize
	}
	return m[at+LayoutRegisterOperation.Size:][:min(a.Size, SMPRegisterSize)], op.RegisterStatus, ok
}

// RegisterStatusOf is what the status of a datagram of the vendor's class says of
// a register (mstflint mtcr_ib_ofed.c translate_mad_status_to_reg_status_gmp).
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

// Unsupported: the device has no such register.
func (s RegisterStatus) Unsupported() bool {
	switch s {
	case RegisterStatusVersionNotSupported, RegisterStatusUnknownTLV, RegisterStatusRegisterNotSupported, RegisterStatusClassNotSupported, RegisterStatusMethodNotSupported:
		return true
	}
	return false
}

package mad

import "fmt"

// Class is a management class (IBA 13.4.4, table 112).
type Class uint8

const (
	ClassSubn         Class = 0x01 // subnet management, LID-routed
	ClassSubnDirected Class = 0x81 // subnet management, directed route
	ClassSubnAdm      Class = 0x03
	ClassPerf         Class = 0x04
	ClassBM           Class = 0x05
	ClassDevMgt       Class = 0x06
	ClassComMgt       Class = 0x07
	ClassSNMP         Class = 0x08
	ClassVendor09     Class = 0x09 // Mellanox, configuration space of old devices
	ClassVendor0A     Class = 0x0a // Mellanox
	ClassVendor0C     Class = 0x0c // Mellanox, between nodes (N2N)
	ClassCongestion   Class = 0x21
	ClassPing         Class = 0x32 // OpenIB, vendor 0x001405: ibping
	ClassSysStat      Class = 0x33 // OpenIB, vendor 0x001405: ibsysstat
	ClassVendorFirst  Class = 0x09
	classVendorLast   Class = 0x0f
	classAppFirst     Class = 0x10
	classAppLast      Class = 0x2f // includes ClassCongestion
	classVendor2First Class = 0x30
	classVendor2Last  Class = 0x4f
)

// String returns the name in the specification.
func (c Class) String() string {
	switch {
	case c == ClassSubn:
		return "Subn"
	case c == ClassSubnDirected:
		return "SubnDirected"
	case c == ClassSubnAdm:
		return "SubnAdm"
	case c == ClassPerf:
		return "Perf"
	case c == ClassBM:
		return "BM"
	case c == ClassDevMgt:
		return "DevMgt"
	case c == ClassComMgt:
		return "ComMgt"
	case c == ClassSNMP:
		return "SNMP"
	case c == ClassCongestion:
		return "CC"
	case c.IsVendor():
		return fmt.Sprintf("Vendor(%#02x)", uint8(c))
	case c >= classAppFirst && c <= classAppLast:
		return fmt.Sprintf("Application(%#02x)", uint8(c))
	}
	return fmt.Sprintf("unknown(%#02x)", uint8(c))
}

// IsVendor reports whether a vendor defines the class.
func (c Class) IsVendor() bool { return c >= ClassVendorFirst && c <= classVendorLast || c.HasOUI() }

// HasOUI reports whether it is a vendor class whose MADs carry the vendor's OUI.
func (c Class) HasOUI() bool { return c >= classVendor2First && c <= classVendor2Last }

// Family returns the class whose attributes c has: ClassSubn for both classes
// of subnet management, otherwise c itself.
func (c Class) Family() Class {
	if c == ClassSubnDirected {
		return ClassSubn
	}
	return c
}

// Version returns the current class version (libibmad register.c, mgmt_class_vers).
func (c Class) Version() uint8 {
	switch c {
	case ClassSubnAdm, ClassComMgt, ClassCongestion:
		return 2
	}
	return 1
}

// DataOffset returns the offset of the attribute in a MAD of this class, in its
// current version, in bytes.
func (c Class) DataOffset() int {
	switch c.Family() {
	case ClassSubn, ClassPerf, ClassBM, ClassDevMgt, ClassSNMP, ClassCongestion:
		return 64
	case ClassSubnAdm:
		return SADataOffset
	}
	if c.HasOUI() {
		return VendorDataOffset
	}
	return HeaderSize
}

// DataSize returns the size of the attribute data in one MAD of this class, in bytes.
func (c Class) DataSize() int {
	if c.Family() == ClassSubn {
		return 64
	}
	return Size - c.DataOffset()
}

// Method is the operation of a request on an attribute (IBA 13.4.5); bit 7 is the response bit.
type Method uint8

const (
	MethodGet           Method = 0x01
	MethodSet           Method = 0x02
	MethodSend          Method = 0x03
	MethodTrap          Method = 0x05
	MethodReport        Method = 0x06
	MethodTrapRepress   Method = 0x07
	MethodGetTable      Method = 0x12 // SubnAdm from here on (IBA 15.2.2, version 2)
	MethodGetTraceTable Method = 0x13
	MethodGetMulti      Method = 0x14
	MethodDelete        Method = 0x15
	MethodInform        Method = 0x10 // SubnAdm, version 1 only, from here on (IBA 1.0.a; Shanley, InfiniBand Network Architecture, table 33-3)
	MethodGetBulk       Method = 0x13
	MethodConfig        Method = 0x15
	// Response is the bit that a response carries.
	Response                Method = 0x80
	MethodGetResp                  = MethodGet | Response
	MethodReportResp               = MethodReport | Response
	MethodGetTableResp             = MethodGetTable | Response
	MethodGetTraceTableResp        = MethodGetTraceTable | Response
	MethodGetMultiResp             = MethodGetMulti | Response
	MethodDeleteResp               = MethodDelete | Response
)

// IsResponse reports whether the response bit is set.
func (m Method) IsResponse() bool { return m&Response != 0 }

// IsTable reports whether the response, of SubnAdm, is a table of any number of records.
func (m Method) IsTable() bool {
	switch m &^ Response {
	case MethodGetTable, MethodGetTraceTable, MethodGetMulti:
		return true
	}
	return false
}

// Name returns the name of m in the specification, in a MAD of this class and class version.
func (m Method) Name(c Class, version uint8) string {
	if name := m.name(c, version); name != "" {
		return name
	}
	return fmt.Sprintf("unknown(%#02x)", uint8(m))
}

// IsNamed reports whether the specification has m, in a MAD of this class and class version.
func (m Method) IsNamed(c Class, version uint8) bool { return m.name(c, version) != "" }

// name returns "" if the specification does not have the method.
func (m Method) name(c Class, version uint8) string {
	info, ok := MethodOf(c, version, m&^Response)
	if !ok {
		info, ok = MethodOf(0, 0, m&^Response) // a common method that the class does not have
	}
	switch {
	case !ok, m.IsResponse() && (!info.Answered || m == MethodSet|Response):
		return ""
	case m.IsResponse():
		return info.Name + "Resp"
	}
	return info.Name
}

package mad

import "slices"

// ClassInfo describes a management class, or a range of classes.
type ClassInfo struct {
	First, Last Class
	Name        string // as of Class.String; of a range, the beginning of its names
	Doc         string
	Support     string // which nodes must support it
}

// Classes lists the management classes (IBA 13.4.4; Shanley, InfiniBand
// Network Architecture, table 28-3).
func Classes() []ClassInfo { return slices.Clone(classes) }

// Info returns the description of c; ok is false for a reserved class.
func (c Class) Info() (info ClassInfo, ok bool) {
	i := slices.IndexFunc(classes, func(i ClassInfo) bool { return i.First <= c && c <= i.Last })
	if i < 0 {
		return ClassInfo{}, false
	}
	return classes[i], true
}

// WasReserved reports whether version 1.0 of the specification reserves c.
// Later versions give these classes to applications (to 0x2f) and vendors (from
// 0x30 on; Shanley, InfiniBand Network Architecture, table 28-3).
func (c Class) WasReserved() bool { return 0x20 <= c && c <= classVendor2Last }

var classes = []ClassInfo{
	{ClassSubn, ClassSubn, "Subn", "subnet management; datagrams are routed by LID", "required on all channel adapters, switches and routers"},
	{ClassSubnDirected, ClassSubnDirected, "SubnDirected", "subnet management; datagrams follow a directed route", "required on all channel adapters, switches and routers"},
	{ClassSubnAdm, ClassSubnAdm, "SubnAdm", "subnet administration: the subnet manager's data, as records", "required on nodes that host a subnet manager"},
	{ClassPerf, ClassPerf, "Perf", "performance management: counters", "required on all channel adapters, switches and routers"},
	{ClassBM, ClassBM, "BM", "baseboard management: the chassis and its modules", "required on all channel adapters, switches and routers"},
	{ClassDevMgt, ClassDevMgt, "DevMgt", "device management: I/O units and their controllers", "optional"},
	{ClassComMgt, ClassComMgt, "ComMgt", "communication management: connections", "required on channel adapters with connections, or with datagram services at no fixed address"},
	{ClassSNMP, ClassSNMP, "SNMP", "SNMP tunnelling", "optional"},
	{ClassVendorFirst, classVendorLast, "Vendor", "vendor-defined; the datagram does not identify the vendor", "optional"},
	{ClassCongestion, ClassCongestion, "CC", "congestion control", "optional"},
	{classAppFirst, classAppLast, "Application", "for applications", "optional"},
	{classVendor2First, classVendor2Last, "Vendor", "vendor-defined; the datagram identifies the vendor", "optional"},
}

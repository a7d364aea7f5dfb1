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

// Info describes c; ok is false for a reserved class.
func (c Class) Info() (info ClassInfo, ok bool) {
	i := slices.IndexFunc(classes, func(i ClassInfo) bool { return i.First <= c && c <= i.Last })
	if i < 0 {
		return ClassInfo{}, false
	}
	return classes[i], true
}

// WasReserved: version 1.0 of the specification reserves c, which later ones
// give to applications (to 0x2f) and vendors (from 0x30 on; Shanley, InfiniBand
// Network Architecture, table 28-3).
func (c Class) WasReserved() bool { return 0x20 <= c && c <= classVendor2Last }

var classes = []ClassInfo{
	{ClassSubn, ClassSubn, "Subn", "subnet management; datagrams go by LID", "all channel adapters, switches and routers"},
	{ClassSubnDirected, ClassSubnDirected, "SubnDirected", "subnet management; datagrams go along a directed route", "all channel adapters, switches and routers"},
	{ClassSubnAdm, ClassSubnAdm, "SubnAdm", "subnet administration: what the subnet manager knows, as records", "all that host a subnet manager"},
	{ClassPerf, ClassPerf, "Perf", "performance management: counters", "all channel adapters, switches and routers"},
	{ClassBM, ClassBM, "BM", "baseboard management: the chassis and its modules", "all channel adapters, switches and routers"},
	{ClassDevMgt, ClassDevMgt, "DevMgt", "device management: I/O units and their controllers", "who likes"},
	{ClassComMgt, ClassComMgt, "ComMgt", "communication management: connections", "channel adapters with connections or with datagrams at no fixed address"},
	{ClassSNMP, ClassSNMP, "SNMP", "SNMP tunnelling", "who likes"},
	{ClassVendorFirst, classVendorLast, "Vendor", "a vendor's own; nothing in the datagram says which vendor's", "who likes"},
	{ClassCongestion, ClassCongestion, "CC", "congestion control", "who likes"},
	{classAppFirst, classAppLast, "Application", "for applications", "who likes"},
	{classVendor2First, classVendor2Last, "Vendor", "a vendor's own; the datagram says which vendor's", "who likes"},
}

package mad

import "slices"

// MethodInfo describes a method of a class.
type MethodInfo struct {
	Method   Method
	Name     string // in the specification, without the class: "GetTable"
	Answered bool   // has a response: the method with the response bit, or GetResp to a Set
	Table    bool   // the response is a table, in any number of MADs
	Required bool   // mandatory, of a subnet administrator
	Doc      string
}

// MethodOf returns the method of a version of a class with a number, without the
// response bit; ok is false if the class does not have the method.
func MethodOf(c Class, version uint8, m Method) (info MethodInfo, ok bool) {
	list := methodsOf(c, version)
	i := slices.IndexFunc(list, func(i MethodInfo) bool { return i.Method == m })
	if i < 0 {
		return MethodInfo{}, false
	}
	return list[i], true
}

// Methods lists the methods of a version of a class.
func Methods(c Class, version uint8) []MethodInfo { return slices.Clone(methodsOf(c, version)) }

func methodsOf(c Class, version uint8) []MethodInfo {
	switch {
	case c == ClassSubnAdm && version == 1:
		return saMethods1
	case c == ClassSubnAdm:
		return saMethods2
	}
	return commonMethods
}

// IsReserved reports whether no class may use the number (IBA 13.4.5; Shanley,
// InfiniBand Network Architecture, table 28-4).
func (m Method) IsReserved() bool {
	switch r := m &^ Response; {
	case r == MethodGet, r == MethodReport, r >= 0x10:
		return false
	case m.IsResponse():
		return true
	default:
		return r == 0 || r == 4 || r >= 8
	}
}

// commonMethods are those of all classes but SubnAdm (IBA 13.4.5; Shanley,
// InfiniBand Network Architecture, table 28-4).
var commonMethods = []MethodInfo{
	{MethodGet, "Get", true, false, false, "reads an attribute"},
	{MethodSet, "Set", true, false, false, "writes an attribute; GetResp answers"},
	{MethodSend, "Send", false, false, false, "sends a datagram; no answer is required"},
	{MethodTrap, "Trap", false, false, false, "reports an event to a manager, without a request"},
	{MethodReport, "Report", true, false, false, "forwards a trap to subscribers"},
	{MethodTrapRepress, "TrapRepress", false, false, false, "stops an agent from repeating a trap"},
}

// The methods of SubnAdm. Its two versions use some numbers for different
// methods (version 1: IBA 1.0.a, Shanley, InfiniBand Network Architecture,
// table 33-3; version 2: IBA 1.3 15.2.2).
var (
	saMethods1 = []MethodInfo{
		{MethodGet, "Get", true, false, true, "reads a record"},
		{MethodSet, "Set", true, false, true, "writes a record; GetResp answers"},
		{MethodReport, "Report", true, false, true, "forwards a trap to subscribers"},
		{MethodInform, "Inform", true, false, true, "subscribes to reports, or unsubscribes; in version 2 a Set does"},
		{MethodGetTable, "GetTable", true, true, true, "reads all records that match"},
		{MethodGetBulk, "GetBulk", true, true, false, "reads all records, for another subnet manager"},
		{MethodConfig, "Config", true, true, true, "adds, deletes or changes a whole table of records"},
	}
	saMethods2 = []MethodInfo{
		{MethodGet, "Get", true, false, true, "reads the one record that matches"},
		{MethodSet, "Set", true, false, true, "writes a record; GetResp answers"},
		{MethodReport, "Report", true, false, true, "forwards a trap to subscribers"},
		{MethodGetTable, "GetTable", true, true, true, "reads all records that match"},
		{MethodGetTraceTable, "GetTraceTable", true, true, false, "reads the hops of a path"},
		{MethodGetMulti, "GetMulti", true, true, false, "queries paths between sets of ports, with a request of several MADs"},
		{MethodDelete, "Delete", true, false, true, "deletes a record"},
	}
)

package mad

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEffectOf(t *testing.T) {
	for _, test := range []struct {
		what    string
		class   Class
		version uint8
		method  Method
		id      AttributeID
		want    Effect
	}{
		{"SubnGet(NodeInfo)", ClassSubn, 1, MethodGet, 0x11, EffectRead},
		{"the same, directed", ClassSubnDirected, 1, MethodGet, 0x11, EffectRead},
		{"SubnSet(PortInfo)", ClassSubnDirected, 1, MethodSet, 0x15, EffectFabric},
		{"SubnSet(NodeInfo), which does not exist", ClassSubn, 1, MethodSet, 0x11, EffectFabric},
		{"SubnGetTable, which does not exist", ClassSubn, 1, MethodGetTable, 0x11, EffectFabric},
		{"SubnTrap", ClassSubn, 1, MethodTrap, 0x02, EffectFabric},
		{"SubnTrapRepress", ClassSubn, 1, MethodTrapRepress, 0x02, EffectFabric},
		{"SubnGet of an unknown attribute", ClassSubn, 1, MethodGet, 0x0077, EffectFabric},
		{"SubnGet of a vendor's attribute", ClassSubn, 1, MethodGet, 0xff90, EffectRead},
		{"SubnGet of one that is not known for sure", ClassSubn, 1, MethodGet, 0xff53, EffectFabric},
		{"SubnGet of an unknown version", ClassSubn, 2, MethodGet, 0x11, EffectFabric},
		{"a response to SubnGet", ClassSubn, 1, MethodGetResp, 0x11, EffectFabric},
		{"SubnAdmGet(PathRecord)", ClassSubnAdm, 2, MethodGet, 0x35, EffectRead},
		{"SubnAdmGetTable(NodeRecord)", ClassSubnAdm, 2, MethodGetTable, 0x11, EffectRead},
		{"SubnAdmGetTable(ClassPortInfo), which does not exist", ClassSubnAdm, 2, MethodGetTable, 0x01, EffectFabric},
		{"SubnAdmGetMulti(PathRecord), which does not exist", ClassSubnAdm, 2, MethodGetMulti, 0x35, EffectFabric},
		{"SubnAdmSet(InformInfo)", ClassSubnAdm, 2, MethodSet, 0x03, EffectFabric},
		{"SubnAdmReportResp(Notice)", ClassSubnAdm, 2, MethodReportResp, 0x02, EffectSession},
		{"SubnAdmReport(Notice)", ClassSubnAdm, 2, MethodReport, 0x02, EffectFabric},
		{"SubnAdmDelete(PathRecord)", ClassSubnAdm, 2, MethodDelete, 0x35, EffectFabric},
		{"SubnAdmSet(InformInfo) of version 1", ClassSubnAdm, 1, MethodSet, 0x03, EffectFabric},
		{"SubnAdmInform of version 1", ClassSubnAdm, 1, MethodInform, 0x03, EffectFabric},
		{"SubnAdmInform of version 2, which does not exist", ClassSubnAdm, 2, MethodInform, 0x03, EffectFabric},
		{"SubnAdmGetBulk of version 1", ClassSubnAdm, 1, MethodGetBulk, 0x11, EffectRead},
		{"SubnAdmGetTraceTable, whose number that is in version 2", ClassSubnAdm, 2, MethodGetTraceTable, 0x11, EffectFabric},
		{"SubnAdmGet(NoticeRecord) of version 1", ClassSubnAdm, 1, MethodGet, 0xf4, EffectRead},
		{"SubnAdmConfig of version 1", ClassSubnAdm, 1, 0x15, 0x11, EffectFabric},
		{"PerfGet(PortCounters)", ClassPerf, 1, MethodGet, 0x12, EffectRead},
		{"PerfSet(PortCounters)", ClassPerf, 1, MethodSet, 0x12, EffectFabric},
		{"a vendor's Get", 0x0a, 1, MethodGet, 0x50, EffectFabric},
		{"a vendor's Get of GeneralInfo", 0x0a, 1, MethodGet, 0x17, EffectRead},
		{"a vendor's Set of GeneralInfo", 0x0a, 1, MethodSet, 0x17, EffectFabric},
		{"a Get of ibsysstat", ClassSysStat, 1, MethodGet, 0x11, EffectRead},
		{"a Get of ibping", ClassPing, 1, MethodGet, 0, EffectRead},
		{"a Get of a vendor with a number", ClassSysStat, 1, MethodGet, 0x13, EffectFabric},
		{"CCGet(CongestionInfo)", ClassCongestion, 2, MethodGet, 0x11, EffectRead},
		{"a Get of a class unknown", 0x20, 1, MethodGet, 0x01, EffectFabric},
		{"BMSend(ReadVPD)", ClassBM, 1, MethodSend, 0x21, EffectFabric},
		{"Send", ClassDevMgt, 1, MethodSend, 0x01, EffectFabric},
		{"nothing at all", 0, 0, 0, 0, EffectFabric},
	} {
		if got := EffectOf(test.class, test.version, test.method, test.id); got != test.want {
			t.Errorf("%s: got %v, want %v", test.what, got, test.want)
		}
	}
}

// TestEffects: over all that a MAD's header can say, only what asks for
// something that is known, and is no vendor's unless its Get is known only to read, is a read.
func TestEffects(t *testing.T) {
	var ids []AttributeID
	for _, a := range Attributes() {
		ids = append(ids, a.ID, a.ID+1)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	reads := []Method{MethodGet, MethodGetTable, MethodGetMulti, MethodGetTraceTable, MethodGetBulk}
	for class := range Class(255) {
		for version := range uint8(4) {
			for method := range Method(255) {
				for _, id := range ids {
					switch EffectOf(class, version, method, id) {
					case EffectRead:
						if Lookup(class, id) == nil || class.IsVendor() && !Lookup(class, id).SafeGet || !slices.Contains(reads, method) || Allowed(class, version, method, id) != nil {
							t.Fatalf("%v version %d method %#02x attribute %#04x passes for a read", class, version, method, id)
						}
					case EffectSession:
						if class != ClassSubnAdm || version != 1 && version != 2 || method != MethodReportResp {
							t.Fatalf("%v version %d method %#02x attribute %#04x passes for the session's own", class, version, method, id)
						}
					}
				}
			}
		}
	}
}

func TestEffectString(t *testing.T) {
	got := EffectRead.String() + " " + EffectSession.String() + " " + EffectFabric.String() + " " + Effect(9).String()
	if got != "read session fabric fabric" {
		t.Error(got)
	}
}

func TestAllowed(t *testing.T) {
	for _, test := range []struct {
		class   Class
		version uint8
		method  Method
		id      AttributeID
		want    string
	}{
		{ClassSubn, 1, MethodGet, 0x11, ""},
		{ClassSubnDirected, 1, MethodSet, 0x15, ""},
		{ClassSubn, 1, MethodTrap, 0x02, ""},
		{ClassSubn, 1, MethodSet, 0x11, "SubnSet(NodeInfo): not in the specification; methods of NodeInfo: Get"},
		{ClassSubnDirected, 1, MethodSet, 0x11, "SubnSet(NodeInfo): not in the specification; methods of NodeInfo: Get"},
		{ClassSubn, 1, MethodGetTable, 0x11, "class Subn version 1: unknown method 0x12; known: Get, Set, Send, Trap, Report, TrapRepress"},
		{ClassSubn, 2, MethodGet, 0x11, "class Subn: unknown version 2; known: 1"},
		{ClassSubn, 1, MethodGet, 0x77, ""}, // who knows
		{ClassSubn, 1, MethodGetResp, 0x11, ""},
		{ClassSubn, 1, MethodTrap | Response, 0x02, "Trap has no answer"},
		{ClassSubnAdm, 2, MethodGetTable, 0x35, ""},
		{ClassSubnAdm, 2, MethodDelete, 0x38, ""},
		{ClassSubnAdm, 2, MethodGetMulti, 0x3a, ""},
		{ClassSubnAdm, 2, MethodGetTable, 0x01, "SubnAdmGetTable(ClassPortInfo): not in the specification; methods of ClassPortInfo: Get"},
		{ClassSubnAdm, 2, MethodSet, 0x35, "SubnAdmSet(PathRecord): not in the specification; methods of PathRecord: Get, GetTable"},
		{ClassSubnAdm, 2, MethodInform, 0x03, "class SubnAdm version 2: unknown method 0x10; known: Get, Set, Report, GetTable, GetTraceTable, GetMulti, Delete"},
		{ClassSubnAdm, 2, MethodGet, 0x34, "SubnAdmGet(RangeRecord): version 2 of the class has no RangeRecord"},
		{ClassSubnAdm, 3, MethodGet, 0x35, "class SubnAdm: unknown version 3; known: 1 and 2"},
		{ClassSubnAdm, 1, MethodInform, 0x03, ""},
		{ClassSubnAdm, 1, MethodGetBulk, 0x11, ""},
		{ClassSubnAdm, 1, MethodConfig, 0x34, ""},
		{ClassSubnAdm, 1, MethodConfig, 0x11, "SubnAdmConfig(NodeRecord): not in the specification; methods of NodeRecord: Get, GetTable, GetBulk"},
		{ClassSubnAdm, 1, MethodGet, 0x15, "SubnAdmGet(LinearForwardingTableRecord): not in the specification; methods of LinearForwardingTableRecord: GetTable, GetBulk"},
		{ClassSubnAdm, 1, MethodGetBulk, 0x35, "SubnAdmGetBulk(PathRecord): not in the specification; methods of PathRecord: Get, GetTable"},
		{ClassSubnAdm, 1, MethodGetMulti, 0x3a, "class SubnAdm version 1: unknown method 0x14; known: Get, Set, Report, Inform, GetTable, GetBulk, Config"},
		{ClassSubnAdm, 1, MethodGet, 0x3a, "SubnAdmGet(MultiPathRecord): version 1 of the class has no MultiPathRecord"},
		{ClassPerf, 1, MethodSet, 0x12, ""},
		{ClassPerf, 1, MethodSet, 0x11, "PerfSet(PortSamplesResult): not in the specification; methods of PortSamplesResult: Get"},
		{ClassBM, 1, MethodSend, 0x21, ""},
		{ClassBM, 1, MethodGet, 0x21, "BMGet(ReadVPD): not in the specification; methods of ReadVPD: Send"},
		{0x0a, 7, 0x33, 0x17, ""}, // the vendor's
		{0x20, 1, MethodGet, 0x01, ""},
	} {
		got := ""
		if err := Allowed(test.class, test.version, test.method, test.id); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%v version %d, method %#02x, attribute %#04x:\n got %q\nwant %q", test.class, test.version, test.method, test.id, got, test.want)
		}
	}
}

// TestAllowedAll: what the tables have is allowed, in the version that has it.
func TestAllowedAll(t *testing.T) {
	for _, a := range Attributes() {
		for version := range uint8(3) {
			for _, m := range a.MethodsIn(version) {
				if err := Allowed(a.Class, version, m, a.ID); err != nil {
					t.Error(err)
				}
				if _, ok := MethodOf(a.Class, version, m); !ok {
					t.Errorf("%v version %d has no method %#02x, but %s has", a.Class, version, uint8(m), a.Name)
				}
			}
		}
	}
}

// TestMap33 is the map of methods and attributes of version 1, and what each
// record holds (Shanley, InfiniBand Network Architecture, tables 33-5, 33-6).
func TestMap33(t *testing.T) {
	want := map[string]string{
		"ClassPortInfo":                  "Get",
		"Notice":                         "Report",
		"InformInfo":                     "Inform",
		"NodeRecord":                     "Get GetTable GetBulk state",
		"PortInfoRecord":                 "Get GetTable GetBulk state",
		"SLtoVLMappingTableRecord":       "Get GetTable GetBulk state",
		"SwitchRecord":                   "Get GetTable GetBulk state",
		"LinearForwardingTableRecord":    "GetTable GetBulk state",
		"RandomForwardingTableRecord":    "GetTable GetBulk state",
		"MulticastForwardingTableRecord": "GetTable GetBulk state",
		"VLArbitrationRecord":            "GetTable GetBulk state",
		"SMInfoRecord":                   "Get GetTable GetBulk state",
		"InformRecord":                   "Get Set GetTable GetBulk Config state configuration",
		"NoticeRecord":                   "Get GetTable GetBulk state",
		"LinkRecord":                     "Get GetTable GetBulk state",
		"GuidInfoRecord":                 "Get GetTable GetBulk state",
		"ServiceRecord":                  "Get Set GetTable GetBulk Config state configuration",
		"PartitionRecord":                "Get GetTable GetBulk state",
		"RangeRecord":                    "Get Set GetTable GetBulk Config state configuration",
		"PathRecord":                     "Get GetTable state",
		"MCGroupRecord":                  "Get Set GetTable GetBulk Config state configuration",
		"MCMemberRecord":                 "Get Set GetTable GetBulk Config state configuration",
		"SAResponse":                     "GetBulk",
	}
	got := map[string]string{}
	for name := range want {
		a := LookupName(ClassSubnAdm, name)
		if name == "Notice" {
			a = LookupVersion(ClassSubnAdm, 1, a.ID)
		}
		if a == nil {
			continue
		}
		for i, m := range a.Methods1 {
			if i > 0 {
				got[name] += " "
			}
			got[name] += m.Name(ClassSubnAdm, 1)
		}
		if a.State {
			got[name] += " state"
		}
		if a.Configuration {
			got[name] += " configuration"
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for _, a := range Attributes() {
		if a.Class == ClassSubnAdm && len(a.Methods1) > 0 && want[a.Name] == "" && (len(a.Aliases) == 0 || want[a.Aliases[0]] == "") && a.Name != "SLtoVLMappingTableRecord" {
			t.Errorf("%s is in version 1, but not in the table", a.Name)
		}
	}
}

// TestRequired: what class version 1 requires of each subnet administrator
// (Shanley, InfiniBand Network Architecture, table 33-4).
func TestRequired(t *testing.T) {
	var got []string
	for _, a := range Attributes() {
		if a.Required {
			got = append(got, fmt.Sprintf("%#04x %s", uint16(a.ID), a.Name))
		}
	}
	want := []string{
		"0x0001 ClassPortInfo", "0x0002 Notice", "0x0003 InformInfo", "0x0011 NodeRecord", "0x0012 PortInfoRecord", "0x0013 SLtoVLMappingTableRecord",
		"0x0031 ServiceRecord", "0x0033 P_KeyTableRecord", "0x0034 RangeRecord", "0x0035 PathRecord", "0x0036 VLArbitrationTableRecord",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestReservedMethods: Shanley, InfiniBand Network Architecture, table 28-4.
func TestReservedMethods(t *testing.T) {
	for m := range 0x100 {
		want := m == 0 || m == 4 || m >= 0x08 && m <= 0x0f || m == 0x80 || m >= 0x82 && m <= 0x85 || m >= 0x87 && m <= 0x8f
		if got := Method(m).IsReserved(); got != want {
			t.Errorf("%#02x: %v", m, got)
		}
	}
}

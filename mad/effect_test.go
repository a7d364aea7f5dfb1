package mad

import (
	"slices"
	"testing"
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
		{"a vendor's Get", 0x0a, 1, MethodGet, 0x17, EffectFabric},
		{"a Get of a vendor with a number", ClassSysStat, 1, MethodGet, 0x11, EffectFabric},
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

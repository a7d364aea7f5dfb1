package mad

import "testing"

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
		{"SubnAdmSet(InformInfo)", ClassSubnAdm, 2, MethodSet, 0x03, EffectSession},
		{"SubnAdmReportResp(Notice)", ClassSubnAdm, 2, MethodReportResp, 0x02, EffectSession},
		{"SubnAdmReport(Notice)", ClassSubnAdm, 2, MethodReport, 0x02, EffectFabric},
		{"SubnAdmDelete(PathRecord)", ClassSubnAdm, 2, MethodDelete, 0x35, EffectFabric},
		{"SubnAdmSet(InformInfo) of version 1", ClassSubnAdm, 1, MethodSet, 0x03, EffectFabric},
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

// TestEffects: over all that a MAD's header can say, only the known Gets are
// reads.
func TestEffects(t *testing.T) {
	reads, sessions := 0, 0
	for class := range 256 {
		for version := range 4 {
			for method := range 256 {
				for _, id := range []AttributeID{0x01, 0x02, 0x03, 0x10, 0x11, 0x12, 0x15, 0x1d, 0x35, 0xff90, 0xffff} {
					switch EffectOf(Class(class), uint8(version), Method(method), id) {
					case EffectRead:
						reads++
					case EffectSession:
						sessions++
					}
				}
			}
		}
	}
	// Subn and SubnDirected: 0x10 0x11 0x12 0x15 0xff90; SubnAdm: Get of 0x01
	// 0x11 0x12 0x15 0x35, GetTable of the last four; Perf: 0x01 0x12 0x1d.
	// Sessions: Set of 0x03, ReportResp of any.
	if reads != 2*5+9+3 || sessions != 1+11 {
		t.Errorf("%d reads and %d sessions", reads, sessions)
	}
}

func TestEffectString(t *testing.T) {
	got := EffectRead.String() + " " + EffectSession.String() + " " + EffectFabric.String() + " " + Effect(9).String()
	if got != "read session fabric fabric" {
		t.Error(got)
	}
}

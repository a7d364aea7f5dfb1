package mad

import "testing"

func TestClass(t *testing.T) {
	for _, test := range []struct {
		c      Class
		name   string
		family Class
		offset int
		size   int
	}{
		{ClassSubn, "Subn", ClassSubn, 64, 64},
		{ClassSubnDirected, "SubnDirected", ClassSubn, 64, 64},
		{ClassSubnAdm, "SubnAdm", ClassSubnAdm, 56, 200},
		{ClassPerf, "Perf", ClassPerf, 64, 192},
		{ClassBM, "BM", ClassBM, 64, 192},
		{ClassDevMgt, "DevMgt", ClassDevMgt, 64, 192},
		{ClassComMgt, "ComMgt", ClassComMgt, 24, 232},
		{ClassSNMP, "SNMP", ClassSNMP, 64, 192},
		{ClassCongestion, "CC", ClassCongestion, 64, 192},
		{0x0a, "Vendor(0x0a)", 0x0a, 24, 232},
		{0x32, "Vendor(0x32)", 0x32, 40, 216},
		{0x20, "Application(0x20)", 0x20, 24, 232},
		{0x55, "unknown(0x55)", 0x55, 24, 232},
	} {
		if got := test.c.String(); got != test.name {
			t.Errorf("%#02x: name %q, want %q", uint8(test.c), got, test.name)
		}
		if test.c.Family() != test.family || test.c.DataOffset() != test.offset || test.c.DataSize() != test.size {
			t.Errorf("%v: family %v, data at %d, %d bytes", test.c, test.c.Family(), test.c.DataOffset(), test.c.DataSize())
		}
	}
}

func TestMethodName(t *testing.T) {
	for _, test := range []struct {
		m       Method
		c       Class
		version uint8
		want    string
	}{
		{MethodGet, ClassSubn, 1, "Get"},
		{MethodGetResp, ClassSubn, 1, "GetResp"},
		{MethodTrapRepress, ClassSubn, 1, "TrapRepress"},
		{MethodReportResp, ClassSubnAdm, 2, "ReportResp"},
		{MethodGetTable, ClassSubnAdm, 2, "GetTable"},
		{MethodGetTableResp, ClassSubnAdm, 2, "GetTableResp"},
		{MethodGetTraceTable, ClassSubnAdm, 2, "GetTraceTable"},
		{MethodGetMultiResp, ClassSubnAdm, 2, "GetMultiResp"},
		{MethodDelete, ClassSubnAdm, 2, "Delete"},
		{0x13, ClassSubnAdm, 1, "GetBulk"},
		{0x15, ClassSubnAdm, 1, "Config"},
		{0x14, ClassSubnAdm, 1, "unknown(0x14)"},
		{MethodGetTable, ClassSubn, 1, "unknown(0x12)"},
	} {
		if got := test.m.Name(test.c, test.version); got != test.want {
			t.Errorf("%#02x of %v version %d: got %q, want %q", uint8(test.m), test.c, test.version, got, test.want)
		}
	}
}

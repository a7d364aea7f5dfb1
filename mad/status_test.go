package mad

import (
	"testing"
)

func TestStatus(t *testing.T) {
	for _, test := range []struct {
		s    Status
		c    Class
		want string
	}{
		{0, ClassSubn, "ok"},
		{StatusBusy, ClassSubn, "busy"},
		{StatusRedirect, ClassPerf, "redirection required"},
		{StatusBadVersion, ClassSubn, "class version not supported"},
		{StatusBadMethod, ClassSubn, "method not supported"},
		{StatusBadMethodAttribute, ClassSubn, "method/attribute combination not supported"},
		{StatusBadValue, ClassSubn, "invalid attribute value"},
		{StatusBusy | StatusBadValue, ClassSubn, "busy, invalid attribute value"},
		{0x0010, ClassSubn, "reserved code 4"},
		{0x00e0, ClassSubn, "reserved bits 0x00e0"},
		{StatusNoResources, ClassSubnAdm, "no resources"},
		{StatusRequestInvalid, ClassSubnAdm, "request invalid"},
		{StatusNoRecords, ClassSubnAdm, "no records"},
		{StatusTooManyRecords, ClassSubnAdm, "too many records"},
		{StatusInvalidGID, ClassSubnAdm, "invalid gid"},
		{StatusInsufficient, ClassSubnAdm, "insufficient components"},
		{StatusDenied, ClassSubnAdm, "request denied"},
		{StatusPrioritySuggested, ClassSubnAdm, "priority suggested"},
		{0x0900, ClassSubnAdm, "class-specific code 9"},
		{0xff00, ClassSubnAdm, "class-specific code 255"},
		{StatusNoRecords, ClassDevMgt, "class-specific code 3"},
		{StatusNoRecords | StatusBusy, ClassSubnAdm, "busy, no records"},
	} {
		if got := test.s.Text(test.c); got != test.want {
			t.Errorf("%#04x of %v: got %q, want %q", uint16(test.s), test.c, got, test.want)
		}
	}
	if got := StatusNoRecords.String(); got != "no records" {
		t.Errorf("got %q", got)
	}
	for s := range 1 << 16 { // none is without words
		if Status(s).String() == "" {
			t.Errorf("%#04x has no words", s)
		}
	}
}

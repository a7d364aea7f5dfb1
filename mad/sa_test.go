package mad

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sa1Table is the answer to a GetTable of class version 1, written by hand from
// opensm libvendor/osm_vendor_umadt.c ib_sa_mad_t_vM3: two LinkRecords.
const sa1Table = "01 03 01 92 0000 0000 0000000000000009 0020 0000 00000000" + // base header
	"0000000000000000" + "1122334455667788" + // resv2, sm_key
	"00000000 00000010 05 00 0003" + // seg_num, payload_len, frag_flag, edit_mod, window
	"0001 0000 00000000000000ff" + // attr_offset, resv3, comp_mask
	"0007 01 02 0008 0000" + "0008 02 01 0007 0000" // data, from byte 64 on

func sa1MAD(t testing.TB) []byte {
	m, err := hex.DecodeString(strings.ReplaceAll(sa1Table, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return append(m, make([]byte, Size-len(m))...)
}

// TestSA1Header: each field of the old header is where the source has it.
func TestSA1Header(t *testing.T) {
	m := sa1MAD(t)
	var got SA1Header
	got.Decode(m[RMPPOffset:])
	want := SA1Header{
		SMKey: 0x1122334455667788, PayloadLength: 16, FragmentFlag: FragmentFlagFirst | FragmentFlagLast, Window: 3, AttributeOffset: 1, ComponentMask: 0xff,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	h := ParseHeader(m)
	if at := KeyOffset(h); at != 32 {
		t.Errorf("the SM_Key is at %d", at)
	}
	if h.DataOffset() != 64 || h.DataSize() != 192 || AttrNodeRecord.OffsetIn(1) != 64 || AttrNodeRecord.OffsetIn(2) != 56 {
		t.Errorf("data at %d, %d bytes; NodeRecord at %d and %d", h.DataOffset(), h.DataSize(), AttrNodeRecord.OffsetIn(1), AttrNodeRecord.OffsetIn(2))
	}
	put := make([]byte, Size)
	(&Header{Class: ClassSubnAdm, ClassVersion: 1, Method: MethodGetTable, TID: 9, Attribute: 0x20}).Put(put)
	PutSA(put, 0xff, 8)
	const request = "01030112 00000000 0000000000000009 00200000 00000000" + "0000000000000000 0000000000000000" + "00000000 00000008 05000000" + "00000000 00000000000000ff"
	if got := hex.EncodeToString(put[:64]); got != strings.ReplaceAll(request, " ", "") {
		t.Errorf("the request has the header %s", got)
	}
}

// TestSA1Table: what is read of a table of class version 1, whatever its sender
// says of its length.
func TestSA1Table(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(m []byte)
		ok     bool
		bytes  int
		want   string
	}{
		{"whole", func(m []byte) {}, true, 16, "MADHeader@0+24 SA1Header@24+40 LinkRecord@64+8 LinkRecord@72+8"},
		{"the first of several", func(m []byte) { m[48] = 1 }, false, 0, "MADHeader@0+24 SA1Header@24+40" + strings.Join(linkRecords1(24), "")},
		{"the last of several", func(m []byte) { m[48] = 4 }, false, 0, "MADHeader@0+24 SA1Header@24+40"},
		{"an acknowledgement", func(m []byte) { m[48] = 0x25 }, false, 0, "MADHeader@0+24 SA1Header@24+40"},
		{"longer than a MAD", func(m []byte) { m[44] = 0xff }, true, 192, "MADHeader@0+24 SA1Header@24+40" + strings.Join(linkRecords1(24), "")},
		{"records of no length", func(m []byte) { m[53] = 0 }, true, 16, "MADHeader@0+24 SA1Header@24+40"},
		{"active by RMPP, which it is not", func(m []byte) { m[24], m[25], m[26] = 1, 2, 1 }, true, 16, "MADHeader@0+24 SA1Header@24+40 LinkRecord@64+8 LinkRecord@72+8"},
		{"a record", func(m []byte) { m[3] = 0x81 }, true, 16, "MADHeader@0+24 SA1Header@24+40 LinkRecord@64+8"},
	} {
		m := sa1MAD(t)
		tt.change(m)
		table, ok := SA1Table(m)
		if ok != tt.ok || len(table) != tt.bytes {
			t.Errorf("%s: %d bytes, %v", tt.name, len(table), ok)
		}
		if got := outline(m); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
		if IsSegment(m) {
			t.Errorf("%s passes for RMPP", tt.name)
		}
	}
	for n := range sa1MAD(t) {
		SA1Table(sa1MAD(t)[:n])
		Dissect(sa1MAD(t)[:n])
	}
}

func linkRecords1(n int) (list []string) {
	for i := range n {
		list = append(list, " LinkRecord@"+fmt.Sprint(64+8*i)+"+8")
	}
	return list
}

package mad

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// request is a MAD of 256 bytes.
func request(class Class, m Method, a AttributeID, modifier uint32, data []byte) []byte {
	b := make([]byte, Size)
	h := Header{Class: class, ClassVersion: class.Version(), Method: m, Attribute: a, Modifier: modifier}
	h.Put(b)
	copy(b[class.DataOffset():], data)
	return b
}

// directed sends an SMP along a directed route.
func directed(m []byte, route ...uint8) []byte {
	SetRoute(m, route)
	return m
}

// outline is what Dissect makes of m, in a line.
func outline(m []byte) string {
	var list []string
	for _, p := range Dissect(m) {
		list = append(list, fmt.Sprintf("%s@%d+%d", p.Layout.Name, p.Offset, len(p.Data)))
	}
	return strings.Join(list, " ")
}

// linkRecords is the outline of n of them, the last one without its padding.
func linkRecords(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, " LinkRecord@%d+8", SADataOffset+16*i)
	}
	return b.String()
}

func TestDissect(t *testing.T) {
	// table is a GetTable answer with records of LinkRecord, 16 bytes apart.
	table := func(payload, flags byte, segment uint32, length int) []byte {
		m := request(ClassSubnAdm, MethodGetTable|Response, AttrLinkRecord.ID, 0, nil)
		copy(m[RMPPOffset:], []byte{1, byte(RMPPTypeData), 0xf8 | flags})
		binary.BigEndian.PutUint32(m[RMPPOffset+4:], segment)
		m[RMPPOffset+11] = payload
		m[SAAttrOffsetOffset+1] = 2
		return append(m, make([]byte, max(0, length-Size))...)[:length]
	}
	vendor := request(ClassPing, MethodGet, AttrHostPing.ID, 0, nil)
	binary.BigEndian.PutUint32(vendor[VendorOUIOffset-1:], AttrHostPing.OUI)
	stranger := slices.Clone(vendor)
	stranger[VendorOUIOffset]++
	redirected := request(ClassPerf, MethodGetResp, AttrPortCounters.ID, 0, nil)
	redirected[StatusOffset+1] = byte(StatusRedirect)
	trap := request(ClassSubn, MethodTrap, AttrSubnNotice.ID, 0, []byte{0x81, 0, 0, 2, 0, 128})

	for _, tt := range []struct {
		name string
		mad  []byte
		want string
	}{
		{"directed", directed(request(ClassSubn, MethodGet, AttrPortInfo.ID, 1, nil), 0, 1), "DirectedMADHeader@0+24 DirectedSMPHeader@24+40 PortInfo@64+64 DirectedPaths@128+128"},
		{"by LID", request(ClassSubn, MethodGet, AttrNodeInfo.ID, 0, nil),
			"MADHeader@0+24 SMPHeader@24+40 NodeInfo@64+40"},
		{"trap", trap, "MADHeader@0+24 SMPHeader@24+40 Notice@64+64"},
		{"counters", request(ClassPerf, MethodGet, AttrPortCounters.ID, 0, nil), "MADHeader@0+24 PortCounters@64+44"},
		{"redirection", redirected, "MADHeader@0+24 ClassPortInfo@64+72"},
		{"query", request(ClassSubnAdm, MethodGet, AttrNodeRecord.ID, 0, nil),
			"MADHeader@0+24 RMPPHeader@24+12 SAHeader@36+20 NodeRecord@56+108"},
		{"paths asked for", request(ClassSubnAdm, MethodGetMulti, AttrMultiPathRecord.ID, 0, nil),
			"MADHeader@0+24 RMPPHeader@24+12 SAHeader@36+20 MultiPathRecord@56+200"},
		{"table of two", table(20+32, 7, 1, Size), "MADHeader@0+24 RMPPHeader@24+12 SAHeader@36+20 LinkRecord@56+8 LinkRecord@72+8"},
		{"table without records", table(20, 7, 1, Size), "MADHeader@0+24 RMPPHeader@24+12 SAHeader@36+20"},
		{"table put together", table(0, 3, 1, Size+8), "MADHeader@0+24 RMPPHeader@24+12 SAHeader@36+20" + linkRecords(13)},
		{"second segment", table(0, 1, 2, Size), "MADHeader@0+24 RMPPHeader@24+12 SAHeader@36+20"},
		{"acknowledgement", func() []byte {
			m := table(0, 1, 1, Size)
			m[RMPPTypeOffset] = byte(RMPPTypeACK)
			return m
		}(), "MADHeader@0+24 RMPPHeader@24+12 SAHeader@36+20"},
		{"vendor", vendor, "MADHeader@0+24 RMPPHeader@24+12 VendorHeader@36+4 HostPing@40+216"},
		{"another vendor", stranger, "MADHeader@0+24 RMPPHeader@24+12 VendorHeader@36+4"},
		{"congestion control", request(ClassCongestion, MethodGet, AttrCongestionInfo.ID, 0, nil),
			"MADHeader@0+24 CCHeader@24+8 CongestionInfo@64+4"},
		{"cut", table(20+32, 7, 1, Size)[:70], "MADHeader@0+24 RMPPHeader@24+12 SAHeader@36+20 LinkRecord@56+8"},
		{"header alone", table(20+32, 7, 1, Size)[:24], "MADHeader@0+24"},
		{"less", make([]byte, 23), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := outline(tt.mad); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	good := func() []byte { return directed(request(ClassSubn, MethodGet, AttrPortInfo.ID, 1, nil), 0, 1, 3) }
	for _, tt := range []struct {
		name   string
		change func(m []byte) []byte
		want   []string
	}{
		{"all well", func(m []byte) []byte { return m }, nil},
		{"short", func(m []byte) []byte { return m[:128] }, []string{"128 bytes: a MAD has 256"}},
		{"no header", func(m []byte) []byte { return m[:23] }, []string{"too short for the header of a MAD (24 bytes): 23 bytes"}},
		{"long", func(m []byte) []byte { return append(m, 0) }, []string{"257 bytes: a MAD has 256, and this class has no longer ones"}},
		{"base version", func(m []byte) []byte { m[0] = 2; return m }, []string{"BaseVersion is 2, want 1"}},
		{"class", func(m []byte) []byte { m[1] = 0x02; return m }, []string{"MgmtClass 0x02 is reserved"}},
		{"class version", func(m []byte) []byte { m[2] = 3; return m }, []string{"class SubnDirected: unknown version 3; known: 1"}},
		{"attribute", func(m []byte) []byte { m[17] = 0x77; return m }, []string{"AttributeID 0x0077 is unknown in subnet management"}},
		{"vendor's attribute", func(m []byte) []byte { m[16] = 0xff; return m }, nil},
		{"status of a request", func(m []byte) []byte { m[5] = 1; return m }, []string{"Status is 0x0001, want 0 in a request"}},
		{"status", func(m []byte) []byte { m[3], m[4], m[5] = 0x81, 0x80, 0x10; return m }, []string{"Status has the reserved code 4"}},
		{"status bits", func(m []byte) []byte { m[3], m[5] = 0x81, 0x60; return m }, []string{"Status has reserved bits, 0x0060"}},
		{"hops", func(m []byte) []byte { m[7] = 64; return m }, []string{"HopCount is 64, maximum 63"}},
		{"pointer", func(m []byte) []byte { m[6] = 4; return m }, []string{"HopPointer is 4, past the end of the path (HopCount 2)"}},
		{"back where it came from", func(m []byte) []byte { m[6] = 3; return m }, nil},
		{"path", func(m []byte) []byte { m[SMPInitialPathOffset+1] = 0; return m }, []string{"InitialPath has port 0 within its 2 hops"}},
		{"method", func(m []byte) []byte { m[3] = byte(MethodGetTable); return m },
			[]string{"class SubnDirected version 1: unknown method 0x12; known: Get, Set, Send, Trap, Report, TrapRepress"}},
		{"class specific", func(m []byte) []byte { m[1], m[6] = 0x01, 0; clear(m[32:36]); return m }, []string{"ClassSpecific is 0x0002, want 0: only directed-route SMPs use it"}},
		{"reserved of the header", func(m []byte) []byte { m[18] = 0x40; return m }, []string{"DirectedMADHeader has reserved bits set, 0x40 in byte 18"}},
		{"reserved of a Get", func(m []byte) []byte { m[17], m[64+3] = 0x20, 1; m[64+21] = 1; return m }, nil},
		{"reserved of an answer", func(m []byte) []byte {
			m[3], m[4], m[17], m[64+21] = 0x81, 0x80, 0x31, 1 // LedInfo has 4 bytes
			m[64+2] = 3
			return m
		}, []string{"LedInfo has reserved bits set, 0x03 in byte 66"}},
		{"reserved of a refusal", func(m []byte) []byte {
			m[3], m[4], m[5], m[17], m[64+2] = 0x81, 0x80, 0x1c, 0x31, 3
			return m
		}, nil},
		{"reserved method", func(m []byte) []byte { m[3] = 0x82; return m }, []string{"Method 0x82 is reserved, in all classes"}},
		{"reserved method of a vendor", func(m []byte) []byte { m[1], m[3] = 0x0a, 0x08; return m }, []string{"Method 0x08 is reserved, in all classes"}},
		{"method of a vendor", func(m []byte) []byte { m[1], m[3] = 0x0a, 0x90; return m }, nil},
		{"combination", func(m []byte) []byte { m[3], m[17] = byte(MethodSet), byte(AttrNodeInfo.ID); return m },
			[]string{"SubnSet(NodeInfo): not in the specification; methods of NodeInfo: Get"}},
		{"class version of a vendor", func(m []byte) []byte { m[1], m[2] = 0x0a, 0; return m }, []string{"ClassVersion is 0, want 1 or more"}},
		{"any class version of a vendor", func(m []byte) []byte { m[1], m[2] = 0x0a, 7; return m }, nil},
		{"class version of an application", func(m []byte) []byte { m[1], m[2] = 0x10, 2; return m }, []string{"ClassVersion is 2, want 1"}},
		{"ReportResp(NodeInfo)", func(m []byte) []byte {
			m[3], m[4], m[17] = byte(MethodReportResp), 0x80, byte(AttrNodeInfo.ID)
			return m
		},
			[]string{"SubnReportResp(NodeInfo): no request of the attribute has this response"}},
		{"refused ReportResp(NodeInfo)", func(m []byte) []byte {
			m[3], m[4], m[5], m[17] = byte(MethodReportResp), 0x80, 0x0c, byte(AttrNodeInfo.ID)
			return m
		}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Validate(tt.change(good())); !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

// TestValidateNotice: the senders and keys of traps, as in tables 29-7 and 29-12 of Shanley's book.
func TestValidateNotice(t *testing.T) {
	for _, tt := range []struct {
		details string // from IsGeneric on, in hexadecimal digits
		want    []string
	}{
		{"81 000002 0080 0005 0000 0007", nil},
		{"81 000001 0080 0005 0000 0007", []string{"ProducerType is ca, want switch: only switches send trap 128"}},
		{"81 000001 0081 0005 0000 0000 0007 02", nil},
		{"81 000001 0083 0005 0000 0000 0007 02", []string{"ProducerType is ca, want switch: only switches send trap 131"}},
		{"01 001405 0083 0005 0000 0000 0007 02", nil}, // a vendor's
		{"82 000001 0101 0005 0000 0000 0007 0008 00008001", nil},
		{"82 000001 0101 0005 0000 0000 0007 0008 00018001", []string{"KEY is 0x00018001, want 0 in its upper 16 bits: trap 257 has a P_Key"}},
		{"82 000001 0102 0005 0000 0000 0007 0008 00018001", nil}, // a Q_Key
	} {
		data, err := hex.DecodeString(strings.ReplaceAll(tt.details, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range [][]byte{
			request(ClassSubn, MethodTrap, AttrSubnNotice.ID, 0, data),
			request(ClassSubnAdm, MethodReport, AttrSubnNotice.ID, 0, data),
		} {
			if got := Validate(m); !slices.Equal(got, tt.want) {
				t.Errorf("%s: got %q, want %q", tt.details, got, tt.want)
			}
		}
	}
}

// FuzzDissect: parts lie in the MAD, in order, and no bytes make it panic.
func FuzzDissect(f *testing.F) {
	for _, a := range Attributes() {
		f.Add(request(a.Class, MethodGet, a.ID, 0, nil))
		f.Add(request(a.Class, MethodGet|Response, a.ID, 0, nil))
	}
	table, _ := hex.DecodeString("010302920000000000000000000100010020000000000000" + "0101ff000000000100000034" + "00000000000000000002")
	f.Add(append(table, make([]byte, 200)...))
	f.Add(sa1MAD(f))
	f.Fuzz(func(t *testing.T, m []byte) {
		Validate(m)
		SA1Table(m)
		if len(m) >= Size {
			MaskKeys(bytes.Clone(m))
		}
		at := 0
		for _, p := range Dissect(m) {
			if p.Offset < at || len(p.Data) == 0 || len(p.Data) > p.Layout.Size || !bytes.Equal(p.Data, m[p.Offset:p.Offset+len(p.Data)]) {
				t.Fatalf("%s at %d, %d bytes, after %d", p.Layout.Name, p.Offset, len(p.Data), at)
			}
			at = p.Offset + len(p.Data)
		}
	})
}

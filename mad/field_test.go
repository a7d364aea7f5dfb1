package mad

import (
	"bytes"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBits compares reading and writing of bits with big integers, at all
// offsets and lengths.
func TestBits(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for offset := range 100 {
		for n := 1; n <= 64; n++ {
			data := randomBytes(r, (offset+n+7)/8+r.IntN(9))
			whole := new(big.Int).SetBytes(data)
			shift := uint(8*len(data) - offset - n)
			ones := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(n)), big.NewInt(1))
			want := new(big.Int).And(new(big.Int).Rsh(whole, shift), ones)
			if got := getBits(data, offset, n); got != want.Uint64() {
				t.Fatalf("%d bits at %d of %x: got %#x, want %#x", n, offset, data, got, want)
			}
			v := r.Uint64()
			whole.AndNot(whole, new(big.Int).Lsh(ones, shift))
			whole.Or(whole, new(big.Int).Lsh(new(big.Int).And(new(big.Int).SetUint64(v), ones), shift))
			setBits(data, offset, n, v)
			if new(big.Int).SetBytes(data).Cmp(whole) != 0 {
				t.Fatalf("%#x written to %d bits at %d: got %x, want %x", v, n, offset, data, whole)
			}
		}
	}
}

func TestFieldLongerThan64Bits(t *testing.T) {
	data := make([]byte, 64)
	g := MakeGID(0xfe80000000000000, 0x0002c90300001234)
	f := AttrPathRecord.Field("dgid")
	f.SetGID(data, g)
	if f.GID(data) != g {
		t.Errorf("got %v, want %v", f.GID(data), g)
	}
	if f.Uint(data) != uint64(g.GUID()) {
		t.Errorf("the last 64 bits are %#x, want %#x", f.Uint(data), g.GUID())
	}
}

func TestFieldElements(t *testing.T) {
	f := AttrVLArbitrationTable.Field("weight")
	data := make([]byte, 128)
	for i := -1; i <= f.Count; i++ { // those outside are ignored
		f.SetUintAt(data, i, uint64(i)+100)
	}
	if !bytes.Equal(data[64:], make([]byte, 64)) {
		t.Errorf("wrote after the last element: %x", data[64:])
	}
	var got []uint64
	for _, i := range []int{-1, 0, 31, 32} {
		got = append(got, f.UintAt(bytes.Repeat([]byte{0xff}, 128), i), f.UintAt(data, i))
	}
	if d := cmp.Diff([]uint64{0, 0, 0xff, 100, 0xff, 131, 0, 0}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if f := AttrVLArbitrationTable.Field("vl"); f.UintAt(data, 5) != 0 {
		t.Error("wrote between the elements")
	}
}

func TestFieldText(t *testing.T) {
	f := AttrNodeDescription.Field("node_string")
	data := []byte("an older and longer name that must go away whole................")
	f.SetBytes(data, []byte("spine1/ü"))
	if got := f.Text(data); got != "spine1/ü" {
		t.Errorf("got %q", got)
	}
	var d NodeDescription
	d.Decode(data)
	if d.String() != "spine1/ü" {
		t.Errorf("got %q", d.String())
	}
	for _, b := range data[len("spine1/ü"):] {
		if b != 0 {
			t.Fatalf("not padded: %q", data)
		}
	}
}

func TestFieldMax(t *testing.T) {
	got := map[string]uint64{}
	for _, name := range []string{"lmc", "lid", "m_key", "client_reregister", "link_round_trip_latency"} {
		got[name] = AttrPortInfo.Field(name).Max()
	}
	want := map[string]uint64{"lmc": 7, "lid": 0xffff, "m_key": 1<<64 - 1, "client_reregister": 1, "link_round_trip_latency": 0xffffff}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("largest values (-want +got):\n%s", d)
	}
}

func TestFieldMask(t *testing.T) {
	for _, test := range []struct {
		f    *Field
		want uint64
	}{
		{AttrNodeRecord.Field("node_guid"), 1 << 7},
		{AttrPathRecord.Field("service_id"), 3},
		{AttrGUIDInfo.Field("guid_block"), 0xff},
		{AttrPortInfoRecord.Field("link_speed_ext_active2"), 0},
		{AttrNodeRecord.Field("node_info"), 0xfff << 2},
	} {
		if got := test.f.Mask(); got != test.want {
			t.Errorf("%s: got %#x, want %#x", test.f.Name, got, test.want)
		}
	}
}

func TestWords(t *testing.T) {
	got := []any{
		PortStateActive.String(), PortPhysicalStateLinkUp.String(), PortState(9).String(), NodeTypeCA.String(),
		MTU2048.String(), VLs0To7.String(), VLs(0).String(), OperationalVLs(0).String(), Rate2_5.String(), SMStateNotActive.String(),
		(LinkWidth1x | LinkWidth4x).String(), (LinkWidth1x | LinkWidth4x).Words(), LinkWidth(0).Words(),
		LinkWidthSupported.Words(), LinkSpeedExtDisabled.Words(), LinkWidth(0x41).Words(), LinkSpeedExtended.Words(),
		WordsLinkSpeed.Text(0), WordsLinkSpeed.Text(uint64(LinkSpeedQDR)),
		AttrPortInfo.Field("link_width_active").Words.Text(255), AttrPortInfo.Field("link_width_active").Words.Text(2),
		AttrPortInfo.Field("link_speed_ext_active").Words.Text(30), AttrPortInfo.Field("link_width_supported").Words.Split(255),
		AttrPortInfo.Field("link_width_enabled").Words.Split(255), Rate(25).String(),
		WordsPortState.Code()["armed"], WordsCapabilityMask.Code()["is_sm"],
	}
	want := []any{
		"active", "link_up", "unknown(9)", "ca",
		"2048", "vl0_7", "unknown(0)", "no_change", "2.5", "not_active",
		"1x,4x", []string{"1x", "4x"}, []string{},
		[]string{"supported"}, []string{"disabled"}, []string{"1x", "unknown(64)"}, []string{},
		"extended", "qdr",
		"unknown(255)", "4x",
		"unknown(30)", []string{"1x", "4x", "8x", "12x", "2x", "unknown(32)", "unknown(64)", "unknown(128)"},
		[]string{"supported"}, "1600",
		uint64(3), uint64(2),
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("words (-want +got):\n%s", d)
	}
}

func TestNumbersDoNotAllocate(t *testing.T) {
	data := make([]byte, 64)
	f := AttrPortInfo.Field("lmc")
	if n := testing.AllocsPerRun(100, func() { f.SetUint(data, f.Uint(data)+1) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestCounters compares the bits of counters with libibmad's masks (mad.h,
// GS_PERF_*_MASK) and, where it has none, the order of its fields.
func TestCounters(t *testing.T) {
	for _, test := range []struct {
		attr *Attribute
		want string
	}{
		{AttrPortCounters, `counter_select: 0 symbol_error_counter, 1 link_error_recovery_counter, 2 link_downed_counter, 3 port_rcv_errors,
			4 port_rcv_remote_physical_errors, 5 port_rcv_switch_relay_errors, 6 port_xmit_discards, 7 port_xmit_constraint_errors,
			8 port_rcv_constraint_errors, 9 local_link_integrity_errors, 10 excessive_buffer_overrun_errors, 11 vl15_dropped,
			12 port_xmit_data, 13 port_rcv_data, 14 port_xmit_pkts, 15 port_rcv_pkts
			counter_select2: 0 port_xmit_wait, 1 qp1_dropped`},
		{AttrPortCountersExtended, `counter_select: 0 port_xmit_data, 1 port_rcv_data, 2 port_xmit_pkts, 3 port_rcv_pkts,
			4 port_unicast_xmit_pkts, 5 port_unicast_rcv_pkts, 6 port_multicast_xmit_pkts, 7 port_multicast_rcv_pkts
			counter_select2: 0 symbol_error_counter, 1 link_error_recovery_counter, 2 link_downed_counter, 3 port_rcv_errors,
			4 port_rcv_remote_physical_errors, 5 port_rcv_switch_relay_errors, 6 port_xmit_discards, 7 port_xmit_constraint_errors,
			8 port_rcv_constraint_errors, 9 local_link_integrity_errors, 10 excessive_buffer_overrun_errors, 11 vl15_dropped,
			12 port_xmit_wait, 13 qp1_dropped`},
		{AttrPortXmitDiscardDetails, `counter_select: 0 port_inactive_discards, 1 port_neighbor_mtu_discards,
			2 port_sw_lifetime_limit_discards, 3 port_sw_hoq_lifetime_limit_discards`},
		{AttrPortXmitDataSL, "counter_select: 0-15 port_xmit_data_sl"},
		{AttrPortExtendedSpeedsCounters.WithVariant("lanes"), `counter_select: 0 sync_header_error_counter, 1 unknown_block_counter,
			2-13 error_detection_counter_lane, 14-25 fec_correctable_block_ctr_lane, 26-37 fec_uncorrectable_block_ctr_lane`},
		{AttrPortSamplesControl, ""},
		{AttrPerfClassPortInfo, ""},
		{AttrPortInfo, ""},
	} {
		lists := map[string][]string{}
		for _, c := range test.attr.Counters() {
			bits := fmt.Sprint(c.Bit)
			if c.Count > 1 {
				bits += fmt.Sprintf("-%d", c.Bit+c.Count-1)
			}
			if want := (uint64(1)<<c.Count - 1) << c.Bit; c.Mask() != want {
				t.Errorf("%s.%s: mask %#x, want %#x", test.attr.Name, c.Name, c.Mask(), want)
			}
			lists[c.Select.Script] = append(lists[c.Select.Script], bits+" "+c.Script)
		}
		// QP1Dropped stands before PortXmitWait, but its bit is the second.
		if l := lists["counter_select2"]; len(l) > 0 && strings.HasPrefix(l[0], "1 ") {
			l[0], l[1] = l[1], l[0]
		}
		want := map[string][]string{}
		for line := range strings.Lines(strings.ReplaceAll(test.want, ",\n", ",")) {
			name, list, _ := strings.Cut(strings.TrimSpace(line), ": ")
			for word := range strings.SplitSeq(list, ",") {
				want[name] = append(want[name], strings.TrimSpace(word))
			}
		}
		if diff := cmp.Diff(want, lists); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.attr.Name, diff)
		}
	}
}

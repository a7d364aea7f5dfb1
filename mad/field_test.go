package mad

import (
	"bytes"
	"math/big"
	"math/rand/v2"
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
		WordsPortState.Code["armed"], WordsCapabilityMask.Code["is_sm"],
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

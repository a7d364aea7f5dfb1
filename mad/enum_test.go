package mad

import (
	"testing"
)

func TestActiveSpeed(t *testing.T) {
	for _, test := range []struct {
		p    PortInfo
		want string
		gbps float64
	}{
		{PortInfo{LinkSpeedActive: LinkSpeedSDR}, "sdr", 2.5},
		{PortInfo{LinkSpeedActive: LinkSpeedDDR}, "ddr", 5},
		{PortInfo{LinkSpeedActive: LinkSpeedQDR}, "qdr", 10},
		{PortInfo{LinkSpeedActive: LinkSpeedQDR, LinkSpeedExtActive: LinkSpeedExtFDR}, "fdr", 14.0625},
		{PortInfo{LinkSpeedActive: LinkSpeedQDR, LinkSpeedExtActive: LinkSpeedExtEDR}, "edr", 25.78125},
		{PortInfo{LinkSpeedExtActive: LinkSpeedExtHDR}, "hdr", 53.125},
		{PortInfo{LinkSpeedExtActive: LinkSpeedExtNDR}, "ndr", 106.25},
		{PortInfo{LinkSpeedExtActive: LinkSpeedExtNDR, LinkSpeedExtActive2: LinkSpeedExt2XDR}, "xdr", 212.5},
		{PortInfo{LinkSpeedActive: LinkSpeedSDR, LinkSpeedExtActive: LinkSpeedExtDisabled}, "", 0},
		{PortInfo{LinkSpeedActive: LinkSpeedSDR, LinkSpeedExtActive2: 2}, "", 0},
		{PortInfo{LinkSpeedActive: LinkSpeedSupported}, "", 0},
		{PortInfo{}, "", 0},
	} {
		got := ActiveSpeed(&test.p)
		if got != test.want || SpeedGbps(got) != test.gbps {
			t.Errorf("speeds %d, %d, %d: got %q %v, want %q %v", test.p.LinkSpeedActive, test.p.LinkSpeedExtActive,
				test.p.LinkSpeedExtActive2, got, SpeedGbps(got), test.want, test.gbps)
		}
	}
	if got := SpeedGbps("fdr10"); got != 10.3125 {
		t.Errorf("FDR10: got %v", got)
	}
	for bits, want := range map[uint8]bool{0: false, 1: true, 2: false, 3: true} {
		if m := (&ExtendedPortInfo{LinkSpeedActive: bits}); m.IsFDR10() != want {
			t.Errorf("FDR10 of %d: got %v", bits, !want)
		}
	}
}

func TestActiveWidth(t *testing.T) {
	for w, want := range map[LinkWidth]struct {
		word  string
		lanes int
	}{
		LinkWidth1x: {"1x", 1}, LinkWidth2x: {"2x", 2}, LinkWidth4x: {"4x", 4}, LinkWidth8x: {"8x", 8}, LinkWidth12x: {"12x", 12},
		0: {}, 3: {}, LinkWidthSupported: {},
	} {
		got := ActiveWidth(&PortInfo{LinkWidthActive: w})
		if got != want.word || WidthLanes(got) != want.lanes {
			t.Errorf("%d: got %q, %d lanes, want %q, %d", w, got, WidthLanes(got), want.word, want.lanes)
		}
	}
}

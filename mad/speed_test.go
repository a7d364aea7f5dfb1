package mad

import "testing"

func TestActiveSpeed(t *testing.T) {
	for _, test := range []struct {
		p    PortInfo
		mlnx uint8
		want string
		gbps float64
	}{
		{PortInfo{LinkSpeedActive: LinkSpeedSDR}, 0, "SDR", 2.5},
		{PortInfo{LinkSpeedActive: LinkSpeedDDR}, 0, "DDR", 5},
		{PortInfo{LinkSpeedActive: LinkSpeedQDR}, 0, "QDR", 10},
		{PortInfo{LinkSpeedActive: LinkSpeedQDR}, 1, "FDR10", 10.3125},
		{PortInfo{LinkSpeedActive: LinkSpeedDDR}, 1, "DDR", 5},
		{PortInfo{LinkSpeedActive: LinkSpeedQDR, LinkSpeedExtActive: LinkSpeedExtFDR}, 1, "FDR", 14.0625},
		{PortInfo{LinkSpeedActive: LinkSpeedQDR, LinkSpeedExtActive: LinkSpeedExtEDR}, 0, "EDR", 25.78125},
		{PortInfo{LinkSpeedExtActive: LinkSpeedExtHDR}, 0, "HDR", 53.125},
		{PortInfo{LinkSpeedExtActive: LinkSpeedExtNDR}, 0, "NDR", 106.25},
		{PortInfo{LinkSpeedExtActive: LinkSpeedExtNDR, LinkSpeedExtActive2: LinkSpeedExt2XDR}, 0, "XDR", 212.5},
		{PortInfo{LinkSpeedActive: LinkSpeedSDR, LinkSpeedExtActive: LinkSpeedExtDisabled}, 0, "", 0},
		{PortInfo{LinkSpeedActive: LinkSpeedSDR, LinkSpeedExtActive2: 2}, 0, "", 0},
		{PortInfo{LinkSpeedActive: LinkSpeedSupported}, 0, "", 0},
		{PortInfo{}, 1, "", 0},
	} {
		m := MlnxExtPortInfo{LinkSpeedActive: test.mlnx}
		got := m.ActiveSpeed(&test.p)
		if got != test.want || SpeedGbps(got) != test.gbps {
			t.Errorf("speeds %d, %d, %d: got %q %v, want %q %v", test.p.LinkSpeedActive, test.p.LinkSpeedExtActive,
				test.p.LinkSpeedExtActive2, got, SpeedGbps(got), test.want, test.gbps)
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

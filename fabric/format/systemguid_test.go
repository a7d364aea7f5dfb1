package format_test

import (
	"strings"
	"testing"

	"fabsh/fabric/format"
	"fabsh/mad"
)

// TestSystemGUID: of switchguid=0xSYSTEM(NODE), as ibdiagnet writes it for the chips of a
// director, the node has the GUID in parentheses. ibnetdiscover's switchguid=0xNODE(PORT) stays.
func TestSystemGUID(t *testing.T) {
	const file = `vendid=0x2c9
devid=0xd2f0
switchguid=0xb8cef60300734fa4(b8cef60300734f01)
Switch	41 "S-b8cef60300734f01"		# "MF0;director:MCS8500/L01/U1" enhanced port 0 lid 1 lmc 0
[1]	"S-b8cef60300734f02"[1]		# "MF0;director:MCS8500/L02/U1" lid 2 4xHDR

vendid=0x2c9
devid=0xd2f0
sysimgguid=0xb8cef60300734fa0
switchguid=0xb8cef60300734fa4(b8cef60300734f02)
Switch	41 "S-b8cef60300734f02"		# "MF0;director:MCS8500/L02/U1" enhanced port 0 lid 2 lmc 0
[1]	"S-b8cef60300734f01"[1]		# "MF0;director:MCS8500/L01/U1" lid 1 4xHDR
[2]	"S-0000000000000003"[2]		# "plain" lid 3 4xHDR

switchguid=0x3(4)
Switch	36 "S-0000000000000003"		# "plain" enhanced port 0 lid 3 lmc 0
[2]	"S-b8cef60300734f02"[2]		# "MF0;director:MCS8500/L02/U1" lid 2 4xHDR
`
	f, err := format.Load(strings.NewReader(file), "file", nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []mad.GUID
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		got = append(got, n.GUID(), n.Port(0).GUID(), n.Info().SystemImageGUID)
	}
	want := []mad.GUID{
		3, 4, 0,
		0xb8cef60300734f01, 0xb8cef60300734f01, 0xb8cef60300734fa4,
		0xb8cef60300734f02, 0xb8cef60300734f02, 0xb8cef60300734fa0,
	}
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			t.Fatalf("got  %v\nwant %v", got, want)
		}
	}
}

package format

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad"
)

// The second is the example of torus-2QoS.conf(5).
var torusConfigs = []struct {
	text string
	want TorusConfig
	err  string
}{
	{text: "mesh 3T 4 0x5\nxp_link 1 2\n", want: TorusConfig{Size: [3]int{3, 4, 5}, Mesh: [3]bool{false, true, true},
		Seeds: []TorusSeed{{From: 1, To: [3][2]mad.GUID{{0, 2}}, Line: 2}}}},
	{text: `# Look for a 2D (since x radix is one) 4x5 torus.
torus 1 4 5

# y is radix-4 torus dimension, need both
yp_link 0x200000 0x200005  # sw @ y=0,z=0 -> sw @ y=1,z=0
ym_link 0x200000 0x20000f  # sw @ y=0,z=0 -> sw @ y=3,z=0
zp_link 0x200000 0x200001  # sw @ y=0,z=0 -> sw @ y=0,z=1

next_seed

yp_link 0x20000b 0x200010  # sw @ y=2,z=1 -> sw @ y=3,z=1
ym_link 0x20000b 0x200006  # sw @ y=2,z=1 -> sw @ y=1,z=1
zp_link 0x20000b 0x20000c  # sw @ y=2,z=1 -> sw @ y=2,z=2

y_dateline -2  # Move the dateline for this seed
z_dateline -1  # back to its original position.
port_order 7 10 8 11 9 12 25 28 26 29 27 30
portgroup_max_ports 20
`, want: TorusConfig{Size: [3]int{1, 4, 5}, Mesh: [3]bool{true, false, false}, Seeds: []TorusSeed{
		{From: 0x200000, To: [3][2]mad.GUID{{}, {0x20000f, 0x200005}, {0, 0x200001}}, Line: 5},
		{From: 0x20000b, To: [3][2]mad.GUID{{}, {0x200006, 0x200010}, {0, 0x20000c}}, Dateline: [3]int{0, -2, -1}, Line: 11},
	}}},
	{text: "\tmesh 2 2t 3\r\nnext_seed\nnext_seed\nzm_link 010 0xA extra\r\n", want: TorusConfig{Size: [3]int{2, 2, 3}, Mesh: [3]bool{true, true, true},
		Seeds: []TorusSeed{{From: 8, To: [3][2]mad.GUID{{}, {}, {10, 0}}, Line: 4}}}},
	{text: "# nothing\n", err: "x: expected torus or mesh, and three sizes; the file has neither"},
	{text: "torus 4 5 1\n", err: "x: expected links such as xp_link, and two GUIDs of switches; the file has none"},
	{text: "xp_link 1 2\n", err: "x:1: expected torus or mesh, and three sizes, first and once"},
	{text: "torus 4 5 1\nmesh 4 5 1\n", err: "x:2: expected torus or mesh, and three sizes, first and once"},
	{text: "torus 4 5\n", err: `x:1: expected three sizes, as in torus 4 5 1 or mesh 3t 4 5, not "torus 4 5"`},
	{text: "torus 4 5x 1\n", err: `x:1: expected three sizes, as in torus 4 5 1 or mesh 3t 4 5, not "torus 4 5x 1"`},
	{text: "torus 4 -5 1\n", err: `x:1: expected three sizes, as in torus 4 5 1 or mesh 3t 4 5, not "torus 4 -5 1"`},
	{text: "torus 0 5 1\n", err: `x:1: expected three sizes, as in torus 4 5 1 or mesh 3t 4 5, not "torus 0 5 1"`},
	{text: "torus 1 1 1\n", err: `x:1: expected a size above 1, not "torus 1 1 1"`},
	{text: "torus 4000 4000 4000\n", err: fmt.Sprintf("x:1: expected at most %d switches", maxTotalPorts)},
	{text: "torus 4 5 1\nxp_links 1 2\n", err: "x:2: expected one of " + strings.Join(torusWords, ", ") + `, not "xp_links"`},
	{text: "torus 4 5 1\nxp_link 1\n", err: `x:2: expected two GUIDs of switches: "xp_link 1"`},
	{text: "torus 4 5 1\nxp_link 1 g\n", err: `x:2: expected two GUIDs of switches: "xp_link 1 g"`},
	{text: "torus 4 5 1\nxp_link 1 2\nyp_link 2 3\n", err: "x:3: expected a link from 0x0000000000000001, as those before of this seed, not from 0x0000000000000002"},
	{text: "torus 4 5 1\nx_dateline 4\n", err: "x:2: expected a number from -3 to 3 after x_dateline"},
	{text: "torus 4 5 1\nx_dateline\n", err: "x:2: expected a number from -3 to 3 after x_dateline"},
	{text: "torus 4 5 1\n" + strings.Repeat("xp_link 1 2\nnext_seed\n", 257), err: "x:515: expected at most 256 seeds"},
}

func TestReadTorusConfig(t *testing.T) {
	for _, x := range torusConfigs {
		c, err := ReadTorusConfig(strings.NewReader(x.text), "x")
		if got := fmt.Sprint(err); x.err != "" && got != x.err || x.err == "" && err != nil {
			t.Errorf("%.200q: error %v\nwant %s", x.text, err, x.err)
		}
		if x.err == "" && err == nil {
			if d := cmp.Diff(x.want, *c); d != "" {
				t.Errorf("%.200q (-want +got):\n%s", x.text, d)
			}
		}
	}
}

func FuzzReadTorusConfig(f *testing.F) {
	for _, x := range torusConfigs[:len(torusConfigs)-1] {
		f.Add(x.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ReadTorusConfig(strings.NewReader(text), "x")
		if err != nil {
			if !strings.HasPrefix(err.Error(), "x:") {
				t.Error(err)
			}
			return
		}
		for d, n := range c.Size {
			for _, s := range c.Seeds {
				if n < 1 || s.From == 0 || max(s.Dateline[d], -s.Dateline[d]) >= n {
					t.Errorf("%+v", c)
				}
			}
		}
	})
}

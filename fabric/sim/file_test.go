package sim

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/format"
	"fabsh/fabric/sim/agent"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// TestSpecFile: a file may be followed by keys, and may have colons in its name.
func TestSpecFile(t *testing.T) {
	const net = `
vendid=0x2c9
devid=0xd2f0
sysimgguid=0x2c90300100000
switchguid=0x2c90300100000(2c90300100000)
Switch	4 "S-0002c90300100000"		# "leaf 1: left" base port 0 lid 12 lmc 0
[1]	"H-0002c90310000000"[1](2c90310000001) 		# "node 1 HCA-1" lid 5 4xEDR
[2]	"H-0002c90310000010"[1](2c90310000011) 		# "node 2 HCA-1" lid 5 4xHDR

vendid=0x2c9
devid=0x101b
sysimgguid=0x2c90310000000
caguid=0x2c90310000000
Ca	1 "H-0002c90310000000"		# "node 1 HCA-1"
[1](2c90310000001) 	"S-0002c90300100000"[1]		# lid 5 lmc 0 "leaf 1: left" lid 12 4xEDR

vendid=0x2c9
devid=0x101b
sysimgguid=0x2c90310000010
caguid=0x2c90310000010
Ca	1 "H-0002c90310000010"		# "node 2 HCA-1"
[1](2c90310000011) 	"S-0002c90300100000"[2]		# lid 5 lmc 0 "leaf 1: left" lid 12 4xHDR
`
	dir := t.TempDir()
	for _, name := range []string{"net", "net:1"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(net), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, keys := range []string{"", ":loss=0.5", ":"} {
			f, o, err := Parse(path + keys)
			if err != nil {
				t.Fatal(err)
			}
			if got := f.String(); !strings.HasPrefix(got, "fabric: 3 nodes (1 switch, 2 CAs), 2 links") || o.Loss != 0 != (keys == ":loss=0.5") {
				t.Errorf("%s%s: %s, %v", name, keys, got, o.Loss)
			}
			// LID 5, which two claim, is left to the first.
			s := New(f, Options{})
			got := map[string]mad.LID{}
			for i := range s.state.Nodes {
				p := s.state.Nodes[i].EndPorts()[0]
				got[mad.AttrNodeDescription.Field("node_string").Text(s.state.Nodes[i].Description[:])+" "+agent.RateCode(p.ManagedPorts()[len(p.ManagedPorts())-1].Rate).String()] = p.LID
			}
			want := map[string]mad.LID{"leaf 1: left 10": 12, "node 1 HCA-1 100": 5, "node 2 HCA-1 200": 1}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		}
	}
	if _, _, err := Parse(filepath.Join(dir, "net:kk=1")); err == nil || !strings.Contains(err.Error(), `unknown key "kk"`) {
		t.Error(err)
	}
}

// TestDumpAndLoad: what is discovered, written and loaded again is simulated
// again, and looks the same.
func TestDumpAndLoad(t *testing.T) {
	for _, spec := range testTopologies {
		if spec == "ring:n=2,hosts=0" {
			continue
		}
		t.Run(spec, func(t *testing.T) {
			dump := func(r *rig) []byte {
				var b bytes.Buffer
				if err := format.Dump(&b, r.discover(engine.Options{}), "ibnetdiscover"); err != nil {
					t.Fatal(err)
				}
				return b.Bytes()
			}
			r := newRig(t, spec)
			want := dump(r)
			path := filepath.Join(t.TempDir(), "net")
			if err := os.WriteFile(path, want, 0o600); err != nil {
				t.Fatal(err)
			}
			again := newRig(t, path)
			if diff := cmp.Diff(string(want), string(dump(again))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

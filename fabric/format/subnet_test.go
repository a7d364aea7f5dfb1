package format_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/mad"
)

func TestSubnet(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"one end, one state, no speed", lstCA + " " + lstSW + " PHY=2x LOG=ARM\n", `fabric: 2 nodes (1 switch, 1 CA), 1 link; the file does not state that it is whole
switch "" 0x0000000000000010 device cf08 revision a1 LID 2 SM 1
  3 - host 1/1 2x armed link_up
CA "host 1" 0x00000000000000a0 device 1013 revision a1 LID 1 SM 1
  1 - 0x0000000000000010/3 2x armed link_up guid 0x00000000000000a1
`},
		{"both ends, of which one knows the speed; no name; device 3", strings.ReplaceAll(lstSW, "{} ", "") + " " + strings.ReplaceAll(lstCA, "DevID:1013", "DevID:30000") + " PHY=4x LOG=ACT SPD=200\n" +
			strings.ReplaceAll(lstCA, "DevID:1013", "DevID:0003") + " " + lstSW + " PHY=4x LOG=DWN SPD=??\n", `fabric: 2 nodes (1 switch, 1 CA), 1 link; the file does not state that it is whole
switch "" 0x0000000000000010 device cf08 revision a1 LID 2 SM 1
  3 - host 1/1 4xxdr active link_up
CA "host 1" 0x00000000000000a0 device 3 revision a1 LID 1 SM 1
  1 - 0x0000000000000010/3 4x down no_change guid 0x00000000000000a1
`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f, err := format.Load(strings.NewReader(test.in), "x", nil)
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			fmt.Fprintf(&b, "%v\n", f)
			for i := range f.Nodes() {
				n := &f.Nodes()[i]
				word := "CA"
				if n.IsSwitch() {
					word = "switch"
				}
				var sm mad.LID
				for j := range f.Ports() {
					if p := &f.Ports()[j]; p.Node() == n && p.Info() != nil && p.Info().MasterSMLID != 0 {
						sm = p.Info().MasterSMLID
					}
				}
				fmt.Fprintf(&b, "%s %q %v device %x revision %x LID %d SM %d\n", word, n.Name(), n.GUID(), n.Info().DeviceID, n.Info().Revision, n.LID(), sm)
				for p := range n.Ports() {
					if q := p.Peer(); q != nil {
						fmt.Fprintf(&b, "  %d - %s %s%s %v %v", p.Num(), q.Name(), p.Width(), p.Speed(), p.State(), p.PhysicalState())
						if !n.IsSwitch() {
							fmt.Fprintf(&b, " guid %v", p.GUID())
						}
						fmt.Fprintf(&b, "\n")
					}
				}
			}
			if d := cmp.Diff(test.want, b.String()); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestSubnetErrors(t *testing.T) {
	const nodes = `x:1: expected { SW, CA or Rt, Ports:, SystemGUID:, NodeGUID:, PortGUID:, VenID:, DevID:, Rev:, {name}, LID:, PN: and }: `
	const tail = `x:1: expected PHY=, LOG= and SPD= with a width, a state and a speed after the two nodes, as in PHY=4x LOG=ACT SPD=25: `
	for in, want := range map[string]string{
		"{ SW Ports:08 SystemGUID:10\n":                                    nodes + `"{ SW Ports:08 SystemGUID:10"`,
		strings.Replace(lstCA, "Ports:01", "Ports:XX", 1) + "\n":           nodes + `"{ CA-SM Ports:XX SystemGUID:a0 NodeGUID:a0 PortGUID:a1 VenID..."`,
		strings.Replace(lstCA, "VenID:0002C9", "VenID:12345678", 1) + "\n": nodes + `"{ CA-SM Ports:01 SystemGUID:a0 NodeGUID:a0 PortGUID:a1 VenID..."`,
		lstCA + "\n":                                             nodes + `""`,
		lstCA + " " + lstSW + "\n":                               tail + `""`,
		lstCA + " " + lstSW + " PHY=5x\n":                        tail + `" PHY=5x"`,
		lstCA + " " + lstSW + " SPD=10\n":                        tail + `" SPD=10"`,
		strings.Replace(lstCA, "} LID:", " LID:", 1) + "\n":      `x:1: expected a node's name in braces, and LID: after it: "{host 1 LID:0001 PN:01 }"`,
		strings.Replace(lstCA, "PN:01", "PN:02", 1) + "\n":       `x:1: expected 1 to 254 ports, a LID up to BFFF and PN: one of the ports: "{ CA-SM Ports:01 SystemGUID:a0 NodeGUID:a0 PortGUID:a1 VenID..."`,
		strings.Replace(lstCA, "LID:0001", "LID:C000", 1) + "\n": `x:1: expected 1 to 254 ports, a LID up to BFFF and PN: one of the ports: "{ CA-SM Ports:01 SystemGUID:a0 NodeGUID:a0 PortGUID:a1 VenID..."`,
		lstCA + " " + lstSW + " PHY=4x\n" + lstCA + " " + strings.Replace(lstSW, "Ports:08", "Ports:09", 1) + " PHY=4x\n": `x:2: expected 8 ports of 0x0000000000000010, as in x:1, not 9`,
		lstCA + " " + lstSW + " PHY=4x\n" + lstCA + " " + strings.Replace(lstSW, "LID:0002", "LID:0003", 1) + " PHY=4x\n": `x:2: expected LID 0002 of switch 0x0000000000000010, as in x:1, not 0003`,
		lstCA + " " + lstSW + " PHY=4x\n" + lstCA + " " + strings.Replace(lstSW, "PN:03", "PN:04", 1) + " PHY=4x\n":       `x:2: expected port 1 of 0x00000000000000a0 to be connected to port 3 of 0000000000000010, as in x:1, not to port 4 of 0000000000000010`,
	} {
		_, err := format.Load(strings.NewReader(in), "x", nil)
		if err == nil {
			t.Errorf("%q: no error", in)
		} else if d := cmp.Diff(want, err.Error()); d != "" {
			t.Errorf("%q (-want +got):\n%s", in, d)
		}
	}
}

// TestSubnetSpeed: OpenSM asks the other end whether it has speeds above QDR.
func TestSubnetSpeed(t *testing.T) {
	b := fabric.NewBuilder()
	for i := range 2 {
		caps := mad.CapabilityMask(0)
		if i == 1 {
			caps = mad.CapabilityMaskIsExtendedSpeedsSupported
		}
		n := b.AddNode(fabric.NodeSpec{Info: mad.NodeInfo{NodeType: mad.NodeTypeCA, NumPorts: 1, NodeGUID: mad.GUID(i + 1)}})
		b.SetPort(n, 1, &mad.PortInfo{CapabilityMask: caps, LinkSpeedActive: mad.LinkSpeedQDR, LinkSpeedExtActive: mad.LinkSpeedExtHDR, LinkWidthActive: mad.LinkWidth4x, PortState: mad.PortStateInitialize})
	}
	if err := b.Link(0, 1, 1, 1); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := format.Dump(&out, b.Build(), "opensm-subnet"); err != nil {
		t.Fatal(err)
	}
	end := func(guid, vendor, device string) string {
		return "{ CA Ports:01 SystemGUID:0000000000000000 NodeGUID:000000000000000" + guid + " PortGUID:0000000000000000 VenID:" + vendor + " DevID:" + device + " Rev:00000000 {} LID:0000 PN:01 } "
	}
	want := end("1", "000000", "0000") + end("2", "00000000", "0000") + "PHY=4x LOG=INI SPD=50\n" +
		end("2", "000000", "0000") + end("1", "00000000", "0000") + "PHY=4x LOG=INI SPD=10\n"
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

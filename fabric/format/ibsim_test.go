package format

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
)

// describe is all that files say of f.
func describe(f *fabric.Fabric) string {
	var b strings.Builder
	fmt.Fprintln(&b, f)
	if p := f.From(); p != nil {
		fmt.Fprintln(&b, "from", p.Name())
	}
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		x := n.Info()
		fmt.Fprintf(&b, "%s %q guid %x image %x vendor %x device %x ports %d", n.Type(), n.Name(), uint64(n.GUID()), uint64(x.SystemImageGUID), x.VendorID, x.DeviceID, n.NumPorts())
		if n.IsSwitch() {
			fmt.Fprintf(&b, " port guid %x lid %d lmc %d", uint64(x.PortGUID), n.LID(), n.Port(0).LMC())
			if s := n.SwitchInfo(); s != nil {
				fmt.Fprintf(&b, " enhanced %t", s.EnhancedPort0)
			}
		}
		fmt.Fprintln(&b)
		for p := range n.Ports() {
			if q := p.Peer(); q != nil {
				fmt.Fprintf(&b, "  %d - %d %s %s%s", p.Num(), q.Node().ID(), q.Name(), p.Width(), p.Speed())
				if !n.IsSwitch() {
					fmt.Fprintf(&b, " guid %x lid %d lmc %d", uint64(p.GUID()), p.LID(), p.LMC())
				}
				fmt.Fprintln(&b)
			}
		}
	}
	for _, p := range f.Problems() {
		fmt.Fprintf(&b, "%s: %s\n", p.Kind, p.Text)
	}
	return b.String()
}

const ibsimNet = `# a net file of ibsim
width=3
vendid=0x2c9
devid=0x5a30
sysimgguid=0x0002c90000000100
switchguid=0x0002c90000000200
Switch	4 "leaf"	# "the "leaf" enhanced port 0" enhanced port 0 lid 0 lmc 0
[1]	"host"[1]	w=1 s=3
[2]	"gw"
[4]	"rack@up"

caguids=0x10
Hca 2 "host" # a host
[1] "leaf" s=7
switchguid+0x10
devid=0x1234
do Dump
module "rack"
Switch 3 "spine"
[1]	"pair#a"[1] # "twin a" lid 0 4xHDR
@[3] "up"
speed=4
module = "pair"
Ca 1 "a"
[1] "rack#spine"[1]  # lid 0 lmc 0 "spine" lid 0 4xEDR
module ""
rtguid=0x9000
include "more/router"
`

const routerNet = `Rt 1 "gw" # a router
[1] "leaf"[2]
`

func opener(fsys fs.FS) Opener {
	return func(name string) (io.ReadCloser, error) { return fsys.Open(name) }
}

func TestLoadIbsim(t *testing.T) {
	fsys := fstest.MapFS{"nets/more/router": {Data: []byte(routerNet)}}
	f, err := Load(strings.NewReader(ibsimNet), "nets/net", opener(fsys))
	if err != nil {
		t.Fatal(err)
	}
	want := `fabric: 5 nodes (2 switches, 2 CAs, 1 router), 4 links; the file does not state that it is whole
switch "the \"leaf\" enhanced port 0" guid 2c90000000200 image 2c90000000100 vendor 2c9 device 5a30 ports 4 port guid 2c90000000200 lid 1 lmc 0 enhanced true
  1 - 2 a host/1 1xddr
  2 - 4 a router/1 4x
  4 - 1 rack#spine/3 4xsdr
switch "rack#spine" guid 2c90000000210 image 2c90000000210 vendor 0 device 1234 ports 3 port guid 2c90000000210 lid 3 lmc 0
  1 - 3 pair#a/1 4xhdr
  3 - 0 the "leaf" enhanced port 0/4 4xsdr
ca "a host" guid 10 image 10 vendor 0 device 5a30 ports 2
  1 - 0 the "leaf" enhanced port 0/1 1xddr guid 11 lid 2 lmc 0
ca "pair#a" guid 13 image 13 vendor 0 device 1234 ports 1
  1 - 1 rack#spine/1 4xedr guid 14 lid 4 lmc 0
router "a router" guid 9000 image 9000 vendor 0 device 1234 ports 1
  1 - 0 the "leaf" enhanced port 0/2 4x guid 9001 lid 5 lmc 0
lids were assigned: nets/net has no LIDs; they were assigned in its order, from 1 to 5
`
	if d := cmp.Diff(want, describe(f)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestLoadPortGUIDs: port GUIDs as vendors assign them, given at either end.
func TestLoadPortGUIDs(t *testing.T) {
	const in = `# Initiated from node 00000000000000a0 port 00000000000000a0

caguid=0xa0
Ca	2 "H-00000000000000a0"		# "own line"
[1](a0) 	"S-0000000000000001"[1]		# lid 1 lmc 0 "" lid 4 4xNDR

caguid=0xb0
Ca	1 "H-00000000000000b0"		# "far line"
[1]	"S-0000000000000001"[2]		# lid 2 lmc 1 "" lid 4 2xXDR

switchguid=0x1(2)
Switch	3 "S-0000000000000001"		# "" base port 0 lid 4 lmc 0
[1]	"H-00000000000000a0"[1]		# "own line" lid 1 4xNDR s=0 w=2 v=4
[2]	"H-00000000000000b0"[1](bb) 		# "far line" lid 2 2xXDR
`
	f, err := Load(strings.NewReader(in), "net", nil)
	if err != nil {
		t.Fatal(err)
	}
	want := `fabric: 3 nodes (1 switch, 2 CAs), 2 links; the file does not state that it is whole
from own line/1
switch "" guid 1 image 0 vendor 0 device 0 ports 3 port guid 2 lid 4 lmc 0 enhanced false
  1 - 1 own line/1 4xndr
  2 - 2 far line/1 2xxdr
ca "own line" guid a0 image 0 vendor 0 device 0 ports 2
  1 - 0 0x0000000000000001/1 4xndr guid a0 lid 1 lmc 0
ca "far line" guid b0 image 0 vendor 0 device 0 ports 1
  1 - 0 0x0000000000000001/2 2xxdr guid bb lid 2 lmc 1
`
	if d := cmp.Diff(want, describe(f)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestIncludeErrors(t *testing.T) {
	fsys := fstest.MapFS{
		"self":  {Data: []byte("# again\ninclude \"self\"\n")},
		"a/inc": {Data: []byte("\nSwitch\n")},
	}
	for _, test := range []struct{ name, in, want string }{
		{"a/net", "\ninclude \"b\"\n", `a/net:2: include "a/b": file does not exist`},
		{"a/bad", "include \"inc\"\n", `a/inc:2: expected a record of a node (Switch, Ca, Rt), a port line ([1] ...), a setting (vendid=...) or a comment (#): "Switch"`},
		{"net", "include \"self\"\n", "self:2: expected at most 16 files that include one another: does self include itself?"},
	} {
		if _, err := Load(strings.NewReader(test.in), test.name, opener(fsys)); err == nil || err.Error() != test.want {
			t.Errorf("%s: got %v, want %s", test.name, err, test.want)
		}
	}
	_, err := Load(io.MultiReader(strings.NewReader("# x\n"), iotest.ErrReader(errors.New("unplugged"))), "net", nil)
	if want := "net: after line 1: unplugged"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

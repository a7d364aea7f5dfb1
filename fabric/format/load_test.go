package format

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

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

func TestLoadIbsim(t *testing.T) {
	fsys := fstest.MapFS{"nets/net": {Data: []byte(ibsimNet)}, "nets/more/router": {Data: []byte(routerNet)}}
	f, err := LoadFile(fsys, "nets/net")
	if err != nil {
		t.Fatal(err)
	}
	want := ``
	if d := cmp.Diff(want, describe(f)); d != "" {
		t.Errorf("(-want +got):\n%s\n%s", d, describe(f))
	}
}

package format_test

import (
	"fmt"
	"strings"
	"testing"

	"fabsh/fabric/format"
)

const (
	lstCA = "{ CA-SM Ports:01 SystemGUID:a0 NodeGUID:a0 PortGUID:a1 VenID:0002C9 DevID:1013 Rev:000000A1 {host 1} LID:0001 PN:01 }"
	lstSW = "{ SW Ports:08 SystemGUID:10 NodeGUID:10 PortGUID:10 VenID:000002C9 DevID:CF080000 Rev:000000A1 {} LID:0002 PN:03 }"
)

// topoFiles is a system with a board of two variants, and a host.
var topoFiles = map[string]string{
	"ibnl/Chassis.ibnl": `
SYSTEM LEAF,LEAF:4x
NODE SW 4 MT47396 U1
  1 -> P1
  2 -> P2
  4 -4x-5G-> U2 1
NODE SW 4 MT47396 U2
  2 -> UP
SYSTEM LEAF:12x
NODE SW 4 MT48436 U1
  3 -12x-> P2
  4 -> UP

TOPSYSTEM Big,BG
leaf1/U1=isChaBma
SUBSYSTEM LEAF leaf1
  P1 -> L1/P1
  P2 -> L1/P2
  UP -8x-10G-> leaf2 UP
SUBSYSTEM LEAF leaf2
  P2 -> L2/P2
`,
	"Host.ibnl": "TOPSYSTEM Host\nNODE HCA 2 MT25408 U1\n1 -> P1\n2 -> P2\n",
}

// TestPortLimit: a few words a node must not take gigabytes.
func TestPortLimit(t *testing.T) {
	var net, topo strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&net, "Switch 254 \"s%d\"\n\n", i)
		fmt.Fprintf(&topo, "T t%d\n", i)
	}
	_, err := format.Load(strings.NewReader(net.String()), "x", nil)
	if want := "x:1051: expected nodes of at most 133542 ports in all"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	_, err = loadTopo(t, "T t\n P1 -> T u P1\n"+topo.String(), map[string]string{"T.ibnl": "TOPSYSTEM T\nNODE SW 254 M U1\n1 -> P1\n"})
	if want := "net.topo:555: expected nodes of at most 140799 ports in all"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

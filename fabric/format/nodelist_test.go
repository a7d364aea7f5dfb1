package format

import (
	"testing"
)

// TestNodeLists: lists of nodes have no links, and what they lack is unknown.
func TestNodeLists(t *testing.T) {
	const lacks = "left out: x is a list of nodes: GUIDs of ports and systems are unknown\nlinks are unknown: x is a list of nodes: it has no links\n"
	testLoads(t, []loadCase{
		{"ibnetdiscover -l", "Ca\t : 0x00000000000000a0 ports 2 devid 0x1013 vendid 0x2c9 \"node-1 HCA-1\"\nSwitch\t : 0x0000000000000001 ports 36 devid 0xcb20 vendid 0x2c9 \"leaf 1\"\n",
			"fabric: 2 nodes (1 switch, 1 CA), links unknown, incomplete\n" +
				"switch \"leaf 1\" guid 1 image 0 vendor 2c9 device cb20 ports 36 port guid 1 lid 0 lmc 0\nca \"node-1 HCA-1\" guid a0 image 0 vendor 2c9 device 1013 ports 2\n" + lacks},
		{"ibnodes", "Ca\t: 0x00000000000000a0 ports 2 \"node-1 HCA-1\"\nSwitch\t: 0x0000000000000001 ports 36 \"leaf 1\" enhanced port 0 lid 7 lmc 0\n",
			"fabric: 2 nodes (1 switch, 1 CA), links unknown, incomplete\n" +
				"switch \"leaf 1\" guid 1 image 0 vendor 0 device 0 ports 36 port guid 1 lid 7 lmc 0 enhanced true\nca \"node-1 HCA-1\" guid a0 image 0 vendor 0 device 0 ports 2\n" + lacks},
		{"twice", "Ca\t: 0xa0 ports 2 \"a\"\nCa\t: 0xa0 ports 2 \"a\"\n", "x:2: expected one line for node 0x00000000000000a0, but x:1 is one too"},
		{"ports", "Ca\t: 0xa0 ports 300 \"a\"\n", `x:1: expected 1 to 254 ports: "Ca\t: 0xa0 ports 300 \"a\""`},
	})
}

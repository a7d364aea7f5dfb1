package ibsimtest

import (
	"embed"
	"fmt"
	"strings"
	"testing"
)

//go:embed testdata/*.net
var nets embed.FS

// Nets are the names of the irregular nets that Net knows.
func Nets() []string { return []string{"ring", "mesh", "names"} }

// Net is the text of a net file: "ring", "mesh", "names". Its first node is
// always a CA.
func Net(t testing.TB, name string) string {
	t.Helper()
	b, err := nets.ReadFile("testdata/" + name + ".net")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// FatTree is the net file of a tree of two levels: hosts CAs ("host-LEAF-N")
// on each leaf ("leaf-N"), and a link from each leaf to each spine ("spine-N").
// FatTree(36, 18, 18) is 648 hosts on 54 switches of 36 ports, FatTree(4, 2, 4)
// 16 hosts.
func FatTree(leaves, spines, hosts int) string {
	var b strings.Builder
	guid := uint64(0x0002c90300000000)
	next := func() uint64 { guid += 0x10; return guid }
	for l := range leaves {
		for h := range hosts {
			fmt.Fprintf(&b, "vendid=0x2c9\ndevid=0x101b\ncaguid=%#016x\nCa\t1 \"host-%d-%d\"\t# \"host-%[2]d-%[3]d HCA-1\"\n", next(), l, h)
			fmt.Fprintf(&b, "[1]\t\"leaf-%d\"[%d]\t# lid 0 lmc 0 \"leaf-%[1]d\" lid 0 4xHDR\n\n", l, h+1)
		}
		fmt.Fprintf(&b, "vendid=0x2c9\ndevid=0xd2f0\nswitchguid=%#016x\nSwitch\t%d \"leaf-%d\"\t# \"leaf-%[3]d\" enhanced port 0 lid 0 lmc 0\n", next(), hosts+spines, l)
		for h := range hosts {
			fmt.Fprintf(&b, "[%d]\t\"host-%d-%d\"[1]\t# \"host-%[2]d-%[3]d HCA-1\" lid 0 4xHDR\n", h+1, l, h)
		}
		for s := range spines {
			fmt.Fprintf(&b, "[%d]\t\"spine-%d\"[%d]\t# \"spine-%[2]d\" lid 0 4xHDR\n", hosts+s+1, s, l+1)
		}
		b.WriteByte('\n')
	}
	for s := range spines {
		fmt.Fprintf(&b, "vendid=0x2c9\ndevid=0xd2f0\nswitchguid=%#016x\nSwitch\t%d \"spine-%d\"\t# \"spine-%[3]d\" enhanced port 0 lid 0 lmc 0\n", next(), leaves, s)
		for l := range leaves {
			fmt.Fprintf(&b, "[%d]\t\"leaf-%d\"[%d]\t# \"leaf-%[2]d\" lid 0 4xHDR\n", l+1, l, hosts+s+1)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

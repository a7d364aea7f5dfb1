package format_test

import (
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/mad"
)

func loadTopo(t *testing.T, topo string, files map[string]string) (*fabric.Fabric, error) {
	t.Helper()
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return format.Load(strings.NewReader(topo), "net.topo", func(name string) (io.ReadCloser, error) {
		f, err := fsys.Open(name)
		if err != nil {
			return nil, err
		}
		if d, ok := f.(fs.ReadDirFile); ok {
			return folder{d}, nil
		}
		return f, nil
	})
}

func TestTopoVariants(t *testing.T) {
	f, err := loadTopo(t, "# x\nBG C1 CFG: leaf2=12x\n\tL1/P1 -1x-> Host h-1 P2\n\tL2/P2 -> Host h-2 P1\n\nBig C2 CFG: leaf1=R\nBig C3\n", topoFiles)
	if err != nil {
		t.Fatal(err)
	}
	want := `C1/leaf1/U1 2 4 47396
  1 h-1/U1 2 1x 2.5
  4 C1/leaf1/U2 1 4x 5
C1/leaf1/U2 2 4 47396
  1 C1/leaf1/U1 4 4x 5
  2 C1/leaf2/U1 4 8x 10
C1/leaf2/U1 2 4 48436
  3 h-2/U1 1 4x 2.5
  4 C1/leaf1/U2 2 8x 10
C2/leaf2/U1 2 4 47396
  4 C2/leaf2/U2 1 4x 5
C2/leaf2/U2 2 4 47396
  1 C2/leaf2/U1 4 4x 5
C3/leaf1/U1 2 4 47396
  4 C3/leaf1/U2 1 4x 5
C3/leaf1/U2 2 4 47396
  1 C3/leaf1/U1 4 4x 5
  2 C3/leaf2/U2 2 8x 10
C3/leaf2/U1 2 4 47396
  4 C3/leaf2/U2 1 4x 5
C3/leaf2/U2 2 4 47396
  1 C3/leaf2/U1 4 4x 5
  2 C3/leaf1/U2 2 8x 10
h-1/U1 1 2 25408
  2 C1/leaf1/U1 1 1x 2.5
h-2/U1 1 2 25408
  1 C1/leaf2/U1 3 4x 2.5
`
	if d := cmp.Diff(want, treeOf(f, (*fabric.Node).Name)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	images := map[string]mad.GUID{} // one a system
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		system, _, _ := strings.Cut(n.Name(), "/")
		if image := n.Info().SystemImageGUID; images[system] == 0 {
			images[system] = image
		} else if image != images[system] {
			t.Errorf("%s has system image GUID %v, not %v", n.Name(), image, images[system])
		}
	}
	if d := cmp.Diff([]fabric.Problem{
		{Kind: fabric.ProblemAssignedGUIDs, Text: "net.topo has no GUIDs; they were assigned in its order"},
		{Kind: fabric.ProblemAssignedLIDs, Text: "net.topo has no LIDs; they were assigned in its order, from 1 to 11"},
	}, f.Problems()); d != "" {
		t.Errorf("problems (-want +got):\n%s", d)
	}
}

func TestTopoErrors(t *testing.T) {
	for topo, want := range map[string]string{
		"Big C1\n\tP1 -> Host h-1\n":                                 `net.topo:2: expected a plug, an arrow, the type and name of the other system and its plug, as in P1 -4X-5G-> MT23108 H-1 P1: "\tP1 -> Host h-1"`,
		"Big C1\n\tP1 -5x-> Host h-1 P1\n":                           `net.topo:2: expected a plug, an arrow, the type and name of the other system and its plug, as in P1 -4X-5G-> MT23108 H-1 P1: "\tP1 -5x-> Host h-1 P1"`,
		"Big C1\n\tL1/P1 -> Host h-1 P1\n\n\tL1/P2 -> Host h-1 P2\n": `net.topo:4: expected a system above its cables: "\tL1/P2 -> Host h-1 P2"`,
		"Big C1\n\tL1/P1 -> Small h-1 P1\n":                          `net.topo:2: expected a type of system that a .ibnl file beside this one or in the directory ibnl there defines, not "Small"; ibutils has some in /usr/lib/*/ibdm*/ibnl`,
		"Big C1\n\tL1/P1 -> Host h-1 P3\n":                           `net.topo:2: expected a plug of h-1, which is a Host and has no "P3"; it has P1, P2`,
		"Big C1 CFG: leaf1=R\n\tL1/P1 -> Host h-1 P1\n":              `net.topo:2: expected a plug that C1 has in this variant, but L1/P1 leads to no chip`,
		"Big C1 CFG: leaf1=8x\n\tL1/P1 -> Host h-1 P1\n":             `net.topo:1: expected a board "LEAF:8x" of Big, which ibnl/Chassis.ibnl:16 is to have as leaf1, but ibnl/Chassis.ibnl has none`,
		"Big C1 CFG: leaf1\n\tL1/P1 -> Host h-1 P1\n":                `net.topo:1: expected boards and their variants after CFG:, with commas between, as in leaf1=12x,leaf3=R: "leaf1"`,
		"Big C1 and more\n\tL1/P1 -> Host h-1 P1\n":                  `net.topo:1: expected a system, as in MTS2400 S-1 CFG: leaf1=R, or a cable, as in P1 -> MT23108 H-1 P1: "Big C1 and more"`,
		"Big C1\n\tL1/P1 -> Host h-1 P1\nBig h-1\n":                  `net.topo:3: expected h-1 to be a Host, as in net.topo:2, not a Big`,
		"Big C1\n\tL1/P1 -> Host h-1 P1\n\tL1/P2 -> Host h-1 P1\n":   `net.topo:3: expected port 1 of h-1/U1 to be free, but net.topo:2 connects it to port 1 of C1/leaf1/U1`,
	} {
		f, err := loadTopo(t, topo, topoFiles)
		if err == nil {
			t.Errorf("%q: read %v", topo, f)
		} else if d := cmp.Diff(want, err.Error()); d != "" {
			t.Errorf("%q (-want +got):\n%s", topo, d)
		}
	}
	_, err := format.Load(strings.NewReader("A B\n P1 -> C D P1\n"), "x", nil)
	if want := "x: expected the .ibnl files that define its systems, but only this file is available"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	const topo = "T t\n P1 -> T u P1\n"
	for ibnl, want := range map[string]string{
		"NODE SW 4 M U1\n":                                             `T.ibnl:1: expected SYSTEM or TOPSYSTEM and names: "NODE SW 4 M U1"`,
		"SYSTEM A\n":                                                   `T.ibnl:1: expected a line TOPSYSTEM and the names of the system, and found none`,
		"TOPSYSTEM T,\n":                                               `T.ibnl:1: expected names with commas between them, and one TOPSYSTEM: "TOPSYSTEM T,"`,
		"TOPSYSTEM T\nTOPSYSTEM T\n":                                   `T.ibnl:2: expected names with commas between them, and one TOPSYSTEM: "TOPSYSTEM T"`,
		"TOPSYSTEM T\nNODE XX 4 M U1\n":                                `T.ibnl:2: expected NODE, SW or CA, 1 to 254 ports, the device and its name, as in NODE SW 24 MT47396 U1: "NODE XX 4 M U1"`,
		"TOPSYSTEM T\nNODE SW 400 M U1\n":                              `T.ibnl:2: expected NODE, SW or CA, 1 to 254 ports, the device and its name, as in NODE SW 24 MT47396 U1: "NODE SW 400 M U1"`,
		"TOPSYSTEM T\nNODE SW 4 M U1\nNODE SW 4 M U1\n":                `T.ibnl:3: expected a name of its own, but "U1" is that of line 2`,
		"TOPSYSTEM T\nNODE SW 4 M U1\n5 -> P1\n":                       `T.ibnl:3: expected a port from 1 to 4 of U1, not "5"`,
		"TOPSYSTEM T\nNODE SW 4 M U1\n1 => P1\n":                       `T.ibnl:3: expected an arrow, with width and speed or without, and where it leads, as in 1 -4x-5G-> U4 4: "1 => P1"`,
		"TOPSYSTEM T\nNODE SW 4 M U1\n1 -> P1\n2 -> P1\n":              `T.ibnl:4: expected a plug of its own, but "P1" is that of line 3`,
		"TOPSYSTEM T\nSUBSYSTEM LEAF\n":                                `T.ibnl:2: expected SUBSYSTEM, the board and its name in this place: "SUBSYSTEM LEAF"`,
		"TOPSYSTEM T\nSUBSYSTEM LEAF l\nCFG: a\n":                      `T.ibnl:3: expected a board and its variant, as in leaf1=12x: "a"`,
		"TOPSYSTEM T\nhello\n":                                         `T.ibnl:2: expected NODE, SUBSYSTEM or, below these, a connection, as in 1 -> U4 4 or 1 -4x-5G-> P1: "hello"`,
		"SYSTEM A\nSUBSYSTEM A a\nTOPSYSTEM T\nSUBSYSTEM A a\n":        `T.ibnl:1: expected at most 8 nested boards; is one within itself?`,
		"TOPSYSTEM T\nNODE SW 4 M U1\n1 -> U2 1\n2 -> P1\n":            `T.ibnl:1: expected connections to lead to parts of the board, but there is no "U2"`,
		"TOPSYSTEM T\nNODE SW 4 M U1\n1 -> U1 9\n2 -> P1\n":            `T.ibnl:2: expected connections to U1 to lead to a port from 1 to 4, not "9"`,
		"TOPSYSTEM T\nNODE SW 4 M U1\n1 -> U1 3\n2 -> U1 3\n4 -> P1\n": `T.ibnl:4: expected port 3 of t/U1 to be free, but T.ibnl:3 connects it to port 1 of t/U1`,
	} {
		f, err := loadTopo(t, topo, map[string]string{"T.ibnl": ibnl})
		if err == nil {
			t.Errorf("%q: read %v", ibnl, f)
		} else if d := cmp.Diff(want, err.Error()); d != "" {
			t.Errorf("%q (-want +got):\n%s", ibnl, d)
		}
	}
}

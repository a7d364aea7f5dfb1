package routes_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/format"
	"fabsh/fabric/routing/routes"
)

// TestLoadFAR: the tables of ibdiagnet2.far, alone or beside those of another file, with what
// the file does not have in notes; and a snapshot keeps them.
func TestLoadFAR(t *testing.T) {
	f := swept(t, "ring:n=3")
	sw := f.OfType(2)
	head := func(n *fabric.Node) string {
		return fmt.Sprintf("Switch %s - %s\nGroups Definition:\n------\n", n.GUID(), n.Name())
	}
	files := map[string]string{
		"lft": fmt.Sprintf("Unicast lids [0-9] of switch Lid 1 guid %s (a):\n0x0004 003\n", sw[1].GUID()),
		"far": "File version: 2\n" + head(&sw[0]) + "1 0 0 1,2,\n\nLFT Definition: PLFT_NUM: 0, top: 0x9\n------\n0x0004 1 Free 1\n0x0005 2 HBF 1\n0x0006 2 Static 1\n\n" +
			head(&sw[1]) + "1 0 0 2,\n\nLFT Definition: PLFT_NUM: 0, top: 0x9\n------\n0x0004 1 Free 1\n\nLFT Definition: PLFT_NUM: 1, top: 0x9\n------\n0x0004 2 Free 1\n\nSwitch 0x1234\nLFT Definition: PLFT_NUM: 0, top: 0x9\n------\n",
		"none":  "File version: 2\nSwitch 0x1234\nLFT Definition: PLFT_NUM: 0, top: 0x9\n------\n",
		"port":  "File version: 2\n" + head(&sw[0]) + "\nLFT Definition: PLFT_NUM: 0, top: 0x9\n------\n0x0004 90 Free 1\n",
		"group": "File version: 2\n" + head(&sw[0]) + "1 0 0 91\n\nLFT Definition: PLFT_NUM: 0, top: 0x9\n------\n",
	}
	open := func(name string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(files[name])), nil }
	load := func(from routes.Files) string {
		r, err := routes.Load(f, from, open)
		if err != nil {
			return err.Error()
		}
		return choicesAndNotes(r)
	}
	const notes = "" +
		"far: adaptive routing of 2 of 3 switches; the others are taken to route statically\n" +
		"far: 1 of its switches is not in the fabric: 0x0000000000001234\n" +
		"far: service levels and transports are not read from it; all service levels, and the transports RC and DC, are taken to route adaptively\n"
	alone := "0: LID 4 free 1-2; LID 5 hbf 1-2; LID 6 static 2\n" +
		"1: LID 4 free 1-2 unknown: private LFTs are in use; which packets use them is in ibdiagnet2.plft, whose format is not public\n"
	for _, test := range []struct {
		from routes.Files
		want string
	}{
		{routes.Files{LFTs: "far"}, alone + notes},
		{routes.Files{LFTs: "lft", FAR: "far"}, alone + "lft: no table of 2 switches of the fabric: " + sw[0].Label() + ", " + sw[2].Label() + "\n" + notes},
		{routes.Files{LFTs: "none"}, "none: no adaptive routing of switches of the fabric"},
		{routes.Files{LFTs: "port"}, fmt.Sprintf("port:2: expected a port from 0 to %d, which %s has, for LID 4, not 90", sw[0].NumPorts(), sw[0].Label())},
		{routes.Files{LFTs: "group"}, fmt.Sprintf("group:2: expected ports from 0 to %d, which %s has, in group 1, not 91", sw[0].NumPorts(), sw[0].Label())},
	} {
		if d := cmp.Diff(test.want, load(test.from)); d != "" {
			t.Errorf("%+v (-want +got):\n%s", test.from, d)
		}
	}

	r, err := routes.Load(f, routes.Files{LFTs: "far"}, open)
	if err != nil {
		t.Fatal(err)
	}
	read := fabric.Reading{LFTs: make([][]byte, len(f.Nodes())), Adaptive: make([]*adaptive.Switch, len(f.Nodes()))}
	for s, n := range r.Graph().Switches() {
		read.LFTs[n.ID()], read.Adaptive[n.ID()] = r.Row(s), r.Adaptive(s)
	}
	var b bytes.Buffer
	if err := format.WriteSnapshot(&b, f.With(read)); err != nil {
		t.Fatal(err)
	}
	files["snapshot"] = b.String()
	if d := cmp.Diff(alone, load(routes.Files{LFTs: "snapshot"})); d != "" {
		t.Errorf("from a snapshot (-want +got):\n%s", d)
	}
	back, err := format.ReadSnapshot(&b, "x")
	if err != nil {
		t.Fatal(err)
	}
	if r, err = routes.OfFabric(back); err != nil || choicesAndNotes(r) != alone {
		t.Errorf("%v, got %s", err, choicesAndNotes(r))
	}
}

// choicesAndNotes are the choices of the switches that route adaptively, and the notes.
func choicesAndNotes(r *routes.Routes) string {
	var b strings.Builder
	for s := range r.Graph().Switches() {
		a := r.Adaptive(s)
		if !a.Active() {
			continue
		}
		var list []string
		for lid := range r.Top() + 1 {
			if e := a.Table(0).Entry(lid); e.Port != routes.NoPort {
				list = append(list, fmt.Sprintf("LID %d %v %v", lid, e.State, a.Choose(adaptive.Packet{LID: lid}, nil).Ports))
			}
		}
		fmt.Fprintf(&b, "%d: %s", s, strings.Join(list, "; "))
		if a.Unknown != "" {
			b.WriteString(" unknown: " + a.Unknown)
		}
		b.WriteByte('\n')
	}
	for _, note := range r.ReadNotes {
		b.WriteString(note + "\n")
	}
	return b.String()
}

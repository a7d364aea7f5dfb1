package routes_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/discover"
	"fabsh/fabric/format"
	route "fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/verify"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// swept is the simulated fabric of that name, with the LIDs that it received.
func swept(t *testing.T, spec string) *fabric.Fabric {
	t.Helper()
	f, o, err := sim.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := sim.New(f, o).Attach(f.OfType(mad.NodeTypeCA)[0].ID(), 1)
	if err != nil {
		t.Fatal(err)
	}
	e := engine.New(transport, engine.Options{})
	defer e.Close()
	if f, err = discover.Sweep(t.Context(), e, discover.Options{Around: mad.DirectedRoute{0}}); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestWriteLoad: what Write writes Load reads.
func TestWriteLoad(t *testing.T) {
	f := swept(t, "fattree:k=4,levels=2")
	g, err := graph.New(f, graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r := compute(t, g, "ftree", route.Options{})
	r.SL = &routes.SL{Dest: slices.Repeat([]uint8{3}, int(r.Top())+1)}
	r.SL2VL = routes.NewSL2VL(g)
	var vls [16]uint8
	for sl := range vls {
		vls[sl] = uint8(sl) / 2
	}
	if err := r.SL2VL.Set(1, 1, 2, vls); err != nil {
		t.Fatal(err)
	}
	back := routingtest.Reread(t, f, r)
	if d := back.Diff(r); d.Entries > 0 {
		t.Errorf("%+v", d)
	}
	source := g.TerminalByLID(7)
	if back.SL.Of(source, 8) != 3 || back.SL2VL.VL(1, 1, 2, 7) != 3 || back.SL2VL.VL(1, 2, 1, 7) != 7 {
		t.Errorf("SL %d, VLs %d, %d", back.SL.Of(source, 8), back.SL2VL.VL(1, 1, 2, 7), back.SL2VL.VL(1, 2, 1, 7))
	}
}

// TestAdaptive: where switches route adaptively a verdict on tables is unknown.
func TestAdaptive(t *testing.T) {
	r := compute(t, routingtest.Graph(t, "fattree:k=4", graph.BuildOptions{}), "ftree", route.Options{})
	var got []string
	for _, known := range []verify.Adaptive{verify.AdaptiveUndetermined, verify.AdaptiveOff, verify.AdaptiveOn} {
		v := routingtest.Verified(t, r, verify.Options{Adaptive: known})
		got = append(got, fmt.Sprint(v.OK(), v.Notes[1:]))
	}
	want := []string{"true [adaptive routing not determined]", "true []", "false [adaptive routing: packets take other paths than those of the tables; the verdict is unknown]"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// canceller ends a context when the first block is written.
type canceller struct {
	end    context.CancelFunc
	blocks int
}

func (c *canceller) Write(p []byte) (int, error) {
	c.end()
	c.blocks++
	return len(p), nil
}

// TestWriteEnds: writing ends with its context, before the next block.
func TestWriteEnds(t *testing.T) {
	r := compute(t, routingtest.Graph(t, "fattree:k=16,levels=2", graph.BuildOptions{}), "minhop", route.Options{})
	for _, kind := range []format.FormatName{format.KindLFTs, format.KindFDBs} {
		ctx, cancel := context.WithCancel(t.Context())
		c := &canceller{end: cancel}
		if err := r.Write(ctx, c, kind); !errors.Is(err, context.Canceled) || c.blocks != 1 {
			t.Errorf("%v: %d blocks, %v", kind, c.blocks, err)
		}
	}
}

// TestLoadFAR: the tables of ibdiagnet2.far, alone or beside another file, with what
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
	const assumed = "service levels and transports are not read from it; all service levels, and the transports RC and DC, are taken to route adaptively; packets of service levels with HBF and without are judged\n"
	const notes = "" +
		"far: adaptive routing of 2 of 3 switches; the others are taken to route statically\n" +
		"far: 1 of its switches is not in the fabric: 0x0000000000001234\n" +
		"far: " + assumed
	alone := "0: LID 4 free 1-2; LID 5 hbf 1-2; LID 6 static 2\n" +
		"1: LID 4 free 1-2 unknown: private LFTs are in use; which packets use them is in ibdiagnet2.plft, whose format is not public\n"
	for _, test := range []struct {
		from routes.Files
		want string
	}{
		{routes.Files{LFTs: "far"}, alone + notes},
		{routes.Files{LFTs: "lft", FAR: "far"}, alone + "lft: no table of 2 switches of the fabric: " + sw[0].Label() + ", " + sw[2].Label() + "\nlft:1: the last table does not end with a line such as 15 lids dumped; the file may be cut short\n" + notes},
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
	if d := cmp.Diff(alone+"snapshot: "+assumed, load(routes.Files{LFTs: "snapshot"})); d != "" {
		t.Errorf("from a snapshot (-want +got):\n%s", d)
	}
	back, err := format.ReadSnapshot(&b, "x")
	if err != nil {
		t.Fatal(err)
	}
	if r, err = routes.OfFabric(back); err != nil || choicesAndNotes(r) != alone+assumed {
		t.Errorf("%v, got %s", err, choicesAndNotes(r))
	}
}

// TestFARStaticPorts: a wrong static port is found whatever the state of its LID is, because
// packets of some service levels or transports take it, and in a snapshot of these tables too.
func TestFARStaticPorts(t *testing.T) {
	f := swept(t, "fattree:k=4")
	g, err := graph.New(f, graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r := compute(t, g, "updn", route.Options{})
	leaf := routingtest.SwitchNamed(t, g, "leaf-1")
	lid := g.DestsOf(leaf)[1].LID
	for _, state := range []adaptive.State{adaptive.Bounded, adaptive.Free, adaptive.Static, adaptive.HBF} {
		for _, wrong := range []bool{false, true} {
			var far strings.Builder
			far.WriteString("File version: 2\n")
			for s, n := range g.Switches() {
				fmt.Fprintf(&far, "Switch %s - x\nGroups Definition:\n------\n", n.GUID())
				for port := range n.NumPorts() {
					fmt.Fprintf(&far, "%d 0 1 %d,\n", port+1, port+1)
				}
				fmt.Fprintf(&far, "\nLFT Definition: PLFT_NUM: 0, top: 0x%x\n------\n", int(r.Top()))
				for to := mad.LID(1); to <= r.Top(); to++ {
					port, row := r.Row(s).Port(to), adaptive.Static
					if port == routes.NoPort {
						continue
					}
					group := port
					if s == leaf && to == lid {
						row = state
						if wrong {
							port = g.DestsOf(leaf)[2].Out
						}
					}
					word := strings.ToUpper(row.String()[:1]) + row.String()[1:]
					if row == adaptive.HBF {
						word = "HBF"
					}
					fmt.Fprintf(&far, "0x%04x %d %s %d\n", to, port, word, group)
				}
				far.WriteString("\n")
			}
			open := func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(far.String())), nil }
			read, err := routes.Load(f, routes.Files{LFTs: "far"}, open)
			if err != nil {
				t.Fatal(err)
			}
			var snapshot bytes.Buffer
			if err := read.Write(t.Context(), &snapshot, format.KindSnapshot); err != nil {
				t.Fatal(err)
			}
			again, err := routes.Load(f, routes.Files{LFTs: "x.snap"}, func(string) (io.ReadCloser, error) { return io.NopCloser(&snapshot), nil })
			if err != nil {
				t.Fatal(err)
			}
			for from, r := range map[string]*routes.Routes{"far": read, "snapshot": again} {
				if v := routingtest.Verified(t, r, verify.Options{}); (v.Unreachable > 0) != wrong {
					t.Errorf("state %v, wrong static port %t, from %s: %d pairs are unreachable", state, wrong, from, v.Unreachable)
				}
			}
		}
	}
}

// TestSnapshotOfComputed: a snapshot of tables that were computed for a file without SwitchInfo has
// their LinearFDBTop, so that a simulated subnet of it forwards by them.
func TestSnapshotOfComputed(t *testing.T) {
	var b bytes.Buffer
	if err := format.Dump(&b, routingtest.Topology(t, "fattree:k=4"), format.KindIbnetdiscover); err != nil {
		t.Fatal(err)
	}
	f, err := format.Load(&b, "net", nil)
	if err != nil {
		t.Fatal(err)
	}
	g, err := graph.New(f, graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r := compute(t, g, "updn", route.Options{})
	if err := r.Write(t.Context(), &b, format.KindSnapshot); err != nil {
		t.Fatal(err)
	}
	back, err := format.ReadSnapshot(&b, "x.snap")
	if err != nil {
		t.Fatal(err)
	}
	if read, err := routes.OfFabric(back); err != nil || !bytes.Equal(routingtest.Tables(read), routingtest.Tables(r)) {
		t.Errorf("other tables, error %v", err)
	}
	transport, err := sim.New(back, sim.Options{}).Attach(back.OfType(mad.NodeTypeCA)[0].ID(), 1)
	if err != nil {
		t.Fatal(err)
	}
	e := engine.New(transport, engine.Options{})
	defer e.Close()
	live, err := discover.Sweep(t.Context(), e, discover.Options{Around: mad.DirectedRoute{0}})
	if err != nil {
		t.Fatal(err)
	}
	for from, f := range map[string]*fabric.Fabric{"file": back, "simulated subnet": live} {
		for _, n := range f.OfType(mad.NodeTypeSwitch) {
			if top := mad.LID(n.SwitchInfo().LinearFDBTop); top != r.Top() {
				t.Errorf("%s: LinearFDBTop %d, want %d", from, top, r.Top())
			}
		}
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

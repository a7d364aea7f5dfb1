package routes_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"fabsh/fabric"
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

// swept is the simulated fabric of that name, with the LIDs it has got.
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
		v := verified(t, r, verify.Options{Adaptive: known})
		got = append(got, fmt.Sprint(v.OK(), v.Notes[1:]))
	}
	want := []string{"true [adaptive routing not determined]", "true []", "false [adaptive routing: packets take other paths than those of the tables; the verdict is unknown]"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// canceller ends a context with the first block that is written.
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

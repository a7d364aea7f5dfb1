package apply_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/change/apply"
	"fabsh/fabric/device"
	"fabsh/fabric/discover"
	route "fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/sa"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// BenchmarkApply makes the change that takes one of 34,992 links out of the tables, on a
// simulated subnet of 11,664 hosts in this process, and takes it back: order and proof
// anew, all reads before, between and after the rounds. Sweep and tables are known.
func BenchmarkApply(b *testing.B) {
	f, o, err := sim.Parse("pgft:m=18/18/36,w=1/18/18,p=1/1/1")
	if err != nil {
		b.Fatal(err)
	}
	subnet := sim.New(f, o)
	conn, err := subnet.Attach(f.OfType(mad.NodeTypeCA)[0].ID(), 1)
	if err != nil {
		b.Fatal(err)
	}
	e := engine.New(conn, engine.Options{Write: true})
	defer e.Close()
	ctx := b.Context()
	if f, err = discover.Sweep(ctx, e, discover.Options{}); err != nil {
		b.Fatal(err)
	}
	live, failed, err := device.ReadRoutes(ctx, e, f)
	if err != nil || len(failed) > 0 {
		b.Fatal(err, failed)
	}
	lost := live.Graph().ChannelPort(1811)
	less, err := graph.New(f, graph.BuildOptions{Exclude: func(p *fabric.Port) bool { return p == lost }})
	if err != nil {
		b.Fatal(err)
	}
	target, err := route.Compute(ctx, less, "ftree", route.Options{Keep: live})
	if err != nil {
		b.Fatal(err)
	}
	target = target.On(live.Graph())
	ways := apply.NewRoutes(f)
	var cells, back []*apply.Cell
	for _, sd := range target.Diff(live).Switches {
		n := live.Graph().Switches()[sd.Switch]
		way := ways.To(n)
		block := func(r *routes.Routes, number int) []byte {
			data := bytes.Repeat([]byte{mad.NoPort}, mad.LFTBlock)
			copy(data, r.Row(sd.Switch)[number*mad.LFTBlock:])
			return data
		}
		for _, number := range sd.Blocks {
			c := apply.Cell{Node: n.GUID(), Name: n.Label(), Routes: way, Attr: mad.AttrLinearForwardingTable, Modifier: uint32(number), Old: block(live, number), New: block(target, number)}
			d := c
			d.Old, d.New = c.New, c.Old
			cells, back = append(cells, &c), append(back, &d)
		}
	}
	client := &sa.Client{Engine: e}
	manager, err := client.FindSM(ctx, f)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		r := apply.Run{Host: &apply.Host{Engine: e, SA: client, Clock: hasty{}}, Live: live}
		if outcome, err := r.Apply(ctx, f, manager, &apply.Begin{Cells: cells}); outcome != apply.Confirmed {
			b.Fatal(outcome, err)
		}
		b.StopTimer()
		r.Live = target
		if outcome, err := r.Apply(ctx, f, manager, &apply.Begin{Cells: back}); outcome != apply.Confirmed {
			b.Fatal(outcome, err)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(len(cells)), "blocks")
}

// hasty is a clock that does not wait.
type hasty struct{ clock }

func (hasty) Sleep(context.Context, time.Duration) error { return nil }

package main

import (
	"context"
	"fmt"
	"os"

	"fabsh/fabric/change"
	"fabsh/fabric/change/plan"
	"fabsh/fabric/discover"
	"fabsh/fabric/routing"
	"fabsh/fabric/sa"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
	"fabsh/mad/ibsim"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// mk SOCK|sim:SPEC ENGINE OUT
func main() {
	ctx := context.Background()
	var t engine.Transport
	var err error
	if len(os.Args[1]) > 4 && os.Args[1][:4] == "sim:" {
		f, o, err := sim.Parse(os.Args[1][4:])
		must(err)
		t, err = sim.New(f, o).Attach(f.OfType(mad.NodeTypeCA)[0].ID(), 0)
		must(err)
	} else {
		t, err = ibsim.Attach(ibsim.Options{Socket: os.Args[1]})
	}
	must(err)
	e := engine.New(t, engine.Options{})
	defer e.Close()
	f, err := discover.Sweep(ctx, e, discover.Options{})
	must(err)
	old, _, err := change.ReadRoutes(ctx, e, f)
	must(err)
	r, err := routing.Compute(ctx, old.Graph(), os.Args[2], routing.Options{})
	must(err)
	d := r.Diff(old)
	sm, err := (&sa.Client{Engine: e}).FindSM(ctx, f)
	must(err)
	p := &plan.Plan{From: "--routes " + os.Args[2], Base: plan.FingerprintOf(f, sm)}
	for _, sd := range d.Switches {
		n := old.Graph().Switches()[sd.Switch]
		for _, b := range sd.Blocks {
			s := plan.Set{Attr: mad.AttrLinearForwardingTable, Modifier: uint32(b), Target: plan.Target{GUID: n.GUID(), Name: n.Name(), Routes: []mad.DirectedRoute{n.Route()}}}
			blk := func(row []uint8) []byte {
				out := make([]byte, 64)
				for i := range out {
					out[i] = 255
				}
				copy(out, row[b*64:])
				return out
			}
			s.Old, s.New = blk(old.Row(sd.Switch)), blk(r.Row(sd.Switch))
			p.Sets = append(p.Sets, s)
		}
	}
	fmt.Println(p)
	must(p.Save(os.Args[3]))
}

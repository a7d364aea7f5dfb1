// Command external is a program of another module: it imports fabsh's packages as a
// library, with nothing of its command line.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"fabsh/fabric/discover"
	route "fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/verify"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
)

func main() {
	log.SetFlags(0)
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	// A simulated subnet is an engine.Transport, as mad/umad is one over a device.
	topology, options, err := sim.Parse("fattree:k=4")
	if err != nil {
		return err
	}
	host := topology.OfType(mad.NodeTypeCA)[0]
	port, err := sim.New(topology, options).Attach(host.ID(), 1)
	if err != nil {
		return err
	}
	e := engine.New(port, engine.Options{})
	defer e.Close()

	// One attribute, of the local node.
	var c engine.Call
	c.PutSMP(mad.MethodGet, mad.AttrNodeInfo.ID, 0, nil)
	c.SetRoute(mad.DirectedRoute{0})
	if err := e.Do(ctx, &c); err != nil {
		return err
	}
	if c.Err != nil {
		return c.Err
	}
	var info mad.NodeInfo
	info.Decode(c.Data())
	fmt.Printf("local node: %v with %d port\n", info.NodeType, info.NumPorts)

	// Changes need permission.
	c.PutSMP(mad.MethodSet, mad.AttrPortInfo.ID, 1, nil)
	c.SetRoute(mad.DirectedRoute{0})
	if err := e.Do(ctx, &c); err != nil {
		return err
	}
	fmt.Println("refused:", errors.Is(c.Err, engine.ErrReadOnly))

	// All nodes, tables for them, and a verdict.
	f, err := discover.Sweep(ctx, e, discover.Options{})
	if err != nil {
		return err
	}
	fmt.Println(f)
	g, err := graph.New(f, graph.BuildOptions{})
	if err != nil {
		return err
	}
	tables, err := route.Compute(ctx, g, "updn", route.Options{})
	if err != nil {
		return err
	}
	verdict, err := verify.Tables(ctx, tables, verify.Options{})
	if err != nil {
		return err
	}
	fmt.Printf("%d pairs, %d unreachable, acyclic: %v\n", verdict.Pairs, verdict.Unreachable, verdict.Acyclic)
	return nil
}

package discover_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"fabsh/fabric/discover"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// A fabric comes back even where a node does not answer: its Problems say what is missing.
func ExampleSweep() {
	topology, options, err := sim.Parse("ring:n=3,hosts=1,dead=node-0003 HCA-1")
	if err != nil {
		log.Fatal(err)
	}
	port, err := sim.New(topology, options).Attach(topology.OfType(mad.NodeTypeCA)[0].ID(), 1)
	if err != nil {
		log.Fatal(err)
	}
	e := engine.New(port, engine.Options{Timeout: 20 * time.Millisecond}) // over a device: engine.New of what umad.Open returns
	defer e.Close()
	f, err := discover.Sweep(context.Background(), e, discover.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(f)
	for _, n := range f.OfType(mad.NodeTypeSwitch) {
		fmt.Println(n.Name(), n.Route())
	}
	for _, p := range f.Problems() {
		fmt.Println(p.Kind)
	}
	// Output:
	// fabric: 5 nodes (3 switches, 2 CAs), 5 links, incomplete: 1 timed out
	// switch-1 0,1
	// switch-2 0,1,3
	// switch-3 0,1,2
	// timed out
}

package sim_test

import (
	"context"
	"fmt"
	"log"

	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// A program answers as a simulated subnet: it generates a topology, attaches an engine to
// the port of a host, and reads an attribute of the switch next to it.
func Example() {
	f, options, err := sim.Parse("fattree:k=4,levels=2")
	if err != nil {
		log.Fatal(err)
	}
	subnet := sim.New(f, options)
	port, err := subnet.Attach(f.OfType(mad.NodeTypeCA)[0].ID(), 0)
	if err != nil {
		log.Fatal(err)
	}
	e := engine.New(port, engine.Options{})
	defer e.Close()

	var call engine.Call
	call.PutSMP(mad.MethodGet, mad.AttrSwitchInfo.ID, 0, nil)
	call.SetRoute(mad.DirectedRoute{0, 1})
	if e.Do(context.Background(), &call); call.Err != nil {
		log.Fatal(call.Err)
	}
	var info mad.SwitchInfo
	info.Decode(call.Data())
	fmt.Println("LinearFDBCap", info.LinearFDBCap)
	// Output: LinearFDBCap 49152
}

package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// simulated returns an engine at the first host of a simulated subnet. Over a device it is
// engine.New of what umad.Open returns.
func simulated(spec string) *engine.Engine {
	topology, options, err := sim.Parse(spec)
	if err != nil {
		log.Fatal(err)
	}
	port, err := sim.New(topology, options).Attach(topology.OfType(mad.NodeTypeCA)[0].ID(), 1)
	if err != nil {
		log.Fatal(err)
	}
	return engine.New(port, engine.Options{})
}

// An attribute is read by a Call, which the caller owns before and after.
func Example() {
	e := simulated("ring:n=3,hosts=1")
	defer e.Close()
	var c engine.Call
	c.PutSMP(mad.MethodGet, mad.AttrNodeInfo.ID, 0, nil)
	c.SetRoute(mad.DirectedRoute{0, 1}) // out of port 1
	if err := e.Do(context.Background(), &c); err != nil {
		log.Fatal(err) // the context has ended
	}
	if c.Err != nil {
		log.Fatal(c.Err)
	}
	var info mad.NodeInfo
	info.Decode(c.Data())
	fmt.Println(info.NodeType, info.NumPorts)
	// Output: switch 3
}

// What became of each call of a batch is in its Err, an *Error.
func ExampleError() {
	e := simulated("ring:n=3,hosts=1")
	defer e.Close()
	calls := make([]*engine.Call, 3)
	for i := range calls {
		calls[i] = new(engine.Call)
		calls[i].PutSMP(mad.MethodGet, mad.AttrPortInfo.ID, uint32(9*i), nil)
		calls[i].SetRoute(mad.DirectedRoute{0, 1})
	}
	calls[1].PutSMP(mad.MethodSet, mad.AttrPortInfo.ID, 1, nil)
	calls[1].SetRoute(mad.DirectedRoute{0, 1})
	if err := e.Do(context.Background(), calls...); err != nil {
		log.Fatal(err)
	}
	for _, c := range calls {
		var failed *engine.Error
		switch {
		case c.Err == nil:
			fmt.Println("answered")
		case errors.Is(c.Err, engine.ErrReadOnly):
			fmt.Println("needs Options.Write")
		case engine.Unanswered(c.Err):
			fmt.Println("no answer")
		case errors.As(c.Err, &failed):
			fmt.Println(failed.Status)
		}
	}
	// Output:
	// answered
	// needs Options.Write
	// invalid attribute value
}

// Start returns at once: Notify is called when the call has ended, and may start others.
func ExampleEngine_Start() {
	e := simulated("ring:n=3,hosts=1")
	defer e.Close()
	ended := make(chan *engine.Call)
	c := &engine.Call{Notify: engine.CompleterFunc(func(c *engine.Call) { ended <- c })}
	c.PutSMP(mad.MethodGet, mad.AttrNodeDescription.ID, 0, nil)
	c.SetRoute(mad.DirectedRoute{0})
	e.Start(c)
	c = <-ended
	fmt.Println(c.Err, c.Attempts)
	// Output: <nil> 1
}

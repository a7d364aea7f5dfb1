package builtins

import (
	"errors"
	"strings"
	"testing"

	"fabsh/mad/engine"
)

// virtual is a port that may not send SMPs, as those of virtual functions.
type virtual struct{ engine.Transport }

func (v *virtual) Send(d *engine.Datagram) error {
	if d.QP == 0 {
		return &engine.SendError{Err: errors.New("the port has no subnet management interface")}
	}
	return v.Transport.Send(d)
}

func (v *virtual) TrySend(d *engine.Datagram) (bool, error) { return true, v.Send(d) }

// TestVirtualFunction: without a queue pair 0 there is the subnet administrator.
func TestVirtualFunction(t *testing.T) {
	onSim(t, "ring:n=2", func(o *SessionOptions) {
		o.Engine.Close()
		o.Engine = engine.New(&virtual{attach(t, "ring:n=2")}, engine.Options{})
	}, func(t *testing.T, f *fixture) {
		defer f.Env.Engine.Close()
		const want = "the port has no subnet management interface; or use the subnet administrator: discover(via=\"sa\")\n"
		if _, explained, status := f.run(`discover()`); !strings.Contains(explained, want) || status != 3 {
			t.Errorf("status %d: %s", status, explained)
		}
		out, explained, status := f.run(`f = discover(via="sa"); print(f, perf_get("PortCounters", f.switches[0], 1).port_select)`)
		if out != "fabric: 4 nodes (2 switches, 2 CAs), 3 links, complete by the records of the subnet administrator 1\n" || status != 0 {
			t.Errorf("%s, %s, status %d", out, explained, status)
		}
	})
}

package builtins

import (
	"strings"
	"sync"
	"testing"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// planarized is a fabric behind an adapter whose SMPs go by directed route alone,
// and says of what class was sent.
type planarized struct {
	engine.Transport
	mu   sync.Mutex
	sent []mad.Class
}

func (p *planarized) Port() (engine.Port, error) {
	port, err := p.Transport.Port()
	port.Planarized = true
	return port, err
}

func (p *planarized) Send(d *engine.Datagram) error {
	p.mu.Lock()
	p.sent = append(p.sent, mad.Class(d.MAD[mad.ClassOffset]))
	p.mu.Unlock()
	return p.Transport.Send(d)
}

func (p *planarized) TrySend(*engine.Datagram) (bool, error) { return false, nil }

// TestPlanarized: an SMP to a LID goes along a directed route, where the fabric
// is known and the adapter is planarized; all else goes by LID.
func TestPlanarized(t *testing.T) {
	var p *planarized
	onSim(t, "ring:n=2", func(o *SessionOptions) {
		o.Engine.Close()
		p = &planarized{Transport: attach(t, "ring:n=2")}
		o.Engine = engine.New(p, engine.Options{})
	}, func(t *testing.T, f *fixture) {
		defer f.Env.Engine.Close()
		f.run("f = discover()")
		p.mu.Lock()
		p.sent = nil
		p.mu.Unlock()
		out, explained, _ := f.run(`f = discover(); print(smp_get("NodeInfo", f.switches[1].lid).node_guid == f.switches[1].guid, perf_get("PortCounters", f.switches[1].lid, 1).port_select)`)
		if got := strings.TrimSpace(out) + explained; got != "True 1" {
			t.Error(got)
		}
		for _, c := range p.sent {
			if c == mad.ClassSubn {
				t.Error("an SMP went by LID")
			}
		}
	})
}

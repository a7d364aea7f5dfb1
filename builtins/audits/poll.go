package audits

import (
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
)

// Poller reads the counters of ports again and again, each time once, and compares
// with the time before. The zero value has read nothing.
type Poller struct {
	last   *audit.Read
	agents audit.Agents
}

// Read is what the counters of ports have done since the Read before; of the first
// one, and of a port that was not among those before, the windows have no rates.
// The error is of the host, or of the session: a port that does not answer has no
// windows.
func (p *Poller) Read(c *lang.Call, ports []*fabric.Port) ([]audit.PortRates, error) {
	targets := make(starlark.Tuple, len(ports))
	for i, port := range ports {
		targets[i] = topology.PortOf(port)
	}
	r, err := newReader(c, targets, &p.agents)
	if err != nil {
		return nil, err
	}
	after, read, err := r.read()
	if err != nil {
		return nil, err
	}
	var before []past
	if p.last != nil {
		before = pastsOf([]*audit.Read{p.last}, after)
	}
	p.last = read
	r.compare(after, read, before)
	rates := make([]audit.PortRates, len(ports))
	for i, v := range r.values {
		rates[i] = audit.PortRates{Port: ports[i], TimedOut: r.silent[i]}
		if x := RatesOf(v); x != nil {
			rates[i].Windows = x.Windows
		}
	}
	return rates, nil
}

// RatesOver reads the counters of ports twice: what they have done between.
func RatesOver(c *lang.Call, ports []*fabric.Port, over time.Duration) ([]audit.PortRates, error) {
	var p Poller
	if _, err := p.Read(c, ports); err != nil {
		return nil, err
	}
	if err := c.Sleep(remaining(c, over, p.last.Began)); err != nil {
		return nil, err
	}
	return p.Read(c, ports)
}

// remaining returns what is left of a time since began: all of it where the clock was set
// back since.
func remaining(c *lang.Call, over time.Duration, began time.Time) time.Duration {
	return min(over, over-c.Runtime().Clock.Now().Sub(began))
}

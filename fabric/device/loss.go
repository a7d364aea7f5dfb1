package device

import (
	"context"
	"errors"
	"fmt"
	"time"

	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// LinkLoss is how many requests over a link were not answered.
type LinkLoss struct {
	Near, Far  *fabric.Port // its ends, as the requests cross it
	Sent, Lost int

	route mad.DirectedRoute // to Far
}

// Behind is the far end of the link before l on the path of its requests; nil: l is the first.
// What is lost on the path up to there is lost for l too.
func (l *LinkLoss) Behind() *fabric.Port {
	if l.route.Hops() < 2 {
		return nil
	}
	return l.Near.Node().Fabric().PortAt(l.route[:len(l.route)-1])
}

// Limits of LossOptions, and of how often an agent is requested: ibdiagnet sends 1000 datagrams
// by default to each port of a path (ibutils ibdiagnet -c), one after the other.
const (
	MaxLossCount  = 100_000 // requests over a link
	MaxLossRate   = 10_000  // requests per second
	agentInterval = 10 * time.Millisecond
	// maxSilent is after how many lost requests a link is not tried again, if no request was
	// answered: so many datagrams show that nothing passes.
	maxSilent = 10
)

// LossOptions are the settings of CountLosses.
type LossOptions struct {
	Count int // requests over each link
	Rate  int // requests per second, over all links
	Sleep func(context.Context, time.Duration) error
}

// NewLinkLoss returns the way to the link with an end p: over its end that is nearer to the local
// port. The error is that no request can cross the link.
func NewLinkLoss(p *fabric.Port) (*LinkLoss, error) {
	near := p
	if !forwards(near) || forwards(p.Peer()) && p.Peer().Node().Route().Hops() < near.Node().Route().Hops() {
		near = p.Peer()
	}
	switch {
	case p.Node().Route() == nil || p.Peer().Node().Route() == nil:
		return nil, fmt.Errorf("no route leads to it; run discover() on a live fabric")
	case !forwards(near):
		return nil, fmt.Errorf("it joins two hosts, which do not forward requests")
	case near.Node().Route().Hops() == mad.MaxHops:
		return nil, fmt.Errorf("it is farther than %d hops, the most of a directed route", mad.MaxHops)
	}
	return &LinkLoss{Near: near, Far: near.Peer(), route: near.Node().Route().Append(uint8(near.Num()))}, nil
}

// forwards reports whether requests from the local port can leave through p.
func forwards(p *fabric.Port) bool {
	return p.Node().IsSwitch() || p == p.Node().Fabric().From()
}

// CountLosses sends requests for NodeInfo over each link, each of them once, and counts those that
// are not answered. Agents are requested by turns, each at most once in 10 ms. The error is the end
// of ctx, or of the engine.
func CountLosses(ctx context.Context, e *engine.Engine, links []*LinkLoss, o LossOptions) error {
	var waves [][]*LinkLoss // each has at most one link to an agent
	next := map[int]int{}
	for _, l := range links {
		n := next[l.Far.Node().ID()]
		if next[l.Far.Node().ID()]++; n == len(waves) {
			waves = append(waves, nil)
		}
		waves[n] = append(waves[n], l)
	}
	most := max(1, o.Rate*int(agentInterval)/int(time.Second))
	calls, open := make([]engine.Call, most), make([]*engine.Call, 0, most)
	for range o.Count {
		for _, wave := range waves {
			for len(wave) > 0 {
				n := min(most, len(wave))
				part := wave[:n]
				wave = wave[n:]
				open = open[:0]
				for i, l := range part {
					if l.Lost >= maxSilent && l.Lost == l.Sent {
						continue
					}
					calls[i] = engine.Call{Retries: -1}
					fabric.Dest{Route: l.route, Guard: l.Far.Guard()}.Put(&calls[i], mad.MethodGet, mad.AttrNodeInfo, 0, nil)
					open = append(open, &calls[i])
				}
				if len(open) == 0 {
					continue
				}
				if err := e.Do(ctx, open...); err != nil {
					return err
				}
				for i, l := range part {
					if calls[i].Attempts == 0 {
						continue
					}
					lost, err := isLost(calls[i].Err)
					if err != nil {
						return err
					}
					if l.Sent++; lost {
						l.Lost++
					}
				}
				clear(calls[:n])
				pause := max(agentInterval, time.Duration(len(open))*time.Second/time.Duration(o.Rate))
				if err := o.Sleep(ctx, pause); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// isLost reports whether a request with that error was lost. Answers with an error status are
// answers; other errors, of the transport, are returned.
func isLost(err error) (bool, error) {
	var failed *engine.Error
	switch {
	case err == nil:
		return false, nil
	case !errors.As(err, &failed):
		return false, err
	case failed.Timeout():
		return true, nil
	case failed.Status != 0:
		return false, nil
	}
	return false, err
}

package apply

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// cuts decides how late each removal is written. The port of the subnet manager, which is
// the subnet administrator's, and this host are cut last; before them what is farther
// away, so that directed routes to nodes written later still work.
type cuts struct {
	f    *fabric.Fabric
	ends []*fabric.Port        // of this host and of the subnet manager
	on   map[*fabric.Port]bool // by which packets between these leave switches
}

// farthest is longer than any directed route.
const farthest = 64

// newCuts computes cuts of f from the tables in force; nil: the tables are unknown.
func newCuts(f *fabric.Fabric, live *routes.Routes, host, manager mad.LID) *cuts {
	c := &cuts{f: f, on: map[*fabric.Port]bool{}}
	for _, lid := range []mad.LID{host, manager} {
		if p := f.PortByLID(lid); lid != 0 && p != nil {
			c.ends = append(c.ends, p)
		}
	}
	if live == nil || len(c.ends) < 2 {
		return c
	}
	for _, way := range [][2]mad.LID{{host, manager}, {manager, host}} {
		path, err := live.Trace(way[0], way[1])
		if err != nil {
			continue // one end is in no table
		}
		for _, hop := range path.Hops {
			if p := live.Graph().Switches()[hop.Switch].Port(int(hop.Out)); p != nil && p.Peer() != nil {
				c.on[p], c.on[p.Peer()] = true, true
			}
		}
	}
	return c
}

// rank returns when the removal by c is written: the higher, the later.
func (c *cuts) rank(cell *Cell) int {
	nodes := c.f.NodeByGUID(cell.Node)
	if len(nodes) != 1 {
		return 0
	}
	near, last := len(nodes[0].Route()), c.isEnd(nodes[0])
	if cell.Attr != mad.AttrPortInfo {
		if last {
			return 3 * farthest
		}
		return -farthest
	}
	port := nodes[0].Port(int(cell.Modifier & 0xff))
	if port != nil && port.Peer() != nil {
		near = min(near, len(port.Peer().Node().Route()))
		last = last || c.isEnd(port.Peer().Node())
	}
	switch {
	case last:
		return 3*farthest - near
	case c.on[port]:
		return 2*farthest - near
	}
	return -near
}

func (c *cuts) isEnd(n *fabric.Node) bool {
	return slices.ContainsFunc(c.ends, func(p *fabric.Port) bool { return p.Node() == n })
}

// lastRounds are the rounds of steps that remove something. Steps of one rank share a
// round; a link that only retrains comes first, because all other links are still up.
func lastRounds(cells []*Cell, steps []Step, rank func(*Cell) int) (rounds []Round) {
	if rank == nil {
		rank = func(*Cell) int { return 0 }
	}
	key := func(s Step) int { return rank(cells[s.Cell]) }
	slices.SortStableFunc(steps, func(a, b Step) int { return cmp.Compare(key(a), key(b)) })
	for i, s := range steps {
		n := len(rounds) - 1
		if i == 0 || key(steps[i-1]) != key(s) || cells[s.Cell].trains() || cells[steps[i-1].Cell].trains() {
			rounds, n = append(rounds, Round{}), n+1
		}
		rounds[n].Steps = append(rounds[n].Steps, s)
	}
	return rounds
}

// trains reports whether the cell makes a link train again.
func (c *Cell) trains() bool {
	f := mad.AttrPortInfo.Field("port_physical_state")
	return slices.Contains(c.Fields, f.Script) && mad.PortPhysicalState(f.Uint(c.New)) == mad.PortPhysicalStatePolling && settled(f, f.Uint(c.Old)) == f.Uint(c.New)
}

// traceless reports whether the cell makes a link train again, or disables adaptive routing,
// and reads the same before and after.
func (c *Cell) traceless() bool { return c.trains() && c.same(c.Old, c.New) || c.rewrites() }

// trainsWithin is how long a link may take to train.
const trainsWithin = 10 * time.Second

// trained waits until the links that steps have made train again are up, if they were up
// before.
func (c *Change) trained(ctx context.Context, steps []Step) error {
	state := mad.AttrPortInfo.Field("port_physical_state")
	steps = slices.DeleteFunc(slices.Clone(steps), func(s Step) bool {
		cell := c.cells[s.Cell]
		return !cell.trains() || mad.PortPhysicalState(state.Uint(cell.Old)) != mad.PortPhysicalStateLinkUp
	})
	for waited := time.Duration(0); len(steps) > 0; waited += poll {
		back, err := c.read(ctx, cellsOf(steps))
		if err != nil {
			return err
		}
		var left []Step
		for i, s := range steps {
			if back[i].err != nil || mad.PortPhysicalState(state.Uint(back[i].data)) != mad.PortPhysicalStateLinkUp {
				left = append(left, s)
			}
		}
		if steps = left; len(steps) > 0 && waited >= trainsWithin {
			return &CheckError{fmt.Sprintf("%s: the link was reset, and is not up after %v", c.cells[steps[0].Cell].Name, trainsWithin)}
		} else if len(steps) > 0 {
			if err := c.Sleep(ctx, poll); err != nil {
				return err
			}
		}
	}
	return nil
}

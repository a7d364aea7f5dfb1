package order

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"fabsh/fabric/routing/graph"
	"fabsh/mad"
)

// net is the fabric in the form that the proofs need.
type net struct {
	g         *graph.Graph
	n         int // number of switches
	terminals []graph.Terminal
	channels  []graph.Channel
	chanBase  []int32 // first channel of each switch, and the end
	// Port p of switch s leads to targets[portBase[s]+p].
	targets  []graph.Target
	portBase []int32
	sources  []int32   // switches with CAs or routers
	ends     [][]int32 // by switch: the CAs' and routers' terminals
	managed  []int32   // switches that have a LID
	selves   []int32   // by switch: its own terminal, or -1
	top      mad.LID   // the highest LID that is judged
}

func newNet(g *graph.Graph) *net {
	t := &net{g: g, n: len(g.Switches()), terminals: g.Terminals(), channels: g.Channels(), top: g.Top()}
	for _, n := range g.Switches() {
		t.portBase = append(t.portBase, int32(len(t.targets)))
		t.targets = append(t.targets, slices.Repeat([]graph.Target{graph.NoTarget}, n.NumPorts()+1)...)
	}
	t.portBase = append(t.portBase, int32(len(t.targets)))
	t.chanBase = make([]int32, t.n+1)
	for c, ch := range t.channels {
		t.targets[t.portBase[ch.From]+int32(ch.Port)] = graph.Target(c)
		t.chanBase[ch.From+1] = int32(c) + 1
	}
	for s := range t.n {
		t.chanBase[s+1] = max(t.chanBase[s], t.chanBase[s+1])
	}
	t.ends = make([][]int32, t.n)
	t.selves = slices.Repeat([]int32{-1}, t.n)
	for i, e := range t.terminals {
		if e.Switch < 0 {
			continue
		}
		t.targets[t.portBase[e.Switch]+int32(e.Out)] = graph.ToTerminal(int32(i))
		if e.Out > 0 && e.Count > 0 {
			t.ends[e.Switch] = append(t.ends[e.Switch], int32(i))
		}
		if e.Out == 0 && e.Count > 0 {
			t.selves[e.Switch] = int32(i)
		}
	}
	for s, self := range t.selves {
		if self >= 0 {
			t.managed = append(t.managed, int32(s))
		}
	}
	for s, on := range t.ends {
		if len(on) > 0 {
			t.sources = append(t.sources, int32(s))
		}
	}
	return t
}

// target returns what port p of switch s leads to.
func (t *net) target(s int32, p uint8) graph.Target {
	if at := t.portBase[s] + int32(p); at < t.portBase[s+1] {
		return t.targets[at]
	}
	return graph.NoTarget
}

// terminal returns the terminal of a LID to which packets are sent, or -1.
func (t *net) terminal(lid int) int32 {
	if lid > int(t.top) {
		return -1
	}
	to := t.g.TerminalByLID(mad.LID(lid))
	if to >= 0 && t.terminals[to].Switch < 0 {
		return -1
	}
	return int32(to)
}

// isEnd reports whether a terminal is a CA or router.
func (t *net) isEnd(terminal int32) bool { return t.terminals[terminal].Out > 0 }

// blocks returns the number of blocks with LIDs to which packets are sent.
func (t *net) blocks() int { return int(t.top)/mad.LFTBlock + 1 }

// each calls do for 0..n-1 on all cores; each worker has a number.
func (t *net) each(n int, do func(worker, i int)) {
	var next atomic.Int64
	var wait sync.WaitGroup
	for worker := range min(t.g.Workers(), n) {
		wait.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				do(worker, i)
			}
		})
	}
	wait.Wait()
}

// check returns an error if the input is inconsistent.
func (in *Input) check() error {
	if in.Old == nil || in.New == nil || in.Old.Graph() != in.New.Graph() {
		return fmt.Errorf("order of writes: the old and the new tables must be on one graph")
	}
	n := len(in.Old.Graph().Switches())
	if in.Drain != nil && len(in.Drain) != n || in.OldTop != nil && len(in.OldTop) != n || in.NewTop != nil && len(in.NewTop) != n {
		return fmt.Errorf("order of writes: expected a drain time and a LinearFDBTop for each of %d switches, or none", n)
	}
	if in.Adaptive != nil && len(in.Adaptive) != n || slices.ContainsFunc(in.Disable, func(p Place) bool {
		return p.Switch < 0 || p.Switch >= len(in.Adaptive) || !in.Adaptive[p.Switch].Active()
	}) {
		return fmt.Errorf("order of writes: expected adaptive routing for each of %d switches, or none, and none to disable where it is off", n)
	}
	return nil
}

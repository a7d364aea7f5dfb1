package order

import (
	"context"
	"fmt"

	"fabsh/fabric/plural"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// traffic is a kind of packets on the lanes for data. Subnet management packets are
// excluded: they have VL 15, whose buffers have no credits, so they wait for none, but
// are dropped (IBA 7.9.4.1).
type traffic uint8

const (
	betweenHosts traffic = iota // CAs and routers
	toSwitches                  // general management packets (GMPs) of hosts to port 0
	fromSwitches                // the answers
	kinds
)

// maxLanesWork is the largest number of LIDs times switches for which management packets
// are judged if virtual lanes matter: the searches take a second.
const maxLanesWork = 1 << 20

// judgeManagement searches for a credit loop that may arise when packets to and from
// switches are added to those between hosts, and that does not exist in the old tables.
// rough, if not nil, has the dependencies of packets between hosts and of answers, and
// possibly more, of LIDs that do not change.
func (h *history) judgeManagement(ctx context.Context, e epoch, workers []*follower, fig *Figures, rough *verify.DependencyGraph) error {
	if fig.Management != nil || h.skipsManagement() {
		return nil
	}
	if rough != nil {
		unite(rough, workers, toSwitches)
		unite(rough, workers, fromSwitches)
		if err := h.collectExact(ctx, e, rough, toSwitches); err != nil || rough.Acyclic() {
			return err
		}
	}
	all := verify.NewDependencyGraph(h.g, h.vls())
	for of := range kinds {
		unite(all, workers, of)
	}
	if err := h.collectAll(ctx, e, all); err != nil || all.Acyclic() {
		return err
	}
	before := verify.NewDependencyGraph(h.g, h.vls())
	if err := h.still().collectAll(ctx, epoch{old: true}, before); err != nil {
		return err
	}
	for _, v := range all.CycleBeyond(before) {
		fig.Management = append(fig.Management, hop(h.g.ChannelPort(int(v)/h.vls())))
	}
	return nil
}

// skipsManagement reports whether judgeManagement would take too long.
func (h *history) skipsManagement() bool {
	return h.in.lanesMatter() && len(h.blocks)*mad.LFTBlock*h.n > maxLanesWork
}

// collectAll adds the dependencies of all packets to LIDs whose entries never change.
// Answers are sent by each switch, and take all links that packets between hosts take.
func (h *history) collectAll(ctx context.Context, e epoch, deps *verify.DependencyGraph) error {
	if err := h.collectExact(ctx, e, deps, toSwitches); err != nil {
		return err
	}
	if !h.in.lanesMatter() && len(h.managed) == h.n {
		h.collectStatic(deps, true)
		return context.Cause(ctx)
	}
	if err := h.collectExact(ctx, e, deps, betweenHosts); err != nil {
		return err
	}
	return h.collectExact(ctx, e, deps, fromSwitches)
}

// managementNotes states what is not proven of packets to and from switches.
func (h *history) managementNotes(loop []string) []string {
	switch {
	case len(loop) > 0:
		return []string{fmt.Sprintf("a credit loop of %s in which management packets (GMPs) to or from switches take part, as on %s", plural.Count(len(loop), "link", "links"), loop[0])}
	case h.skipsManagement():
		return []string{"credit loops of management packets (GMPs) to and from switches"}
	}
	return nil
}

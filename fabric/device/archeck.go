package device

import (
	"context"
	"fmt"

	"fabsh/fabric/adaptive"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// The modifiers of AdaptiveRoutingLFT and AdaptiveRoutingGroupTable are an inference: no
// public source has them. What is read by them is checked, and a switch whose tables fail
// has a reason in adaptive.Switch.Unknown.

// check returns why s, what was read by inferred modifiers, cannot be the tables of the
// switch; "": nothing speaks against it.
func (a *AR) check(s *adaptive.Switch) string {
	for _, row := range s.Private {
		for _, id := range row {
			if id != 0 {
				return fmt.Sprintf("private LFT %d is in use; no public source has the modifier that reads its entries", id)
			}
		}
	}
	t := s.Tables[0]
	most := a.Node.NumPorts
	checked := make([]bool, t.Groups.Len())
	for lid := range t.Top() + 1 {
		e := t.Entry(lid)
		if e.Port > most && e.Port != mad.NoPort {
			return fmt.Sprintf("the entry of LID %d has port %d; the switch has ports 0..%d", lid, e.Port, most)
		}
		if e.State == adaptive.Static {
			continue
		}
		if int(e.Group) >= len(checked) {
			return fmt.Sprintf("the entry of LID %d has group %d; the last group is %d", lid, e.Group, len(checked)-1)
		}
		if checked[e.Group] {
			continue
		}
		checked[e.Group] = true
		for port := range t.Groups.All(int(e.Group)).All() {
			if port > most {
				return fmt.Sprintf("group %d of LID %d has port %d; the switch has ports 0..%d", e.Group, lid, port, most)
			}
		}
	}
	return ""
}

// checkStatic checks the static ports of switches that route adaptively against the network:
// each LID of a port has an entry, and the static ports lead to it. It sets Unknown of
// switches where packets are dropped, loop, or arrive at another port. Ports without a link
// are left out: they may be broken.
func checkStatic(ctx context.Context, r *routes.Routes, of func(s int) *adaptive.Switch) error {
	g := r.Graph()
	reasons := make([][]string, g.Workers()) // by worker and switch
	err := verify.EachDest(ctx, r, g.Workers(), nil, func(worker int, w *verify.Walk, lid mad.LID) {
		if reasons[worker] == nil {
			reasons[worker] = make([]string, len(g.Switches()))
		}
		t := int32(g.TerminalByLID(lid))
		ports := w.Column(lid)
		for s := range ports {
			w.From(int32(s), ports, t)
		}
		for s, port := range ports {
			if w.State[s] >= 0 || !of(s).Active() || reasons[worker][s] != "" {
				continue
			}
			reasons[worker][s] = staticFault(g, int32(s), port, lid, w.State[s] == verify.Looping)
		}
	})
	if err != nil {
		return err
	}
	for _, list := range reasons {
		for s, reason := range list {
			if reason != "" && of(s).Unknown == "" {
				of(s).Unknown = reason
			}
		}
	}
	return nil
}

// staticFault is why an entry of a switch cannot be right; "": another switch is at fault, or
// a link.
func staticFault(g *graph.Graph, s int32, port uint8, lid mad.LID, loops bool) string {
	switch target := g.Target(s, port); {
	case port == mad.NoPort:
		return fmt.Sprintf("LID %d of a port has no entry", lid)
	case loops:
		return fmt.Sprintf("static port %d of LID %d leads into a loop", port, lid)
	case target.IsTerminal():
		return fmt.Sprintf("static port %d of LID %d leads to another port", port, lid)
	}
	return ""
}

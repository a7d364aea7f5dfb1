package remedy

import (
	"context"
	"fmt"

	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/mad"
)

// Rule is a rule that holds for every remedy, also those of users.
type Rule struct {
	Name     string
	Sentence string // for people: what is declined
	// Kinds are the kinds of actions that it judges.
	Kinds []ActionKind
	// judge returns why the action is declined; "": it is not.
	judge func(x *decider, ctx context.Context, p *fabric.Port) (string, error)
}

var down = []ActionKind{Isolate, Reset} // these take a link down

// Rules are all rules, in the order in which they are judged.
func Rules() []Rule {
	return []Rule{
		{"twice", "A link is not isolated twice, and one plan has one action for it.", []ActionKind{Isolate, Restore, Reset}, (*decider).twice},
		{"link", "Only a link that is up is isolated or reset.", down, (*decider).link},
		{"switch", "Only ports of switches are disabled: the port of a host may be enabled again by its host alone.", down, (*decider).ofSwitch},
		{"manager", "No link of a node with a subnet manager, or of this host, goes down.", down, (*decider).manager},
		{"host", "No host loses its last link.", down, (*decider).host},
		{"split", "No two nodes lose the last path between them.", down, (*decider).split},
		{"limit", "A plan takes down at most 10 links, or 0.5 % of the ports with a link if that is more.", down, (*decider).limit},
		{"effect", "No link goes down if ports of hosts would lose a path, as that at the link of a host does, or if the new tables could deadlock, as predicted.", down, (*decider).effect},
		{"foreign", "Only ports that fabsh isolated are enabled, never one that another disabled.", []ActionKind{Restore}, (*decider).foreign},
	}
}

// twice is the rule of this name.
func (x *decider) twice(_ context.Context, p *fabric.Port) (string, error) {
	if x.taken[p] {
		return "the plan has an action for this link already", nil
	}
	if past := x.State.Of(p); x.kind == Isolate && past != nil && !past.Isolated.IsZero() && p.Peer() == nil {
		return "isolated since " + past.Isolated.UTC().Format(timeFormat), nil
	}
	return "", nil
}

// link is the rule of this name.
func (x *decider) link(_ context.Context, p *fabric.Port) (string, error) {
	if p.Peer() == nil || p.Num() == 0 {
		return "no link is up at this port", nil
	}
	return "", nil
}

// ofSwitch is the rule "switch".
func (x *decider) ofSwitch(_ context.Context, p *fabric.Port) (string, error) {
	if !p.Node().IsSwitch() {
		return "neither end of the link is a switch", nil
	}
	return "", nil
}

// manager is the rule of this name.
func (x *decider) manager(_ context.Context, p *fabric.Port) (string, error) {
	for _, end := range []*fabric.Port{p, p.Peer()} {
		n := end.Node()
		switch {
		case x.Host != nil && x.Host.Node() == n:
			return fmt.Sprintf("%s is this host", n.Label()), nil
		case x.Manager != nil && x.Manager.Node() == n, runsManager(n):
			return fmt.Sprintf("%s has a subnet manager", n.Label()), nil
		}
	}
	return "", nil
}

// runsManager reports whether a node announces a subnet manager, in charge or not.
func runsManager(n *fabric.Node) bool {
	ports := func(p *fabric.Port) bool {
		return p != nil && p.Info() != nil && p.Info().CapabilityMask&mad.CapabilityMaskIsSM != 0
	}
	if n.IsSwitch() {
		return ports(n.Port(0))
	}
	for p := range n.Ports() {
		if ports(p) {
			return true
		}
	}
	return false
}

// host is the rule of this name.
func (x *decider) host(_ context.Context, p *fabric.Port) (string, error) {
	for _, end := range []*fabric.Port{p, p.Peer()} {
		n := end.Node()
		if n.IsSwitch() {
			continue
		}
		left := 0
		for q := range n.Ports() {
			if q != end && q.Peer() != nil && !x.down[q] {
				left++
			}
		}
		if left == 0 {
			return fmt.Sprintf("it is the last link of %s", n.Label()), nil
		}
	}
	return "", nil
}

// split is the rule of this name.
func (x *decider) split(_ context.Context, p *fabric.Port) (string, error) {
	return change.CutOff(x.Fabric, x.downWith(p)), nil
}

// limit is the rule of this name.
func (x *decider) limit(context.Context, *fabric.Port) (string, error) {
	if most := change.MaxDown(x.Fabric); len(x.down)/2+1 > most {
		return fmt.Sprintf("the plan takes down %d links already", most), nil
	}
	return "", nil
}

// effect is the rule of this name.
func (x *decider) effect(ctx context.Context, p *fabric.Port) (string, error) {
	if x.Effect == nil {
		return "the forwarding tables are unknown, so the effect cannot be predicted", nil
	}
	ports := append(x.order[:len(x.order):len(x.order)], p)
	refusal, cost, err := x.Effect(ctx, ports)
	if err == nil && refusal == "" {
		x.cost = cost
	}
	return refusal, err
}

// foreign is the rule of this name.
func (x *decider) foreign(_ context.Context, p *fabric.Port) (string, error) {
	past := x.State.Of(p)
	if past == nil || past.Isolated.IsZero() && past.Testing.IsZero() {
		return "fabsh did not isolate it", nil
	}
	return "", nil
}

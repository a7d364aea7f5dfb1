package audit

import (
	"fabsh/fabric"
	"fabsh/mad"
)

// Sweep stands for the sweep among the audits of a coverage.
const Sweep = "sweep"

// CountSweep counts the requests of the sweep that made f, as far as f shows them: requests that were
// repeated on another route count once. Of a file (live is false), what it lacks is
// unsupported. missed is what else was missed, in words.
func (c *Coverage) CountSweep(f *fabric.Fabric, live bool) (missed []string) {
	one := func(a *mad.Attribute, s Subject, known, asked bool) {
		outcome := Unsupported
		switch {
		case known:
			outcome = Answered
		case asked:
			outcome = TimedOut
		}
		c.Count(Sweep, a.Name, s, outcome, 1)
	}
	nodes := f.Nodes()
	for i := range nodes {
		n := &nodes[i]
		asked := n.Route() != nil
		one(mad.AttrNodeInfo, OfNode(n), true, asked)
		if n.IsSwitch() {
			one(mad.AttrSwitchInfo, OfNode(n), n.SwitchInfo() != nil, asked)
			one(mad.AttrPortInfo, OfPort(n.Port(0)), n.Port(0).Info() != nil, asked)
		}
		for p := range n.Ports() {
			// A sweep reads the ports of a CA that links lead to, and the one that it begins at.
			if n.IsSwitch() || p.Peer() != nil || p.Info() != nil || p == f.From() {
				one(mad.AttrPortInfo, OfPort(p), p.Info() != nil, asked)
			}
			if asked && p.Peer() == nil && p.PhysicalState() == mad.PortPhysicalStateLinkUp { // the link is up, and nothing was found behind it
				one(mad.AttrNodeInfo, OfPort(p), false, true)
			}
		}
	}
	for _, p := range f.Problems() {
		switch {
		case !p.Kind.Missing(), p.Attribute == mad.AttrNodeInfo.Name, p.Attribute == mad.AttrPortInfo.Name, p.Attribute == mad.AttrSwitchInfo.Name:
			continue
		case p.Attribute == "" && !live && (p.Kind == fabric.ProblemTimedOut || p.Kind == fabric.ProblemFailed):
			continue // in a file the attribute is unknown; what it lacks is counted above
		case p.Attribute == "":
			c.Count(Sweep, mad.AttrNodeInfo.Name, OfFabric(), Failed, 1)
		default:
			c.Count(Sweep, p.Attribute, OfFabric(), TimedOut, 1)
		}
		missed = append(missed, p.Text)
	}
	return missed
}

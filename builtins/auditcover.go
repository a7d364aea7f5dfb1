package builtins

import (
	"errors"
	"fmt"

	"fabsh/builtins/datagrams"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/sa"
	"fabsh/fabric/table"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// sweepName stands for the sweep among the audits of a coverage.
const sweepName = "sweep"

// cover counts what the sweep asked, by what it knows: requests that were
// repeated on another route count once. Of a file, what it does not have is not
// supported.
func (r *auditRun) cover(f *topology.Fabric) {
	c := &r.report.Coverage
	if r.missed = nil; r.Known != nil {
		return // nothing was swept
	}
	one := func(a *mad.Attribute, s audit.Subject, known, asked bool) {
		switch {
		case known:
			c.Count(sweepName, a.Name, s, audit.Answered, 1)
		case asked:
			c.Count(sweepName, a.Name, s, audit.TimedOut, 1)
		default:
			c.Count(sweepName, a.Name, s, audit.Unsupported, 1)
		}
	}
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		asked := n.Route() != nil
		one(mad.AttrNodeInfo, audit.OfNode(n), true, asked)
		if n.IsSwitch() {
			one(mad.AttrSwitchInfo, audit.OfNode(n), n.SwitchInfo() != nil, asked)
			one(mad.AttrPortInfo, audit.OfPort(n.Port(0)), n.Port(0).Info() != nil, asked)
		}
		for p := range n.Ports() {
			// A sweep asks the ports of a CA that links lead to, and the one that it begins at.
			if n.IsSwitch() || p.Peer() != nil || p.Info() != nil || p == f.From() {
				one(mad.AttrPortInfo, audit.OfPort(p), p.Info() != nil, asked)
			}
			if unknownBehind(p) {
				one(mad.AttrNodeInfo, audit.OfPort(p), false, true)
			}
		}
	}
	for _, p := range f.Problems() {
		switch {
		case !p.Kind.Missing(), p.Attribute == mad.AttrNodeInfo.Name, p.Attribute == mad.AttrPortInfo.Name, p.Attribute == mad.AttrSwitchInfo.Name:
			continue
		case p.Attribute == "" && !r.live() && (p.Kind == fabric.ProblemTimedOut || p.Kind == fabric.ProblemFailed):
			continue // a file does not say which attribute; what it lacks is counted above
		case p.Attribute == "":
			r.missed = append(r.missed, p.Text)
			c.Count(sweepName, mad.AttrNodeInfo.Name, audit.OfFabric(), audit.Failed, 1)
		default:
			r.missed = append(r.missed, p.Text)
			c.Count(sweepName, p.Attribute, audit.OfFabric(), audit.TimedOut, 1)
		}
	}
}

// unknownBehind: p's link is up, and a sweep found nothing behind it.
func unknownBehind(p *fabric.Port) bool {
	return p.Node().Route() != nil && p.Peer() == nil && p.PhysicalState() == mad.PortPhysicalStateLinkUp
}

// observe counts a request of the audit that runs.
func (r *auditRun) observe(a *mad.Attribute, t *topology.Target, err error) {
	if r.current == "" || errors.Is(err, topology.ErrNoFabric) {
		return
	}
	outcome := outcomeOf(err)
	s := audit.OfFabric()
	if t.Node != nil && (outcome == audit.TimedOut || outcome == audit.Failed) { // else nobody asks whose it was
		s = audit.OfNode(t.Node)
		if t.Port != topology.NoPortGiven {
			if p := t.Node.Port(t.Port); p != nil {
				s = audit.OfPort(p)
			}
		}
	}
	r.report.Coverage.Count(r.current, a.Name, s, outcome, 1)
}

// outcomeOf is what a request came to.
func outcomeOf(err error) audit.Outcome {
	var me *engine.Error
	var unsupported *table.UnsupportedError
	var register *datagrams.RegisterError
	switch {
	case err == nil:
		return audit.Answered
	case errors.As(err, &unsupported), errors.As(err, &register) && register.Unsupported(), errors.Is(err, topology.ErrNotInFile):
		return audit.Unsupported
	case engine.Unanswered(err):
		return audit.TimedOut
	case errors.As(err, &me) && me.Err == nil && (me.Status == mad.StatusBadMethodAttribute || me.Status == mad.StatusBadMethod):
		return audit.Unsupported
	}
	return audit.Failed
}

// findSM is the subnet manager at the moment; nil: none is known.
func (r *auditRun) findSM() (sm *sa.SM) {
	if !r.live() {
		return nil
	}
	var f *fabric.Fabric
	if r.env.Current != nil {
		f = r.env.Current.Fabric
	}
	if found, err := r.env.SA.FindSM(r.ctx, f); err == nil {
		sm = found
	}
	return sm
}

// ownAnswers is how far our own requests raise the count of a subnet manager:
// OpenSM's is of the SMPs that it has sent, answers to SMInfo included.
const ownAnswers = 4

// compareSM is what the subnet manager did since it was sm, in words; empty:
// nothing that is known.
func (r *auditRun) compareSM(sm *sa.SM) string {
	now := r.findSM()
	if sm == nil || now == nil || sm.Info == nil || now.Info == nil {
		return ""
	}
	allowed := uint32(ownAnswers)
	if r.env.Engine.Traits().Simulated {
		allowed = 0 // it counts sweeps
	}
	switch n := now.Info.ActCount - sm.Info.ActCount; {
	case now.Info.GUID != sm.Info.GUID:
		return fmt.Sprintf("the subnet manager changed meanwhile: it was %v, it is %v", sm, now)
	case n > allowed && n < 1<<31:
		return fmt.Sprintf("the subnet manager was at work meanwhile (its activity count rose by %d): it may have swept", n)
	}
	return ""
}

package device

import (
	"context"
	"errors"
	"fmt"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/routing/routes"
	"fabsh/mad/engine"
)

// Adaptivity is which switches of a fabric route adaptively, or by hashes: these do not
// follow their linear forwarding tables.
type Adaptivity struct {
	On []*fabric.Node
	// Undetermined are the switches that did not answer whether they do, of those that may:
	// by their vendor, and by what they announce.
	Undetermined []SwitchError
}

// ReadAdaptivity reads AdaptiveRoutingInfo of the switches of f that announce it: the engine
// asks each device of NVIDIA once, by GeneralInfo, and none of another vendor. The error is
// the end of ctx.
func ReadAdaptivity(ctx context.Context, e *engine.Engine, f *fabric.Fabric) (*Adaptivity, error) {
	var list []*AR
	var of []*fabric.Node
	for i := range f.Nodes() {
		if n := &f.Nodes()[i]; n.IsSwitch() && (n.Route() != nil || n.LID() != 0) {
			list, of = append(list, arOf(n)), append(of, n)
		}
	}
	if err := ReadARInfo(ctx, e, list...); err != nil {
		return nil, err
	}
	a := new(Adaptivity)
	for i, r := range list {
		switch {
		case r.Err != nil:
			a.Undetermined = append(a.Undetermined, SwitchError{of[i], r.Err})
		case r.on():
			a.On = append(a.On, of[i])
		}
	}
	return a, nil
}

// StoredAdaptivity is what came with the fabric of live, as in a snapshot, by Adaptivity and
// ReadChoices; nil: nothing came with it. In a snapshot, the forwarding tables of switches
// where adaptive routing is on are its static ports.
func StoredAdaptivity(live *routes.Routes) (*Adaptivity, []*adaptive.Switch) {
	g := live.Graph()
	if !g.Fabric().HasAdaptive() {
		return nil, nil
	}
	a, choices := new(Adaptivity), make([]*adaptive.Switch, len(g.Switches()))
	for s, n := range g.Switches() {
		switch stored := n.Adaptive(); {
		case stored.Active():
			choices[s] = live.Adaptive(s)
			a.On = append(a.On, n)
		case stored == nil || stored.Unknown != "":
			reason := "the file does not have it"
			if stored != nil {
				reason = stored.Unknown
			}
			a.Undetermined = append(a.Undetermined, SwitchError{n, errors.New(reason)})
		}
	}
	return a, choices
}

// arOf is what ReadAR and ReadARInfo read of a switch.
func arOf(n *fabric.Node) *AR {
	a := &AR{Dest: fabric.Dest{Route: n.Route(), LID: n.LID(), Guard: n.Guard()}, GUID: n.GUID()}
	if sw := n.SwitchInfo(); sw != nil {
		a.Known, a.Node, a.Switch = true, *n.Info(), *sw
	}
	return a
}

// ReadChoices reads the tables of adaptive routing of switches where it is on, by number in
// the graph of live, which has the linear forwarding tables; nil: it is off. What is wrong
// with the tables of a switch is in its Unknown. The error is the end of ctx.
func ReadChoices(ctx context.Context, e *engine.Engine, live *routes.Routes, on []*fabric.Node) ([]*adaptive.Switch, error) {
	g := live.Graph()
	choices := make([]*adaptive.Switch, len(g.Switches()))
	if len(on) == 0 {
		return choices, nil
	}
	list := make([]*AR, len(on))
	for i, n := range on {
		list[i] = arOf(n)
	}
	if err := ReadAR(ctx, e, nil, list...); err != nil {
		return nil, err
	}
	static := live.Clone()
	for i, n := range on {
		s := g.SwitchOf(n)
		switch a := list[i]; {
		case a.Err != nil:
			choices[s] = &adaptive.Switch{Enabled: true, Unknown: fmt.Sprintf("adaptive routing could not be read: %v", a.Err)}
		case a.Tables.Active():
			choices[s] = a.Tables
			static.SetAdaptive(s, a.Tables)
		}
	}
	err := checkStatic(ctx, static, func(s int) *adaptive.Switch { return choices[s] })
	return choices, err
}

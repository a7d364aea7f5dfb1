package change

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"fabsh/fabric/adaptive"
	"fabsh/fabric/change/order"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// Tables are the input for an order of writes of linear forwarding tables and of SL2VL,
// which is found and proven when a plan is made, and again when it is applied.
type Tables struct {
	// Live are the forwarding tables in force.
	Live *routes.Routes
	// Lanes adds the virtual lanes of the switches to Live. It is called only where
	// they matter: SL2VL changes, or the tables have a credit loop on one lane. Nil:
	// they cannot be known.
	Lanes func(ctx context.Context, live *routes.Routes) error
	// Levels returns the service levels of packets, and the source of this knowledge,
	// in words; none: any may be in use. It is called only if there are lanes. Nil:
	// like none.
	Levels func(ctx context.Context, live *routes.Routes) (levels *routes.SL, basis string, err error)
	// Basis is the source that Levels returned, if it was called.
	Basis string
	// Target has the service levels of paths after the change; nil: the current ones.
	// Until hosts query their paths again some use the old ones.
	Target *routes.Routes
	// OnTarget reports that the order is safe only if paths have the service levels of
	// Target from the start.
	OnTarget bool
	// Last are LIDs that are cut last: those of the subnet manager and of this host.
	Last []mad.LID
	// Adaptive is adaptive routing that is on, by switch of Live, with its choices; nil: off.
	// No list: it was not determined. Notes describes what else is known of it.
	Adaptive []*adaptive.Switch
	Notes    []string
	// Simple, AcceptCreditLoops and AcceptLost are those of order.Input.
	Simple, AcceptCreditLoops, AcceptLost bool
}

// Write is a block of a table of a node, before and after.
type Write struct {
	Attr     *mad.Attribute
	Modifier uint32
	Node     mad.GUID
	Label    string // for messages
	Old, New []byte // Old nil: as Live has it
}

// allSLs are all service levels.
const allSLs = 1<<mad.ServiceLevels - 1

// Order finds an order of writes. Writes of other attributes are skipped; a nil
// schedule means that there are no others. The error is a *order.Refusal if none is
// safe.
func (t *Tables) Order(ctx context.Context, writes []Write) (order.Input, *order.Schedule, error) {
	in, err := t.input(ctx, writes)
	if err == nil && in.New != nil {
		err = t.unknownChoices()
	}
	if err != nil || in.New == nil {
		return in, nil, err
	}
	s, err := order.Plan(ctx, in)
	if CreditLoop(err) && in.Old.SL2VL == nil && t.Lanes != nil {
		// Without lanes all packets count as if they were on one, which is safe.
		unread := t.Lanes(ctx, t.Live)
		if ctx.Err() != nil {
			return in, nil, context.Cause(ctx)
		}
		uniform := unread == nil && t.Target == nil && t.Live.SL2VL.Uniform()
		if uniform { // then lanes differ by service level only, if packets have several
			if err := t.levels(ctx); err != nil {
				return in, nil, err
			}
		}
		if unread != nil || uniform && !t.Live.SL.Any() {
			t.Live.SL2VL = nil
			return in, nil, err
		}
		if in, err = t.input(ctx, writes); err != nil {
			return in, nil, err
		}
		s, err = order.Plan(ctx, in)
	}
	if t.Target == nil || in.Old.SL2VL == nil || !CreditLoop(err) {
		return in, s, err
	}
	before := *in.Old
	alone := in
	alone.Old, alone.SLs, before.SL = &before, 0, in.New.SL
	s, err = order.Plan(ctx, alone)
	t.OnTarget = err == nil
	return alone, s, err
}

// input is the input of order.Plan. New is nil if writes has no tables.
func (t *Tables) input(ctx context.Context, writes []Write) (order.Input, error) {
	g := t.Live.Graph()
	in := order.Input{Last: t.Last, Drain: order.Drains(g), Simple: t.Simple, AcceptCreditLoops: t.AcceptCreditLoops, AcceptLost: t.AcceptLost, Adaptive: t.Adaptive, Disable: t.disable(writes)}
	top, found, lanes := t.Live.Top(), false, false
	for i := range writes {
		w := &writes[i]
		switch w.Attr {
		case mad.AttrLinearForwardingTable:
			found = true
			for at, port := range w.New {
				if port != mad.NoPort {
					top = max(top, mad.LID(int(w.Modifier)*mad.LFTBlock+at))
				}
			}
		case mad.AttrSLtoVLMappingTable:
			lanes = lanes || g.SwitchByGUID(w.Node) >= 0 && !bytes.Equal(w.Old, w.New)
		}
	}
	if !found && !lanes {
		return in, nil
	}
	if lanes && t.Live.SL2VL == nil {
		if t.Lanes == nil {
			return in, errors.New("virtual lanes of the switches unknown; nothing is proven")
		}
		if err := t.Lanes(ctx, t.Live); err != nil {
			return in, err
		}
	}
	if t.Live.SL2VL != nil {
		if err := t.levels(ctx); err != nil {
			return in, err
		}
		if t.Live.SL == nil {
			in.SLs = allSLs
		}
	}
	in.Old, in.New = t.Live.UpTo(top), t.Live.UpTo(top)
	if t.Target != nil && in.New.SL2VL != nil {
		in.New.SL = t.Target.On(g).SL
	}
	for i := range writes {
		if err := writes[i].put(g, in.Old, in.New); err != nil {
			return in, err
		}
	}
	return in, nil
}

// levels asks, once, which service levels are in use.
func (t *Tables) levels(ctx context.Context) (err error) {
	if t.Levels == nil || t.Basis != "" {
		return nil
	}
	t.Live.SL, t.Basis, err = t.Levels(ctx, t.Live)
	return err
}

// put applies w to the tables before and after it.
func (w *Write) put(g *graph.Graph, before, after *routes.Routes) error {
	s := g.SwitchByGUID(w.Node)
	switch {
	case w.Attr == mad.AttrLinearForwardingTable && s < 0:
		return fmt.Errorf("%s: unknown switch, but its forwarding table changes", w.Label)
	case w.Attr == mad.AttrLinearForwardingTable:
		if first := int(w.Modifier) * mad.LFTBlock; first <= int(after.Top()) {
			if w.Old != nil {
				copy(before.Row(s)[first:], w.Old)
			}
			copy(after.Row(s)[first:], w.New)
		}
	case w.Attr == mad.AttrSLtoVLMappingTable && s >= 0 && after.SL2VL != nil:
		for routes, data := range map[*routes.Routes][]byte{before: w.Old, after: w.New} {
			if data == nil {
				continue
			}
			var row mad.SLtoVLMappingTable
			row.Decode(data)
			if err := routes.SL2VL.Set(s, uint8(w.Modifier>>8), uint8(w.Modifier), row.SLtoVL); err != nil {
				return err
			}
		}
	}
	return nil
}

// Writes returns the changes of p.
func (p *Plan) Writes() []Write {
	var all []Write
	for _, c := range p.Changes() {
		all = append(all, Write{c.Attr, c.Modifier, c.Target.GUID, c.Target.Label(), c.Set.Old, c.New})
	}
	return all
}

// CreditLoop reports whether err is the refusal of a change because of a credit loop.
func CreditLoop(err error) bool {
	var r *order.Refusal
	return errors.As(err, &r) && r.Cycle != nil
}

// ofSwitches reports whether all changes of SL2VL are of switches of g, whose lanes are
// proven.
func ofSwitches(changes []Change, g *graph.Graph) bool {
	return !slices.ContainsFunc(changes, func(c Change) bool {
		return c.Attr == mad.AttrSLtoVLMappingTable && g.SwitchByGUID(c.Target.GUID) < 0
	})
}

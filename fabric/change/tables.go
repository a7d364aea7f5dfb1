package change

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/change/certificate"
	"fabsh/fabric/change/order"
	"fabsh/fabric/device"
	"fabsh/fabric/format"
	"fabsh/fabric/plural"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/sa"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// Tables are the input for an order of writes of linear forwarding tables and of SL2VL,
// which is found and proven when a plan is made, and for its proof when it is applied.
type Tables struct {
	// Live are the forwarding tables in force.
	Live *routes.Routes
	// Lanes adds the virtual lanes of the switches to Live. It is called only where
	// they matter: SL2VL changes, or the tables have a credit loop on one lane. Nil:
	// they cannot be known.
	Lanes func(ctx context.Context, live *routes.Routes) error
	// Levels returns the service levels of packets (nil: any may be in use), and the source
	// of this knowledge, in words. It is called only if there are lanes. Nil: any may be in
	// use.
	Levels func(ctx context.Context, live *routes.Routes) (levels *routes.SL, basis string, err error)
	// Basis is the source that Levels returned, if it was called.
	Basis string
	// Target has the service levels of paths after the change; nil: the current ones.
	// Until hosts query their paths again some use the old ones.
	Target *routes.Routes
	// OnTarget reports that the order is safe only if paths have the service levels of
	// Target from the start.
	OnTarget bool
	// Last are LIDs whose paths change last: of the subnet manager and of this host.
	Last []mad.LID
	// Adaptive is adaptive routing that is on, by switch of Live, with its choices; nil: off.
	// No list: it was not determined. Notes describes what else is known of it.
	Adaptive []*adaptive.Switch
	Notes    []string
	// Manager is what is known of the routing of the subnet manager, for predictions.
	Manager ManagerRouting
	// PKeys reads P_Keys, of hosts that lose a port; nil: they cannot be known.
	PKeys PKeys
	// Simple, AcceptCreditLoops and AcceptLost are explained at order.Input.
	Simple, AcceptCreditLoops, AcceptLost bool
}

// allSLs are all service levels.
const allSLs = 1<<mad.ServiceLevels - 1

// Order finds an order of the writes of forwarding tables and SL2VL among changes. An Old that
// is nil is what Live has. A nil schedule means that there are no such writes. The error is a
// *order.Refusal if no order is safe.
func (t *Tables) Order(ctx context.Context, changes []certificate.Change) (order.Input, *order.Schedule, error) {
	in, err := t.input(ctx, changes)
	if err == nil && in.New != nil {
		err = t.unknownChoices()
	}
	if err != nil || in.New == nil {
		return in, nil, err
	}
	s, err := order.Plan(ctx, in)
	if (CreditLoop(err) || err == nil && s.Figures.OldCycle) && in.Old.SL2VL == nil && t.Lanes != nil {
		// Without lanes all packets count as if they were on one, which is safe unless a
		// credit loop of the old tables is ignored that they do not have on their lanes.
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
			return in, s, err
		}
		if in, err = t.input(ctx, changes); err != nil {
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

// ChangesTables reports whether p changes forwarding tables, or lanes of switches.
func (p *Plan) ChangesTables(f *fabric.Fabric) bool {
	return slices.ContainsFunc(p.Changes(), func(c certificate.Change) bool {
		n := c.NodeIn(f)
		return c.Attr == mad.AttrLinearForwardingTable || c.Attr == mad.AttrSLtoVLMappingTable && n != nil && n.IsSwitch()
	})
}

// CreditLoop reports whether err is the refusal of a change because of a credit loop.
func CreditLoop(err error) bool {
	var r *order.Refusal
	return errors.As(err, &r) && r.Cycle != nil
}

// Levels determines which service levels packets have: from a file, or from path
// records.
type Levels struct {
	// Client queries the subnet administrator; nil: no query is sent.
	Client *sa.Client
	// File has the service levels of paths, as ibdmchk reads them; "": no file.
	File string
	Open format.Opener
}

// InForce makes t read its lanes by e, and its service levels by l, where they matter.
func (l Levels) InForce(t *Tables, e *engine.Engine) {
	t.Lanes = func(ctx context.Context, live *routes.Routes) error { return device.ReadLanes(ctx, e, live) }
	t.Levels = l.Of
}

// Of returns the service levels of packets in a fabric, which r has tables of, and the
// source of this knowledge, in words. Nil: any may be in use. The error is the end of
// ctx, or that the file cannot be read.
func (l Levels) Of(ctx context.Context, r *routes.Routes) (levels *routes.SL, basis string, err error) {
	if l.File != "" {
		read, err := routes.Load(r.Graph().Fabric(), routes.Files{SL: l.File}, l.Open)
		if err != nil {
			return nil, "", err
		}
		return read.SL, "those of " + l.File + " assumed to be in use, and no others", nil
	}
	const all = "all 16 assumed to be in use: "
	if l.Client == nil {
		return nil, all + "the subnet administrator was not queried", nil
	}
	levels, records, err := device.ReadLevels(ctx, l.Client, r)
	switch {
	case ctx.Err() != nil:
		return nil, "", context.Cause(ctx)
	case err != nil:
		return nil, all + err.Error(), nil
	}
	return levels, fmt.Sprintf("those of %s assumed to be in use, which the subnet administrator returns for queries without partition, service or class", plural.Count(records, "path record", "path records")), nil
}

// InLanes adds the virtual lanes of the switches to tables, and the service levels of their
// paths.
func (t *Tables) InLanes(ctx context.Context, tables *routes.Routes) error {
	if t.Lanes == nil {
		return errors.New("virtual lanes of the switches unknown")
	}
	err := t.Lanes(ctx, tables)
	if err == nil && t.Levels != nil {
		tables.SL, _, err = t.Levels(ctx, tables)
	}
	return err
}

// input returns the input of order.Plan. New is nil if no tables change.
func (t *Tables) input(ctx context.Context, changes []certificate.Change) (order.Input, error) {
	g := t.Live.Graph()
	in := order.Input{Last: t.Last, Drain: order.Drains(g), Simple: t.Simple, AcceptCreditLoops: t.AcceptCreditLoops, AcceptLost: t.AcceptLost, Adaptive: t.Adaptive, Changes: changes, Disable: t.disable(changes)}
	top, found, lanes := t.Live.Top(), false, false
	for i := range changes {
		w := &changes[i]
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
	for i := range changes {
		if err := put(&changes[i], g, in.Old, in.New); err != nil {
			return in, err
		}
	}
	return in, nil
}

// levels determines, once, which service levels are in use.
func (t *Tables) levels(ctx context.Context) (err error) {
	if t.Levels == nil || t.Basis != "" {
		return nil
	}
	t.Live.SL, t.Basis, err = t.Levels(ctx, t.Live)
	return err
}

// put applies a change to the tables before and after it.
func put(w *certificate.Change, g *graph.Graph, before, after *routes.Routes) error {
	s := g.SwitchByGUID(w.Node)
	switch {
	case w.Attr == mad.AttrLinearForwardingTable && s < 0:
		return fmt.Errorf("%v: unknown switch, but its forwarding table changes", w.Node)
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

// ofSwitches reports whether all changes of SL2VL are of switches of g, whose lanes are
// proven.
func ofSwitches(changes []certificate.Change, g *graph.Graph) bool {
	return !slices.ContainsFunc(changes, func(c certificate.Change) bool {
		return c.Attr == mad.AttrSLtoVLMappingTable && g.SwitchByGUID(c.Node) < 0
	})
}

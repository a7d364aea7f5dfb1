package changes

import (
	"context"
	"errors"

	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/change/order"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// Choose chooses the tables that a plan leads to, of those that a policy stands for. It sets
// what p lacks: how a change is proven.
func Choose(ctx context.Context, rt *lang.Runtime, p change.TargetPolicy) (*change.TargetResult, error) {
	x := &prover{}
	p.Prove = func(ctx context.Context, r *routes.Routes) (refusal string, err error) {
		err = operate(ctx, rt, func(c *lang.Call) error {
			if x.tables == nil {
				if x.tables, err = provable(c, p.Live); err != nil {
					return err
				}
				a, err := readAdaptivity(c, p.Live.Graph().Fabric())
				if err != nil {
					return err
				}
				if x.on = a.On; len(a.On) > 0 && !isStatic(env(c).Engine) {
					_, err = rewritten(c, a.On, false, r, p.Live)
					return err
				}
				if err := setAdaptivity(c, a, x.tables, true); err != nil {
					return err
				}
				x.tables.Lanes, x.tables.Levels = once(x.tables.Lanes, x.tables.Levels)
			}
			x.call = c
			writes, err := x.writes(r)
			if err != nil {
				return err
			}
			return c.Block(func(ctx context.Context) error {
				refusal, err = x.refusal(ctx, r, writes)
				return err
			})
		})
		return refusal, err
	}
	return p.Choose(ctx)
}

// SetChoice notes which tables the plan that is being made leads to.
func SetChoice(ctx context.Context, rt *lang.Runtime, choice change.Choice) error {
	return operate(ctx, rt, func(c *lang.Call) error {
		if rec, ok := env(c).Engine.Interceptor().(*change.Recorder); ok {
			rec.Choice = &choice
		}
		return nil
	})
}

// prover proves changes from tables in force to one after the other.
type prover struct {
	call   *lang.Call
	tables *change.Tables
	on     []*fabric.Node // switches whose adaptive routing is on
}

// once are lanes and levels that are read the first time only.
func once(lanes func(context.Context, *routes.Routes) error, levels func(context.Context, *routes.Routes) (*routes.SL, string, error)) (func(context.Context, *routes.Routes) error, func(context.Context, *routes.Routes) (*routes.SL, string, error)) {
	var read *routes.Routes
	var unread, unknown error
	var used *routes.SL
	basis := ""
	return func(ctx context.Context, live *routes.Routes) error {
			if read == nil {
				r := *live
				unread = lanes(ctx, &r)
				read = &r
			}
			live.SL2VL = read.SL2VL
			return unread
		}, func(ctx context.Context, live *routes.Routes) (*routes.SL, string, error) {
			if basis == "" && unknown == nil {
				used, basis, unknown = levels(ctx, live)
			}
			return used, basis, unknown
		}
}

// refusal says why there is no proven order of the writes of r; "": there is one.
func (x *prover) refusal(ctx context.Context, r *routes.Routes, writes []change.Write) (string, error) {
	live := *x.tables.Live // it is given the lanes
	t := *x.tables
	t.Live = &live
	if env(x.call).Levels == "" && r.SL2VL != nil {
		t.Target = r
	}
	_, _, err := t.Order(ctx, writes)
	if refused := new(order.Refusal); errors.As(err, &refused) {
		return refused.Error(), nil
	}
	return "", err
}

// writes are those of the change to r: the entries by which it differs, and its lanes.
func (x *prover) writes(r *routes.Routes) (list []change.Write, err error) {
	live := x.tables.Live
	if r.SL2VL != nil {
		if list, err = x.lanes(r); err != nil {
			return nil, err
		}
	}
	for _, sd := range r.Diff(live).Switches {
		n := r.Graph().Switches()[sd.Switch]
		row, was := r.Row(sd.Switch), rowOf(live, n.GUID())
		for _, b := range sd.Blocks {
			w := change.Write{Attr: mad.AttrLinearForwardingTable, Modifier: uint32(b), Node: n.GUID(), Label: n.Label(), New: make([]byte, mad.LFTBlock)}
			for i := range w.New {
				lid := b*mad.LFTBlock + i
				switch {
				case lid > 0 && lid < len(row):
					w.New[i] = row[lid]
				case lid < len(was):
					w.New[i] = was[lid]
				default:
					w.New[i] = mad.NoPort
				}
			}
			list = append(list, w)
		}
	}
	left, err := rewritten(x.call, x.on, true, r, live)
	for _, n := range left {
		data := firstBlock(live, n)
		list = append(list, change.Write{Attr: mad.AttrLinearForwardingTable, Node: n.GUID(), Label: n.Label(), Old: data, New: data})
	}
	return list, err
}

// lanes are the writes of the virtual lanes of r.
func (x *prover) lanes(r *routes.Routes) ([]change.Write, error) {
	e, rec := env(x.call).Engine, change.NewRecorder()
	session := e.Interceptor()
	e.SetInterceptor(rec)
	err := writeLanes(x.call, e, r)
	e.SetInterceptor(session)
	if err != nil {
		return nil, err
	}
	return (&change.Plan{Sets: rec.Sets()}).Writes(), nil
}

package changes

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/change"
	"fabsh/fabric/change/certificate"
	"fabsh/fabric/change/order"
	"fabsh/fabric/device"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// Check checks the certificate of a plan on the current fabric, or on a snapshot, and
// returns what it proves and what it does not cover. The error is a
// *certificate.FailureError if it does not hold, or change.ErrNoCertificate.
func Check(ctx context.Context, rt *lang.Runtime, p *change.Plan) (verdict string, notes []string, err error) {
	err = operate(ctx, rt, func(c *lang.Call) error {
		look := topology.Sweep
		if env(c).Engine == nil {
			look = topology.CurrentFabric // a snapshot
		}
		now, err := look(c.Thread)
		if err != nil {
			return err
		}
		if !now.Complete() {
			return lang.Errorf("certificate not checked: incomplete sweep: %s", now.Missing())
		}
		base := change.FingerprintOf(now.Fabric, nil)
		base.Manager = p.Base.Manager // change apply judges it
		if err := changedSince(p.Base.Since(&base)); err != nil {
			return err
		}
		live, err := routes.OfFabric(now.Fabric)
		switch {
		case err == nil && live == nil && env(c).Engine == nil:
			err = lang.Errorf("certificate not checked: the file of this session has no forwarding tables")
		case err == nil && live == nil:
			live, err = currentTables(c, p, now.Fabric)
		}
		if err != nil {
			return err
		}
		t := change.Tables{Live: live}
		if err := setCertificateAdaptivity(c, p, &t); err != nil {
			return err
		}
		return c.Block(func(ctx context.Context) error {
			if e := env(c); e.Engine != nil {
				levels := change.Levels{Client: e.SA, File: proofOptions(c).Levels, Open: func(path string) (io.ReadCloser, error) { return c.Runtime().Files.OpenNamed(ctx, path) }}
				levels.InForce(&t, e.Engine)
			}
			r, err := p.CheckCertificate(ctx, &t)
			verdict, notes = p.Verified(r), p.NotCovered(&t)
			return err
		})
	})
	if failed := new(certificate.FailureError); errors.As(err, &failed) {
		return "", nil, failed
	}
	return verdict, notes, err
}

// Choose chooses the tables that a plan leads to, of those that a policy stands for. It sets
// what p lacks: how a change is proven.
func Choose(ctx context.Context, rt *lang.Runtime, p change.TargetPolicy) (*change.TargetResult, error) {
	x := &prover{}
	p.Prove = func(ctx context.Context, r *routes.Routes) (refusal string, err error) {
		err = operate(ctx, rt, func(c *lang.Call) error {
			if x.tables == nil {
				if x.tables, err = tablesForProof(c, p.Live); err != nil {
					return err
				}
				a, err := readAdaptivity(c, p.Live.Graph().Fabric())
				if err != nil {
					return err
				}
				if x.on = a.On; len(a.On) > 0 && !isStatic(env(c).Engine) {
					_, err = switchesToRewrite(c, a.On, false, r, p.Live)
					return err
				}
				if err := setAdaptivity(c, a, x.tables, true); err != nil {
					return err
				}
				x.tables.Lanes, x.tables.Levels = readOnce(x.tables.Lanes, x.tables.Levels)
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

// SetChoice records which tables the plan that is being made leads to.
func SetChoice(ctx context.Context, rt *lang.Runtime, choice change.Choice) error {
	return operate(ctx, rt, func(c *lang.Call) error {
		if rec, ok := env(c).Engine.Interceptor().(*change.Recorder); ok {
			rec.Choice = &choice
		}
		return nil
	})
}

// SetStatic requests static routing of the plan that is being made.
func SetStatic(ctx context.Context, rt *lang.Runtime) error {
	return operate(ctx, rt, func(c *lang.Call) error {
		if rec, ok := env(c).Engine.Interceptor().(*change.Recorder); ok {
			rec.Static = true
		}
		return nil
	})
}

// provePlan finds an order for p on the fabric as it was just swept, and keeps what it
// finds in p.Report, and the proof in p.Certificate.
func provePlan(c *lang.Call, p *change.Plan) error {
	live, err := currentTables(c, p, env(c).Fabric())
	if err != nil {
		return err
	}
	t, err := tablesForProof(c, live)
	if err == nil {
		err = setPlanAdaptivity(c, p, t)
	}
	if err != nil {
		return err
	}
	t.Simple = p.Choice != nil && p.Choice.Unproven
	t.AcceptCreditLoops = proofOptions(c).AcceptCreditLoops
	if proofOptions(c).Levels == "" { // else only the levels of the file are in use
		t.Target = p.Target
	}
	err = c.Block(func(ctx context.Context) error { return p.Certify(ctx, t) })
	if err != nil {
		return err
	}
	return checkTenants(c, p, live)
}

// tablesForProof returns the tables in force, live, for the proof of an order of writes.
func tablesForProof(c *lang.Call, live *routes.Routes) (*change.Tables, error) {
	local, err := topology.LocalPort(c)
	if err != nil {
		return nil, err
	}
	last := slices.DeleteFunc([]mad.LID{local.SMLID, local.LID}, func(lid mad.LID) bool { return lid == 0 })
	t := &change.Tables{Live: live, Last: last}
	levels := change.Levels{Client: env(c).SA, File: proofOptions(c).Levels}
	levels.Open = func(path string) (io.ReadCloser, error) {
		return c.Runtime().Files.OpenNamed(c.Fiber().Context, path)
	}
	levels.InForce(t, env(c).Engine)
	t.PKeys = func(ctx context.Context, ports []*fabric.Port) (map[*fabric.Port][]uint16, error) {
		return device.ReadPKeys(ctx, env(c).Engine, ports)
	}
	t.Manager, err = ManagerRouting(c.Runtime(), proofOptions(c).ManagerEngine, local.SMLID, local.LID)
	return t, err
}

// currentTables returns the current forwarding tables, which are read only if p changes some.
func currentTables(c *lang.Call, p *change.Plan, f *fabric.Fabric) (*routes.Routes, error) {
	if !p.NeedsTables(f) && p.Certificate == nil {
		g, err := graph.New(f, graph.BuildOptions{})
		if err != nil {
			return nil, err
		}
		return routes.New(g, 0), nil
	}
	var live *routes.Routes
	var failed []device.SwitchError
	err := c.Block(func(ctx context.Context) (err error) {
		live, failed, err = device.ReadRoutes(ctx, env(c).Engine, f)
		return err
	})
	if err == nil && len(failed) > 0 {
		topology.CountUnanswered(c, failed[0].Err)
		err = lang.Errorf("forwarding table of %s: cannot be read, so no order is proven: %w", failed[0].Switch.Label(), failed[0].Err)
	}
	return live, err
}

// prover proves changes from tables in force to one after the other.
type prover struct {
	call   *lang.Call
	tables *change.Tables
	on     []*fabric.Node // switches whose adaptive routing is on
}

// readOnce returns lanes and levels that are read the first time only.
func readOnce(lanes func(context.Context, *routes.Routes) error, levels func(context.Context, *routes.Routes) (*routes.SL, string, error)) (func(context.Context, *routes.Routes) error, func(context.Context, *routes.Routes) (*routes.SL, string, error)) {
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

// refusal returns why no order of the writes of r is proven; "": an order is proven.
func (x *prover) refusal(ctx context.Context, r *routes.Routes, writes []certificate.Change) (string, error) {
	live := *x.tables.Live // it is given the lanes
	t := *x.tables
	t.Live = &live
	if proofOptions(x.call).Levels == "" && r.SL2VL != nil {
		t.Target = r
	}
	_, _, err := t.Order(ctx, writes)
	if refused := new(order.Refusal); errors.As(err, &refused) {
		return refused.Error(), nil
	}
	return "", err
}

// writes returns the writes of the change to r: the entries by which it differs, and its lanes.
func (x *prover) writes(r *routes.Routes) (list []certificate.Change, err error) {
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
			w := certificate.Change{Attr: mad.AttrLinearForwardingTable, Modifier: uint32(b), Node: n.GUID(), New: make([]byte, mad.LFTBlock)}
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
	left, err := switchesToRewrite(x.call, x.on, true, r, live)
	for _, n := range left {
		data := firstBlock(live, n)
		list = append(list, certificate.Change{Attr: mad.AttrLinearForwardingTable, Node: n.GUID(), Old: data, New: data})
	}
	return list, err
}

// lanes returns the writes of the virtual lanes of r.
func (x *prover) lanes(r *routes.Routes) ([]certificate.Change, error) {
	e, rec := env(x.call).Engine, change.NewRecorder()
	session := e.Interceptor()
	e.SetInterceptor(rec)
	err := writeLanes(x.call, e, r)
	e.SetInterceptor(session)
	if err != nil {
		return nil, err
	}
	return (&change.Plan{Sets: rec.Sets()}).Changes(), nil
}

// isStatic reports whether static routing was requested of the plan that is being made.
func isStatic(e *engine.Engine) bool {
	rec, ok := e.Interceptor().(*change.Recorder)
	return ok && rec.Static
}

// setPlanAdaptivity reads where adaptive routing is on, and refuses p if it writes forwarding
// tables there without static routing being requested. t has then the choices of those
// switches.
func setPlanAdaptivity(c *lang.Call, p *change.Plan, t *change.Tables) error {
	f := t.Live.Graph().Fabric()
	if !p.NeedsTables(f) && p.Certificate == nil {
		return nil
	}
	a, err := readAdaptivity(c, f)
	if err != nil {
		return err
	}
	if err := asRefusal(c, p.Judge(a.On)); err != nil {
		return err
	}
	return setAdaptivity(c, a, t, p.ChangesTables(f))
}

// setCertificateAdaptivity gives t what is known of adaptive routing, for the certificate of p: from the
// fabric, or from the file of the session.
func setCertificateAdaptivity(c *lang.Call, p *change.Plan, t *change.Tables) error {
	f := t.Live.Graph().Fabric()
	if env(c).Engine == nil {
		if a, choices := device.StoredAdaptivity(t.Live); a != nil {
			t.SetAdaptivity(a, choices)
			return changedSince(p.Stale(a.On))
		}
		return nil
	}
	a, err := readAdaptivity(c, f)
	if err == nil {
		err = changedSince(p.Stale(a.On))
	}
	if err != nil {
		return err
	}
	return setAdaptivity(c, a, t, p.ChangesTables(f))
}

// changedSince returns the failure of a certificate because of changes; nil without changes.
func changedSince(since []string) error {
	if len(since) == 0 {
		return nil
	}
	return &certificate.FailureError{Reason: "the fabric has changed since the plan was made: " + strings.Join(since[:min(len(since), 5)], "; ")}
}

// readAdaptivity reads where adaptive routing is on.
func readAdaptivity(c *lang.Call, f *fabric.Fabric) (a *device.Adaptivity, err error) {
	err = c.Block(func(ctx context.Context) error {
		a, err = device.ReadAdaptivity(ctx, env(c).Engine, f)
		return err
	})
	return a, err
}

// setAdaptivity gives t what is known of adaptive routing, with the choices if tables change.
func setAdaptivity(c *lang.Call, a *device.Adaptivity, t *change.Tables, changes bool) error {
	return c.Block(func(ctx context.Context) error {
		var choices []*adaptive.Switch
		if changes {
			var err error
			if choices, err = device.ReadChoices(ctx, env(c).Engine, t.Live, a.On); err != nil {
				return err
			}
		}
		t.SetAdaptivity(a, choices)
		return nil
	})
}

// switchesToRewrite returns the switches whose adaptive routing must be disabled by a write that
// changes no entry, for tables that differ from live; live has the tables in force. Without
// static it is refused if adaptive routing is on anywhere.
func switchesToRewrite(c *lang.Call, on []*fabric.Node, static bool, r, live *routes.Routes) (left []*fabric.Node, err error) {
	if len(on) > 0 && !static {
		var names []string
		for _, n := range on {
			names = append(names, n.Label())
		}
		return nil, c.Refuse("%s", change.AdaptiveOn(names))
	}
	differ := map[mad.GUID]bool{}
	for _, sd := range r.Diff(live).Switches {
		differ[r.Graph().Switches()[sd.Switch].GUID()] = true
	}
	for _, n := range on {
		if !differ[n.GUID()] {
			left = append(left, n)
		}
	}
	return left, nil
}

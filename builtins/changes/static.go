package changes

import (
	"context"
	"strings"

	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/change"
	"fabsh/fabric/change/certificate"
	"fabsh/fabric/device"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// SetStatic requests static routing of the plan that is being made.
func SetStatic(ctx context.Context, rt *lang.Runtime) error {
	return operate(ctx, rt, func(c *lang.Call) error {
		if rec, ok := env(c).Engine.Interceptor().(*change.Recorder); ok {
			rec.Static = true
		}
		return nil
	})
}

// isStatic reports whether static routing was requested of the plan that is being made.
func isStatic(e *engine.Engine) bool {
	rec, ok := e.Interceptor().(*change.Recorder)
	return ok && rec.Static
}

// judgeAdaptive reads where adaptive routing is on, and refuses p if it writes forwarding
// tables there without static routing being requested. t has then the choices of those
// switches.
func judgeAdaptive(c *lang.Call, p *change.Plan, t *change.Tables) error {
	f := t.Live.Graph().Fabric()
	if !p.NeedsTables(f) && p.Certificate == nil {
		return nil
	}
	a, err := readAdaptivity(c, f)
	if err != nil {
		return err
	}
	if err := refused(c, p.Judge(a.On)); err != nil {
		return err
	}
	return setAdaptivity(c, a, t, p.ChangesTables(f))
}

// checkAdaptive gives t what is known of adaptive routing, for the certificate of p: from the
// fabric, or from the file of the session.
func checkAdaptive(c *lang.Call, p *change.Plan, t *change.Tables) error {
	f := t.Live.Graph().Fabric()
	if env(c).Engine == nil {
		if a, choices := device.StoredAdaptivity(t.Live); a != nil {
			t.SetAdaptivity(a, choices)
			return onSince(p.Stale(a.On))
		}
		return nil
	}
	a, err := readAdaptivity(c, f)
	if err == nil {
		err = onSince(p.Stale(a.On))
	}
	if err != nil {
		return err
	}
	return setAdaptivity(c, a, t, p.ChangesTables(f))
}

// onSince is the failure of a certificate because adaptive routing was switched on.
func onSince(since []string) error {
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

// rewritten returns the switches whose adaptive routing must be disabled by a write that
// changes no entry, for tables that differ from live; live has the tables in force. Without
// static it is refused if adaptive routing is on anywhere.
func rewritten(c *lang.Call, on []*fabric.Node, static bool, r, live *routes.Routes) (left []*fabric.Node, err error) {
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

// firstBlock is the first block of the forwarding table of a switch.
func firstBlock(live *routes.Routes, n *fabric.Node) []byte {
	data := make([]byte, mad.LFTBlock)
	for i := range data {
		data[i] = mad.NoPort
	}
	copy(data, rowOf(live, n.GUID()))
	return data
}

// rewrite writes the first block of the forwarding tables of switches, unchanged.
func rewrite(c *lang.Call, e *engine.Engine, live *routes.Routes, switches []*fabric.Node) error {
	calls := make([]engine.Call, len(switches))
	open := make([]*engine.Call, len(switches))
	for i, n := range switches {
		open[i] = fabric.Dest{Route: n.Route(), LID: n.LID(), Guard: n.Guard()}.Put(&calls[i], mad.MethodSet, mad.AttrLinearForwardingTable, 0, firstBlock(live, n))
	}
	if err := c.Block(func(ctx context.Context) error { return e.Do(ctx, open...) }); err != nil {
		return err
	}
	for i, n := range switches {
		if calls[i].Err != nil {
			return lang.Errorf("the forwarding table of %s: %w", n.Label(), calls[i].Err)
		}
	}
	return nil
}

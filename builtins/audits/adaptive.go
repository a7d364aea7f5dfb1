package audits

import (
	"context"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/device"
	"fabsh/fabric/routing/verify"
	"fabsh/fabric/sa"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// Metrics of which each cycle reads tables or keys.
const (
	ShortGroups     = "fabsh_ar_short_groups"
	UnprotectedKeys = "fabsh_key_unprotected_nodes"
)

// AdaptiveMetrics returns metrics of adaptive routing and of keys for the exporter, of the
// latest fabric. It reads AdaptiveRoutingInfo of the switches that announce it, one request
// each; the tables of adaptive routing for ShortGroups, and KeyInfo for UnprotectedKeys, only
// if wanted reports that these are. A device that does not answer is counted.
func AdaptiveMetrics(ctx context.Context, r *lang.Runtime, wanted func(family string) bool) (metrics []audit.Metric, err error) {
	current := topology.EnvOf(r).Current
	if current == nil {
		return nil, nil
	}
	t, release := r.Thread(ctx, "command")
	defer release()
	f := current.Fabric
	err = lang.Operate(t, "exporter", func(c *lang.Call) error {
		e, err := topology.EngineOf(c)
		if err != nil {
			return err
		}
		some, on, err := switchMetrics(c, e, f)
		metrics = append(some, unprotected(f))
		if err == nil && on && wanted(ShortGroups) {
			some, err = shortGroups(c, e, f)
			metrics = append(metrics, some...)
		}
		if err == nil && wanted(UnprotectedKeys) {
			some, err = unprotectedKeys(c, topology.EnvOf(r).SA, f)
			metrics = append(metrics, some...)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return metrics, nil
}

// switchMetrics returns metrics of AdaptiveRoutingInfo. on reports that adaptive routing is on
// at some switch.
func switchMetrics(c *lang.Call, e *engine.Engine, f *fabric.Fabric) (metrics []audit.Metric, on bool, err error) {
	var list []*device.AR
	var of []*fabric.Node
	for i := range f.OfType(mad.NodeTypeSwitch) {
		if n := &f.OfType(mad.NodeTypeSwitch)[i]; n.Route() != nil || n.LID() != 0 {
			list = append(list, &device.AR{Dest: fabric.Dest{Route: n.Route(), LID: n.LID(), Guard: n.Guard()}, GUID: n.GUID(), Known: true, Node: *n.Info()})
			of = append(of, n)
		}
	}
	if err := c.Block(func(ctx context.Context) error { return device.ReadARInfo(ctx, e, list...) }); err != nil {
		return nil, false, err
	}
	for i, a := range list {
		topology.CountUnanswered(c, a.Err)
		if a.Err != nil || a.Info == nil {
			continue
		}
		mask := 0xffff
		if a.Info.BySLEn {
			mask = int(a.Info.EnableBySLMask)
		}
		enabled := 0.0
		if a.Info.E {
			enabled = 1
		}
		on = on || a.Info.E || a.Info.HBFEn
		metrics = append(metrics,
			audit.Metric{Name: "fabsh_ar_enabled", Help: "Whether a switch that announces adaptive routing routes adaptively (AdaptiveRoutingInfo).", Labels: switchLabels(of[i]), Value: enabled},
			audit.Metric{Name: "fabsh_ar_sl_mask", Help: "Service levels that the switch routes adaptively if it is on, bit n for SL n.", Labels: switchLabels(of[i]), Value: float64(mask)})
	}
	return metrics, on, nil
}

func switchLabels(n *fabric.Node) []string {
	return []string{"guid", n.GUID().String(), "switch", n.Name()}
}

// shortGroups returns the metrics of port groups. A switch whose tables are unknown has none.
func shortGroups(c *lang.Call, e *engine.Engine, f *fabric.Fabric) (metrics []audit.Metric, err error) {
	err = c.Block(func(ctx context.Context) error {
		routes, failed, err := device.ReadAdaptiveRoutes(ctx, e, f, nil)
		if err != nil {
			return err
		}
		for _, x := range failed {
			topology.CountUnanswered(c, x.Err)
		}
		short, err := verify.ShortGroups(ctx, routes)
		for s, n := range short {
			if n >= 0 {
				metrics = append(metrics, audit.Metric{Name: ShortGroups, Help: "Port groups of a switch that routes adaptively with fewer linked ports than most groups for hosts as far away, at switches with as many ports.",
					Labels: switchLabels(routes.Graph().Switches()[s]), Value: float64(n)})
			}
		}
		return err
	})
	return metrics, err
}

// unprotectedKeys returns the metrics of the keys of classes.
func unprotectedKeys(c *lang.Call, client *sa.Client, f *fabric.Fabric) (metrics []audit.Metric, err error) {
	var classes []device.KeyClass
	if err := c.Block(func(ctx context.Context) (err error) {
		classes, err = device.ReadKeys(ctx, client, f)
		return err
	}); err != nil {
		return nil, err
	}
	for _, k := range classes {
		for _, err := range k.Failed {
			topology.CountUnanswered(c, err)
		}
		if k.Devices > 0 {
			metrics = append(metrics, audit.Metric{Name: UnprotectedKeys, Help: "Nodes whose key of a management class does not protect: ProtectBit of KeyInfo is 0.", Labels: []string{"class", k.Name}, Value: float64(k.Unprotected)})
		}
	}
	return metrics, nil
}

// ReadAdaptivity reads at which switches of f adaptive routing is on, as device.ReadAdaptivity.
func ReadAdaptivity(ctx context.Context, r *lang.Runtime, f *fabric.Fabric) (a *device.Adaptivity, err error) {
	t, release := r.Thread(ctx, "command")
	defer release()
	err = lang.Operate(t, "top", func(c *lang.Call) error {
		e, err := topology.EngineOf(c)
		if err != nil {
			return err
		}
		return c.Block(func(ctx context.Context) (err error) {
			a, err = device.ReadAdaptivity(ctx, e, f)
			return err
		})
	})
	return a, err
}

// unprotected returns the metric of M_Keys that do not protect, by the PortInfo of the sweep.
func unprotected(f *fabric.Fabric) audit.Metric {
	m := audit.Metric{Name: "fabsh_mkey_unprotected_ports", Help: "End ports whose M_Key any client can read and change: M_KeyProtectBits is 0."}
	for i := range f.Ports() {
		p := &f.Ports()[i]
		if end := p.Num() == 0 || !p.Node().IsSwitch() && p.Peer() != nil; end && p.Info() != nil && p.Info().MKeyProtectBits == 0 {
			m.Value++
		}
	}
	return m
}

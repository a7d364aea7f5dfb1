package read

import (
	"context"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/table"
	"fabsh/mad"
)

// AdaptiveMetrics returns metrics of adaptive routing and of keys for the exporter, of the
// latest fabric. It reads AdaptiveRoutingInfo of the switches that announce it, one request
// each, and no tables. A switch that does not answer has no metric, and is counted.
func AdaptiveMetrics(ctx context.Context, r *lang.Runtime) ([]audit.Metric, error) {
	current := topology.EnvOf(r).Current
	if current == nil {
		return nil, nil
	}
	t, release := r.Thread(ctx, "command")
	defer release()
	f := current.Fabric
	var list []*table.AR
	var of []*fabric.Node
	for i := range f.OfType(mad.NodeTypeSwitch) {
		if n := &f.OfType(mad.NodeTypeSwitch)[i]; n.Route() != nil || n.LID() != 0 {
			list = append(list, &table.AR{Dest: fabric.Dest{Route: n.Route(), LID: n.LID(), Guard: n.Guard()}, GUID: n.GUID(), Known: true, Node: *n.Info()})
			of = append(of, n)
		}
	}
	err := lang.Operate(t, "exporter", func(c *lang.Call) error {
		e, err := topology.EngineOf(c)
		if err != nil {
			return err
		}
		if err := c.Block(func(ctx context.Context) error { return table.ReadARInfo(ctx, e, list...) }); err != nil {
			return err
		}
		for _, a := range list {
			topology.CountUnanswered(c, a.Err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var metrics []audit.Metric
	for i, a := range list {
		if a.Err != nil || a.Info == nil {
			continue
		}
		labels := []string{"guid", of[i].GUID().String(), "switch", of[i].Name()}
		mask := 0xffff
		if a.Info.BySLEn {
			mask = int(a.Info.EnableBySLMask)
		}
		on := 0.0
		if a.Info.E {
			on = 1
		}
		metrics = append(metrics,
			audit.Metric{Name: "fabsh_ar_enabled", Help: "Whether a switch that announces adaptive routing routes adaptively (AdaptiveRoutingInfo).", Labels: labels, Value: on},
			audit.Metric{Name: "fabsh_ar_sl_mask", Help: "Service levels that the switch routes adaptively if it is on, bit n for SL n.", Labels: labels, Value: float64(mask)})
	}
	return append(metrics, unprotected(f)), nil
}

// Adaptivity reads at which switches of f adaptive routing is on, as table.ReadAdaptivity.
func Adaptivity(ctx context.Context, r *lang.Runtime, f *fabric.Fabric) (a *table.Adaptivity, err error) {
	t, release := r.Thread(ctx, "command")
	defer release()
	err = lang.Operate(t, "top", func(c *lang.Call) error {
		e, err := topology.EngineOf(c)
		if err != nil {
			return err
		}
		return c.Block(func(ctx context.Context) (err error) {
			a, err = table.ReadAdaptivity(ctx, e, f)
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

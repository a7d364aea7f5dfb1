package datagrams

import (
	"errors"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// refuseAdaptive returns an error if adaptive routing, by load or by hashes, is on at a
// target: its packets then do not follow the LinearForwardingTable. A switch without the
// capability gets one GeneralInfo. Where it cannot be determined, there is a warning: a
// device may not know GeneralInfo.
func refuseAdaptive(c *lang.Call, target starlark.Value) error {
	e, err := topology.MayChange(c, mad.AttrLinearForwardingTable)
	if err != nil {
		return err
	}
	if e.Interceptor() != nil { // a plan is refused as a whole, or requests static routing
		return nil
	}
	targets, _, err := (&topology.Resolver{Call: c}).Targets(target)
	if err != nil {
		return err
	}
	calls := make([]engine.Call, len(targets))
	var open []*engine.Call
	for i := range targets {
		calls[i].PutSMP(mad.MethodGet, mad.AttrAdaptiveRoutingInfo.ID, 0, nil)
		if targets[i].AddressSMP(&calls[i]) == nil {
			open = append(open, &calls[i])
		}
	}
	if err := topology.SendProbes(c, open); err != nil {
		return err
	}
	for i := range targets {
		switch {
		case calls[i].Err != nil && !errors.Is(calls[i].Err, engine.ErrUnsupported):
			c.Fiber().Warn("set_lft: %s: adaptive routing could not be determined, assumed to be off: %v", targets[i].Label, calls[i].Err)
			continue
		case calls[i].Err != nil || !calls[i].Header().Method.IsResponse():
			continue
		}
		var info mad.AdaptiveRoutingInfo
		if info.Decode(calls[i].Data()); info.E || info.HBFEn {
			return lang.Errorf("%s: adaptive routing is on, so packets do not follow this table, and a write may disable adaptive routing; static=True writes it", targets[i].Label)
		}
	}
	return nil
}

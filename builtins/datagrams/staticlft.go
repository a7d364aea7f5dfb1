package datagrams

import (
	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// refuseAdaptive returns an error if adaptive routing is on at a target: its packets then
// do not follow the LinearForwardingTable. A switch without the capability gets one
// GeneralInfo. A switch that does not answer is not refused here: the write will fail.
func refuseAdaptive(c *lang.Call, target starlark.Value) error {
	if _, err := topology.MayChange(c, mad.AttrLinearForwardingTable); err != nil {
		return err
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
		if calls[i].Err != nil || !calls[i].Header().Method.IsResponse() {
			continue
		}
		var info mad.AdaptiveRoutingInfo
		if info.Decode(calls[i].Data()); info.E {
			return lang.Errorf("%s: adaptive routing is on, so packets do not follow this table, and a write may disable adaptive routing; static=True writes it", targets[i].Label)
		}
	}
	return nil
}

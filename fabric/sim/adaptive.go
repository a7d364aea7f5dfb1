package sim

import (
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// Adaptive lets all switches route adaptively, as the subnet manager sets it up. It ends the
// faults of adaptive routing.
func (e *Editor) Adaptive(set *state.AdaptiveSettings) {
	e.subnet.Lock()
	defer e.subnet.Unlock()
	e.traffic.BeforeChange()
	e.subnet.SetUpAdaptive(set, true)
	e.subnet.InvalidateTables()
}

// BreakAdaptive gives a switch a fault of adaptive routing.
func (e *Editor) BreakAdaptive(node mad.GUID, f state.AdaptiveFault) (err error) {
	bad := e.traffic.ChangePort(node, 0, func(p *state.Port) { err = p.Node.Break(f) })
	if bad != nil {
		return bad
	}
	return err
}

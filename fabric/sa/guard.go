// Package sa is the client of the subnet administrator (SA).
//
//	guard.go         is there a subnet manager, and which
//	subscribe.go     events for the scripts that subscribed; subscription.go is
//	                 their queue, watch.go keeps the subscriptions alive
//	resolve.go       the LID behind a GID, where an agent redirects to one
package sa

import (
	"context"
	"errors"
	"fmt"

	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// SM is a subnet manager that was found at work.
type SM struct {
	LID mad.LID
	// Info is its SMInfo; nil where only its subnet administrator, or an
	// agent that says nothing of it, answered.
	Info *mad.SMInfo
}

// String is the subnet manager in words.
func (s *SM) String() string {
	if s.Info == nil {
		return fmt.Sprintf("a subnet manager at LID %d", s.LID)
	}
	return fmt.Sprintf("a subnet manager with GUID %v at LID %d, priority %d, state %v", s.Info.GUID, s.LID, s.Info.Priority, s.Info.SMState)
}

// FindSM looks for the subnet manager that the local port knows: its SMInfo by
// LID and, where f knows the port, by directed route, and ClassPortInfo of the
// subnet administrator beside it. Any answer but SMInfo NOT-ACTIVE means that
// there is one. Nil without an error means that there is none: the port knows
// of none, or all stay silent after all retries. f may be nil.
func FindSM(ctx context.Context, e *engine.Engine, f *fabric.Fabric) (*SM, error) {
	port, err := e.Port()
	if err != nil {
		return nil, err
	}
	if port.SMLID == 0 {
		return nil, nil
	}
	var byLID, byRoute, sa engine.Call
	calls := []*engine.Call{&byLID, &sa}
	to := fabric.Dest{LID: port.SMLID}
	if f != nil {
		if p := f.PortByLID(port.SMLID); p != nil {
			to.Guard = p.Guard()
			if p.Route() != nil {
				calls = append(calls, fabric.SMP(&byRoute, fabric.Dest{Route: p.Route(), Guard: to.Guard}, mad.MethodGet, mad.AttrSMInfo, 0, nil))
			}
		}
	}
	fabric.SMP(&byLID, to, mad.MethodGet, mad.AttrSMInfo, 0, nil)
	sa.PutSA(mad.MethodGet, mad.AttrSubnAdmClassPortInfo.ID, 0, 0, nil)
	sa.SetLID(port.SMLID)
	sa.To.SL = port.SMSL
	sa.To.PKeyIndex = uint16(max(0, port.PKeyIndex(mad.DefaultPKey)))
	if err := e.Do(ctx, calls...); err != nil {
		return nil, err
	}
	var found *SM
	for _, c := range calls {
		ok, err := answered(c)
		switch {
		case err != nil:
			return nil, err
		case !ok:
		case c == &sa || c.Err != nil:
			if found == nil {
				found = &SM{LID: port.SMLID}
			}
		default:
			info := new(mad.SMInfo)
			info.Decode(c.Data())
			if info.SMState != mad.SMStateNotActive {
				found = &SM{LID: port.SMLID, Info: info}
			}
		}
	}
	return found, nil
}

// answered: a response came, whatever its status. The error is for a question
// that nobody heard: that is not silence.
func answered(c *engine.Call) (bool, error) {
	var me *engine.Error
	switch {
	case c.Err == nil, errors.As(c.Err, &me) && me.Status != 0:
		return true, nil
	case errors.Is(c.Err, engine.ErrTimeout):
		return false, nil
	}
	return false, c.Err
}

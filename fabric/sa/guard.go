package sa

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// SM is a subnet manager that is running.
type SM struct {
	LID mad.LID
	// Info is its SMInfo; nil where only its subnet administrator, or an
	// agent that says nothing of it, answered.
	Info *mad.SMInfo
}

// String describes the subnet manager.
func (s *SM) String() string {
	if s.Info == nil {
		return fmt.Sprintf("a subnet manager at LID %d", s.LID)
	}
	return fmt.Sprintf("a subnet manager with GUID %v at LID %d, priority %d, state %v", s.Info.GUID, s.LID, s.Info.Priority, s.Info.SMState)
}

// FindSM looks for the subnet manager of the local port: it queries the LIDs of
// Client.SMLID and of the port's SMLID, where they differ both, for
//
//   - SMInfo, by LID and, where f knows the port, by directed route;
//   - ClassPortInfo of the subnet administrator.
//
// Any answer but SMInfo NOT-ACTIVE, and that the request is not supported, shows that
// there is a subnet manager. Nil without an error means that none was found: no LID
// is known, or all requests time out after all retries. f may be nil.
func (c *Client) FindSM(ctx context.Context, f *fabric.Fabric) (*SM, error) {
	port, err := c.Engine.Port()
	if err != nil {
		return nil, err
	}
	var asked []*smQuery
	var calls []*engine.Call
	for _, lid := range c.managers(&port) {
		queries, err := c.smQueries(&port, lid, f)
		if err != nil {
			return nil, err
		}
		for _, q := range queries {
			asked, calls = append(asked, q), append(calls, &q.Call)
		}
	}
	if err := c.Engine.Do(ctx, calls...); err != nil {
		return nil, err
	}
	var found *SM
	for _, q := range asked {
		sm, err := q.answer()
		if err != nil {
			return nil, err
		}
		if sm != nil && (found == nil || found.Info == nil && sm.Info != nil) {
			found = sm
		}
	}
	return found, nil
}

// managers are the LIDs where a subnet manager may be.
func (c *Client) managers(p *engine.Port) (lids []mad.LID) {
	for _, lid := range []mad.LID{c.SMLID, p.SMLID} {
		if lid != 0 && !slices.Contains(lids, lid) {
			lids = append(lids, lid)
		}
	}
	return lids
}

// smQuery is a request that a subnet manager, or its subnet administrator,
// answers.
type smQuery struct {
	engine.Call
	lid mad.LID
}

// smQueries are the requests to one LID.
func (c *Client) smQueries(p *engine.Port, lid mad.LID, f *fabric.Fabric) (queries []*smQuery, err error) {
	byLID, byRoute, sa := &smQuery{lid: lid}, &smQuery{lid: lid}, &smQuery{lid: lid}
	queries = []*smQuery{byLID, sa}
	to := fabric.Dest{LID: lid}
	if f != nil {
		if p := f.PortByLID(lid); p != nil {
			to.Guard = p.Guard()
			if p.Route() != nil {
				queries = append(queries, byRoute)
				fabric.Dest{Route: p.Route(), Guard: to.Guard}.Put(&byRoute.Call, mad.MethodGet, mad.AttrSMInfo, 0, nil)
			}
		}
	}
	to.Put(&byLID.Call, mad.MethodGet, mad.AttrSMInfo, 0, nil)
	err = c.Put(&sa.Call, p, NewRequest(mad.MethodGet, mad.AttrSubnAdmClassPortInfo, nil))
	sa.To.LID = lid
	return queries, err
}

// answer is the subnet manager of the answer, nil without one. The error
// is for a request that was not sent: that is not a timeout.
func (q *smQuery) answer() (*SM, error) {
	var e *engine.Error
	switch {
	case errors.As(q.Err, &e) && (e.Status == mad.StatusBadMethod || e.Status == mad.StatusBadMethodAttribute):
		return nil, nil // of an agent that has no subnet manager behind it (IBA 13.4.7)
	case errors.As(q.Err, &e) && e.Status != 0: // any other refusal is an answer
	case errors.Is(q.Err, engine.ErrTimeout):
		return nil, nil
	case q.Err != nil:
		return nil, q.Err
	case q.Header().Attribute == mad.AttrSMInfo.ID:
		info := new(mad.SMInfo)
		info.Decode(q.Data())
		if info.SMState == mad.SMStateNotActive {
			return nil, nil
		}
		return &SM{LID: q.lid, Info: info}, nil
	}
	return &SM{LID: q.lid}, nil
}

package sa

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// Path requests a path from the local port to the port that has a GID.
func (c *Client) Path(ctx context.Context, to mad.GID) (path mad.PathRecord, err error) {
	port, err := c.Engine.Port()
	if err != nil {
		return path, err
	}
	query := mad.PathRecord{DGID: to, SGID: mad.MakeGID(port.GIDPrefix, port.PortGUID), NumbPath: 1}
	data, err := c.Query(ctx, NewRequest(mad.MethodGet, mad.AttrPathRecord, &query, "dgid", "sgid", "numb_path"))
	if err == nil {
		path.Decode(data)
	}
	return path, err
}

// Resolve requests the LID behind a GID over e. It is an engine's
// Options.Resolve, for agents that redirect to a GID; c's Engine may be nil.
func (c *Client) Resolve(ctx context.Context, e *engine.Engine, gid mad.GID) (mad.LID, error) {
	path, err := (&Client{Engine: e, SMLID: c.SMLID, SL: c.SL, PKey: c.PKey}).Path(ctx, gid)
	if errors.Is(err, ErrNoSM) {
		err = engine.ErrNoSA
	}
	return path.DLID, err
}

// bulkPaths is the number of targets from which on one table of all paths from
// the local port is requested, instead of a path to each.
const bulkPaths = 64

// serviceLevels are the service levels of paths from the local port.
type serviceLevels struct {
	mu      sync.Mutex // guards all below
	byLID   map[mad.LID]uint8
	unknown bool // the subnet administrator does not answer: no more requests
}

// PathError reports that the service levels of some paths are unknown, and 0 stands for
// them.
type PathError struct{ Err error }

func (e *PathError) Error() string { return e.Err.Error() }
func (e *PathError) Unwrap() error { return e.Err }

// LearnPaths learns the service levels of the paths from local port p to lids:
// PutGMP goes by them. It must be called before PutGMP. The error is a
// PKeyError, the first PathError, or the end of ctx; after a PathError the
// packets may go out.
func (c *Client) LearnPaths(ctx context.Context, p *engine.Port, lids []mad.LID) error {
	if _, err := c.pkeyIndex(p); err != nil || c.SL != nil {
		return err
	}
	ask := c.levels.missing(lids)
	if len(ask) >= bulkPaths {
		if err := c.learnTable(ctx, p); err != nil {
			return err
		}
		ask = c.levels.missing(lids)
	}
	if len(ask) == 0 {
		return nil
	}
	return c.learnEach(ctx, p, ask)
}

// PutGMP addresses a general management packet from local port p to lid.
func (c *Client) PutGMP(call *engine.Call, p *engine.Port, lid mad.LID) error {
	i, err := c.pkeyIndex(p)
	if err != nil {
		return err
	}
	call.SetLID(lid)
	call.To.SL, call.To.PKeyIndex = c.levels.of(lid), i
	if c.SL != nil {
		call.To.SL = *c.SL
	}
	return nil
}

// learnTable requests one path to each port. Where that fails,
// no more requests are sent.
func (c *Client) learnTable(ctx context.Context, p *engine.Port) error {
	query := mad.PathRecord{SLID: p.LID, NumbPath: 1}
	calls, err := c.calls(p, NewRequest(mad.MethodGetTable, mad.AttrPathRecord, &query, "slid", "numb_path"))
	if err != nil {
		return c.levels.stop(err)
	}
	if err := c.Engine.Do(ctx, calls...); err != nil {
		return err
	}
	records, err := Records(calls[0], mad.AttrPathRecord)
	if err != nil {
		return c.levels.stop(err)
	}
	learned := map[mad.LID]uint8{}
	for data := range records {
		var path mad.PathRecord
		path.Decode(data)
		learned[path.DLID] = path.SL
	}
	c.levels.add(learned)
	return nil
}

// learnEach requests a path to each of lids.
func (c *Client) learnEach(ctx context.Context, p *engine.Port, lids []mad.LID) (first error) {
	requests := make([]Request, len(lids))
	for i, lid := range lids {
		query := mad.PathRecord{SLID: p.LID, DLID: lid, NumbPath: 1}
		requests[i] = NewRequest(mad.MethodGet, mad.AttrPathRecord, &query, "slid", "dlid", "numb_path")
	}
	calls, err := c.calls(p, requests...)
	if err != nil {
		return c.levels.stop(err)
	}
	if err := c.Engine.Do(ctx, calls...); err != nil {
		return err
	}
	learned := map[mad.LID]uint8{}
	for i, call := range calls {
		var path mad.PathRecord
		if call.Err == nil {
			path.Decode(call.Data())
		}
		learned[lids[i]] = path.SL
		switch {
		case call.Err == nil:
		case engine.Unanswered(call.Err):
			err = c.levels.stop(call.Err)
		default:
			err = &PathError{call.Err}
		}
		if first == nil {
			first = err
		}
	}
	c.levels.add(learned)
	return first
}

// missing returns the lids still to be requested, sorted.
func (s *serviceLevels) missing(lids []mad.LID) (ask []mad.LID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unknown {
		return nil
	}
	for _, lid := range lids {
		if _, ok := s.byLID[lid]; !ok && lid != 0 {
			ask = append(ask, lid)
		}
	}
	slices.Sort(ask)
	return slices.Compact(ask)
}

// of is the service level of the path to lid, 0 where it is unknown.
func (s *serviceLevels) of(lid mad.LID) uint8 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byLID[lid]
}

func (s *serviceLevels) add(levels map[mad.LID]uint8) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byLID == nil {
		s.byLID = map[mad.LID]uint8{}
	}
	maps.Copy(s.byLID, levels)
}

// stop prevents further requests, with err as the reason.
func (s *serviceLevels) stop(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unknown = true
	return &PathError{err}
}

// Package sa is the client of the subnet administrator (SA). All requests to it
// are built here.
//
// A Client queries one record or whole tables, learns the service levels of paths, and finds the
// subnet manager that is running. A Subscriber makes Subscriptions to events: it delivers reports,
// renews subscriptions that were lost, receives traps, or polls devices that send none.
//
// Who uses it: discover reads the records of all nodes. The builtins query and
// change records, subscribe, address general packets, and look for a subnet
// manager before they change the fabric. The engine is given Resolve, for agents
// that redirect to a GID.
//
// Clients, whose fields must not change meanwhile, Subscribers and Subscriptions are safe for
// concurrent use.
//
// Section numbers refer to the InfiniBand Architecture Specification, volume 1 (IBA).
package sa

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// Client queries the subnet administrator. All its fields but Engine may be zero:
// the values of the local port then apply.
type Client struct {
	Engine *engine.Engine
	// SMLID is the LID of the subnet administrator. 0: the port's SMLID.
	SMLID mad.LID
	// SL is the service level of general packets. Nil: the port's SMSL for
	// requests to the subnet administrator, the path's service level for others.
	SL *uint8
	// PKey is the P_Key of general packets, which the port must have, with
	// either membership. 0: the default partition's, else the port's first.
	PKey uint16

	levels serviceLevels
}

// ErrNoSM reports that the local port has no subnet manager.
var ErrNoSM = errors.New("the local port has no subnet manager (its SM LID is 0); start one (systemctl start opensm on one host, or in a managed switch) or give its LID with --sm-lid; discover() works without one")

// PKeyError reports that the local port does not have Client.PKey. Nothing was sent.
type PKeyError struct {
	PKey uint16
	Has  []uint16 // what the port has, 0 where an entry of its table is empty
}

func (e *PKeyError) Error() string {
	const shown = 8
	var has []string
	for _, key := range e.Has {
		if key != 0 {
			has = append(has, fmt.Sprintf("%#04x", key))
		}
	}
	if n := len(has) - shown; n > 0 {
		has = append(has[:shown], fmt.Sprintf("%d more", n))
	}
	text := fmt.Sprintf("the local port is not in the partition of --pkey %#04x", e.PKey)
	if has == nil {
		return text + ": it has no P_Key yet; the subnet manager sets them"
	}
	return text + ": it has " + strings.Join(has, ", ") + "; the subnet manager sets them (OpenSM: partitions.conf)"
}

// Request queries the records of Attr that agree with Record in the
// components of Mask.
type Request struct {
	Method   mad.Method
	Attr     *mad.Attribute
	Modifier uint32
	Mask     uint64 // the component mask (IBA 15.2.1.1)
	Record   []byte // nil where Mask is 0
}

// NewRequest is a Request with the components of record that are named as
// scripts name them. record may be nil.
func NewRequest(m mad.Method, a *mad.Attribute, record interface{ Encode(data []byte) }, components ...string) Request {
	r := Request{Method: m, Attr: a}
	for _, name := range components {
		r.Mask |= a.Field(name).Mask()
	}
	if record != nil {
		r.Record = make([]byte, a.Size)
		record.Encode(r.Record)
	}
	return r
}

// Query gets, sets or deletes one record, and returns it.
func (c *Client) Query(ctx context.Context, r Request) ([]byte, error) {
	calls, err := c.Do(ctx, r)
	if err != nil {
		return nil, err
	}
	return calls[0].Data(), calls[0].Err
}

// Table gets all records that r fits; there may be 0.
func (c *Client) Table(ctx context.Context, r Request) (iter.Seq[[]byte], error) {
	calls, err := c.Do(ctx, r)
	if err != nil {
		return nil, err
	}
	return Records(calls[0], r.Attr)
}

// Records are the records of an answer, each at least a.Size bytes long. An
// administrator may report an empty result by a status (IBA 15.2.3,
// ERR_NO_RECORDS).
func Records(call *engine.Call, a *mad.Attribute) (iter.Seq[[]byte], error) {
	if e, ok := errors.AsType[*engine.Error](call.Err); ok && e.Err == nil && e.Status == mad.StatusNoRecords {
		return func(func([]byte) bool) {}, nil
	}
	return call.Records(a.Size)
}

// Do sends requests and waits for all answers; the outcome of each is in its
// Err. The error is that nothing was sent, or the end of ctx.
func (c *Client) Do(ctx context.Context, requests ...Request) ([]*engine.Call, error) {
	port, err := c.Engine.Port()
	if err != nil {
		return nil, err
	}
	calls, err := c.calls(&port, requests...)
	if err != nil {
		return nil, err
	}
	return calls, c.Engine.Do(ctx, calls...)
}

func (c *Client) calls(p *engine.Port, requests ...Request) ([]*engine.Call, error) {
	calls := make([]*engine.Call, len(requests))
	for i, r := range requests {
		calls[i] = new(engine.Call)
		if err := c.Put(calls[i], p, r); err != nil {
			return nil, err
		}
	}
	return calls, nil
}

// Put makes call the request r of local port p. The error is ErrNoSM or a
// PKeyError.
func (c *Client) Put(call *engine.Call, p *engine.Port, r Request) error {
	to, err := c.address(p)
	if err != nil {
		return err
	}
	call.PutSA(r.Method, r.Attr.ID, r.Modifier, r.Mask, r.Record)
	call.To = to
	return nil
}

// address is the address of the subnet administrator.
func (c *Client) address(p *engine.Port) (to engine.Address, err error) {
	to = engine.Address{LID: p.SMLID, QP: 1, SL: p.SMSL}
	if c.SMLID != 0 {
		to.LID = c.SMLID
	}
	if to.LID == 0 {
		return to, ErrNoSM
	}
	if c.SL != nil {
		to.SL = *c.SL
	}
	to.PKeyIndex, err = c.pkeyIndex(p)
	return to, err
}

// pkeyIndex is the place of the P_Key of general packets in p's table.
func (c *Client) pkeyIndex(p *engine.Port) (uint16, error) {
	if c.PKey == 0 {
		return uint16(max(0, p.PKeyIndex(mad.DefaultPKey))), nil
	}
	i := p.PKeyIndex(c.PKey)
	if i < 0 {
		return 0, &PKeyError{c.PKey, p.PKeys}
	}
	return uint16(i), nil
}

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

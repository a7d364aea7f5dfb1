package topology

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// bulkPaths is from how many targets on one table of paths is asked for
// instead of a path each.
const bulkPaths = 64

// pathCache is what the session knows of the way to its targets.
type pathCache struct {
	sl     map[mad.LID]uint8
	silent bool // the subnet administrator does not answer: SL 0 for all
	warned bool
}

// pkeyIndex is the index of the P_Key that management packets carry: that of
// --pkey, else of the default partition, else the first there is.
func pkeyIndex(s *Env, p *engine.Port) (uint16, error) {
	if s.PKey == 0 {
		return uint16(max(0, p.PKeyIndex(mad.DefaultPKey))), nil
	}
	i := p.PKeyIndex(s.PKey)
	if i < 0 {
		return 0, &TargetError{msg: fmt.Sprintf("the local port is not in the partition of --pkey %#04x", s.PKey)}
	}
	return uint16(i), nil
}

// PutSA makes call a request to the subnet administrator.
func PutSA(c *lang.Call, call *engine.Call, p *engine.Port, m mad.Method, attr *mad.Attribute, modifier uint32, mask uint64, data []byte) error {
	return EnvOf(c.Runtime()).PutSA(call, p, m, attr, modifier, mask, data)
}

func (s *Env) PutSA(call *engine.Call, p *engine.Port, m mad.Method, attr *mad.Attribute, modifier uint32, mask uint64, data []byte) error {
	lid := p.SMLID
	if s.SMLID != 0 {
		lid = s.SMLID
	}
	if lid == 0 {
		return ErrNoSM
	}
	call.PutSA(m, attr.ID, modifier, mask, data)
	call.SetLID(lid)
	call.To.SL = p.SMSL
	if s.SL != nil {
		call.To.SL = *s.SL
	}
	var err error
	call.To.PKeyIndex, err = pkeyIndex(s, p)
	return err
}

// ErrNoSM: there is nobody to ask.
var ErrNoSM = &TargetError{msg: "no subnet manager has set up the local port, so there is no subnet administrator to ask; start one, or name it with --sm-lid"}

// SendProbes sends requests of fabsh's own, which do not count for the exit status.
func SendProbes(c *lang.Call, calls []*engine.Call) error {
	e, err := EngineOf(c)
	if err != nil {
		return err
	}
	return c.Block(func(ctx context.Context) error { return e.Do(ctx, calls...) })
}

// saLookup asks for the records with one component.
func saLookup(c *lang.Call, attr *mad.Attribute, component string, v starlark.Value) ([]*records.Record, error) {
	p, err := LocalPort(c)
	if err != nil {
		return nil, err
	}
	data := make([]byte, attr.Size)
	f, err := records.SetNamed(attr, data, component, v)
	if err != nil {
		return nil, err
	}
	var call engine.Call
	if err := PutSA(c, &call, &p, mad.MethodGetTable, attr, 0, f.Mask(), data); err != nil {
		return nil, err
	}
	if err := Transact(c, []*engine.Call{&call}); err != nil {
		return nil, err
	}
	return TableOf(attr, &call)
}

// TableOf are the records of an answer; none where the administrator says so.
func TableOf(attr *mad.Attribute, call *engine.Call) ([]*records.Record, error) {
	var me *engine.Error
	if errors.As(call.Err, &me) && me.Err == nil && me.Status == mad.StatusNoRecords {
		return nil, nil
	}
	if call.Err != nil {
		return nil, call.Err
	}
	seq, err := call.Records(attr.Size)
	if err != nil {
		return nil, err
	}
	var list []*records.Record
	for data := range seq {
		list = append(list, records.NewAnswer(attr, 0, data))
	}
	return list, nil
}

// pathLID asks for the LID behind a GID.
func pathLID(c *lang.Call, g mad.GID) (mad.LID, error) {
	p, err := LocalPort(c)
	if err != nil {
		return 0, err
	}
	query := mad.PathRecord{DGID: g, SGID: mad.MakeGID(p.GIDPrefix, p.PortGUID), NumbPath: 1}
	call, err := pathQuery(c, &p, mad.MethodGet, &query, "dgid", "sgid", "numb_path")
	if err != nil {
		return 0, err
	}
	if err := Transact(c, []*engine.Call{call}); err != nil {
		return 0, err
	}
	if call.Err != nil {
		return 0, call.Err
	}
	var path mad.PathRecord
	path.Decode(call.Data())
	return path.DLID, nil
}

func pathQuery(c *lang.Call, p *engine.Port, m mad.Method, query *mad.PathRecord, components ...string) (*engine.Call, error) {
	data := make([]byte, mad.AttrPathRecord.Size)
	query.Encode(data)
	var mask uint64
	for _, name := range components {
		mask |= mad.AttrPathRecord.Field(name).Mask()
	}
	call := new(engine.Call)
	return call, PutSA(c, call, p, m, mad.AttrPathRecord, 0, mask, data)
}

// ServiceLevels learns the service levels of the paths to lids: one table for
// many, one request each for few. What the subnet administrator does not tell
// is 0, with one warning a session.
func ServiceLevels(c *lang.Call, p *engine.Port, lids []mad.LID) error {
	if _, err := pkeyIndex(EnvOf(c.Runtime()), p); err != nil {
		return fmt.Errorf("%s: %w", c.Name, err)
	}
	known := lang.StateOf[pathCache](c.Runtime())
	if known.sl == nil {
		known.sl = map[mad.LID]uint8{}
	}
	if EnvOf(c.Runtime()).SL != nil || known.silent {
		return nil
	}
	ask := unknownPaths(known, lids)
	if len(ask) == 0 {
		return nil
	}
	if len(ask) >= bulkPaths {
		call, err := pathQuery(c, p, mad.MethodGetTable, &mad.PathRecord{SLID: p.LID, NumbPath: 1}, "slid", "numb_path")
		if err == nil {
			if err := SendProbes(c, []*engine.Call{call}); err != nil {
				return err
			}
			var records []*records.Record
			records, err = TableOf(mad.AttrPathRecord, call)
			for _, r := range records {
				known.sl[mad.LID(r.Uint("dlid"))] = uint8(r.Uint("sl"))
			}
		}
		if err != nil {
			known.silent = true
			warnPaths(c, err)
			return nil
		}
		ask = unknownPaths(known, lids)
	}
	return singlePaths(c, p, ask)
}

func unknownPaths(known *pathCache, lids []mad.LID) []mad.LID {
	var ask []mad.LID
	for _, lid := range lids {
		if _, ok := known.sl[lid]; !ok && lid != 0 {
			ask = append(ask, lid)
		}
	}
	slices.Sort(ask)
	return slices.Compact(ask)
}

// singlePaths asks for a path to each.
func singlePaths(c *lang.Call, p *engine.Port, ask []mad.LID) error {
	known := lang.StateOf[pathCache](c.Runtime())
	calls := make([]*engine.Call, 0, len(ask))
	for _, lid := range ask {
		call, err := pathQuery(c, p, mad.MethodGet, &mad.PathRecord{SLID: p.LID, DLID: lid, NumbPath: 1}, "slid", "dlid", "numb_path")
		if err != nil {
			known.silent = true
			warnPaths(c, err)
			return nil
		}
		calls = append(calls, call)
	}
	if err := SendProbes(c, calls); err != nil {
		return err
	}
	for i, call := range calls {
		var path mad.PathRecord
		if call.Err == nil {
			path.Decode(call.Data())
		} else {
			known.silent = known.silent || Unanswered(call.Err)
			warnPaths(c, call.Err)
		}
		known.sl[ask[i]] = path.SL
	}
	return nil
}

func warnPaths(c *lang.Call, err error) {
	if known := lang.StateOf[pathCache](c.Runtime()); !known.warned {
		known.warned = true
		c.Fiber().Warn("the service level of paths is not known, so 0 is used (--sl sets another): %v", err)
	}
}

// AddressGMP addresses a general management packet to lid, once ServiceLevels
// has looked at it.
func AddressGMP(c *lang.Call, call *engine.Call, p *engine.Port, lid mad.LID) {
	call.SetLID(lid)
	call.To.SL = lang.StateOf[pathCache](c.Runtime()).sl[lid]
	if sl := EnvOf(c.Runtime()).SL; sl != nil {
		call.To.SL = *sl
	}
	call.To.PKeyIndex, _ = pkeyIndex(EnvOf(c.Runtime()), p)
}

func SAFailed(c *lang.Call, attr *mad.Attribute, err error) error {
	return FailedRequest(c, &Target{Label: attr.Name + " of the subnet administrator"}, err)
}

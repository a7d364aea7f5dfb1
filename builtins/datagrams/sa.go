package datagrams

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/topology"
	"fabsh/fabric/sa"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// saParams are the parameters of all queries.
var saParams = []lang.Param{
	{Name: "record", Kind: records.KindRecord, Doc: `name of a record: "PathRecord"`},
	{Name: "modifier", Kind: lang.KindInt, Default: "0", Keyword: true, Doc: "the attribute modifier"},
	{Name: "**components", Kind: records.KindFields, Doc: "components that the records must have, as words or numbers; LIDs, GIDs and GUIDs also as targets; mtu, rate and packet_life_time must be equal, unless mtu_selector etc. is given"},
}

// saArgs are the arguments that all requests to the subnet administrator share.
type saArgs struct {
	Record     string
	Modifier   int
	Components []starlark.Tuple
}

// SAGet is sa_get, which reads one record.
var SAGet = lang.Builtin{
	Name:    "sa_get",
	Returns: "record of record",
	Group:   GroupMAD,
	Params:  saParams,
	Doc: `Reads one record from the subnet administrator.
It must be the only record with the given components.`,
	Example: `
> sa_get("NodeRecord", lid=1).node_type
"switch"
`,
	Run: lang.Do(func(c *lang.Call, a *saArgs) (starlark.Value, error) {
		q, err := newSAQuery(c, mad.MethodGet, a)
		if err != nil {
			return nil, err
		}
		return q.record(c)
	}),
}

// saGetTableArgs are the arguments of sa_gettable.
type saGetTableArgs struct {
	saArgs
	Force bool
}

// SAGetTable is sa_gettable, which reads a list of records.
var SAGetTable = lang.Builtin{
	Name:    "sa_gettable",
	Returns: "list of record of record",
	Group:   GroupMAD,
	Params: slices.Insert(slices.Clone(saParams), 2,
		lang.Param{Name: "force", Kind: lang.KindBool, Default: "False", Keyword: true, Doc: "allow a request for the paths between all ports, with neither source nor destination"}),
	Doc: `Reads records from the subnet administrator.
It returns all records with the given components; the list may be empty. The number of paths between all ports is the square of the number of ports, so PathRecord with neither source (slid, sgid) nor destination (dlid, dgid) requires force=True.`,
	Example: `
> len(sa_gettable("NodeRecord", node_type="switch")) == len(discover().switches)
True
> len(sa_gettable("PathRecord", slid=13, dlid=20))
1
`,
	Run: lang.Do(func(c *lang.Call, a *saGetTableArgs) (starlark.Value, error) {
		q, err := newSAQuery(c, mad.MethodGetTable, &a.saArgs)
		if err != nil {
			return nil, err
		}
		if q.attr == mad.AttrPathRecord && q.mask&pathEnds() == 0 && !a.Force {
			return nil, allPaths(c)
		}
		return q.table(c)
	}),
}

// pathEnds returns the components of PathRecord that name a port.
func pathEnds() (mask uint64) {
	for _, name := range []string{"slid", "sgid", "dlid", "dgid"} {
		mask |= mad.AttrPathRecord.Field(name).Mask()
	}
	return mask
}

// allPaths returns the error that refuses a request for the paths between all ports. Their
// number follows from the number of ports with LIDs, each of which has a NodeRecord.
func allPaths(c *lang.Call) error {
	nodes, err := topology.SACall(c, sa.NewRequest(mad.MethodGetTable, mad.AttrNodeRecord, nil))
	if err != nil {
		return err
	}
	if err := topology.SendProbes(c, []*engine.Call{nodes}); err != nil {
		return err
	}
	how := "one for each pair of ports"
	if records, err := topology.SARecords(mad.AttrNodeRecord, nodes); err == nil {
		n := len(records)
		how = fmt.Sprintf("about %d records, one for each pair of %d ports (more with LMCs)", n*n, n)
	}
	return lang.Errorf("PathRecord with neither source (slid, sgid) nor destination (dlid, dgid) requests the paths between all ports: %s; name an end, or give force=True", how)
}

// saQuery is a request to the subnet administrator.
type saQuery struct {
	method   mad.Method
	attr     *mad.Attribute
	modifier uint32
	layout   *mad.Attribute // of the request: attr, except for traces
	mask     uint64         // of components
	data     []byte
	*engine.Call
}

// newSAQuery returns the request of the call.
func newSAQuery(c *lang.Call, m mad.Method, a *saArgs) (*saQuery, error) {
	attr, err := attributeNamed(mad.ClassSubnAdm, a.Record)
	if err != nil {
		return nil, lang.ParamError("record", "%w", err)
	}
	if v := attr.Version; v != mad.ClassSubnAdm.Version() {
		return nil, lang.Errorf("%s exists only in version %d of the class; use mad_send(%q, target, method=..., class_version=%d)", attr.Name, v, attr.Name, v)
	}
	if err := mad.Allowed(mad.ClassSubnAdm, mad.ClassSubnAdm.Version(), m, attr.ID); err != nil {
		return nil, lang.Errorf("%w", err)
	}
	q := &saQuery{method: m, attr: attr, layout: attr}
	if m == mad.MethodGetTraceTable { // opa-ff FillSADetailsForTraceRecord, illumos ibmf_saa_impl.c
		q.layout = mad.AttrPathRecord
	}
	q.data = make([]byte, q.layout.Size)
	for _, kv := range a.Components {
		name, value := string(kv[0].(starlark.String)), kv[1]
		if f := q.layout.Field(name); f != nil {
			if value, err = topology.Component(c, f, value); err != nil {
				return nil, err
			}
		}
		f, err := records.SetNamed(q.layout, q.data, name, value)
		if err != nil {
			return nil, lang.Errorf("%w", err)
		}
		if f.Mask() == 0 {
			return nil, lang.Errorf("%s.%s is not a component; records cannot be selected by it", q.layout.Name, f.Script)
		}
		q.mask |= f.Mask()
	}
	if err := q.selectors(); err != nil {
		return nil, err
	}
	if q.modifier, err = modifierOf(a.Modifier); err != nil {
		return nil, err
	}
	return q, q.put(c)
}

// selectors sets the selector "exactly" for a value that is given without its selector,
// because OpenSM ignores one without the other (opensm osm_sa_path_record.c
// pr_rcv_get_path_parms, osm_sa_mcmember_record.c mcmr_by_comp_mask).
func (q *saQuery) selectors() error {
	for i := range q.layout.Fields {
		selector := &q.layout.Fields[i]
		name, ok := strings.CutSuffix(selector.Script, "_selector")
		value := q.layout.Field(name)
		if !ok || value == nil { // independence_selector
			continue
		}
		switch {
		case q.mask&value.Mask() != 0 && q.mask&selector.Mask() == 0:
			selector.SetUint(q.data, uint64(mad.SelectorExactly))
			q.mask |= selector.Mask()
		case q.mask&selector.Mask() != 0 && q.mask&value.Mask() == 0 && selector.Uint(q.data) != uint64(mad.SelectorLargestAvailable):
			return lang.Errorf("%s.%s is given without %s, to which it applies", q.layout.Name, selector.Script, name)
		}
	}
	return nil
}

// put prepares the Call.
func (q *saQuery) put(c *lang.Call) (err error) {
	q.Call, err = topology.SACall(c, sa.Request{Method: q.method, Attr: q.attr, Modifier: q.modifier, Mask: q.mask, Record: q.data})
	return err
}

// record sends q and returns the one record of the answer.
func (q *saQuery) record(c *lang.Call) (starlark.Value, error) {
	if err := topology.Transact(c, []*engine.Call{q.Call}); err != nil {
		return nil, err
	}
	topology.ObserveOne(c, q.attr, nil, q.Err)
	if q.Err != nil {
		return nil, q.failed(c, q.Err)
	}
	return records.NewAnswer(q.attr, 0, q.Data()), nil
}

// table sends q and returns all records of the answer.
func (q *saQuery) table(c *lang.Call) (starlark.Value, error) {
	if err := topology.Transact(c, []*engine.Call{q.Call}); err != nil {
		return nil, err
	}
	attr := q.attr
	if attr.Answer != nil {
		attr = attr.Answer
	}
	records, err := topology.SARecords(attr, q.Call)
	topology.ObserveOne(c, q.attr, nil, err)
	if err != nil {
		return nil, q.failed(c, err)
	}
	return recordList(records), nil
}

func recordList(list []*records.Record) *starlark.List {
	return lang.List(list, func(r *records.Record) starlark.Value { return r })
}

// failed returns the error of q, which was answered with err or not answered.
func (q *saQuery) failed(c *lang.Call, err error) error {
	err = topology.SAFailed(c, q.attr, err)
	var re *topology.RequestError
	if errors.As(err, &re) && answersOthers(c, q) {
		h := q.Header()
		what, or := "method", ""
		if h.Method == mad.MethodGet || h.Method == mad.MethodGetTable {
			what, or = "record", "; or the answer takes long or was lost: increase --timeout and --retries"
		}
		re.Advice = what + " probably not supported: the subnet administrator answers other requests (OpenSM drops requests that it does not support)" + or
	}
	return err
}

// answersOthers reports whether another request is answered, while q was sent more than
// once without an answer. OpenSM drops methods and records that it does not support
// (opensm osm_sa_mad_ctrl.c sa_mad_ctrl_rcv_callback and sa_mad_ctrl_process).
func answersOthers(c *lang.Call, q *saQuery) bool {
	if c.Name == "sa_set" || c.Name == "sa_delete" || q.attr == mad.AttrSubnAdmClassPortInfo || !engine.Unanswered(q.Err) {
		return false
	}
	probe, err := topology.SACall(c, sa.NewRequest(mad.MethodGet, mad.AttrSubnAdmClassPortInfo, nil))
	return err == nil && topology.SendProbes(c, []*engine.Call{probe}) == nil && probe.Err == nil
}

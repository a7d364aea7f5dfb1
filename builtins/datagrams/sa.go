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
	"fabsh/fabric/plural"
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
			return nil, refuseAllPaths(c)
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

// refuseAllPaths returns the error that refuses a request for the paths between all ports. Their
// number follows from the number of ports with LIDs, each of which has a NodeRecord.
func refuseAllPaths(c *lang.Call) error {
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

// saGetMultiArgs are the arguments of sa_getmulti.
type saGetMultiArgs struct {
	saArgs
	SGIDs, DGIDs starlark.Value
}

// SAGetMulti is sa_getmulti, which reads paths between sets of ports.
var SAGetMulti = lang.Builtin{
	Name:    "sa_getmulti",
	Returns: "list of PathRecord",
	Group:   GroupMAD,
	Params: []lang.Param{
		{Name: "record", Kind: records.KindRecord, Default: `"MultiPathRecord"`, Doc: "name of the record; only one is supported"},
		{Name: "sgids", Kind: lang.KindAny, Default: "None", Keyword: true, Doc: "GIDs of the sources, or targets: one, or a list"},
		{Name: "dgids", Kind: lang.KindAny, Default: "None", Keyword: true, Doc: "GIDs of the destinations, or targets: one, or a list"},
		{Name: "modifier", Kind: lang.KindInt, Default: "0", Keyword: true, Doc: "the attribute modifier"},
		{Name: "**components", Kind: records.KindFields, Doc: "components of MultiPathRecord that the paths must have, as words or numbers"},
	},
	Doc: `Reads paths between sets of ports from the subnet administrator.
It returns a list of PathRecord. These requests are optional for subnet administrators. OpenSM uses only the first 11 ports of a request; a warning reports ports without paths.`,
	Example: `
> g = [gid(r.port_guid, prefix="0xfe80000000000000") for r in sa_gettable("NodeRecord", node_type="ca")]
> [(p.slid, p.dlid) for p in sa_getmulti(sgids=g[:1], dgids=g[1:4])]
[(13, 14), (13, 15), (13, 16)]
`,
	Run: lang.Do(func(c *lang.Call, a *saGetMultiArgs) (starlark.Value, error) {
		q, err := newSAQuery(c, mad.MethodGetMulti, &a.saArgs)
		if err != nil {
			return nil, err
		}
		if err := multiPath(c, q, a); err != nil {
			return nil, err
		}
		if err := q.put(c); err != nil {
			return nil, err
		}
		q.Payload = q.data
		v, err := q.table(c)
		if err == nil {
			warnIgnored(c, q, v.(*starlark.List))
		}
		return v, err
	}),
}

// multiPath writes the ports to a MultiPathRecord: all sources, then all destinations.
func multiPath(c *lang.Call, q *saQuery, a *saGetMultiArgs) error {
	gids := q.layout.Field("sdgid").Offset / 8
	q.data = q.data[:gids]
	for _, end := range []struct {
		param string
		gids  starlark.Value
		field string
	}{{"sgids", a.SGIDs, "sgid_count"}, {"dgids", a.DGIDs, "dgid_count"}} {
		list, err := gidsOf(c, end.param, end.gids)
		if err != nil {
			return err
		}
		n := q.layout.Field(end.field)
		switch {
		case len(list) == 0:
			return lang.Errorf("missing sources or destinations; give both sgids and dgids")
		case uint64(len(list)) > n.Max():
			return lang.ParamError(end.param, "got %s, want at most %d", plural.Count(len(list), "GID", "GIDs"), n.Max())
		}
		n.SetUint(q.data, uint64(len(list)))
		q.mask |= n.Mask()
		for _, g := range list {
			q.data = append(q.data, g[:]...)
		}
	}
	return nil
}

// openSMGIDs is the number of GIDs of a request that OpenSM uses, sources first; it does
// not report this (opensm osm_sa_multipath_record.c mpr_rcv_get_end_points).
const openSMGIDs = 11

// warnIgnored warns if ports may have been ignored.
func warnIgnored(c *lang.Call, q *saQuery, paths *starlark.List) {
	numb := q.layout.Field("numb_path").Mask()
	gids := slices.Collect(slices.Chunk(q.data[q.layout.Field("sdgid").Offset/8:], len(mad.GID{})))
	if len(gids) <= openSMGIDs || q.mask&numb != 0 {
		return
	}
	seen := map[mad.GID]bool{}
	for v := range starlark.Elements(paths) {
		for _, name := range []string{"sgid", "dgid"} {
			seen[v.(*records.Record).Attribute.Field(name).GID(v.(*records.Record).Data)] = true
		}
	}
	without := 0
	for _, g := range gids {
		if !seen[mad.GID(g)] {
			without++
		}
	}
	if without > 0 {
		c.Fiber().Warn("%s: no paths for %d of the %d ports; OpenSM uses only the first %d ports of a request", c.Name, without, len(gids), openSMGIDs)
	}
}

// gidsOf returns the GIDs of an argument that is a GID, a target or a list of them; none
// if it is nil, that is, not given.
func gidsOf(c *lang.Call, param string, v starlark.Value) ([]mad.GID, error) {
	values := []starlark.Value{v}
	switch v := v.(type) {
	case nil:
		return nil, nil
	case starlark.Iterable:
		values = lang.Collect(v)
	}
	list := make([]mad.GID, len(values))
	for i, v := range values {
		var err error
		if v, err = topology.Component(c, &mad.Field{Script: param, Type: mad.FieldTypeGID, Count: 1}, v); err != nil {
			return nil, err
		}
		if list[i], err = records.ParseGID(v); err != nil {
			return nil, lang.ParamError(param, "%w", err)
		}
	}
	return list, nil
}

// SAGetTrace is sa_gettrace, which reads the hops of a path.
var SAGetTrace = lang.Builtin{
	Name:    "sa_gettrace",
	Returns: "list of record of record",
	Group:   GroupMAD,
	Params: []lang.Param{
		{Name: "record", Kind: records.KindRecord, Default: `"TraceRecord"`, Doc: "name of the record; only one is supported"},
		{Name: "modifier", Kind: lang.KindInt, Default: "0", Keyword: true, Doc: "the attribute modifier"},
		{Name: "**components", Kind: records.KindFields, Doc: "components of PathRecord that the path must have, as words or numbers"},
	},
	Doc: `Reads the hops of a path from the subnet administrator.
It returns a list of TraceRecord, beginning at the source. These requests are optional for subnet administrators; OpenSM does not support them.`,
	Example: `
> [(t.node_type, t.entry_port, t.exit_port) for t in sa_gettrace(slid=13, dlid=14)]
[("ca", 0, 1), ("switch", 1, 2), ("ca", 1, 0)]
`,
	Run: lang.Do(func(c *lang.Call, a *saArgs) (starlark.Value, error) {
		q, err := newSAQuery(c, mad.MethodGetTraceTable, a)
		if err != nil {
			return nil, err
		}
		return q.table(c)
	}),
}

// SASet is sa_set, which creates or changes a record.
var SASet = lang.Builtin{
	Name:    "sa_set",
	Returns: "record of record",
	Group:   GroupMAD,
	Params: []lang.Param{
		{Name: "record", Kind: records.KindRecord, Doc: `name of a record: "MCMemberRecord"`},
		{Name: "modifier", Kind: lang.KindInt, Default: "0", Keyword: true, Doc: "the attribute modifier"},
		{Name: "**components", Kind: records.KindFields, Doc: "components of the record, as words or numbers"},
	},
	Doc: `Creates or changes a record of the subnet administrator, and returns the new record.
A Set of MCMemberRecord joins port_gid to the group mgid: join_state is added to the port's present state. If the group does not exist it is created, which requires a full member and also q_key, p_key, sl, flow_label and tclass; with mgid "::" the administrator chooses the GID. A Set of ServiceRecord registers or renews a service for service_lease seconds. It requires --write; a refusal ends the script with status 2.`,
	Example: `
> p = smp_get("PortInfo", dr("0"), 1)
> me = gid(smp_get("NodeInfo", dr("0")).port_guid, prefix=p.gid_prefix)
> m = sa_set("MCMemberRecord", mgid="ff12:1::7", port_gid=me, join_state="full_member", q_key=1, p_key=0xffff, sl=0, flow_label=0, tclass=0)
> (m.mlid, m.join_state)
(49153, ("full_member",))
`,
	Run: lang.Do(func(c *lang.Call, a *saArgs) (starlark.Value, error) { return saChange(c, mad.MethodSet, a) }),
}

// SADelete is sa_delete, which deletes a record.
var SADelete = lang.Builtin{
	Name:    "sa_delete",
	Returns: "record of record",
	Group:   GroupMAD,
	Params:  SASet.Params,
	Doc: `Deletes a record of the subnet administrator, and returns the deleted record.
A Delete of MCMemberRecord removes port_gid from the group mgid: join_state is removed from the port's state, and the returned record has the rest. A group without full members is deleted. A ServiceRecord is identified by service_id, service_gid and service_p_key. It requires --write; a refusal ends the script with status 2.`,
	Example: `
> p = sa_get("NodeRecord", lid=13)
> me = gid(p.port_guid, prefix="0xfe80000000000000")
> s = sa_set("ServiceRecord", service_id=0x77, service_gid=me, service_p_key=0xffff, service_name="timed", service_lease=60)
> sa_delete("ServiceRecord", service_id=0x77, service_gid=me, service_p_key=0xffff).service_name
"timed"
`,
	Run: lang.Do(func(c *lang.Call, a *saArgs) (starlark.Value, error) { return saChange(c, mad.MethodDelete, a) }),
}

// saChange sends a request that changes a record, if the session may change it.
func saChange(c *lang.Call, m mad.Method, a *saArgs) (starlark.Value, error) {
	q, err := newSAQuery(c, m, a)
	if err != nil {
		return nil, err
	}
	if mad.EffectOf(mad.ClassSubnAdm, mad.ClassSubnAdm.Version(), m, q.attr.ID) == mad.EffectFabric {
		if _, err := topology.MayChange(c, q.attr); err != nil {
			return nil, err
		}
	}
	return q.record(c)
}

package datagrams

import (
	"slices"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/topology"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

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

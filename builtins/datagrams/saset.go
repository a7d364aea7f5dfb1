package datagrams

import (
	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/topology"
	"fabsh/mad"
)

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

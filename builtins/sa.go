package builtins

import (
	"fmt"

	"go.starlark.net/starlark"

	"fabsh/mad"
)

// saParams are those of all queries.
var saParams = []Param{
	{Name: "record", Kind: KindRecord, Doc: `name of a record: "PathRecord"`},
	{Name: "modifier", Kind: KindInt, Default: "0", Keyword: true, Doc: "the attribute modifier"},
	{Name: "**components", Kind: KindFields, Doc: "components that the records must have, as words or numbers"},
}

var saGetBuiltin = Builtin{
	Name:   "sa_get",
	Group:  groupMAD,
	Params: saParams,
	Doc: `Asks the subnet administrator for one record.
It must be the only one that has the given components.`,
	Example: `
> sa_get("NodeRecord", lid=1).node_type
"switch"
`,
	fn: func(c *call) (starlark.Value, error) {
		attr, query, err := c.saQuery(mad.MethodGet)
		if err != nil {
			return nil, err
		}
		if err := c.transact([]*mad.Call{query}); err != nil {
			return nil, err
		}
		if query.Err != nil {
			return nil, c.saFailed(attr, query.Err)
		}
		return answered(attr, 0, query.Data()), nil
	},
}

var saGettableBuiltin = Builtin{
	Name:   "sa_gettable",
	Group:  groupMAD,
	Params: saParams,
	Doc: `Asks the subnet administrator for records.
It returns all that have the given components; the list may be empty.`,
	Example: `
> len(sa_gettable("NodeRecord", node_type="switch")) == len(discover().switches)
True
`,
	fn: func(c *call) (starlark.Value, error) {
		attr, query, err := c.saQuery(mad.MethodGetTable)
		if err != nil {
			return nil, err
		}
		if err := c.transact([]*mad.Call{query}); err != nil {
			return nil, err
		}
		records, err := tableOf(attr, query)
		if err != nil {
			return nil, c.saFailed(attr, err)
		}
		list := make([]starlark.Value, len(records))
		for i, r := range records {
			list[i] = r
		}
		return starlark.NewList(list), nil
	},
}

// saQuery makes the request of what the call says.
func (c *call) saQuery(m mad.Method) (*mad.Attribute, *mad.Call, error) {
	attr, err := attributeNamed(mad.ClassSubnAdm, c.Text("record"))
	if err != nil {
		return nil, nil, c.paramError("record", "%w", err)
	}
	if err := mad.Allowed(mad.ClassSubnAdm, mad.ClassSubnAdm.Version(), m, attr.ID); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", c.Name, err)
	}
	modifier := c.Int("modifier")
	if modifier < 0 || int64(modifier) > 0xffffffff {
		return nil, nil, c.paramError("modifier", "got %d, want 0..0xffffffff", modifier)
	}
	data := make([]byte, attr.Size)
	var mask uint64
	for _, kv := range c.fields {
		f, err := setNamed(attr, data, string(kv[0].(starlark.String)), kv[1])
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", c.Name, err)
		}
		if f.Mask() == 0 {
			return nil, nil, fmt.Errorf("%s: %s.%s is no component: records cannot be chosen by it", c.Name, attr.Name, f.Script)
		}
		mask |= f.Mask()
	}
	p, err := c.localPort()
	if err != nil {
		return nil, nil, err
	}
	query := new(mad.Call)
	if err := c.putSA(query, &p, m, attr, uint32(modifier), mask, data); err != nil {
		return nil, nil, c.saFailed(attr, err)
	}
	return attr, query, nil
}

func (c *call) saFailed(attr *mad.Attribute, err error) error {
	return c.failed(&target{label: attr.Name + " of the subnet administrator"}, err)
}

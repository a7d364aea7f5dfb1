package builtins

import (
	"go.starlark.net/starlark"

	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/mad"
)

// Rail is a subnet that was audited from another port of the host.
type Rail struct {
	Port   string // of the host: "mlx5_0/1"
	Subnet fabric.Subnet
}

// railValues are rails as audits get them: dicts of port, prefix, and sm, the
// GUID of the master.
func railValues(rails []Rail) *starlark.List {
	list := make([]starlark.Value, len(rails))
	for i, r := range rails {
		d := starlark.NewDict(3)
		d.SetKey(starlark.String("port"), starlark.String(r.Port))
		d.SetKey(starlark.String("prefix"), topology.GUIDValue(mad.GUID(r.Subnet.Prefix)))
		d.SetKey(starlark.String("sm"), topology.GUIDValue(r.Subnet.SM))
		list[i] = d
	}
	return starlark.NewList(list)
}

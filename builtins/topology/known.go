package topology

import (
	"fmt"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// Known makes f the latest fabric without a sweep, if its nodes are still at their LIDs:
// it reads NodeInfo at the LID of each. moved describes the first difference.
func Known(t *starlark.Thread, f *fabric.Fabric) (v *Fabric, moved string, err error) {
	err = lang.Operate(t, "discover", func(c *lang.Call) error {
		var calls []*engine.Call
		var of []*fabric.Node
		for i := range f.Nodes() {
			if n := &f.Nodes()[i]; n.LID() != 0 {
				call := new(engine.Call)
				fabric.Dest{LID: n.LID(), Guard: n.Guard()}.Put(call, mad.MethodGet, mad.AttrNodeInfo, 0, nil)
				calls, of = append(calls, call), append(of, n)
			}
		}
		if err := SendProbes(c, calls); err != nil {
			return err
		}
		for i, call := range calls {
			var info mad.NodeInfo
			if call.Err == nil {
				info.Decode(call.Data())
			}
			switch {
			case call.Err != nil:
				moved = fmt.Sprintf("%s does not answer at LID %d", of[i].Label(), of[i].LID())
			case info.NodeGUID != of[i].GUID():
				moved = fmt.Sprintf("LID %[2]d no longer belongs to %[1]s", of[i].Label(), of[i].LID())
			default:
				continue
			}
			return nil
		}
		if len(calls) == 0 {
			moved = "no node of the file has a LID"
			return nil
		}
		v = NewFabric(f)
		s := EnvOf(c.Runtime())
		s.Current, s.swept = v, false
		return nil
	})
	return v, moved, err
}

package audits

import (
	"fmt"
	"strconv"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/topology"
	"fabsh/fabric/audit"
)

// SubjectOf returns the subject that a value names.
func SubjectOf(v starlark.Value) (audit.Subject, error) {
	switch v := v.(type) {
	case *topology.Fabric:
		return audit.OfFabric(), nil
	case topology.Node:
		return audit.OfNode(v.Node), nil
	case topology.Port:
		return audit.OfPort(v.Port), nil
	case topology.Link:
		return audit.OfLink(v.A, v.B), nil
	case starlark.String:
		text, port, hasPort := strings.Cut(string(v), "/")
		num := audit.NoPort
		if hasPort {
			n, err := strconv.ParseUint(port, 10, 8)
			if err != nil {
				return audit.Subject{}, fmt.Errorf("invalid subject %s; want GUID/PORT", v)
			}
			num = int(n)
		}
		g, ok := records.GUIDText(text)
		if !ok {
			return audit.Subject{}, fmt.Errorf("invalid subject %s; want a GUID or GUID/PORT, or the node, port or link: names are not unique", v)
		}
		return audit.OfGUID(g, num, ""), nil
	}
	return audit.Subject{}, lang.WantType(v, "the fabric, a node, a port or a link of it, or a GUID")
}

package changes

import (
	"fmt"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/change"
	"fabsh/fabric/change/apply"
	"fabsh/mad"
)

// ManagerRouting returns what is known of the routing of the subnet manager: the engine that
// the command line states ("": none); else what the OpenSM of this host has in its configuration, if it
// is the subnet manager. sm and local are the LIDs of the subnet manager and of this host.
func ManagerRouting(r *lang.Runtime, engine string, sm, local mad.LID) (m change.ManagerRouting, err error) {
	env := topology.EnvOf(r)
	if m.Engines, err = change.ParseManagerEngine(engine); err != nil {
		return m, fmt.Errorf("--manager-engine: %w", err)
	}
	switch {
	case m.Engines != nil:
		m.Source = "--manager-engine"
	case env.BesideManager && sm != 0 && sm == local:
		m = apply.LocalManagerRouting()
	}
	m.LID = sm
	return m, nil
}

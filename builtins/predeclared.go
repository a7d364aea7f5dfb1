package builtins

import (
	"slices"
	"strings"

	libmath "go.starlark.net/lib/math"
	libtime "go.starlark.net/lib/time"
	"go.starlark.net/starlark"

	"fabsh/builtins/audits"
	"fabsh/builtins/datagrams"
	"fabsh/builtins/lang"
	"fabsh/builtins/routing"
	"fabsh/builtins/topology"
)

// groups are the headings of the overview, in its order.
var groups = []string{topology.GroupFabric, datagrams.GroupMAD, topology.GroupTable, datagrams.GroupPort, lang.GroupFlow, lang.GroupOutput, lang.GroupRest}

// functions are all functions that scripts find as global names.
func functions() []*lang.Builtin {
	return []*lang.Builtin{
		&topology.Discover, &topology.LoadFabric, &routing.LoadRoutes, &routing.GetRoutes,
		&datagrams.SMPGet, &datagrams.SMPSet,
		&datagrams.PerfGet, &datagrams.PerfSet, &datagrams.PerfClear, &audits.PerfRates,
		&datagrams.SAGet, &datagrams.SAGetTable,
		&datagrams.MADGet, &datagrams.MADSet, &datagrams.MADSend,
		&datagrams.SASet, &datagrams.SADelete, &datagrams.SAGetMulti, &datagrams.SAGetTrace, &datagrams.SASubscribe,
		&datagrams.GetLFT, &datagrams.SetLFT, &datagrams.GetMFT, &datagrams.SetMFT, &datagrams.GetSL2VL, &datagrams.SetSL2VL,
		&datagrams.GetVLArb, &datagrams.SetVLArb, &datagrams.GetPKeys, &datagrams.SetPKeys, &datagrams.GetGUIDs, &datagrams.SetGUIDs,
		&datagrams.PortDisable, &datagrams.PortEnable, &datagrams.PortReset, &datagrams.PortSet,
		&lang.Parallel, &lang.Catch, &lang.OK, &lang.Errors,
		&lang.Show, &lang.Table, &lang.Fmt, &lang.Hex,
		&topology.GUID, &topology.GID, &topology.DR, &lang.Sum, &datagrams.Stats,
		&lang.Sleep, &lang.Exit, &helpBuiltin,
	}
}

// A fabric has methods of all vocabularies.
func init() {
	topology.FabricType.AddMethods(&routing.GraphMethod, &routing.SelectMethod, &routing.ReadGUIDsMethod, &routing.ReadNumbersMethod, &datagrams.ReadMFTsMethod, &datagrams.DumpMFTsMethod, &routing.ReadHopsMethod)
}

// predeclare fills the global names.
func (s *Session) predeclare() {
	s.builtins = functions()
	slices.SortFunc(s.builtins, func(a, b *lang.Builtin) int { return strings.Compare(a.Name, b.Name) })
	s.predeclared = starlark.StringDict{
		"fs":   lang.FSModule,
		"json": lang.JSONModule,
		"math": libmath.Module,
		"re":   lang.REModule,
		"time": libtime.Module,
	}
	for _, b := range s.builtins {
		s.predeclared[b.Name] = lang.NewFunction(b)
	}
	s.predeclared["quit"] = s.predeclared["exit"]
	if s.env.Sim != nil {
		s.predeclared["sim"] = &topology.Sim{Subnet: s.env.Sim}
	}
}

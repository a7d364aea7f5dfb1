package builtins

import (
	"slices"
	"strings"
	"time"

	libmath "go.starlark.net/lib/math"
	libtime "go.starlark.net/lib/time"
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"fabsh/builtins/audits"
	"fabsh/builtins/changes"
	"fabsh/builtins/datagrams"
	"fabsh/builtins/hosts"
	"fabsh/builtins/lang"
	"fabsh/builtins/pictures"
	"fabsh/builtins/routing"
	"fabsh/builtins/topology"
)

// groups are the headings of the overview, in its order.
var groups = []string{topology.GroupFabric, datagrams.GroupMAD, topology.GroupTable, datagrams.GroupPort, audits.GroupAudit, lang.GroupFlow, lang.GroupOutput, lang.GroupTest, lang.GroupRest}

// functions are all functions that scripts find as global names.
func functions() []*lang.Builtin {
	return []*lang.Builtin{
		&topology.Discover, &topology.LoadFabric, &routing.LoadRoutes, &routing.GetRoutes,
		&datagrams.SMPGet, &datagrams.SMPSet,
		&datagrams.PerfGet, &datagrams.PerfSet, &datagrams.PerfClear, &audits.PerfRates,
		&datagrams.SAGet, &datagrams.SAGetTable,
		&datagrams.MADGet, &datagrams.MADSet, &datagrams.MADSend, &datagrams.RegGet,
		&datagrams.SASet, &datagrams.SADelete, &datagrams.SAGetMulti, &datagrams.SAGetTrace, &datagrams.SASubscribe,
		&datagrams.GetLFT, &datagrams.SetLFT, &datagrams.GetMFT, &datagrams.SetMFT, &datagrams.GetSL2VL, &datagrams.SetSL2VL,
		&datagrams.GetVLArb, &datagrams.SetVLArb, &datagrams.GetPKeys, &datagrams.SetPKeys, &datagrams.GetGUIDs, &datagrams.SetGUIDs,
		&datagrams.PortDisable, &datagrams.PortEnable, &datagrams.PortReset, &datagrams.PortSet, &changes.Plan,
		&audits.Finding, &audits.Metric, &audits.LoadThresholds,
		&lang.Parallel, &lang.Catch, &lang.OK, &lang.Errors,
		&lang.Show, &lang.Table, &lang.Fmt, &lang.Hex, &reportBuiltin,
		&topology.GUID, &topology.GID, &topology.DR, &lang.Sum, &datagrams.Stats,
		&lang.Sleep, &lang.Exit, &helpBuiltin,
	}
}

// moduleFunctions are those of modules that are fabsh's own.
func moduleFunctions() []*lang.Builtin {
	return slices.Concat([]*lang.Builtin{
		&lang.JSONEncode, &lang.JSONEncodeIndent,
		&lang.FSExists, &lang.FSRead, &lang.FSWrite,
		&hosts.ListExpand, &hosts.ListFold,
		&lang.ReFindall, &lang.ReMatch, &lang.ReSearch, &lang.ReSplit, &lang.ReSub,
		&lang.YAMLDecode, &lang.YAMLEncode,
	}, expectFunctions())
}

// expectFunctions are those of the module expect.
func expectFunctions() []*lang.Builtin {
	return []*lang.Builtin{&lang.ExpectContains, &lang.ExpectEq, &lang.ExpectFails, &audits.ExpectFindings, &lang.ExpectNe, &lang.ExpectTrue}
}

// expectModule is what tests say.
func expectModule() *starlarkstruct.Module {
	m := &starlarkstruct.Module{Name: "expect", Members: starlark.StringDict{}}
	for _, b := range expectFunctions() {
		m.Members[strings.TrimPrefix(b.Name, "expect.")] = lang.NewFunction(b)
	}
	return m
}

// A fabric has methods of all vocabularies.
func init() {
	topology.FabricType.AddMethods(&routing.GraphMethod, &routing.SelectMethod, &routing.ReadGUIDsMethod, &routing.ReadNumbersMethod, &datagrams.ReadMFTsMethod, &datagrams.DumpMFTsMethod, &routing.ReadHopsMethod, &hosts.GroupsMethod, &pictures.MatrixMethod)
}

// predeclare fills the global names.
func (s *Session) predeclare() {
	s.builtins = functions()
	slices.SortFunc(s.builtins, func(a, b *lang.Builtin) int { return strings.Compare(a.Name, b.Name) })
	s.predeclared = starlark.StringDict{
		"expect":   expectModule(),
		"fs":       lang.FSModule,
		"hostlist": hosts.ListModule,
		"json":     lang.JSONModule,
		"math":     libmath.Module,
		"re":       lang.REModule,
		"time":     libtime.Module,
		"yaml":     lang.YAMLModule,
	}
	for _, b := range s.builtins {
		s.predeclared[b.Name] = lang.NewFunction(b)
	}
	s.predeclared["quit"] = s.predeclared["exit"]
	if s.env.Sim != nil {
		s.predeclared["sim"] = &topology.Sim{Subnet: s.env.Sim}
		s.env.Sim.SetClock(func() time.Time { return s.Clock.Now() })
	}
}

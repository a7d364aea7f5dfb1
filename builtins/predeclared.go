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
	"fabsh/builtins/help"
	"fabsh/builtins/history"
	"fabsh/builtins/lang"
	"fabsh/builtins/remedies"
	"fabsh/builtins/routing"
	"fabsh/builtins/script"
	"fabsh/builtins/topology"
)

// functions returns all functions that are global names of scripts.
func functions() []*lang.Builtin {
	return []*lang.Builtin{
		&topology.Discover, &topology.LoadFabric, &history.Load, &topology.CompareCabling, &routing.LoadRoutes, &routing.GetRoutes, &routing.LoadJobs, &routing.LoadMeasurements, &routing.LoadTenants,
		&datagrams.SMPGet, &datagrams.SMPSet,
		&datagrams.PerfGet, &datagrams.PerfSet, &datagrams.PerfClear, &audits.PerfRates,
		&datagrams.SAGet, &datagrams.SAGetTable,
		&datagrams.MADGet, &datagrams.MADSet, &datagrams.MADSend, &datagrams.RegGet,
		&datagrams.SASet, &datagrams.SADelete, &datagrams.SAGetMulti, &datagrams.SAGetTrace, &datagrams.SASubscribe,
		&datagrams.GetLFT, &datagrams.SetLFT, &datagrams.GetAR, &datagrams.GetPLFT, &datagrams.GetMFT, &datagrams.SetMFT, &datagrams.GetSL2VL, &datagrams.SetSL2VL,
		&datagrams.GetVLArb, &datagrams.SetVLArb, &datagrams.GetPKeys, &datagrams.SetPKeys, &datagrams.GetGUIDs, &datagrams.SetGUIDs,
		&datagrams.PortDisable, &datagrams.PortEnable, &datagrams.PortReset, &datagrams.PortSet, &changes.Plan,
		&audits.Finding, &audits.LinkLoss, &audits.NotJudged, &audits.ThisHost, &audits.Detail, &audits.Metric, &audits.LoadThresholds,
		&remedies.Isolate, &remedies.Restore, &remedies.Reset, &remedies.Ticket,
		&lang.Parallel, &lang.Catch, &lang.OK, &lang.Errors,
		&lang.Show, &lang.Save, &lang.Table, &lang.Fmt, &lang.Hex, &Report,
		&topology.GUID, &topology.GID, &topology.DR, &lang.Sum, &datagrams.Stats,
		&lang.Sleep, &lang.Exit, &help.Builtin,
		&script.ScenarioAt, &script.ScenarioEvery, &script.ScenarioRandom,
	}
}

// Functions lists all functions of fabsh, for documents: the global names, sorted, then the
// functions of modules.
func Functions() []*lang.Builtin {
	list := functions()
	slices.SortFunc(list, func(a, b *lang.Builtin) int { return strings.Compare(a.Name, b.Name) })
	return append(list, moduleFunctions()...)
}

// moduleFunctions returns the functions of fabsh's own modules.
func moduleFunctions() []*lang.Builtin {
	return slices.Concat([]*lang.Builtin{
		&lang.JSONEncode, &lang.JSONEncodeIndent,
		&lang.FSExists, &lang.FSRead, &lang.FSWrite,
		&routing.HostListExpand, &routing.HostListFold,
		&lang.ReFindall, &lang.ReMatch, &lang.ReSearch, &lang.ReSplit, &lang.ReSub,
		&lang.YAMLDecode, &lang.YAMLEncode,
	}, expectFunctions())
}

// expectFunctions returns the functions of the module expect.
func expectFunctions() []*lang.Builtin {
	return []*lang.Builtin{&lang.ExpectContains, &lang.ExpectEq, &lang.ExpectFails, &audits.ExpectFindings, &lang.ExpectNe, &lang.ExpectTrue}
}

// expectModule returns the module expect, for tests.
func expectModule() *starlarkstruct.Module {
	m := &starlarkstruct.Module{Name: "expect", Members: starlark.StringDict{}}
	for _, b := range expectFunctions() {
		m.Members[strings.TrimPrefix(b.Name, "expect.")] = lang.NewFunction(b)
	}
	return m
}

// A fabric has methods of all vocabularies, and so has a simulated one.
func init() {
	topology.SimType.AddMethods(&script.ScenarioPlay, &script.ScenarioActions)
	topology.FabricType.AddMethods(&routing.GraphMethod, &routing.SelectMethod, &routing.ReadGUIDsMethod, &routing.ReadNumbersMethod, &datagrams.ReadMFTsMethod, &datagrams.DumpMFTsMethod, &datagrams.InventoryMethod, &routing.ReadHopsMethod, &routing.HostGroupsMethod, &audits.MatrixMethod, &remedies.ImpactMethod, &routing.IsolationMethod)
	routing.RoutesType.AddMethods(&routing.JobTrafficMethod, &routing.JobMatrixMethod, &routing.SuspectsMethod, &routing.NextPairsMethod)
}

// predeclared returns the global names of a session. The simulated fabric gets its clock.
func predeclared(r *lang.Runtime) starlark.StringDict {
	globals := starlark.StringDict{
		"expect":   expectModule(),
		"fs":       lang.FSModule,
		"hostlist": routing.HostListModule,
		"json":     lang.JSONModule,
		"math":     libmath.Module,
		"re":       lang.REModule,
		"time":     libtime.Module,
		"yaml":     lang.YAMLModule,
	}
	for _, b := range functions() {
		globals[b.Name] = lang.NewFunction(b)
	}
	globals["quit"] = globals["exit"]
	env := topology.EnvOf(r)
	env.SetSimClock(func() time.Time { return r.Clock.Now() })
	if subnet := env.Sim; subnet != nil {
		globals["sim"] = &topology.Sim{Subnet: subnet}
	} else if served := env.Control; served != nil {
		globals["sim"] = served
	}
	return globals
}

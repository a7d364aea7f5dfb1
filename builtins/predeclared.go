package builtins

import (
	"slices"
	"strings"

	libmath "go.starlark.net/lib/math"
	libtime "go.starlark.net/lib/time"
	"go.starlark.net/starlark"
)

// groups are the headings of the overview, in its order.
var groups = []string{GroupFabric, GroupMAD, GroupTable, GroupPort, GroupFlow, GroupOutput, GroupRest}

// functions are all functions that scripts find as global names.
func functions() []*Builtin {
	return []*Builtin{
		&discoverBuiltin, &loadFabricBuiltin, &loadRoutesBuiltin, &getRoutesBuiltin,
		&smpGetBuiltin, &smpSetBuiltin,
		&perfGetBuiltin, &perfSetBuiltin, &perfClearBuiltin,
		&saGetBuiltin, &saGettableBuiltin,
		&madGetBuiltin, &madSetBuiltin, &madSendBuiltin,
		&saSetBuiltin, &saDeleteBuiltin, &saGetmultiBuiltin, &saGettraceBuiltin, &saSubscribeBuiltin,
		&getLFTBuiltin, &setLFTBuiltin, &getMFTBuiltin, &setMFTBuiltin, &getSL2VLBuiltin, &setSL2VLBuiltin,
		&getVLArbBuiltin, &setVLArbBuiltin, &getPKeysBuiltin, &setPKeysBuiltin, &getGUIDsBuiltin, &setGUIDsBuiltin,
		&portDisableBuiltin, &portEnableBuiltin, &portResetBuiltin, &portSetBuiltin,
		&parallelBuiltin, &catchBuiltin, &okBuiltin, &errorsBuiltin,
		&showBuiltin, &tableBuiltin, &fmtBuiltin, &hexBuiltin,
		&guidBuiltin, &gidBuiltin, &drBuiltin, &sumBuiltin, &statsBuiltin,
		&sleepBuiltin, &exitBuiltin, &helpBuiltin,
	}
}

// A fabric has methods of all vocabularies.
func init() {
	fabricType.add(&graphMethod, &selectMethod, &readGUIDsMethod, &readNumbersMethod, &readMFTsMethod, &dumpMFTsMethod, &readHopsMethod)
}

// predeclare fills the global names.
func (s *Session) predeclare() {
	s.builtins = functions()
	slices.SortFunc(s.builtins, func(a, b *Builtin) int { return strings.Compare(a.Name, b.Name) })
	s.predeclared = starlark.StringDict{
		"fs":   fsModule,
		"json": jsonModule,
		"math": libmath.Module,
		"re":   reModule,
		"time": libtime.Module,
	}
	for _, b := range s.builtins {
		s.predeclared[b.Name] = &function{Builtin: b}
	}
	s.predeclared["quit"] = s.predeclared["exit"]
	if s.env.Sim != nil {
		s.predeclared["sim"] = &simulation{s.env.Sim}
	}
}

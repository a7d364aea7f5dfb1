// Package types has the declarations of the types of values: their members, the possible
// words of a member, and the inferred type of an expression.
//
//	types.go   all types
//	member.go  the attributes of a type by its name
//	words.go   the possible words, and types, of an attribute
//	infer.go   the inferred type of an expression

package check

import (
	"slices"

	"fabsh/builtins/audits"
	"fabsh/builtins/changes"
	"fabsh/builtins/datagrams"
	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/remedies"
	"fabsh/builtins/routing"
	"fabsh/builtins/topology"
)

// Types describes all types of values but attribute records.
func Types() []lang.TypeDoc {
	return append([]lang.TypeDoc{
		topology.FabricType.TypeDoc(), topology.NodeType.TypeDoc(), portsDoc(), topology.PortType.TypeDoc(), topology.LinkType.TypeDoc(),
		topology.ProblemType.TypeDoc(), topology.VirtualPortType.TypeDoc(), topology.DiffType.TypeDoc(), topology.ChangeType.TypeDoc(), topology.RouteType.TypeDoc(), datagrams.LFTKind.TypeDoc(), datagrams.MFTKind.TypeDoc(), datagrams.SL2VLKind.TypeDoc(), datagrams.VLArbKind.TypeDoc(), datagrams.PKeysKind.TypeDoc(), datagrams.GUIDsKind.TypeDoc(), datagrams.ARType.TypeDoc(), datagrams.AREntryType.TypeDoc(), datagrams.PLFTType.TypeDoc(), recordDoc(), failureDoc(),
		routing.GraphType.TypeDoc(), routing.HopsType.TypeDoc(), routing.TreeType.TypeDoc(), routing.RoutesType.TypeDoc(), routing.RowType.TypeDoc(), routing.VerdictType.TypeDoc(), routing.FailureType.TypeDoc(),
		routing.PathType.TypeDoc(), routing.ChoicesType.TypeDoc(), routing.GraphPathType.TypeDoc(), routing.CongestionType.TypeDoc(), routing.BalanceType.TypeDoc(), routing.AdaptiveLoadType.TypeDoc(), routing.DiffType.TypeDoc(), changes.PlanType.TypeDoc(), changes.RoundType.TypeDoc(), changes.EffectType.TypeDoc(), changes.SetType.TypeDoc(),
		audits.FindingType.TypeDoc(), audits.MetricType.TypeDoc(), datagrams.SubscriptionType.TypeDoc(), audits.PortRatesType.TypeDoc(), audits.BERType.TypeDoc(), audits.RunType.TypeDoc(), audits.ThisHostType.TypeDoc(), audits.OwnPortType.TypeDoc(), remedies.ActionType.TypeDoc(), remedies.PastType.TypeDoc(), remedies.LinkType.TypeDoc(), routing.HostGroupsType.TypeDoc(), routing.HostGroupType.TypeDoc(), routing.JobType.TypeDoc(), routing.JobTrafficType.TypeDoc(), routing.JobLoadType.TypeDoc(), routing.JobSharedType.TypeDoc(), audits.MatrixType.TypeDoc(), audits.MatrixPartType.TypeDoc(), datagrams.LostType.TypeDoc(), topology.SimType.TypeDoc(),
	}, lang.RowTypes()...)
}

// portsDoc describes the value `ports`.
func portsDoc() lang.TypeDoc {
	return lang.TypeDoc{Name: "ports", Doc: "The ports of a node: ports[3] is port 3, ports[0] port 0 of a switch. Iteration and len cover the external ports; `in` takes a port.", Members: lang.RowMembers()}
}

// recordDoc describes all records alike.
func recordDoc() lang.TypeDoc {
	return lang.TypeDoc{
		Name:    "record",
		Doc:     "An attribute as it was read. Its type is the attribute's name: port_info. Its fields have the specification's names in snake case. A field with words also has its number: port_state and port_state_code. Records of the subnet administrator have the fields of the attribute inside them, and the whole attribute: r.port_info.",
		Members: append(slices.Clone(records.OriginMembers), lang.MemberDoc{Name: records.ReplaceMethod.Signature(), Doc: records.ReplaceMethod.Summary(), Method: &records.ReplaceMethod}),
	}
}

// failureDoc describes the value `error`.
func failureDoc() lang.TypeDoc {
	return lang.TypeDoc{
		Name:   "error",
		Schema: "error/1",
		Doc:    "The failure of a target. It is falsy; reading any attribute except these raises the failure.",
		Members: []lang.MemberDoc{
			{Name: "op", Type: "string", Column: true, Doc: `the operation: "SubnGet(NodeInfo)"`},
			{Name: "target", Column: true, Doc: "the target, in the words of the script"},
			{Name: "status", Type: "string", Column: true, Doc: `the cause: "timed out", "no records"`},
			{Name: "message", Type: "string", Column: true, Doc: "the whole failure in one line"},
		},
	}
}

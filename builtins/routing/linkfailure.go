package routing

import (
	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric/routing/verify"
)

// FailureType is the type of the elements of what routes.fail_each_link() returns.
var FailureType = &lang.ResultType{
	Name: "link_failure",
	Doc:  "The effects of the failure of one link between switches.",
	Members: []lang.ResultMember{
		{Name: "link", Type: "string", Doc: "one of its ports"},
		{Name: "peer", Type: "string", Doc: "the other"},
		{Name: "pairs", Doc: "number of pairs of an endpoint and a LID of another that lose packets until tables are changed"},
		{Name: "cuts", Doc: "True if no tables can replace it: it is the only link between two parts of the network"},
		{Name: "lost", Doc: "in that case, number of pairs of endpoints that it separates"},
	},
}

// failuresMethod is routes.fail_each_link().
var failuresMethod = lang.Builtin{
	Name:    "fail_each_link",
	Returns: "list of link_failure",
	Params:  []lang.Param{endpointsParam},
	Doc:     "Returns the effects of each single failure of a link between switches: a list of link_failure, sorted by their first port. Where switches route adaptively, pairs are judged on the choices of packets of reliable connections (RC) with SL 0: pairs are lost whose packets some choice brings to the failed link, at a switch that has no other port for them. Where paths have service levels, or choices depend on input ports, are unknown or loop, static ports are judged.",
	Example: `
> t = discover().graph().route("ftree")
> [f for f in t.fail_each_link() if f.cuts]
[]
`,
	Run: lang.Do(func(c *lang.Call, a *endpointsArg) (starlark.Value, error) {
		v := c.Recv.(*Routes)
		class, err := a.class(v.graph.g)
		if err != nil {
			return nil, err
		}
		defer progress(c, "failing one link after the other")()
		list, _, err := verify.FailEachLink(c.Fiber().Context, v.Tables, class)
		if err != nil {
			return nil, computeError(c, err)
		}
		return wrapFailures(list), nil
	}),
}

// wrapFailures returns a list of results.
func wrapFailures(list []verify.LinkFailure) *starlark.List {
	values := make([]starlark.Value, len(list))
	for i, f := range list {
		values[i] = lang.NewResult(FailureType, starlark.String(f.Port.Name()), starlark.String(f.Port.Peer().Name()),
			starlark.MakeInt64(f.Pairs), starlark.Bool(f.Cuts), starlark.MakeInt64(f.Lost))
	}
	return starlark.NewList(values)
}

package routing

import (
	"io"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric/routing/engines"
)

// chainMethod is graph.chain(): parts of the fabric, each by an engine of its own.
var chainMethod = lang.Builtin{
	Name:    "chain",
	Returns: "routes",
	Params: []lang.Param{
		{Name: "chains", Kind: lang.KindPath, Doc: "the file of the steps, in the format of rch_policy_file of NVIDIA's OpenSM: unicast-step paragraphs"},
		{Name: "topologies", Kind: lang.KindPath, Default: "None", Keyword: true, Doc: "the file of the parts, in the format of topo_policy_file; they may also be in the file of the steps"},
		{Name: "groups", Kind: lang.KindPath, Default: "None", Keyword: true, Doc: "the file of the groups of ports, in the format of pgrp_policy_file; they may also be in the file of the steps"},
	},
	Doc: `Computes tables by a routing chain: each step routes a part of the fabric by an engine; where parts overlap, the last step applies.
The first step routes the whole fabric. Engines that need virtual lanes are not supported. In the config file of a step, only root_guid_file is used. Check with verify() that the parts together close no credit loop.`,
	Example: `
> t = discover().graph().chain("chains.conf", topologies="topologies.conf", groups="groups.conf")
> t.engine, t.verify().ok
("chain", True)
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Chains             string
		Topologies, Groups *string
	}) (starlark.Value, error) {
		v := c.Recv.(*graphValue)
		var p engines.ChainPolicy
		for _, path := range []*string{a.Groups, a.Topologies, &a.Chains} {
			if path == nil {
				continue
			}
			arg := pathArg{*path}
			if err := arg.read(c, func(r io.Reader) error { return p.Read(r, arg.Path) }); err != nil {
				return nil, err
			}
		}
		open := func(name string) (io.ReadCloser, error) {
			return c.Runtime().Files.Open(c.Fiber().Context, name)
		}
		r, err := engines.ComputeChain(c.Fiber().Context, v.g, &p, open)
		if err != nil {
			return nil, computeError(c, err)
		}
		return newRoutes(r, v), nil
	}),
}

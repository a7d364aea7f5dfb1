package audits

import (
	"cmp"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
)

// PastType is the type of an audit's parameter past.
var PastType = &lang.ResultType{
	Name: "audit_past",
	Doc:  "Observations of earlier runs of the job, for audits that compare with them: def audit(fabric, *, past=None). It is None if no state is kept, as for a file.",
	Members: []lang.ResultMember{
		{Name: "down", Doc: "ports that are down, and were up in a run of the last seven days: dicts of port, link (with the port that was its peer, if that is down too, so that both ends are one fault; else None), seconds (since then), peer (GUID of the node of the peer, None if unknown), to_switch"},
		{Name: "waits", Doc: "ports whose links were up but not active in an earlier run: dicts of port, runs (number of such runs among the latest ten, with this one)"},
	},
}

// Past returns the observations of the ports of f in earlier runs of the job, None if no state
// is kept, or an error if the state cannot be read.
func Past(t *starlark.Thread, f *fabric.Fabric) (v starlark.Value, err error) {
	r := lang.FiberOf(t).Runtime
	k := keepingOf(r)
	if k.run == nil || k.dir == "" && k.run.Kept == nil {
		return starlark.None, nil
	}
	var unread error // returned alone, since lang.Operate would name a function of scripts
	err = lang.Operate(t, "audit", func(c *lang.Call) error { unread = k.run.open(c, k.dir); return nil })
	if err = cmp.Or(unread, err); err != nil {
		return starlark.None, err
	}
	h := k.run.state.History()
	var down, waits []starlark.Value
	for _, x := range h.Down(f, r.Clock.Now()) {
		peer := lang.OrNone(x.Peer != 0, topology.GUIDValue(x.Peer))
		link := lang.OrNone(x.Other != nil, topology.Link{A: x.Port, B: x.Other})
		down = append(down, lang.DictOf("port", topology.PortOf(x.Port), "link", link, "seconds", seconds(x.For), "peer", peer, "to_switch", starlark.Bool(x.ToSwitch)))
	}
	for _, x := range h.Waits(f) {
		waits = append(waits, lang.DictOf("port", topology.PortOf(x.Port), "runs", starlark.MakeInt(x.Runs)))
	}
	return lang.NewResult(PastType, starlark.NewList(down), starlark.NewList(waits)), nil
}

package audits

import (
	"cmp"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
)

// PastType is the type of what an audit gets that has a parameter past.
var PastType = &lang.ResultType{
	Name: "audit_past",
	Doc:  "What runs of the job before have seen: for audits that judge what was, def audit(fabric, *, past=None). It is None where nothing is kept, as of a file.",
	Members: []lang.ResultMember{
		{Name: "down", Doc: "ports that are down, and were up in a run of the last seven days: dicts of port, link (with the port that was at the other end, where that is down too; else None: both ends are one), seconds (since then), peer (the GUID of the node that was behind it, None if unknown), to_switch"},
		{Name: "waits", Doc: "ports whose links were up and not active in a run before: dicts of port, runs (in how many of the latest ten, this one included)"},
	},
}

// Past is what runs of the job before have seen of the ports of f; None where nothing is
// kept. The error says why that is not known.
func Past(t *starlark.Thread, f *fabric.Fabric) (v starlark.Value, err error) {
	r := lang.FiberOf(t).Runtime
	k := keepingOf(r)
	if k.run == nil || k.dir == "" && k.run.Kept == nil {
		return starlark.None, nil
	}
	var unread error // said in a note: no function that a script calls is to be named
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

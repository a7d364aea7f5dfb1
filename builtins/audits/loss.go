package audits

import (
	"context"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/device"
)

// LinkLoss is link_loss(), which counts datagrams that links lose.
var LinkLoss = lang.Builtin{
	Name:    "link_loss",
	Returns: "list of dict",
	Group:   GroupAudit,
	Params: []lang.Param{
		{Name: "links", Kind: lang.KindItems, Doc: "links of the latest discover()"},
		{Name: "count", Kind: lang.KindInt, Default: "100", Keyword: true, Doc: "datagrams over each link, 1..100000"},
		{Name: "rate", Kind: lang.KindInt, Default: "1000", Keyword: true, Doc: "datagrams per second over all links, 1..10000"},
	},
	Doc: `Sends datagrams over each link, and counts those that are not answered.
A datagram is a request for NodeInfo along a directed route that ends behind the link; it is sent once, without retries. Each agent gets at most one in 10 ms. A link over which the first 10 are lost gets no more.
It returns a dict for each link: link; sent; lost; behind, the link before it on the path (None: it is the first), whose losses are in lost too; and why, why no datagram can cross it (None otherwise).
The audit probe uses it: fabsh audit probe.`,
	Example: `
> [(x["sent"], x["lost"]) for x in link_loss(discover().links[:2], count=10)]
[(10, 0), (10, 0)]
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Links       []starlark.Value
		Count, Rate int
	}) (starlark.Value, error) {
		if a.Count < 1 || a.Count > device.MaxLossCount {
			return nil, lang.ParamError("count", "got %d, want 1..%d", a.Count, device.MaxLossCount)
		}
		if a.Rate < 1 || a.Rate > device.MaxLossRate {
			return nil, lang.ParamError("rate", "got %d, want 1..%d", a.Rate, device.MaxLossRate)
		}
		e, err := topology.EngineOf(c)
		if err != nil {
			return nil, err
		}
		rows := make([]starlark.Value, len(a.Links))
		losses := make([]*device.LinkLoss, len(a.Links))
		var probed []*device.LinkLoss
		why := make([]string, len(a.Links))
		for i, v := range a.Links {
			l, ok := v.(topology.Link)
			if !ok {
				return nil, lang.ParamError("links", "element %d: got %s, want a link", i, v.Type())
			}
			if losses[i], err = device.NewLinkLoss(l.A); err != nil {
				why[i] = err.Error()
				continue
			}
			probed = append(probed, losses[i])
		}
		clock := c.Clock()
		err = c.Block(func(ctx context.Context) error {
			return device.CountLosses(ctx, e, probed, device.LossOptions{Count: a.Count, Rate: a.Rate, Sleep: func(ctx context.Context, d time.Duration) error {
				return lang.Wait(ctx, clock, d)
			}})
		})
		if err != nil {
			return nil, lang.Errorf("%w", err)
		}
		for i, l := range losses {
			rows[i] = lossRow(a.Links[i], l, why[i])
		}
		return starlark.NewList(rows), nil
	}),
}

// lossRow returns the dict of a link; l is nil if no datagram can cross it.
func lossRow(link starlark.Value, l *device.LinkLoss, why string) *starlark.Dict {
	sent, lost, behind := 0, 0, starlark.Value(starlark.None)
	if l != nil {
		sent, lost = l.Sent, l.Lost
		if p := l.Behind(); p != nil {
			behind = topology.LinkOf(p)
		}
	}
	d := starlark.NewDict(5)
	for _, kv := range []struct {
		name  string
		value starlark.Value
	}{
		{"link", link}, {"sent", starlark.MakeInt(sent)}, {"lost", starlark.MakeInt(lost)},
		{"behind", behind}, {"why", lang.TextOrNone(why)},
	} {
		d.SetKey(starlark.String(kv.name), kv.value)
	}
	return d
}

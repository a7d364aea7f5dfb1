package audits

import (
	"context"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric/audit"
)

// LoadThresholds is load_thresholds().
var LoadThresholds = lang.Builtin{
	Name:   "load_thresholds",
	Group:  GroupAudit,
	Params: []lang.Param{{Name: "path", Kind: lang.KindPath, Doc: "the file; as for fs.read"}},
	Doc: `Reads limits of counters from a file in the format of infiniband-diags' error_thresholds.
It has lines such as SymbolErrorCounter=10 or LinkErrorRecoveryCounter=5/min; # begins a comment. Returns a dict of counter names, as in port_rates.counts, to tuples: the number, and its window in seconds, None for a window of any length. infiniband-diags compares the number with the total since the counter was cleared.`,
	Example: `
> load_thresholds("error_thresholds")
{"symbol_error_counter": (10, None), "link_error_recovery_counter": (5, 60.0)}
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Path string }) (starlark.Value, error) {
		var list []audit.Threshold
		err := c.Block(func(ctx context.Context) error {
			file, err := c.Runtime().Files.Open(ctx, a.Path)
			if err != nil {
				return lang.Errorf("%w", err)
			}
			defer file.Close()
			if list, err = audit.ReadThresholds(file, a.Path); err != nil {
				return lang.Errorf("%w", err)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		d := starlark.NewDict(len(list))
		for _, t := range list {
			d.SetKey(starlark.String(t.Counter), starlark.Tuple{starlark.MakeUint64(t.Count), lang.OrNone(t.Per > 0, seconds(t.Per))})
		}
		return d, nil
	}),
}

package routing

import (
	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/repair"
	"fabsh/fabric/routing/routes"
)

// repairMethod is routes.repair(): tables for the current fabric.
var repairMethod = lang.Builtin{
	Name:    "repair",
	Returns: "routes",
	Params:  []lang.Param{{Name: "fabric", Kind: kindFabric, Default: "None", Doc: "the same subnet after links, switches or hosts were lost or came back (default: discovered again)"}},
	Doc: `Returns tables for the current fabric with as few changes as possible.
Entries change only for destinations whose paths used a lost part, or get shorter with a part that came back. The guarantees of the engine that made the tables still hold: the same pairs are reached, and there is no credit loop if it allows none. The options of the graph apply to ports of the same node GUID and number.

Engines without virtual lanes: no link has more than 2% more routes than after a new run (checked except on large fat trees). Where that requires it, entries of other destinations change too.

dfsssp, lash, torus-2qos and nue: entries of other destinations stay, except as stated below for nue. If no such tables are found, the engine is run again, and everything may change. The load is compared with that of a new run only after links came back.

dfsssp and lash: only paths that change get another service level, with lash together with the path back. Where they fit on no virtual lane in use, other paths move to another service level too: at most twice as many as change, or more if no further lane is allowed. A note counts them. Where that is not enough, virtual lanes are added, one after the other, as far as max_vls allows and all links have them (operational_vls), and a note states whether a new run would need fewer and how many blocks it would change. If links lack the lanes that the repair needs, but not those of a new run, the engine is run again, with a note; where both need more, a note names the lanes that links have. The search takes some seconds at most; effort raises that. Of 273 losses of one link of a dragonfly a=6,p=3,h=2, 10 add a lane with lash. In a mesh with one lane, a second is unavoidable for most links, because the shortest paths that are left close a credit loop. After the loss of a link, at most 3 times as many blocks of tables change as must.

torus-2qos: only paths that change get another service level. A virtual lane is added only where turns around missing switches need it. On a ring that a lost link has opened, all switches change whose packets now go the other way round. After the loss of a link, at most 3 times as many blocks change as must.

nue: LIDs whose paths change may move to another virtual lane with all their paths. Where a virtual lane has no room for the paths that change, some other destinations change too; a note counts them. In 561 losses of one link that were measured, at most 2.6 times as many blocks changed as must. For this, some management packets to switches may get shortest paths that may close a credit loop; a note counts them.

dragonfly: the engine is always run again, and everything may change.

Tables from a file, or edited ones: paths that arrive are kept, and the others are replaced by paths that close no credit loop. Two kinds of paths that arrive may change: to a destination that lacks others, and over a part that came back, if they close a credit loop. Notes list the destinations without such a path. Virtual lanes are kept where service level n is on lane n and all paths are shortest ones, as with dfsssp and lash (OpenSM's too), or all paths to a LID have one service level, as with nue. For other lanes, as those of torus-2QoS, which depend on ports of switches, or if the lanes in use are not enough, new paths are the shortest ones, on service levels in use that close no credit loop; a note reports if they close one. load_routes(path, sl=, sl2vl=) and get_routes(lanes=True) read service levels and virtual lanes.`,
	Example: `
> f = discover()
> t = f.graph().route("ftree")
> t.repair(f).diff(t).entries
0
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Fabric *topology.Fabric }) (starlark.Value, error) {
		v := c.Recv.(*Routes)
		f := a.Fabric
		if f == nil {
			var err error
			if f, err = topology.PresentFabric(c.Thread); err != nil {
				return nil, err
			}
		}
		g, err := v.Tables.Graph().For(f.Fabric)
		if err != nil {
			return nil, lang.Errorf("%w", err)
		}
		defer progress(c, "repairing the tables")()
		r, err := repair.Tables(c.Fiber().Context, v.Tables, g)
		if err != nil {
			return nil, computeError(c, err)
		}
		return newRoutes(r, newGraph(g, f)), nil
	}),
}

// startKey is the key for the tables that route() on a thread begins with.
const startKey = "routing.start"

// StartWith makes route() on this thread repair r instead of a new run, if the engine and
// the options are those that made r. r may be nil.
func StartWith(t *starlark.Thread, r *routes.Routes) { t.SetLocal(startKey, r) }

// nearKey is the key for the tables that route() on a thread stays close to.
const nearKey = "routing.near"

// keeping is the value of nearKey.
type keeping struct {
	live *routes.Routes
	kept bool // entries of live were kept that the engine would choose otherwise
}

// StayNear makes route() on this thread keep entries of r, the current tables, if the
// engine's rules allow it and the script names no tables to keep. r may be nil. kept
// reports afterwards whether any entries were kept that the engine would choose otherwise.
func StayNear(t *starlark.Thread, r *routes.Routes) (kept func() bool) {
	k := &keeping{live: r}
	t.SetLocal(nearKey, k)
	return func() bool { return k.kept }
}

// progress shows a long operation on a terminal, until the returned function is called.
func progress(c *lang.Call, doing string) (done func()) {
	c.Runtime().Progress(doing)
	return func() { c.Runtime().Progress("") }
}

// compute runs an engine, or repairs the tables of StartWith.
func compute(c *lang.Call, g *graph.Graph, name string, o engines.Options) (*routes.Routes, error) {
	ctx := c.Fiber().Context
	defer progress(c, "computing tables by "+name)()
	if start, _ := c.Thread.Local(startKey).(*routes.Routes); start != nil && o.Keep == nil && engines.MadeBy(start, g, name, o) {
		return repair.Tables(ctx, start, g)
	}
	if near, _ := c.Thread.Local(nearKey).(*keeping); near != nil && near.live != nil && o.Keep == nil {
		r, kept, err := repair.ComputeKeeping(ctx, g, name, o, near.live)
		near.kept = near.kept || kept
		return r, err
	}
	return engines.Compute(ctx, g, name, o)
}

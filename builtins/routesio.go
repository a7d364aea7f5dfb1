package builtins

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"go.starlark.net/starlark"

	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/format"
	"fabsh/fabric/routing"
)

var loadRoutesBuiltin = Builtin{
	Name:  "load_routes",
	Group: groupFabric,
	Params: []Param{
		{Name: "path", Kind: KindPath, Doc: "a file of forwarding tables: opensm-lfts.dump, opensm.fdbs, what ibroute or dump_fts print, or a snapshot"},
		{Name: "fabric", Kind: KindAny, Default: "None", Doc: "of which they are; else the session's"},
		{Name: "sl", Kind: KindPath, Default: "None", Keyword: true, Doc: "a file of the service levels of paths"},
		{Name: "sl2vl", Kind: KindPath, Default: "None", Keyword: true, Doc: "a file of the virtual lanes of service levels: opensm-sl2vl.dump, ibdmchk's short form, or of smpquery sl2vl"},
	},
	Doc: `Reads forwarding tables from a file: routes.
The kind is told by the content. As OpenSM does, entries go to the LIDs that their ports have in the fabric, where the file says whose a LID was. What of file and fabric does not match is in the notes.`,
	Example: `
> f = load_fabric("net.topo")
> t = load_routes("net.lfts", f)
> t[f.switches[0]][2]
1
`,
	fn: func(c *call) (starlark.Value, error) {
		f, err := c.fabricArg()
		if err != nil {
			return nil, err
		}
		files := routing.TableFiles{LFTs: c.Text("path"), SL: c.Text("sl"), SL2VL: c.Text("sl2vl")}
		r, err := routing.Load(f.f, files, func(name string) (io.ReadCloser, error) { return c.session().files.open(name) })
		if err != nil {
			return nil, c.computed(err)
		}
		return newRoutes(r, newGraph(r.Graph(), f)), nil
	},
}

// fabricArg is the parameter fabric, or the session's.
func (c *call) fabricArg() (*fabricValue, error) {
	v := c.Value("fabric")
	if v == starlark.None {
		return c.session().currentFabric(c.thread)
	}
	f, ok := v.(*fabricValue)
	if !ok {
		return nil, c.paramError("fabric", "got %s, want fabric", v.Type())
	}
	return f, nil
}

var getRoutesBuiltin = Builtin{
	Name:   "get_routes",
	Group:  groupTable,
	Params: []Param{{Name: "fabric", Kind: KindAny, Default: "None", Doc: "whose switches are read; else the session's"}},
	Doc: `Reads the forwarding tables of all switches of a fabric: routes.
Of each only the blocks up to LinearFDBTop are read, all switches at once. What did not answer is in the notes, is warned of on stderr, and makes the exit status 3.`,
	Example: `
> t = get_routes(discover())
> t.verify().unreachable
0
> t.diff(get_routes()).blocks
0
`,
	fn: func(c *call) (starlark.Value, error) {
		f, err := c.fabricArg()
		if err != nil {
			return nil, err
		}
		r, err := c.readRoutes(f.f)
		if err != nil {
			return nil, err
		}
		return newRoutes(r, newGraph(r.Graph(), f)), nil
	},
}

// readRoutes reads the tables of all switches of f. What did not answer is warned
// of, counted and noted; if no switch did, that is the error.
func (c *call) readRoutes(f *fabric.Fabric) (*routing.Routes, error) {
	e, err := c.engine()
	if err != nil {
		return nil, err
	}
	var r *routing.Routes
	var failed []change.SwitchError
	err = c.wait(func(ctx context.Context) (err error) {
		r, failed, err = change.ReadRoutes(ctx, e, f)
		return err
	})
	if err != nil {
		return nil, c.computed(err)
	}
	var first error
	for _, x := range failed {
		t := nodeTarget(x.Switch)
		if errors.Is(x.Err, change.ErrNoAddress) {
			x.Err = t.reachable()
		}
		failure := c.failed(&t, x.Err)
		c.count(x.Err)
		c.fiber().warn("%v", failure)
		r.ReadNotes = append(r.ReadNotes, fmt.Sprintf("the table of %s is not known: %v", x.Switch.Label(), failure))
		if first == nil {
			first = failure
		}
	}
	if len(failed) > 0 && len(failed) == len(r.Graph().Switches()) {
		return nil, first
	}
	return r, nil
}

var dumpRoutesMethod = Builtin{
	Name:   "dump",
	Params: []Param{{Name: "kind", Kind: KindChoice, Default: `"opensm-lfts"`, Doc: routing.TableKinds}},
	Doc: `Returns the tables as the text of a file.
fabsh route POLICY --out FILE writes one without holding it in memory.`,
	Example: `
> discover().graph().route("ftree").dump().splitlines()[0]
"Unicast lids [0-44] of switch Lid 1 guid 0x0002c90300100000 ('leaf-1'):"
`,
	fn: func(c *call) (starlark.Value, error) {
		var b bytes.Buffer
		if err := c.recv.(*routesValue).r.Write(c.fiber().ctx, &b, format.Kind(c.Text("kind"))); err != nil {
			return nil, c.computed(err)
		}
		return starlark.String(b.String()), nil
	},
}

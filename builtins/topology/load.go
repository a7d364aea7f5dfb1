package topology

import (
	"context"
	"io"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/fabric/format"
)

// LoadFabric is load_fabric().
var LoadFabric = lang.Builtin{
	Name:    "load_fabric",
	Returns: "fabric",
	Group:   GroupFabric,
	Params:  []lang.Param{{Name: "path", Kind: lang.KindPath, Doc: "the file; the rules of fs.read apply"}},
	Doc: `Reads a fabric from a topology file.
The content determines the format: output of ibnetdiscover or its --cache, a net file of ibsim, an opensm-subnet.lst, a .topo of ibdm, ibdiagnet2.db_csv, a plan of cables (CSV of fabsh, or UFM's NDT), or a snapshot of fabsh. If a file has no LIDs, they are assigned in its order, from 1, and problems reports it.`,
	Example: `
> load_fabric("net.topo").switches[0].name
"leaf-1"
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Path string }) (starlark.Value, error) {
		f, err := OpenFabric(c, a.Path)
		if err != nil {
			return nil, err
		}
		return f, nil
	}),
}

// OpenFabric reads a fabric from the file at path.
func OpenFabric(c *lang.Call, path string) (*Fabric, error) {
	var f *fabric.Fabric
	err := c.Block(func(ctx context.Context) error {
		files := c.Runtime().Files
		file, err := files.Open(ctx, path)
		if err != nil {
			return lang.Errorf("%w", err)
		}
		defer file.Close()
		f, err = format.Load(file, path, func(name string) (io.ReadCloser, error) { return files.Open(ctx, name) })
		if err != nil {
			return lang.Errorf("%w", err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return NewFabric(f.Renamed(EnvOf(c.Runtime()).Names)), nil
}

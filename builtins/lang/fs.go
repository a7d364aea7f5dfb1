package lang

import (
	"context"
	"errors"
	"io/fs"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
)

// FSModule is the module fs, for files.
var FSModule = &starlarkstruct.Module{
	Name: "fs",
	Members: starlark.StringDict{
		"exists": NewFunction(&FSExists),
		"read":   NewFunction(&FSRead),
		"write":  NewFunction(&FSWrite),
	},
}

// FSExists is fs.exists.
var FSExists = Builtin{
	Name:   "fs.exists",
	Group:  GroupRest,
	Params: []Param{{Name: "path", Kind: KindPath, Doc: "a file below the directory of the script, of -I or of --out; for code of -c, from a pipe or at the prompt, also below the working directory"}},
	Doc:    "Reports whether a file exists and can be read.",
	Example: `
> fs.exists("net.topo"), fs.exists("net.tpo")
(True, False)
`,
	Run: Do(func(c *Call, a *struct{ Path string }) (starlark.Value, error) {
		err := c.Block(func(ctx context.Context) error { return c.Runtime().Files.exists(ctx, a.Path) })
		if errors.Is(err, fs.ErrNotExist) {
			return starlark.False, nil
		}
		return starlark.Bool(err == nil), err
	}),
}

// FSRead is fs.read.
var FSRead = Builtin{
	Name:   "fs.read",
	Group:  GroupRest,
	Params: []Param{{Name: "path", Kind: KindPath, Doc: "a file below the directory of the script, of -I or of --out; for code of -c, from a pipe or at the prompt, also below the working directory"}},
	Doc:    "Returns the text of a whole regular file of at most 64 MB.\nA file that an option or argument of the command line names can be in any directory. The file of --keys cannot be read.",
	Example: `
> fs.read("roots.guids")
0x2c90300000100 # leaf-1
`,
	Run: Do(func(c *Call, a *struct{ Path string }) (starlark.Value, error) {
		var data []byte
		err := c.Block(func(ctx context.Context) (err error) {
			data, err = c.Runtime().Files.Read(ctx, a.Path)
			return err
		})
		if err != nil {
			return nil, err
		}
		return starlark.String(data), nil
	}),
}

// FSWrite is fs.write, which replaces whole files by renaming.
var FSWrite = Builtin{
	Name:  "fs.write",
	Group: GroupRest,
	Params: []Param{
		{Name: "path", Kind: KindPath, Doc: "the file, in the directory of --out; missing directories are created"},
		{Name: "data", Kind: KindAny, Doc: "a string, or bytes"},
	},
	Doc: `Writes a file in the directory of --out and returns its path.
The file is replaced atomically: readers never see a part of it, and after a failure the old file is unchanged. Links that lead out of the directory are refused. A module cannot write while it is being loaded.`,
	Example: `
> fs.write("reports/lids.txt", "1\n2\n")
"out/reports/lids.txt"
> fs.read("out/reports/lids.txt")
1
2
`,
	Run: Do(func(c *Call, a *struct {
		Path string
		Data starlark.Value
	}) (starlark.Value, error) {
		if loads := c.Fiber().Loads; len(loads) > 0 {
			return nil, c.Refuse("refused: a module cannot write files while it is being loaded (%s); write in a function that the script calls", loads[len(loads)-1])
		}
		var data []byte
		switch v := a.Data.(type) {
		case starlark.String:
			data = []byte(v)
		case starlark.Bytes:
			data = []byte(v)
		default:
			return nil, ParamError("data", "got %s, want string or bytes; json.encode(x) and str(x) return strings", v.Type())
		}
		path, err := c.Runtime().Files.Write(a.Path, data)
		if err != nil {
			return nil, err
		}
		return starlark.String(path), nil
	}),
}

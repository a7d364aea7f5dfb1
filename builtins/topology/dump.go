package topology

import (
	"bytes"
	"io"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/fabric/format"
)

// dumpMethod is fabric.dump().
var dumpMethod = lang.Builtin{
	Name:   "dump",
	Params: []lang.Param{{Name: "kind", Kind: lang.KindChoice, Default: `"ibnetdiscover"`, Doc: format.DumpHelp()}},
	Doc: `Returns the fabric as a file's text.
"ibnl" is a dict of texts by file name, which belong beside the file of "topo"; "snapshot" is bytes, for fs.write, with all that is known of the fabric and the tables that came with it. Nothing is asked of the fabric.`,
	Example: `
> discover().dump("ibnetdiscover").splitlines()[0]
"#"
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Kind string }) (starlark.Value, error) {
		f, kind := c.Recv.(*Fabric).Fabric, format.Kind(a.Kind)
		if kind == format.KindIBNL {
			return ibnls(f)
		}
		var b bytes.Buffer
		if err := format.Dump(&b, f, kind); err != nil {
			return nil, lang.Errorf("%w", err)
		}
		if kind == format.KindSnapshot {
			return starlark.Bytes(b.String()), nil
		}
		return starlark.String(b.String()), nil
	}),
}

// ibnls are the texts of ibdm's descriptions of systems, by file name.
func ibnls(f *fabric.Fabric) (starlark.Value, error) {
	files := new(starlark.Dict)
	err := format.WriteIBNLs(f, func(name string) (io.WriteCloser, error) {
		return &dictFile{files: files, name: name}, nil
	})
	return files, err
}

// dictFile becomes an entry of a dict when it is closed.
type dictFile struct {
	bytes.Buffer
	files *starlark.Dict
	name  string
}

func (d *dictFile) Close() error {
	return d.files.SetKey(starlark.String(d.name), starlark.String(d.String()))
}

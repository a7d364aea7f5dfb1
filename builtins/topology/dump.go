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
	Doc: `Returns the fabric in a file format.
"ibnl" is a dict of file contents by file name, for the directory of the "topo" file; "snapshot" is bytes, for fs.write, with everything known about the fabric and its tables; all others are strings. No requests are sent.`,
	Example: `
> discover().dump("ibnetdiscover").splitlines()[0]
"#"
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Kind string }) (starlark.Value, error) {
		f, kind := c.Recv.(*Fabric).Fabric, format.FormatName(a.Kind)
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

// ibnls returns ibdm's descriptions of systems, by file name.
func ibnls(f *fabric.Fabric) (starlark.Value, error) {
	files := new(starlark.Dict)
	err := format.WriteIBNLs(f, func(name string) (io.WriteCloser, error) {
		return &dictFile{files: files, name: name}, nil
	})
	return files, err
}

// dictFile is a file that becomes an entry of a dict when it is closed.
type dictFile struct {
	bytes.Buffer
	files *starlark.Dict
	name  string
}

func (d *dictFile) Close() error {
	return d.files.SetKey(starlark.String(d.name), starlark.String(d.String()))
}

// SaveAs writes the fabric as a snapshot.
func (f *Fabric) SaveAs(suffix string) func(io.Writer) error {
	if suffix != "fab" {
		return nil
	}
	return func(w io.Writer) error { return format.WriteSnapshot(w, f.Fabric) }
}

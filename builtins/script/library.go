package script

import (
	"io/fs"
	"path"
	"sync"

	"github.com/spf13/afero"

	values "fabsh/builtins/routing"
	"fabsh/examples"
	"fabsh/fabric/routing"
	"fabsh/scripts"
)

// packages are the embedded trees that load knows by name.
var packages = sync.OnceValue(func() map[string]fs.FS {
	return map[string]fs.FS{"@std": library(), "@examples": examples.FS}
})

// library is the shipped library: the scripts of fabsh/scripts, and for each routing engine
// the policy that runs it, which is made from its declaration.
var library = sync.OnceValue(func() fs.FS {
	made := afero.NewMemMapFs()
	for _, e := range routing.Engines() {
		afero.WriteFile(made, path.Join(string(Policies), e.Name+".star"), []byte(values.EnginePolicy(&e)), 0o444)
	}
	return afero.NewIOFS(afero.NewCopyOnWriteFs(afero.FromIOFS{FS: scripts.FS}, made))
})

package engines

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/fabric/routing/routingtest"
	"fabsh/mad/ibsim/ibsimtest"
)

// benchNets are the networks on which tables are compared with those of OpenSM: trees,
// whole and with parts missing, random ones, tori, meshes and hypercubes, HyperX, dragonflies, and
// real ones. "ibutils:" is a topology of ibutils, "real:" a dump that the project does not
// ship.
func benchNets() []string {
	return []string{
		"fattree:k=4,levels=3", "fattree:k=8,levels=2", "fattree:k=8,levels=3", "fattree:k=12,levels=3", "fattree:k=4,levels=4",
		"pgft:m=18/36,w=1/18,p=1/1", "pgft:m=12/12/12,w=1/12/12,p=1/1/1", "pgft:m=4/4,w=1/2,p=1/3", "pgft:m=3/4/2,w=1/2/3,p=1/1/2", "pgft:m=20/20/4,w=1/10/2,p=1/1/5", "pgft:m=11/10,w=1/10,p=1/1", "pgft:m=20/12,w=1/9,p=1/2", "pgft:m=9/8/8,w=1/8/8,p=1/1/1", "pgft:m=11/10/10,w=1/10/10,p=1/1/1", "pgft:m=5/5/5,w=1/3/5,p=1/1/1",
		"fattree:k=8,levels=3,remove_links=4%,seed=1", "fattree:k=8,levels=3,remove_links=8%,seed=2", "fattree:k=12,levels=3,remove_links=3%,remove_switches=2,seed=3",
		"fattree:k=4,levels=4,remove_switches=3,remove_links=6%,seed=1", "pgft:m=18/36,w=1/18,p=1/1,remove_links=3%", "pgft:m=18/36,w=1/18,p=1/1,remove_switches=2,seed=2",
		"pgft:m=12/12/12,w=1/12/12,p=1/1/1,remove_links=1%", "pgft:m=12/12/12,w=1/12/12,p=1/1/1,remove_links=5%", "pgft:m=12/12/12,w=1/12/12,p=1/1/1,remove_switches=8",
		"pgft:m=20/20/4,w=1/10/2,p=1/1/5,remove_links=2%", "pgft:m=4/4/4,w=1/2/2,p=1/2/3,remove_links=10%,seed=1", "pgft:m=6/5/4,w=1/3/2,p=1/2/2,remove_links=5%,seed=4", "fattree:k=8,levels=3,remove_links=15%,seed=5", "fattree:k=6,levels=3,remove_switches=4,seed=2",
		"random:n=24,degree=4,hosts=3", "random:n=50,degree=5,hosts=4", "random:n=100,degree=6,hosts=4", "random:n=125,degree=10,hosts=8", "random:n=200,degree=8,hosts=4", "random:n=300,degree=10,hosts=2",
		"random:n=100,degree=6,hosts=4,remove_links=10%,seed=1", "random:n=125,degree=10,hosts=8,remove_links=5%,seed=2", "random:n=40,degree=3,hosts=2,seed=4", "random:n=64,degree=7,hosts=3,seed=9", "random:n=125,degree=16,hosts=8",
		"ring:n=9,hosts=2", "torus:dims=4/4,hosts=2", "torus:dims=5/5,hosts=2", "torus:dims=8/8,hosts=2", "torus:dims=4/4/4,hosts=4", "torus:dims=5/5/5,hosts=2", "torus:dims=6/6/6,hosts=1", "torus:dims=8/8/8,hosts=1", "torus:dims=12/12/8,hosts=1",
		"torus:dims=4/4/4/4,hosts=1", "torus:dims=4/4/4,hosts=2,remove_links=4,seed=1", "torus:dims=6/6/6,hosts=1,remove_switches=2,seed=1", "torus:dims=8/8,hosts=2,remove_links=5%,seed=3", "torus:dims=7/4,hosts=3", "torus:dims=3/3/5,hosts=2,links=2", "torus:dims=6/5/5,hosts=7,links=4", "torus:dims=6/6,hosts=3,remove_links=3,seed=7",
		"mesh:dims=8/8,hosts=2", "mesh:dims=4/4/4,hosts=2", "mesh:dims=2/2/2/2/2,hosts=4", "mesh:dims=2/2/2/2/2/2,hosts=2", "mesh:dims=2/2/2/2/2/2/2/2,hosts=1", "mesh:dims=6/6,hosts=3", "mesh:dims=5/4/3,hosts=2,remove_links=4%,seed=2",
		"hyperx:dims=4/4,hosts=2", "hyperx:dims=6/6,hosts=4", "hyperx:dims=12/8,hosts=7", "hyperx:dims=4/4/4,hosts=4", "hyperx:dims=6/6,hosts=4,remove_links=10%,seed=1", "hyperx:dims=4/4,hosts=1,remove_links=15%,seed=2", "hyperx:dims=5/3/4,hosts=3", "hyperx:dims=7/5,hosts=3,remove_switches=1,seed=1",
		"dragonfly:a=4,p=2,h=1", "dragonfly:a=4,p=2,h=2", "dragonfly:a=6,p=3,h=2", "dragonfly:a=8,p=4,h=4", "dragonfly:a=4,p=2,h=2,remove_links=10%,remove_switches=1,seed=1", "dragonfly:a=6,p=3,h=2,remove_links=5%,seed=2", "dragonfly:a=5,p=2,h=3", "dragonfly:a=6,p=3,h=3,groups=7", "dragonfly:a=12,p=6,h=6,groups=15",
		"ibutils:RhinoBased512.topo",
		"real:lyon-x5", "real:rack-lab", "real:vendor-lab.1", "real:vendor-lab.3", "real:vendor-lab.6-CS8500", "real:ufm-director",
	}
}

// benchNet is one of benchNets. Those that are not here skip the test.
func benchNet(t testing.TB, name string) *fabric.Fabric {
	t.Helper()
	if file, ok := strings.CutPrefix(name, "ibutils:"); ok {
		return loadNet(t, filepath.Join(filepath.Dir(filepath.Dir(ibsimtest.Path(t, "ibdmchk"))), "lib/x86_64-linux-gnu/ibdm1.5.7/ibnl", file))
	}
	if file, ok := strings.CutPrefix(name, "real:"); ok {
		dir := os.Getenv("FABSH_FABRICS")
		if dir == "" {
			dir = filepath.Join("..", "..", "..", "..", "shared", "fabrics")
		}
		f := loadNet(t, filepath.Join(dir, file+".topo.gz"))
		for i := range f.Ports() {
			if p := &f.Ports()[i]; p.Peer() != nil && !p.Node().IsSwitch() && p.LID() == 0 { // OpenSM gives it one
				return routingtest.WithLMC(t, f, 0)
			}
		}
		return f
	}
	return routingtest.Topology(t, name)
}

// loadNet loads a topology file.
func loadNet(t testing.TB, path string) *fabric.Fabric {
	t.Helper()
	in, err := os.Open(path)
	if err != nil {
		t.Skip(err)
	}
	defer in.Close()
	f, err := format.Load(in, path, func(name string) (io.ReadCloser, error) { return os.Open(name) })
	if err != nil {
		t.Fatal(err)
	}
	return f
}

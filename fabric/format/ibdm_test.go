package format_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/mad/ibsim/ibsimtest"
)

// ibdm runs a script in ibdmsh, and returns what it prints after "begin".
func ibdm(t testing.TB, folder, script string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(file, []byte(script), 0o666); err != nil {
		t.Fatal(err)
	}
	c := ibsimtest.Command(t, "ibdmsh", file)
	c.Env = append(c.Env, "IBDM_IBNL_PATH="+folder)
	out, err := c.CombinedOutput()
	_, said, ok := strings.Cut(string(out), "begin\n")
	if _, crashed := err.(*exec.ExitError); err != nil && !crashed || !ok {
		t.Fatalf("ibdmsh: %v\n%s", err, out)
	}
	return said
}

// tree is a script that prints the nodes and links that ibdm has after load.
func tree(load string) string {
	return "set f [new_IBFabric]\n" + load + `
puts begin
foreach e [IBFabric_NodeByName_get $f] {
  set n [lindex $e 1]
  puts "[lindex $e 0] [IBNode_type_get $n] [IBNode_numPorts_get $n] [IBNode_devId_get $n]"
  for {set i 1} {$i <= [IBNode_numPorts_get $n]} {incr i} {
    set p [IBNode_getPort $n $i]
    if {$p == ""} continue
    set q [IBPort_p_remotePort_get $p]
    if {$q == ""} continue
    puts "  $i [IBNode_name_get [IBPort_p_node_get $q]] [IBPort_num_get $q] [IBPort_width_get $p] [IBPort_speed_get $p]"
  }
}
`
}

// treeOf is the same of a fabric, by what name calls its nodes.
func treeOf(f *fabric.Fabric, name func(*fabric.Node) string) string {
	byName := map[string]*fabric.Node{}
	for i := range f.Nodes() {
		byName[name(&f.Nodes()[i])] = &f.Nodes()[i]
	}
	speeds := map[string]string{"SDR": "2.5", "DDR": "5", "QDR": "10"}
	var b strings.Builder
	for _, key := range sortedKeys(byName) {
		n := byName[key]
		kind := 2
		if !n.IsSwitch() {
			kind = 1
		}
		fmt.Fprintf(&b, "%s %d %d %d\n", key, kind, n.NumPorts(), n.Info().DeviceID)
		for p := range n.Ports() {
			if q := p.Peer(); q != nil {
				speed := speeds[p.Speed()]
				if speed == "" {
					speed = "UNKNOWN"
				}
				fmt.Fprintf(&b, "  %d %s %d %s %s\n", p.Num(), name(q.Node()), q.Num(), p.Width(), speed)
			}
		}
	}
	return b.String()
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// ibnlFolder is where ibutils has its systems, and topologies of them.
func ibnlFolder(t testing.TB) string {
	t.Helper()
	usr := filepath.Dir(filepath.Dir(ibsimtest.Path(t, "ibdmsh")))
	found, _ := filepath.Glob(filepath.Join(usr, "lib", "*", "ibdm*", "ibnl"))
	if len(found) == 0 {
		ibsimtest.Need(t, "ibnl files of ibutils")
	}
	return found[0]
}

func loadFile(path string) (*fabric.Fabric, error) {
	r, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return format.LoadIncluding(r, path, func(name string) (io.ReadCloser, error) { return os.Open(name) })
}

// TestTopo: of the topologies that ibutils ships we make the nodes and links
// that ibdm does.
func TestTopo(t *testing.T) {
	folder := ibnlFolder(t)
	files, _ := filepath.Glob(filepath.Join(folder, "*.topo"))
	if len(files) < 5 {
		t.Fatalf("found %q", files)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			f, err := loadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want := ibdm(t, folder, tree("IBFabric_parseTopology $f "+file))
			if d := cmp.Diff(want, treeOf(f, (*fabric.Node).Name)); d != "" {
				t.Errorf("(-ibdm +fabsh):\n%s", d)
			}
		})
	}
}

// TestWriteTopo: ibdm and we read the .topo and .ibnl files that we write.
func TestWriteTopo(t *testing.T) {
	for name, net := range nets(t) {
		t.Run(name, func(t *testing.T) {
			f, err := format.Load(strings.NewReader(net), "net")
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			file := filepath.Join(dir, "x.topo")
			var b bytes.Buffer
			if err := format.Dump(&b, f, "topo"); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, b.Bytes(), 0o666); err != nil {
				t.Fatal(err)
			}
			if err := format.WriteIBNLs(f, func(name string) (io.WriteCloser, error) { return os.Create(filepath.Join(dir, name)) }); err != nil {
				t.Fatal(err)
			}
			g, err := loadFile(file)
			if err != nil {
				t.Fatalf("%v in\n%s", err, b.String())
			}
			if name != "names" { // ibdmsh ends with a buffer overflow on names of 64 bytes
				want := ibdm(t, dir, tree("IBFabric_parseTopology $f "+file))
				if d := cmp.Diff(want, treeOf(g, (*fabric.Node).Name)); d != "" {
					t.Errorf("(-ibdm +fabsh):\n%s", d)
				}
			}
			if len(g.Nodes()) != len(f.Nodes()) || g.Links() != f.Links() {
				t.Errorf("wrote %v, read %v", f, g)
			}
		})
	}
}

package opensm_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/fabric/routing/opensm"
	"fabsh/fabric/routing/routingtest"
	"fabsh/mad"
	"fabsh/mad/ibsim/ibsimtest"
)

// dumped returns the tables that OpenSM wrote to its folder, by switch, and the fabric as it
// found it.
func dumped(t testing.TB, dir string) (*fabric.Fabric, map[mad.GUID][]uint8) {
	t.Helper()
	read := func(name string) *bytes.Reader {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return bytes.NewReader(b)
	}
	f, err := format.Load(read("opensm-subnet.lst"), "opensm-subnet.lst", nil)
	if err != nil {
		t.Fatal(err)
	}
	tables := map[mad.GUID][]uint8{}
	_, err = format.ReadLFTs(read("opensm-lfts.dump"), "opensm-lfts.dump", f, func(n *fabric.Node) []byte {
		tables[n.GUID()] = bytes.Repeat([]byte{mad.NoPort}, mad.LFTBlock*16)
		return tables[n.GUID()]
	})
	if err != nil {
		t.Fatal(err)
	}
	return f, tables
}

// scattered returns f with GUIDs far from each other, as nodes and their ports need them.
func scattered(t testing.TB, f *fabric.Fabric) *fabric.Fabric {
	t.Helper()
	b := fabric.NewBuilder()
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		info := *n.Info()
		info.NodeGUID = 0x0002c90300000000 | info.NodeGUID*2654435761%(1<<24)<<8
		b.AddNode(fabric.NodeSpec{Info: info, Name: n.Name()})
	}
	for i := range f.Ports() {
		p := &f.Ports()[i]
		if q := p.Peer(); q != nil && q.ID() > p.ID() {
			if err := b.Link(p.Node().ID(), p.Num(), q.Node().ID(), q.Num()); err != nil {
				t.Fatal(err)
			}
		}
	}
	return b.Build()
}

// TestLosses takes links away while OpenSM runs, one after the other, and compares its tables
// with the model, entry by entry.
func TestLosses(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	list := []struct {
		spec, engine string
		option       string // of the command line: -z, or -X with a file of GUIDs
	}{
		{"pgft:m=4/6,w=1/3,p=1/2", "minhop", ""},
		{"fattree:k=4,levels=3", "updn", ""},
		{"fattree:k=6", "ftree", ""},
		{"torus:dims=3/3/3,hosts=1", "lash", ""},
		{"mesh:dims=3/4,hosts=2", "dor", ""},
		{"fattree:k=4,levels=3", "dnup", ""},
		{"hyperx:dims=3/4,hosts=2", "sssp", ""},
		{"random:n=18,degree=4,hosts=2,seed=9", "minhop", ""},
		{"dragonfly:a=3,p=2,h=1", "dfsssp", ""},
		{"random:n=12,degree=3,hosts=3,seed=4", "lash", ""},
		{"pgft:m=3/4/5,w=1/2/3,p=1/2/1", "updn", ""},
		{"fattree:k=8", "dnup", ""},
		{"ring:n=9", "minhop", ""},
		{"pgft:m=4/4,w=1/2,p=1/3", "ftree", ""},
		{"fattree:k=4,levels=3", "updn", "-z"},
		{"fattree:k=6", "ftree", "-z"},
		{"random:n=18,degree=4,hosts=2,seed=9", "minhop", "-X"},
	}
	for i, c := range list {
		t.Run(c.spec+" "+c.engine+c.option, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(uint64(i), 45))
			f := routingtest.Topology(t, c.spec)
			if i%2 == 1 {
				f = scattered(t, routingtest.Shuffled(t, f, uint64(i)))
			}
			var net bytes.Buffer
			if err := format.Dump(&net, f, "ibnetdiscover"); err != nil {
				t.Fatal(err)
			}
			first := regexp.MustCompile(`(?m)^Ca\t\d+ "([^"]*)"`).FindStringSubmatch(net.String())[1]
			args := []string{"-D", "0x47", "-s", "1", "-R", c.engine}
			o := opensm.Settings{Engines: []string{c.engine}, ConnectRoots: c.option == "-z"}
			switch c.option {
			case "-z":
				args = append(args, "-z")
			case "-X":
				var text strings.Builder
				for i := range f.Nodes() {
					n := &f.Nodes()[i]
					guid := n.GUID() // port 0 of a switch
					if !n.IsSwitch() {
						guid = n.Port(1).GUID()
					}
					o.Order = append(o.Order, guid)
				}
				rnd.Shuffle(len(o.Order), func(i, j int) { o.Order[i], o.Order[j] = o.Order[j], o.Order[i] })
				o.Order = o.Order[:len(o.Order)/2]
				for _, guid := range o.Order {
					fmt.Fprintf(&text, "0x%x\n", uint64(guid))
				}
				path := filepath.Join(t.TempDir(), "order")
				if err := os.WriteFile(path, []byte(text.String()), 0o666); err != nil {
					t.Fatal(err)
				}
				args = append(args, "-X", path)
			}
			s := ibsimtest.Start(t, net.String(), ibsimtest.FixtureOptions{SM: first, SMArgs: args})
			found, before := dumped(t, s.Dir)
			down := map[*fabric.Port]bool{}
			compare(t, "start", found, down, nil, before, o)
			for step := range 2 {
				var links []*fabric.Port
				for i := range found.Ports() {
					p := &found.Ports()[i]
					if peer := p.Peer(); peer != nil && p.Node().IsSwitch() && peer.Node().IsSwitch() && p.ID() < peer.ID() && !down[p] {
						links = append(links, p)
					}
				}
				p := links[rnd.IntN(len(links))]
				down[p], down[p.Peer()] = true, true
				log := filepath.Join(s.Dir, "opensm.log")
				ends := func() int {
					b, _ := os.ReadFile(log)
					return strings.Count(string(b), "SUBNET UP")
				}
				if err := syscall.Kill(s.SMPID(), syscall.SIGSTOP); err != nil {
					t.Fatal(err)
				}
				was := ends()
				s.Console(t, `Unlink "S-%016x"[%d]`, uint64(p.Node().GUID()), p.Num())
				if err := syscall.Kill(s.SMPID(), syscall.SIGCONT); err != nil {
					t.Fatal(err)
				}
				ibsimtest.Poll(t, "a sweep", func() bool { return ends() > was })
				_, after := dumped(t, s.Dir)
				compare(t, fmt.Sprintf("step %d, without %s", step+1, p.Name()), found, down, before, after, o)
				before = after
			}
		})
	}
}

// compare compares tables of OpenSM with the model.
func compare(t *testing.T, what string, f *fabric.Fabric, down map[*fabric.Port]bool, before, after map[mad.GUID][]uint8, o opensm.Settings) {
	t.Helper()
	sm := mad.LID(1)
	whole, _ := opensm.Of(f, sm, func(p *fabric.Port) bool { return !down[p] }, func(p *fabric.Port) (mad.LID, int) {
		if p.LID() == 0 {
			return 0, 0
		}
		return p.LID(), 1
	})
	n, _, _ := whole.Reached()
	var old [][]uint8
	if before != nil {
		for _, s := range n.Switches {
			old = append(old, before[s.GUID])
		}
	}
	made := compute(t, n, old, o)
	wrong, all := 0, 0
	for i, s := range n.Switches {
		for lid := 1; lid < len(made.Tables[i]); lid++ {
			if all++; made.Tables[i][lid] != after[s.GUID][lid] {
				wrong++
			}
		}
	}
	t.Logf("%s: %s %q, %d of %d entries differ", what, made.Engine, made.Failed, wrong, all)
	if wrong > 0 {
		t.Errorf("%s: %d entries differ", what, wrong)
	}
}

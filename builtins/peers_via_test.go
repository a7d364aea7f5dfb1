//go:build linux

package builtins

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/mad"
	"fabsh/mad/engine"
	"fabsh/mad/ibsim/ibsimtest"
)

// TestViaSA: what OpenSM's records make is what a sweep finds, whether its
// tables come whole or are cut and asked for record by record.
func TestViaSA(t *testing.T) {
	for _, n := range peerNets(t) {
		for name, rmpp := range map[string]bool{"record by record": false, "tables": true} {
			t.Run(n.name+" "+name, func(t *testing.T) {
				t.Parallel()
				f := onIbsim(t, n.net, ibsimtest.FixtureOptions{SM: n.sm, SMArgs: quiet, SMConf: n.conf, RMPP: rmpp}, nil)
				if strings.Contains(n.conf, "lmc") && !rmpp {
					f.incompleteViaSA(t)
					return
				}
				var swept, told, kind string
				f.eval(t, &swept, `discover().dump("ibnetdiscover")`)
				f.eval(t, &told, `discover(via="sa").dump("ibnetdiscover")`)
				if strings.Contains(swept, "FDR10") {
					swept = strings.ReplaceAll(swept, "FDR10", "QDR")
					if warned := f.stderr.String(); !strings.Contains(warned, "that show QDR may run FDR10, which records do not show") {
						t.Errorf("warned: %s", warned)
					}
				}
				if d := cmp.Diff(swept, told); d != "" || len(swept) < 1000 {
					t.Errorf("(-swept +by records):\n%s", d)
				}
				compareInfos(t, f.sweep(t), f.Env.Current.Fabric)
				f.eval(t, &kind, `smp_get("NodeInfo", discover(via="sa").switches[-1]).node_type`)
				if kind != "switch" {
					t.Errorf("by LID: %s", kind)
				}
			})
		}
	}
}

// compareInfos compares PortInfo by PortInfo, but for what depends on who asked.
func compareInfos(t *testing.T, swept, told *fabric.Fabric) {
	compared := 0
	for i := range swept.Ports() {
		p, q := &swept.Ports()[i], &told.Ports()[i]
		if p.Info() == nil || q.Info() == nil {
			continue // of a channel adapter, a port without a LID
		}
		a, b := *p.Info(), *q.Info()
		if a.PortState == mad.PortStateDown { // OpenSM keeps no more of it (osm_port.c, osm_physp_set_port_info)
			a, b = mad.PortInfo{PortState: a.PortState, PortPhysicalState: a.PortPhysicalState}, mad.PortInfo{PortState: b.PortState, PortPhysicalState: b.PortPhysicalState}
		} else {
			compared++
		}
		a.LocalPortNum, b.LocalPortNum = 0, 0
		if d := cmp.Diff(a, b); d != "" {
			t.Errorf("%s (-swept +by records):\n%s", p.Label(), d)
		}
	}
	if compared < 2*swept.Links() {
		t.Errorf("%d of %d ports compared", compared, len(swept.Ports()))
	}
}

// incompleteViaSA: where LMC is not 0, OpenSM knows no LinkRecord by the LID of a
// switch that is no multiple of it (osm_sa_link_record.c, lr_rcv_get_physp_link,
// lmc_mask). What is missing then is said.
func (f *peerFixture) incompleteViaSA(t *testing.T) {
	out, explained, status := f.run(`[p.text for p in discover(via="sa").problems if p.kind == "failed"]`)
	if status != 3 || explained != "" || !strings.Contains(out, "the node at the other end is unknown: no LinkRecord although the link is up") {
		t.Errorf("status %d, %s, %s", status, out, explained)
	}
}

// TestOpenSMKeys reads the file of M_Keys that OpenSM writes. Those are 0: ibsim
// keeps none.
func TestOpenSMKeys(t *testing.T) {
	n := peerNets(t)[2] // which has M_Keys
	f := onIbsim(t, n.net, ibsimtest.FixtureOptions{SM: n.sm, SMArgs: quiet, SMConf: n.conf}, nil)
	fab := f.sweep(t)
	ports := entrances(fab)
	ibsimtest.Poll(t, "OpenSM to write all M_Keys", func() bool { // after the subnet is up, and not at once
		keys, err := readKeys(filepath.Join(f.peer.Dir, "guid2mkey"))
		return err == nil && len(keys.Ports) == len(ports)
	})
	keys, err := readKeys(filepath.Join(f.peer.Dir, "guid2mkey"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range ports {
		if _, ok := keys.Ports[p.GUID()]; !ok {
			t.Errorf("%s has no M_Key", p.Label())
		}
	}
	if len(keys.Ports) != len(ports) || len(ports) == 0 {
		t.Errorf("%d M_Keys for %d ports", len(keys.Ports), len(ports))
	}
}

func readKeys(path string) (*engine.Keys, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return format.ReadKeys(file, path)
}

// TestNodeNameMap compares what a map does to the dump with what it does to
// ibnetdiscover, which leaves the line of the channel adapter itself alone
// (ibnetdiscover.c, out_ca).
func TestNodeNameMap(t *testing.T) {
	n := peerNets(t)[3]
	dir := t.TempDir()
	text := "# names\n0x0c42a10300000100 \"one name\"\n0xc42a10300001000 another # not this\n0x30 \"nobody\"\n"
	path := filepath.Join(dir, "map")
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	names, err := format.ReadNodeNames(strings.NewReader(text), "map")
	if err != nil {
		t.Fatal(err)
	}
	f := onIbsim(t, n.net, ibsimtest.FixtureOptions{SM: n.sm, SMArgs: quiet, SMConf: n.conf}, func(o *SessionOptions) { o.Names = names })
	fab := f.sweep(t)
	for i, guid := range []mad.GUID{0x0c42a10300000100, 0x0c42a10300001000} {
		if len(fab.NodeByGUID(guid)) != 1 {
			t.Fatalf("the net has no node %d of the map: it has %v", i, fab.Nodes()[0].GUID())
		}
	}
	var ours string
	f.eval(t, &ours, `discover().dump("ibnetdiscover")`)
	theirs := f.peer.Run(t, "ibnetdiscover", "--node-name-map", path)
	own := `Ca	1 "H-0c42a10300000100"		# "`
	theirs = strings.Replace(theirs, own+"compute 01 HCA-1", own+"one name", 1)
	if d := cmp.Diff(recordsIn(theirs), recordsIn(ours)); d != "" || !strings.Contains(ours, `"one name"`) || !strings.Contains(ours, `"another "`) {
		t.Errorf("(-ibnetdiscover +ours):\n%s", d)
	}
}

// recordsIn returns the records of a dump by the first of their lines that has a GUID, because the
// tool lists them in the order of its sweep.
func recordsIn(dump string) map[string]string {
	list := map[string]string{}
	for _, r := range strings.Split(dump, "\n\n")[1:] {
		list[r[strings.Index(r, "guid=0x"):]] = r
	}
	return list
}

//go:build linux

package server

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/ibsim"
	"fabsh/mad/ibsim/ibsimtest"
)

// peers are the field's tools on the served subnet.
func (s *served) peers(t testing.TB) *ibsimtest.Fixture {
	t.Helper()
	return ibsimtest.On(t, s.Name, nil, nil)
}

// smState is what the subnet manager of a node says of itself.
func smState(t testing.TB, f *ibsimtest.Fixture, node string) string {
	t.Helper()
	out, err := f.Command(t, node, "sminfo", "-D", "0").CombinedOutput()
	if err != nil {
		return fmt.Sprintf("none (%v)", err)
	}
	fields := strings.Fields(string(out))
	return fields[len(fields)-1]
}

// OpenSM brings a bare subnet up, the C tools and fabsh see what it did, and its SA
// answers others.
func TestOpenSM(t *testing.T) {
	s := serve(t, "fattree:k=4,levels=3", true)
	f := s.peers(t)
	sm := f.StartSM(t, ibsimtest.Options{SM: "node-0001 HCA-1", SMArgs: []string{"-R", "updn"}})
	sm.Wait(t, "SUBNET UP")
	fab := sweep(t, s.attach(t, ibsim.Options{Node: "node-0009 HCA-1"}))
	for i := range fab.Ports() {
		if p := &fab.Ports()[i]; p.Peer() != nil && p.Info().PortState.String() != "active" {
			t.Errorf("%s is %v", p.Name(), p.Info().PortState)
		}
	}
	for i := range fab.Nodes() {
		n := &fab.Nodes()[i]
		if n.LID() == 0 {
			t.Errorf("%s has no LID", n.Label())
		}
		out := f.Run(t, "saquery", "NR", fmt.Sprint(n.LID()))
		if want := fmt.Sprintf("node_guid...............%v", n.GUID()); !strings.Contains(out, want) || !strings.Contains(out, "NodeDescription........."+n.Name()) {
			t.Errorf("saquery for %s says\n%s", n.Label(), out)
		}
	}
	if log := sm.Log(); strings.Contains(log, "ERR ") {
		t.Errorf("OpenSM logs errors:\n%s", log)
	}
}

// Of two OpenSMs the one of higher priority becomes master, and when it is killed
// the other one.
func TestFailOver(t *testing.T) {
	s := serve(t, "fattree:k=4,levels=2", true)
	f := s.peers(t)
	const conf = "sminfo_polling_timeout 200\npolling_retry_number 2\nsweep_interval 1\nsm_priority %d\n"
	low := f.StartSM(t, ibsimtest.Options{SM: "node-0001 HCA-1", SMConf: fmt.Sprintf(conf, 3)})
	low.Wait(t, "SUBNET UP")
	high := f.StartSM(t, ibsimtest.Options{SM: "node-0005 HCA-1", SMConf: fmt.Sprintf(conf, 9)})
	high.Wait(t, "SUBNET UP")
	low.Wait(t, "Entering STANDBY state")
	if a, b := smState(t, f, "node-0001 HCA-1"), smState(t, f, "node-0005 HCA-1"); a != "SMINFO_STANDBY" || b != "SMINFO_MASTER" {
		t.Errorf("the states are %s and %s, want STANDBY and MASTER", a, b)
	}
	before := strings.Count(low.Log(), "SUBNET UP")
	high.Kill()
	ibsimtest.Poll(t, "the standby to become master", func() bool {
		return strings.Count(low.Log(), "Entering MASTER state") == 2 && strings.Count(low.Log(), "SUBNET UP") > before
	})
	if a := smState(t, f, "node-0001 HCA-1"); a != "SMINFO_MASTER" {
		t.Errorf("the state is %s, want MASTER", a)
	}
	fab := sweep(t, s.attach(t, ibsim.Options{}))
	want := fab.NodeByName("node-0001 HCA-1")[0].LID()
	for i := range fab.Ports() {
		if p := &fab.Ports()[i]; !p.Node().IsSwitch() && p.Info().MasterSMLID != want {
			t.Errorf("%s: its subnet manager has LID %d, want %d", p.Name(), p.Info().MasterSMLID, want)
		}
	}
}

// ibping, by a class that neither agents nor subnet managers know.
func TestPing(t *testing.T) {
	s := serve(t, "fattree:k=4,levels=2", false)
	f := s.peers(t)
	server := f.Command(t, "node-0003 HCA-1", "ibping", "-S")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer server.Wait()
	defer server.Process.Kill()
	ibsimtest.Poll(t, "the server to attach", func() bool { return strings.Contains(s.log(), "node-0003") })
	lid := s.fabric.NodeByName("node-0003 HCA-1")[0]
	node := sweep(t, s.attach(t, ibsim.Options{})).NodeByGUID(lid.GUID())[0]
	ibsimtest.Poll(t, "an answer", func() bool {
		out, _ := f.Command(t, "node-0006 HCA-1", "ibping", "-c", "1", "-t", "1000", fmt.Sprint(node.LID())).CombinedOutput()
		return strings.Contains(string(out), "1 packets transmitted, 1 received")
	})
}

// engines are OpenSM's routing engines, and what is good for them.
var engines = map[string][]string{
	"minhop":     {"fattree:k=4,levels=3", "torus:dims=3/3,hosts=2", "pgft:m=4/4,w=1/4,p=1/1,remove_links=3,seed=5"},
	"updn":       {"fattree:k=4,levels=3", "pgft:m=4/4,w=1/4,p=1/1,remove_links=3,seed=5"},
	"ftree":      {"fattree:k=4,levels=3", "pgft:m=4/4,w=1/4,p=1/1,remove_switches=1,seed=5"},
	"dfsssp":     {"fattree:k=4,levels=3", "torus:dims=3/3,hosts=2", "pgft:m=4/4,w=1/4,p=1/1,remove_links=3,seed=5"},
	"lash":       {"fattree:k=4,levels=2", "torus:dims=3/3,hosts=2", "mesh:dims=4/4,hosts=2"},
	"torus-2QoS": {"torus:dims=5/5,hosts=1"},
}

// The tables that OpenSM computes here are those it computes on ibsim.
func TestEngines(t *testing.T) {
	for engine, specs := range engines {
		for _, spec := range specs {
			t.Run(engine+" "+spec, func(t *testing.T) {
				t.Parallel()
				s := serve(t, spec, true)
				o := ibsimtest.Options{SM: guidID(s.fabric, "node-0001 HCA-1"), SMArgs: []string{"-D", "0x43", "-R", engine}}
				if engine == "torus-2QoS" {
					o.SMArgs = append(o.SMArgs, "-Q", "--torus_config", torusConfig(t, s.fabric))
				}
				here := s.peers(t).StartSM(t, o)
				there := ibsimtest.Start(t, text(t, s.fabric), ibsimtest.Options{}).StartSM(t, o)
				got, want := tables(t, here, engine), tables(t, there, engine)
				if got != want {
					t.Errorf("on ibsim\n%s\nhere\n%s", want, got)
				}
			})
		}
	}
}

// guidID is what ibnetdiscover calls a host.
func guidID(f *fabric.Fabric, name string) string {
	return fmt.Sprintf("H-%016x", uint64(f.NodeByName(name)[0].GUID()))
}

// tables are those that OpenSM's engine has computed.
func tables(t *testing.T, sm *ibsimtest.SM, engine string) string {
	t.Helper()
	sm.Wait(t, "SUBNET UP")
	if want := engine + " tables configured on all switches"; !strings.Contains(sm.Log(), want) {
		t.Errorf("OpenSM does not say %q:\n%s", want, sm.Log())
	}
	b, err := os.ReadFile(filepath.Join(sm.Dir, "opensm-lfts.dump"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(b, []byte("Unicast lids")) {
		t.Errorf("the dump has no tables:\n%s", b)
	}
	return string(b)
}

// torusConfig is a file that tells torus-2QoS the directions of a torus of 5 times
// 5 switches.
func torusConfig(t *testing.T, f *fabric.Fabric) string {
	t.Helper()
	guid := func(name string) mad.GUID { return f.NodeByName(name)[0].GUID() }
	path := filepath.Join(t.TempDir(), "torus.conf")
	config := fmt.Sprintf("torus 5 5 1\nxp_link %v %v\nyp_link %v %v\n",
		guid("switch-1-1"), guid("switch-2-1"), guid("switch-1-1"), guid("switch-1-2"))
	if err := os.WriteFile(path, []byte(config), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

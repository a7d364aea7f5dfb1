//go:build linux

package server

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/ibsim"
	"fabsh/mad/ibsim/ibsimtest"
)

// largeSpec is a tree of 11,664 hosts.
const largeSpec = "pgft:m=18/18/36,w=1/18/18,p=1/1/1"

// OpenSM brings up 11,664 hosts, too. BenchmarkSubnetUp says in what time.
func TestOpenSMLarge(t *testing.T) {
	if os.Getenv("FABSH_SOAK") == "" {
		t.Skip("a minute: in make soak")
	}
	f, _, err := sim.Parse(largeSpec)
	if err != nil {
		t.Fatal(err)
	}
	name, _ := startAlone(t, largeSpec)
	sm := ibsimtest.On(t, name, nil, nil).StartSM(t, ibsimtest.FixtureOptions{SM: guidID(f, f.OfType(mad.NodeTypeCA)[0].Name()), SMArgs: []string{"-o", "-R", "ftree"}})
	sm.WaitLong(t, "SUBNET UP", 10*time.Minute)
}

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
	sm := f.StartSM(t, ibsimtest.FixtureOptions{SM: "node-0001 HCA-1", SMArgs: []string{"-R", "updn"}})
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
	const conf = "sminfo_polling_timeout 500\npolling_retry_number 4\nsweep_interval 1\nsm_priority %d\n"
	low := f.StartSM(t, ibsimtest.FixtureOptions{SM: "node-0001 HCA-1", SMConf: fmt.Sprintf(conf, 3)})
	low.Wait(t, "SUBNET UP")
	high := f.StartSM(t, ibsimtest.FixtureOptions{SM: "node-0005 HCA-1", SMConf: fmt.Sprintf(conf, 9)})
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

// Of three OpenSMs that start within a second, one is master in the end, the one of the
// highest priority, and the others stand by. A master may hand over to one that still
// discovers and then stands by as well; that one takes over when its polling has failed.
func TestThreeManagers(t *testing.T) {
	runs := 2
	if os.Getenv("FABSH_SOAK") != "" {
		runs = 20
	}
	hosts := []string{"node-0001 HCA-1", "node-0005 HCA-1", "node-0008 HCA-1"}
	for run := range runs {
		t.Run(fmt.Sprint(run), func(t *testing.T) {
			s := serve(t, "fattree:k=4,levels=2", true)
			f := s.peers(t)
			var sms []*ibsimtest.SM
			for i, host := range hosts {
				conf := fmt.Sprintf("sminfo_polling_timeout 300\npolling_retry_number 2\nsm_priority %d\n", 3+6*i)
				sms = append(sms, f.StartSM(t, ibsimtest.FixtureOptions{SM: host, SMConf: conf}))
				time.Sleep(time.Duration(run*37%200) * time.Millisecond) // staggers the starts of real processes, differently in each run
			}
			var states []string
			ibsimtest.Poll(t, "one master, and two that stand by", func() bool {
				states = nil
				for _, host := range hosts {
					states = append(states, smState(t, f, host))
				}
				return slices.Equal(states, []string{"SMINFO_STANDBY", "SMINFO_STANDBY", "SMINFO_MASTER"})
			})
			sms[2].Wait(t, "SUBNET UP")
		})
	}
}

// Where the subnet is up, and has a subnet manager of its own, OpenSM stands by, and takes
// over when that one's node has no power any more.
func TestStandby(t *testing.T) {
	s := serve(t, "fattree:k=4,levels=2", false)
	f := s.peers(t)
	sm := f.StartSM(t, ibsimtest.FixtureOptions{SMConf: "sminfo_polling_timeout 200\npolling_retry_number 2\nsm_priority 15\n"})
	sm.Wait(t, "Entering STANDBY state")
	if own, theirs := smState(t, f, "node-0001 HCA-1"), smState(t, f, "node-0002 HCA-1"); own != "SMINFO_MASTER" || theirs != "SMINFO_STANDBY" {
		t.Errorf("the states are %s and %s, want MASTER and STANDBY", own, theirs)
	}
	if log := sm.Log(); strings.Contains(log, "ERR ") || strings.Contains(log, "MASTER") {
		t.Errorf("OpenSM logs\n%s", log)
	}
	if err := s.subnet.Cables.Kill(s.fabric.NodeByName("node-0001 HCA-1")[0].GUID()); err != nil {
		t.Fatal(err)
	}
	sm.Wait(t, "Entering MASTER state")
	sm.Wait(t, "SUBNET UP")
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

// ibsysstat, which takes no notice of the status of an answer, fails where no server runs.
func TestSysStat(t *testing.T) {
	s := serve(t, "fattree:k=4,levels=2", false)
	f := s.peers(t)
	lid := fmt.Sprint(sweep(t, s.attach(t, ibsim.Options{})).NodeByName("node-0003 HCA-1")[0].LID())
	run := func() (string, error) {
		out, err := f.Command(t, "node-0006 HCA-1", "ibsysstat", "-t", "1000", lid).CombinedOutput()
		return string(out), err
	}
	if out, err := run(); err == nil || !strings.Contains(out, "Connection timed out") {
		t.Errorf("without a server: %v\n%s", err, out)
	}
	server := f.Command(t, "node-0003 HCA-1", "ibsysstat", "-S")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer server.Wait()
	defer server.Process.Kill()
	ibsimtest.Poll(t, "an answer", func() bool {
		out, err := run()
		return err == nil && strings.Contains(out, "sysstat ping succeeded")
	})
}

// engines are OpenSM's routing engines.
var engines = []string{"minhop", "updn", "ftree", "dfsssp", "lash", "torus-2QoS"}

// engineFabrics are what they are tried on. OpenSM replaces an engine that cannot route
// a fabric by minhop. Fabrics in soak are left to make soak.
var engineFabrics = []struct {
	spec         string
	minhop, soak string // names of engines
}{
	{"fattree:k=4,levels=3", "torus-2QoS", "lash torus-2QoS"},
	{"fattree:k=4,levels=2", "torus-2QoS", "minhop updn ftree dfsssp torus-2QoS"},
	{"pgft:m=4/4,w=1/4,p=1/1,remove_links=3,seed=5", "ftree torus-2QoS", "ftree lash torus-2QoS"},
	{"pgft:m=4/4,w=1/4,p=1/1,remove_switches=1,seed=5", "torus-2QoS", "minhop updn dfsssp lash torus-2QoS"},
	{"torus:dims=3/3,hosts=2", "ftree torus-2QoS", "updn ftree torus-2QoS"},
	{"torus:dims=5/5,hosts=1", "ftree", "minhop updn ftree dfsssp lash"},
	{"torus:dims=5/5,hosts=1,remove_links=1,seed=5", "ftree", "minhop updn ftree dfsssp lash torus-2QoS"},
	{"mesh:dims=4/4,hosts=2", "ftree torus-2QoS", "minhop updn ftree dfsssp torus-2QoS"},
}

// OpenSM computes the tables here that it computes on ibsim.
func TestEngines(t *testing.T) {
	for _, on := range engineFabrics {
		for _, engine := range engines {
			t.Run(engine+" "+on.spec, func(t *testing.T) {
				if slices.Contains(strings.Fields(on.soak), engine) && os.Getenv("FABSH_SOAK") == "" {
					t.Skip("in make soak")
				}
				t.Parallel()
				s := serve(t, on.spec, true)
				o := ibsimtest.FixtureOptions{SM: guidID(s.fabric, "node-0001 HCA-1"), SMArgs: []string{"-D", "0x43", "-R", engine}}
				if engine == "torus-2QoS" {
					o.SMArgs = append(o.SMArgs, "-Q", "--torus_config", torusConfig(t, s.fabric))
				}
				if engine == "updn" && !strings.Contains(on.spec, "tree") && !strings.Contains(on.spec, "pgft") {
					o.SMArgs = append(o.SMArgs, "-a", rootGUIDs(t, s.fabric)) // it finds none itself
				}
				here := s.peers(t).StartSM(t, o)
				there := ibsimtest.Start(t, text(t, s.fabric), ibsimtest.FixtureOptions{}).StartSM(t, o)
				writer := engine
				if slices.Contains(strings.Fields(on.minhop), engine) {
					writer = "minhop"
				}
				got, want := tables(t, here, writer), tables(t, there, writer)
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

// tables are computed by OpenSM's engine.
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

// rootGUIDs is a file that names, for updn, which switch is at the top.
func rootGUIDs(t *testing.T, f *fabric.Fabric) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "roots")
	if err := os.WriteFile(path, fmt.Appendln(nil, f.OfType(mad.NodeTypeSwitch)[0].GUID()), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// torusConfig is a file that gives torus-2QoS the directions of a torus of 5 times
// 5 switches; of another fabric it is one that does not fit.
func torusConfig(t *testing.T, f *fabric.Fabric) string {
	t.Helper()
	guid := func(name string) mad.GUID {
		if list := f.NodeByName(name); list != nil {
			return list[0].GUID()
		}
		return 1
	}
	path := filepath.Join(t.TempDir(), "torus.conf")
	config := fmt.Sprintf("torus 5 5 1\nxp_link %v %v\nyp_link %v %v\n",
		guid("switch-1-1"), guid("switch-2-1"), guid("switch-1-1"), guid("switch-1-2"))
	if err := os.WriteFile(path, []byte(config), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

package builtins

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/afero"

	"fabsh/builtins/audits"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/audit"
	"fabsh/fabric/format"
	hosthealth "fabsh/fabric/hosts"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// kept is what fabsh snapshot --all keeps, through its file.
func kept(t *testing.T, f *fixture) *fabric.Fabric {
	t.Helper()
	swept, err := topology.SweepQuietly(t.Context(), f.Runtime)
	if err != nil {
		t.Fatal(err)
	}
	routes, err := audits.ReadRoutes(t.Context(), f.Runtime, swept, true)
	if err != nil {
		t.Fatal(err)
	}
	tables, switches := make([][]byte, len(swept.Nodes())), make([]*adaptive.Switch, len(swept.Nodes()))
	for i, sw := range routes.Graph().Switches() {
		tables[sw.ID()], switches[sw.ID()] = routes.Row(i), routes.Adaptive(i)
	}
	all, err := audits.ReadAnswers(t.Context(), f.Runtime, swept.With(fabric.Reading{LFTs: tables, Adaptive: switches}))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := format.WriteSnapshot(&b, all); err != nil {
		t.Fatal(err)
	}
	read, err := format.ReadSnapshot(&b, "snapshot")
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// ofFile is a session on a file.
func ofFile(t *testing.T, f *fabric.Fabric) *fixture {
	t.Helper()
	x := &fixture{fs: afero.NewMemMapFs()}
	var err error
	if x.Session, err = NewSession(SessionOptions{Facts: topology.Facts{Loaded: f}, Stdout: &x.stdout, Stderr: &x.stderr, FS: x.fs, Dir: "/work"}); err != nil {
		t.Fatal(err)
	}
	return x
}

// aboutRun are checks that judge the run, and state.
func aboutRun(id string) bool { return strings.HasPrefix(id, "audit.") }

// TestSnapshotAudits: audits find in a snapshot with all data that they read the faults that they
// find in the fabric itself, and all their requests are answered.
func TestSnapshotAudits(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	for _, x := range slices.Concat(standardFaults, settingFaults, partitionFaults, groupFaults) {
		switch x.name {
		case "mc.broadcast none", // whether its records were read with the SM_Key, which hides groups without members
			"sm.alive", "prefix.default", "sm.links", "pkey.file", "name.map", "cc.uniform table", // options that a file has not; what changes meanwhile
			"mkey.exposed",             // keys are left out of files
			"lid.range", "lmc.uniform": // to such LIDs nothing answers, so the snapshot is not complete
			continue
		}
		if x.on != "" || x.counts {
			continue
		}
		t.Run(x.name, func(t *testing.T) {
			keys := smKey
			if x.untold {
				keys = nil
			}
			onSimWith(t, "fattree", keys, nil, nil, func(t *testing.T, f *fixture) {
				swept, err := topology.SweepQuietly(t.Context(), f.Runtime)
				if err != nil {
					t.Fatal(err)
				}
				own := swept.From()
				b := &bench{t: t, f: f, subnet: f.Env.Sim, fabric: swept, rand: rand.New(rand.NewPCG(1, 1)), used: map[mad.GUID]bool{own.Node().GUID(): true, own.Peer().Node().GUID(): true}}
				ca, leaf := b.host()
				x.do(b, ca, leaf)
				live := audited(t, f, b.run, append(b.words, "--deep")...)
				file := ofFile(t, kept(t, f))
				defer file.Close()
				stored := audited(t, file, b.run, append(b.words, "--deep")...)
				want := slices.DeleteFunc(idsOf(live.Findings), aboutRun)
				got := slices.DeleteFunc(idsOf(stored.Findings), aboutRun)
				if diff := cmp.Diff(strings.Join(want, "\n"), strings.Join(got, "\n")); diff != "" {
					t.Errorf("-live +file\n%s", diff)
				}
				if live.Answered() != stored.Answered() {
					t.Errorf("answered: %v live, %v of the file: %v, %v", live.Answered(), stored.Answered(), live.Coverage.Missing(), stored.Coverage.Missing())
				}
			})
		})
	}
}

// TestSnapshotRates: what was counted between two snapshots is found as it is on a fabric
// between two runs. With FABSH_SOAK that is so of each counter.
func TestSnapshotRates(t *testing.T) {
	for i, x := range counterFaults {
		if x.name == "ctr.vl15" { // whether the sweep is the reason only a fabric can tell
			continue
		}
		if i%6 != 0 && os.Getenv("FABSH_SOAK") == "" {
			continue
		}
		onSimWith(t, "fattree", smKey, nil, nil, func(t *testing.T, f *fixture) {
			swept, err := topology.SweepQuietly(t.Context(), f.Runtime)
			if err != nil {
				t.Fatal(err)
			}
			own := swept.From()
			b := &bench{t: t, f: f, subnet: f.Env.Sim, fabric: swept, rand: rand.New(rand.NewPCG(uint64(i), 1)), used: map[mad.GUID]bool{own.Node().GUID(): true, own.Peer().Node().GUID(): true}}
			ca, leaf := b.host()
			if x.before != nil {
				x.before(b, ca, leaf)
			}
			before := kept(t, f)
			time.Sleep(betweenRuns)
			want := x.do(b, ca, leaf)
			after := ofFile(t, kept(t, f))
			defer after.Close()
			var file bytes.Buffer
			if err := format.WriteSnapshot(&file, before); err != nil {
				t.Fatal(err)
			}
			if err := afero.WriteFile(after.fs, "/work/before.fab", file.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
			got := idsOf(audited(t, after, audits.RunOptions{}, "--over", "before.fab").Findings)
			if diff := cmp.Diff(expand(want, got), got); diff != "" {
				t.Errorf("%s: -want +got\n%s", x.name, diff)
			}
		})
	}
}

// TestSnapshotOver: files that rates cannot be over are refused, and it is said why.
func TestSnapshotOver(t *testing.T) {
	onSim(t, "ring:n=2", nil, func(t *testing.T, f *fixture) {
		swept, err := topology.SweepQuietly(t.Context(), f.Runtime)
		if err != nil {
			t.Fatal(err)
		}
		older := kept(t, f)
		time.Sleep(time.Hour)
		newer := kept(t, f)
		time.Sleep(100 * time.Millisecond)
		soon := kept(t, f)
		timeless := newer.With(fabric.Reading{Answers: newer.Answers()})
		for _, x := range []struct {
			at, over *fabric.Fabric
			want     string
		}{
			{newer, older, "3600.0"},
			{older, newer, "its counters were read at 2000-01-01 01:00:00, not before those compared with it, at 2000-01-01 00:00:00"},
			{newer, newer, "not before those compared with it"},
			{soon, newer, "its counters were read only 100ms earlier; want 2s or more"},
			{newer, swept, "the file has no counters; write it with snapshot FILE --all"},
			{newer, timeless, "the file has no time of its counters"},
			{timeless, older, "the file has no time of its counters"},
		} {
			s := ofFile(t, x.at)
			var file bytes.Buffer
			if err := format.WriteSnapshot(&file, x.over); err != nil {
				t.Fatal(err)
			}
			if err := afero.WriteFile(s.fs, "/work/over.fab", file.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
			out, explained, _ := s.run(`print(perf_rates(discover().switches[0].ports[1], over="./over.fab").window, perf_rates(discover().switches[0].ports[1], over=load_fabric("over.fab")).window)`)
			if !strings.Contains(out+explained, x.want) {
				t.Errorf("got %s%s, want %s", out, explained, x.want)
			}
			s.Close()
		}
	})
}

// TestSnapshotSilence: what was not answered when a snapshot was made is not answered by
// it, and is no health; counters that stand at their largest value are told.
func TestSnapshotSilence(t *testing.T) {
	for _, attr := range []*mad.Attribute{mad.AttrPKeyTable, mad.AttrPortCountersExtended, mad.AttrPerfClassPortInfo, mad.AttrMCMemberRecord, mad.AttrNodeRecord} {
		x := &troubled{attr: attr, lose: true}
		wrap := func(tr engine.Transport) engine.Transport { x.Transport = tr; return x }
		onSimWith(t, "ring:n=3", smKey, wrap, nil, func(t *testing.T, f *fixture) {
			file := ofFile(t, kept(t, f))
			defer file.Close()
			if r := audited(t, file, audits.RunOptions{}); r.Complete() || audits.RunStatus(r, audit.Critical) != 3 && len(r.Findings) == 0 {
				t.Errorf("%s: the coverage is complete: %v", attr.Name, r.Coverage.Rows())
			}
		})
	}
	onSim(t, "ring:n=3", nil, func(t *testing.T, f *fixture) {
		swept, err := topology.SweepQuietly(t.Context(), f.Runtime)
		if err != nil {
			t.Fatal(err)
		}
		b := &bench{t: t, subnet: f.Env.Sim}
		p := swept.NodeByName("switch-2")[0].Port(1)
		b.count(p, "SymbolErrorCounter", math.MaxUint64)
		file := ofFile(t, kept(t, f))
		defer file.Close()
		got := told(audited(t, file, audits.RunOptions{}, "counters"))
		if !strings.HasPrefix(got, "warning ctr.saturated switch-2/1: counters at their largest value: ") {
			t.Errorf("got %s", got)
		}
	})
}

// TestTopologyAudits: of a topology all audits run, and those are left out that need what it
// does not have; who asks for one of these by name is told so.
func TestTopologyAudits(t *testing.T) {
	onSim(t, "ring:n=3", nil, func(t *testing.T, f *fixture) {
		swept, err := topology.SweepQuietly(t.Context(), f.Runtime)
		if err != nil {
			t.Fatal(err)
		}
		file := ofFile(t, swept) // without tables
		defer file.Close()
		for _, words := range [][]string{nil, {"routing"}} {
			all, err := audits.LoadAudits(t.Context(), file.Interpreter, words, nil, true)
			if err != nil {
				t.Fatal(err)
			}
			r, err := all.Run(t.Context(), file.Interpreter, audits.RunOptions{})
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(r.Failures, func(x audit.Failure) bool { return x.Audit == "routing" })
			want := 0
			if words != nil {
				want = 2
			}
			if code := audits.RunStatus(r, audit.Warning); i < 0 || r.Failures[i].Skipped != (want == 0) || code != want {
				t.Errorf("%q: status %d, want %d: %v", words, code, want, r.Failures)
			}
		}
	})
}

// fabricsDir is the directory of dumps of real fabrics, which the project does not ship: it is in
// FABSH_FABRICS, else beside the repository.
func fabricsDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("FABSH_FABRICS")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared", "fabrics")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no dumps of real fabrics: %v", err)
	}
	return dir
}

// realFabric loads a dump.
func realFabric(t *testing.T, dir, name string) *fabric.Fabric {
	t.Helper()
	file, err := os.Open(filepath.Join(dir, name+".topo.gz"))
	if err != nil {
		t.Skip(err)
	}
	defer file.Close()
	r, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	f, err := format.Load(strings.NewReader(string(text)), name, nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestRealFabrics: the standard audits report what is wrong with real fabrics, by careful
// inspection, and nothing else of warning or above. What dumps lack is named.
func TestRealFabrics(t *testing.T) {
	dir := fabricsDir(t)
	for _, x := range []struct {
		name  string
		found string // of warning and above
		infos string // checks, and how many
	}{
		{"vendor-lab.1", "", ""},
		{"vendor-lab.3", "warning link.uplinks 0x98039b030087698e\n" + strings.Repeat("warning topo.loopback\n", 19), "2 link.speed, 1 name.default"},
		{"vendor-lab.6-CS8500", "error host.adapters 0xb8cef603005070c0\nwarning link.uplinks 0xb8cef603006178ba 19 of 20\nwarning link.uplinks 0xb8cef60300617cda 19 of 20\n", "4 host.rails, 2 name.default"},
		{"vendor-lab.8-empty-lid", "", "1 lid.range"},
		{"small-1", "error link.asymmetric 0x0008f10400410015/1\nerror link.asymmetric 0x005442ba00003080/12\n", "3 name.default"},
		{"small-3", "warning link.speed 0xf4521403005764b0/8\n" + strings.Repeat("warning topo.loopback\n", 3), "1 name.default"},
		{"ufm-director", strings.Repeat("error host.adapters\n", 3) + strings.Repeat("warning link.uplinks 19 of 20\n", 5), "1 lid.range, 1 name.default"},
		{"lyon-x5", "error link.uplinks 0x0008f10500108bba 4 of 12\n", "4 name.default"},
		{"rack-lab", "warning link.uplinks 0xf452140300115da0 7 of 8\n", ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			file := ofFile(t, realFabric(t, dir, x.name))
			defer file.Close()
			set, err := audits.LoadAudits(t.Context(), file.Interpreter, nil, nil, false)
			if err != nil {
				t.Fatal(err)
			}
			r, err := set.Run(t.Context(), file.Interpreter, audits.RunOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			infos := map[string]int{}
			for i := range r.Findings {
				f := &r.Findings[i]
				if f.Severity < audit.Warning {
					infos[f.Check]++
					continue
				}
				line := f.Severity.String() + " " + f.Check
				if n := strings.Count(x.found, f.Check); n < 3 {
					line += " " + f.Subject.Key()
				}
				if f.Check == "link.uplinks" && datum(f, "uplinks") != nil {
					line += fmt.Sprintf(" %v of %v", datum(f, "uplinks"), datum(f, "usual"))
				}
				got = append(got, line+"\n")
			}
			slices.Sort(got)
			if text := strings.Join(got, ""); text != x.found {
				t.Errorf("got\n%swant\n%s", text, x.found)
			}
			var list []string
			for check, n := range infos {
				list = append(list, fmt.Sprintf("%d %s", n, check))
			}
			slices.SortFunc(list, func(a, b string) int { return strings.Compare(a[2:], b[2:]) })
			if text := strings.Join(list, ", "); text != x.infos {
				t.Errorf("infos: got %s, want %s", text, x.infos)
			}
			if r.Complete() || !r.Answered() {
				t.Errorf("complete %v, answered %v", r.Complete(), r.Answered())
			}
			for _, check := range []string{"link.init", "link.width", "lid.zero", "mtu.neighbor", "ctr.ber", "sm.none"} {
				if !slices.ContainsFunc(r.Unjudged, func(u audit.Unjudged) bool { return u.Check == check && u.Lacked != "" }) {
					t.Errorf("%s is not among the checks that were not judged", check)
				}
			}
		})
	}
}

func datum(f *audit.Finding, name string) any {
	for _, d := range f.Data {
		if d.Name == name {
			text, _ := json.Marshal(fmt.Sprint(d.Value))
			return strings.Trim(string(text), `"`)
		}
	}
	return nil
}

// TestFileWithout: what a file lacks is not judged, where it has other answers: tables of P_Keys
// whose size it lacks too, and subnet managers.
func TestFileWithout(t *testing.T) {
	const text = `START_NODES
NodeDesc,NumPorts,NodeType,ClassVersion,BaseVersion,SystemImageGUID,NodeGUID,PortGUID
"leaf-1",1,2,1,1,0xa0,0xa0,0xa0
"host-a mlx5_0",1,1,1,1,0xb0,0xb0,0xb1
END_NODES
START_PORTS
NodeGuid,PortGuid,PortNum,MKey,GIDPrfx,MSMLID,LID,CapMsk,M_KeyLeasePeriod,DiagCode,LinkWidthActv,LinkWidthSup,LinkWidthEn,LocalPortNum,LinkSpeedEn,LinkSpeedActv,LMC,MKeyProtBits,LinkDownDefState,PortPhyState,PortState,LinkSpeedSup,VLArbHighCap,VLHighLimit,InitType,VLCap,MSMSL,NMTU,FilterRawOutb,FilterRawInb,PartEnfOutb,PartEnfInb,OpVLs,HoQLife,VLStallCnt,MTUCap,InitTypeReply,VLArbLowCap,PKeyViolations,MKeyViolations,SubnTmo,MulticastPKeyTrapSuppressionEnabled,ClientReregister,GUIDCap,QKeyViolations,MaxCreditHint,OverrunErrs,LocalPhyError,RespTimeValue,LinkRoundTripLatency,CapMsk2
0xa0,0xa0,0,0x77,0xfe80000000000000,1,1,0,0,0,2,3,3,1,0xf07,0x800,0,0,2,5,4,0xf07,8,4,0,4,0,5,0,0,0,0,4,7,7,5,0,8,0,0,18,0,0,32,0,0,8,8,16,N/A,10
0xa0,0xa0,1,0,0,0,0,0,0,0,1,3,3,1,0xf07,0x800,0,0,2,5,4,0xf07,8,4,0,4,0,5,0,0,0,0,4,7,7,5,0,8,0,0,0,0,0,0,0,0,8,8,0,N/A,0
0xb0,0xb1,1,0,0xfe80000000000000,1,2,0,0,0,1,3,3,1,0xf07,0x800,0,0,2,5,4,0xf07,8,4,0,4,0,5,0,0,0,0,4,7,7,5,0,8,0,0,18,0,0,32,0,0,8,8,16,N/A,10
END_PORTS
START_LINKS
NodeGuid1,PortNum1,NodeGuid2,PortNum2
0xa0,1,0xb0,1
END_LINKS
START_PM_INFO
NodeGUID,PortGUID,PortNumber,LinkDownedCounter,LinkErrorRecoveryCounter,SymbolErrorCounter,PortRcvRemotePhysicalErrors,PortRcvErrors,PortXmitDiscards,PortRcvSwitchRelayErrors,ExcessiveBufferOverrunErrors,LocalLinkIntegrityErrors,PortRcvConstraintErrors,PortXmitConstraintErrors,VL15Dropped,PortXmitData,PortRcvData,PortXmitPkts,PortRcvPkts,PortXmitWait
0xa0,0xa0,1,2,0,7,0,0,0,0,0,0,0,0,0,4294967295,0xff,5,6,0
0xb0,0xb1,1,N/A,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0
END_PM_INFO
`
	f, err := format.Load(strings.NewReader(text), "x.db_csv", nil)
	if err != nil {
		t.Fatal(err)
	}
	file := ofFile(t, f)
	defer file.Close()
	set, err := audits.LoadAudits(t.Context(), file.Interpreter, []string{"partitions", "sm"}, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	r, err := set.Run(t.Context(), file.Interpreter, audits.RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Findings {
		t.Errorf("%s: %s", f.Check, f.Message)
	}
	for _, check := range []string{"pkey.default", "pkey.full", "sm.none"} {
		if !slices.ContainsFunc(r.Unjudged, func(u audit.Unjudged) bool { return u.Check == check }) {
			t.Errorf("%s is not among the checks that were not judged: %v", check, r.Unjudged)
		}
	}
}

// TestRealFabricsNodes: every adapter of real fabrics is of a host or named as unnamed; without a
// live fabric, the standard audits leave no host ok; and no line for Slurm has a name to quote.
func TestRealFabricsNodes(t *testing.T) {
	dir := fabricsDir(t)
	line := regexp.MustCompile(`^case "\$\(sinfo -a -h -n ([A-Za-z0-9._][A-Za-z0-9._-]*) -o %E\)" in none\|'fabsh: '\*\) scontrol update NodeName=[A-Za-z0-9._-]+ State=DRAIN Reason='fabsh: [ -&(-~]*' ;; esac\n$`)
	for _, name := range []string{"small-1", "rack-lab", "vendor-lab.8-empty-lid"} {
		f := realFabric(t, dir, name)
		file := ofFile(t, f)
		defer file.Close()
		set, err := audits.LoadAudits(t.Context(), file.Interpreter, []string{"links", "topology"}, nil, false)
		if err != nil {
			t.Fatal(err)
		}
		report, err := set.Run(t.Context(), file.Interpreter, audits.RunOptions{})
		if err != nil {
			t.Fatal(err)
		}
		nodes := hosthealth.Judge([]*audit.Report{report}, hosthealth.JudgeOptions{})
		if len(nodes.Hosts)+len(nodes.Unnamed) == 0 || nodes.Has(hosthealth.OK) {
			t.Errorf("%s: %d hosts, one of them ok, though the dump has no states; unnamed %q", name, len(nodes.Hosts), nodes.Unnamed)
		}
		for i := range nodes.Hosts {
			nodes.Hosts[i].State = hosthealth.Unhealthy
		}
		slurm, err := hosthealth.SchedulerFormatByName("slurm")
		if err != nil {
			t.Fatal(err)
		}
		text, refused := slurm.Write(nodes, hosthealth.Output{})
		if n := strings.Count(text, "\n"); n+len(refused) != len(nodes.Hosts) {
			t.Errorf("%s: %d lines for %d hosts; refused %v", name, n, len(nodes.Hosts), refused)
		}
		for l := range strings.Lines(text) {
			if !line.MatchString(l) {
				t.Errorf("%s: %q", name, l)
			}
		}
	}
}

// TestPartitionFiles: partitions.conf as OpenSM reads it; what it would only warn
// of names the line.
func TestPartitionFiles(t *testing.T) {
	f := plain(t, nil)
	for _, test := range []struct{ name, text, want string }{
		{"empty", "", "[]"},
		{"comments", "# a\n\n  # b = 1 : ALL;\n", "[]"},
		{"all of it", "Default=0x7fff,ipoib,mtu=5 : ALL=full, SELF=full;\n", `[("Default", 32767, [("ALL", "full"), ("SELF", "full")])]`},
		{"several lines, several in one", "a=1 :\n\tALL_CAS,\n ALL_ROUTERS = full ; b=0x8002:0x2c9=both;", `[("a", 1, [("ALL_CAS", "limited"), ("ALL_ROUTERS", "full")]), ("b", 2, [("0x00000000000002c9", "both")])]`},
		{"default membership", "a=1, defmember=full : 7, 010, 0x10=limited;", `[("a", 1, [("0x0000000000000007", "full"), ("0x0000000000000008", "full"), ("0x0000000000000010", "limited")])]`},
		{"numbers that OpenSM chooses", "a : ALL; b=1 : ALL; c : ALL; a : SELF; Default : ALL=full;", `[("a", 1, [("ALL", "limited")]), ("b", 1, [("ALL", "limited")]), ("c", 2, [("ALL", "limited")]), ("a", 1, [("SELF", "limited")]), ("Default", 32767, [("ALL", "full")])]`},
		{"no name", "0x8003 : NONE;", `[("", 3, [])]`},
		{"a group", "a=1 : SELF, mgid=ff12:401b::1, sl=3;", `[("a", 1, [("SELF", "limited")])]`},
		{"CR", "Default=0x7fff : ALL=full;\r\n", "partitions.conf:1: carriage return: OpenSM refuses the file, and runs with its default partition"},
		{"CR in a comment", "# a\r\na=1 : ALL;\n", `[("a", 1, [("ALL", "limited")])]`},
		{"no semicolon", "# x\n\na=1 : ALL\n", "read_partitions: partitions.conf:3: missing semicolon at the end of the partition"},
		{"no colon", "a=1;", "partitions.conf:1: invalid partition \"a=1\"; want NAME=P_KEY : MEMBERS"},
		{"no P_Key", "\na=0x8000 : ALL;", "partitions.conf:2: invalid P_Key \"0x8000\"; want 0x0001 to 0x7fff"},
		{"a P_Key of too many digits", "a=99999999999999999999999999 : ALL;", "partitions.conf:1: invalid P_Key \"99999999999999999999999999\"; want 0x0001 to 0x7fff"},
		{"no GUID", "a=1 : mlx5_0;", "partitions.conf:1: invalid member \"mlx5_0\"; want a port GUID, ALL, ALL_CAS, ALL_SWITCHES, ALL_ROUTERS or SELF"},
		{"a GUID of 65 bits", "a=1 : 18446744073709551616;", "partitions.conf:1: invalid member \"18446744073709551616\"; want a port GUID"},
		{"GUID 0", "a=1 : 0x0;", "partitions.conf:1: invalid member \"0x0\"; want a port GUID"},
		{"no membership", "a=1 : ALL=most;", "partitions.conf:1: invalid membership \"most\"; want full, limited or both"},
		{"no default membership", "a=1, defmember=none : ALL;", "partitions.conf:1: invalid defmember \"none\"; want full, limited or both"},
		{"bytes", "\xff\x00\x1b[2J : \x00;", "partitions.conf:1: invalid member \"\\x00\"; want a port GUID"},
		{"no P_Key left", strings.Repeat("\na=1:NONE;", 10) + "x0 : NONE;" + names(0x7fff), "partition \"n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			write(t, f.fs, "/work/partitions.conf", test.text)
			out, explained, _ := f.run(`load("@std//lib/partitions.star", "read_partitions")
print([(p["name"], p["pkey"], p["members"]) for p in read_partitions("partitions.conf")])`)
			if got := strings.TrimSpace(out); explained == "" && got != test.want || explained != "" && !strings.Contains(explained, strings.TrimPrefix(test.want, "read_partitions: ")) {
				t.Errorf("got  %s%s\nwant %s", got, explained, test.want)
			}
		})
	}
}

// TestIPoIBGroups: the IPoIB groups of partitions.conf, whose mtu= and rate= are codes.
func TestIPoIBGroups(t *testing.T) {
	const group = "the IPoIB broadcast group of partition Default (P_Key 0x7fff) has MTU 2048 and 10 Gb/s, in the file "
	for _, test := range []struct{ file, want string }{
		{"Default=0x7fff : ALL=full;", ""},
		{"Default=0x7fff, ipoib : ALL=full;", ""},
		{"Default=0x7fff, ipoib, mtu=4, rate=0x3 : ALL=full;", ""},
		{"Default=0x7fff, ipoib, mtu=x, rate= : ALL=full;", ""}, // OpenSM ignores both
		{"Default=0x7fff, ipoib, mtu=5 : ALL=full;", group + "4096 and 10"},
		{"Default=0x7fff, ipoib, rate=16 : ALL=full;", group + "2048 and 100"},
		{"Default=0x7fff, ipoib, mtu=4096, rate=200 : ALL=full;", "partition Default (P_Key 0x7fff): in the file mtu=4096 is not a code; 4096 bytes is mtu=5, and rate=200 is not a code; 200 Gb/s is rate=17: OpenSM makes no IPoIB broadcast group when it reads it"},
		{"Default=0x7fff, ipoib : ALL=full; a=5, ipoib, rate=99 : ALL;", "partition a (P_Key 0x0005) has no IPoIB broadcast group: no host can use IPoIB there; in the file rate=99 is not a code"},
		{"Default=0x7fff : ALL=full; a=0x8005, ipoib : ALL;", "partition a (P_Key 0x0005) has no IPoIB broadcast group: no host can use IPoIB there"},
	} {
		onSim(t, "fattree:k=4", nil, func(t *testing.T, f *fixture) {
			write(t, f.fs, "/work/partitions.conf", test.file)
			var got []string
			for _, x := range audited(t, f, audits.RunOptions{}, "multicast", "--partitions", "partitions.conf").Findings {
				got = append(got, x.Message)
			}
			if diff := cmp.Diff(test.want, strings.Join(got, "\n")); diff != "" {
				t.Errorf("%s: -want +got:\n%s", test.file, diff)
			}
		})
	}
}

// names are so many partitions without a P_Key.
func names(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("n")
		b.WriteString(strings.Repeat("x", i%7))
		b.WriteByte(byte('a' + i%26))
		b.WriteByte(byte('a' + i/26%26))
		b.WriteByte(byte('a' + i/676%26))
		b.WriteByte(byte('a' + i/17576))
		b.WriteString(":NONE;\n")
	}
	return b.String()
}

package builtins

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/afero"

	"fabsh/builtins/audits"
	"fabsh/builtins/help"
	"fabsh/builtins/script"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/localhost"
	"fabsh/fabric/localhost/hosttest"
	"fabsh/mad/engine"
	"fabsh/mad/umad"
)

// hostRun is a run of the audit host.
type hostRun struct {
	files hosttest.Files
	leaf  func(device string) int // the number of its leaf; nil: of its own
	open  func(umad.HostPort) (engine.Transport, error)
	words []string
	file  string // the text of the file "expect"
}

// report runs the audit on a new read of the host.
func (h *hostRun) report(t *testing.T, state string) (*audit.Report, int, error) {
	t.Helper()
	leaf := h.leaf
	if leaf == nil {
		leaf = hosttest.Number
	}
	open := h.open
	if open == nil {
		open = hosttest.Leaves(leaf)
	}
	host, err := localhost.Read(t.Context(), localhost.ReadOptions{FS: h.files, Open: open, Name: "node-0012"})
	if err != nil {
		t.Fatal(err)
	}
	fs := afero.NewMemMapFs()
	if h.file != "" {
		afero.WriteFile(fs, "/work/expect", []byte(h.file), 0o644)
	}
	var out bytes.Buffer
	s, err := NewSession(SessionOptions{Facts: topology.Facts{Loaded: host.Fabric, Host: host, State: state}, Stdout: &out, Stderr: &out, FS: fs, Dir: "/work"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	set, err := audits.LoadAudits(t.Context(), s.Interpreter, append([]string{"host"}, h.words...), nil, false)
	if err != nil {
		return nil, 0, err
	}
	report, err := set.Run(t.Context(), s.Interpreter, audits.RunOptions{Job: set.Job})
	if err != nil {
		return nil, 0, err
	}
	return report, audits.RunStatus(report, audit.Warning), nil
}

// lines are the findings, and what was not judged.
func lines(r *audit.Report, status int) string {
	var list []string
	for _, f := range r.Findings {
		list = append(list, fmt.Sprintf("%s %s %s: %s\n", f.Severity, f.ID(), f.Subject.Name(), f.Message))
	}
	for _, u := range r.UnjudgedChecks() {
		list = append(list, fmt.Sprintf("not judged: %s: %s\n", strings.Join(u.Checks, " "), u.Lacked))
	}
	for _, f := range r.Failures {
		list = append(list, fmt.Sprintf("failed: %s\n", f.Why()))
	}
	slices.Sort(list)
	return fmt.Sprintf("%sstatus %d\n", strings.Join(list, ""), status)
}

// on runs the audit on a healthy host, puts a fault in, and runs it again an hour later.
func (h *hostRun) on(t *testing.T, fault func(h *hostRun)) (got string) {
	synctest.Test(t, func(t *testing.T) {
		state := t.TempDir()
		h.files = hosttest.Rails()
		if report, status, err := h.report(t, state); err != nil || status != 0 || len(report.Findings) > 0 {
			t.Fatalf("healthy: status %d, %v, %v", status, report, err)
		}
		time.Sleep(time.Hour)
		fault(h)
		report, status, err := h.report(t, state)
		if err != nil {
			got = err.Error() + "\n"
			return
		}
		got = lines(report, status)
	})
	return got
}

// Each fault of a host is found, and nothing else.
func TestHostFaults(t *testing.T) {
	port := func(device string, texts ...string) func(h *hostRun) {
		return func(h *hostRun) {
			m := map[string]string{}
			for i := 0; i < len(texts); i += 2 {
				m[texts[i]] = texts[i+1]
			}
			h.files.Port(device, m)
		}
	}
	adapter := func(device, name, text string) func(h *hostRun) {
		return func(h *hostRun) { h.files.Adapter(device, map[string]string{name: text}) }
	}
	expect := func(text string, fault func(h *hostRun)) func(h *hostRun) {
		return func(h *hostRun) {
			h.words = []string{"--expect", text}
			if !localhost.IsExpectation(text) {
				h.words, h.file = []string{"--expect", "expect"}, text
			}
			if fault != nil {
				fault(h)
			}
		}
	}
	down := port("mlx5_4", "state", "1: DOWN", "phys_state", "2: Polling", "rate", "10 Gb/sec (4X)")
	half := port("mlx5_4", "rate", "200 Gb/sec (2X NDR)")
	found := map[string]bool{} // checks
	const manifest = `{"ib": {"link_rate": "400 Gb/sec (4X NDR)", "firmware_version": ["28.39.1002"], "interfaces": {"ib0": {"mlx": "mlx5_0"}, "ib1": {"mlx": "mlx5_3"}}}}`
	for _, c := range []struct {
		name  string
		fault func(h *hostRun)
		want  string
	}{
		{"healthy", func(*hostRun) {}, "status 0\n"},
		{"healthy, as expected", expect("8xNDR", nil), "status 0\n"},
		{"healthy, by model", expect("MT4129 8xNDR 28.39.1002 28.40.0", nil), "status 0\n"},
		{"healthy, by manifest", expect(manifest, nil), "status 0\n"},
		{"down", down, "error host.down:0xa088c20300100020/1 mlx5_4/1: the link is down (polling)\nstatus 1\n"},
		{"down, and not expected", expect("7xNDR", down), "info host.down:0xa088c20300100020/1 mlx5_4/1: the link is down (polling)\nstatus 0\n"},
		{"disabled", port("mlx5_4", "state", "1: DOWN", "phys_state", "3: Disabled"), "error host.down:0xa088c20300100020/1 mlx5_4/1: the link is down (disabled)\nstatus 1\n"},
		{"init", port("mlx5_4", "state", "2: INIT", "lid", "0xffff"), "error host.init:0xa088c20300100020/1 mlx5_4/1: the link is up, but the state of the port is initialize: no subnet manager has configured it\nstatus 1\n"},
		{"narrow", half, "error host.width:0xa088c20300100020/1 mlx5_4/1: width 2x; most ports of the model in this host: 4x\nstatus 1\n"},
		{"narrow, expected", expect("8xNDR", half), "error host.width:0xa088c20300100020/1 mlx5_4/1: width 2x; expected: 4x\nstatus 1\n"},
		{"slow", port("mlx5_9", "rate", "200 Gb/sec (4X HDR)"), "error host.speed:0xa088c20300100050/1 mlx5_9/1: speed HDR; most ports of the model in this host: NDR\nstatus 1\n"},
		{"rate unknown", port("mlx5_9", "rate", "fast"), "not judged: host.speed: mlx5_9/1: the kernel shows no width and speed that are known\nstatus 0\n"},
		{"missing", func(h *hostRun) { h.files.Remove("mlx5_5") }, "error host.gone:0xa088c20300100030/1 0xa088c20300100030/1: a run 60 min ago has read this port, and the host no longer has it\nstatus 1\n"},
		{"missing, expected", expect("8xNDR", func(h *hostRun) { h.files.Remove("mlx5_5") }), "error host.count:fabric fabric: node-0012: 7 InfiniBand ports; expected: 8 at 4x NDR\n" +
			"error host.gone:0xa088c20300100030/1 0xa088c20300100030/1: a run 60 min ago has read this port, and the host no longer has it\nstatus 1\n"},
		{"in Ethernet mode", expect(manifest, port("mlx5_3", "link_layer", "Ethernet")), "error host.count:fabric fabric: node-0012: the device mlx5_3 is missing (mlx5_3/1 is roce)\nstatus 1\n"},
		{"LID 0", port("mlx5_4", "lid", "0x0"), "critical host.lid:0xa088c20300100020/1 mlx5_4/1: the port is active, and its LID is 0\nstatus 1\n"},
		{"LID twice, another leaf", port("mlx5_4", "lid", "0x100"), "not judged: host.dup: mlx5_0/1 and mlx5_4/1 have LID 256 and the default GID prefix: whether they are in one subnet is unknown\nstatus 0\n"},
		{"LID twice, one subnet", func(h *hostRun) {
			port("mlx5_0", "gids/0", "fec0:0000:0000:0001:a088:c203:0010:0001")(h)
			port("mlx5_4", "gids/0", "fec0:0000:0000:0001:a088:c203:0010:0021", "lid", "0x100")(h)
		}, "critical host.dup:0xa088c20300100020/1 mlx5_4/1: LID 256 is also that of mlx5_0/1 in the same subnet\nstatus 1\n"},
		{"GUID twice", port("mlx5_4", "gids/0", "fe80:0000:0000:0000:a088:c203:0010:0001"), "critical host.dup:0xa088c20300100020/1 mlx5_4/1: port GUID 0xa088c20300100001 is also that of mlx5_0/1\nnot judged: host.errors host.flap host.downed: mlx5_4/1: counters cannot be compared with those of an earlier run: another adapter has the port\nstatus 1\n"},
		{"node GUID twice", adapter("mlx5_4", "node_guid", "a088:c203:0010:0000"), "critical host.dup:0xa088c20300100000 mlx5_4: node GUID 0xa088c20300100000 is that of several adapters: mlx5_0, mlx5_4\nerror host.gone:0xa088c20300100020/1 0xa088c20300100020/1: a run 60 min ago has read this port, and the host no longer has it\nnot judged: host.errors host.flap host.downed: mlx5_4/1: counters cannot be compared with those of an earlier run: another adapter has the port\nstatus 1\n"},
		{"firmware", adapter("mlx5_4", "fw_ver", "28.38.1000"), "warning host.fw:0xa088c20300100020 mlx5_4: firmware 28.38.1000; 7 adapters of the board in this host: 28.39.1002\nstatus 1\n"},
		{"firmware, expected", expect("* 8xNDR 28.39.1002", adapter("mlx5_4", "fw_ver", "28.38.1000")), "warning host.fw:0xa088c20300100020 mlx5_4: firmware 28.38.1000; expected: 28.39.1002\nstatus 1\n"},
		{"firmware unknown", adapter("mlx5_4", "fw_ver", ""), "not judged: host.fw: the kernel shows no firmware of mlx5_4/1\nstatus 0\n"},
		{"P_Keys empty", port("mlx5_4", "pkeys/0", "0x0000"), "error host.pkey:0xa088c20300100020/1 mlx5_4/1: the P_Key table is empty: the port can send no packet\nstatus 1\n"},
		{"P_Keys", port("mlx5_4", "pkeys/1", "0x8001"), "warning host.pkey:0xa088c20300100020/1 mlx5_4/1: P_Keys 0x8001 0xffff; most ports of the host: 0xffff\nstatus 1\n"},
		{"no default partition", port("mlx5_4", "pkeys/0", "0x8001"), "warning host.pkey:0xa088c20300100020/1 mlx5_4/1: the default partition is missing: requests to the subnet administrator fail; P_Keys: 0x8001\nstatus 1\n"},
		{"flap", port("mlx5_4", "counters/link_downed", "2"), "error host.flap:0xa088c20300100020/1 mlx5_4/1: the link went down 2 times in 60 min, as far as reads are kept\nstatus 1\n"},
		{"down once", port("mlx5_4", "counters/link_downed", "1"), "error host.downed:0xa088c20300100020/1 mlx5_4/1: the link went down 1 time in 60 min\nstatus 1\n"},
		{"PCIe narrow", adapter("mlx5_4", "device/current_link_width", "8"), "error host.pcie:0xa088c20300100020 mlx5_4: PCIe link x8 at 32 GT/s; most adapters of the model in this host: x16 at 32 GT/s: check its slot\nstatus 1\n"},
		{"PCIe slow", adapter("mlx5_4", "device/current_link_speed", "16.0 GT/s PCIe"), "error host.pcie:0xa088c20300100020 mlx5_4: PCIe link x16 at 16 GT/s; most adapters of the model in this host: x16 at 32 GT/s: check its slot\nstatus 1\n"},
		{"PCIe below what it supports", adapter("mlx5_4", "device/max_link_speed", "64.0 GT/s PCIe"), "info host.pcie:0xa088c20300100020 mlx5_4: PCIe link x16 at 32 GT/s; the adapter supports x16 at 64 GT/s: check its slot\nstatus 0\n"},
		{"PCIe below what it supports, the only one", func(h *hostRun) {
			adapter("mlx5_4", "hca_type", "MT4131")(h)
			adapter("mlx5_4", "device/max_link_width", "32")(h)
		}, "warning host.pcie:0xa088c20300100020 mlx5_4: PCIe link x16 at 32 GT/s; the adapter supports x32 at 32 GT/s: check its slot\nstatus 1\n"},
		{"PCIe unknown", adapter("mlx5_4", "device/current_link_width", "255"), "not judged: host.pcie: the kernel shows no PCIe link of mlx5_4\nstatus 0\n"},
		{"virtual functions, healthy", func(h *hostRun) {
			h.files.Function("mlx5_4", 0, "mlx5_20", "4: ACTIVE", "a088:c203:0010:0aaa")
			h.files.Function("mlx5_4", 1, "", "Follow", "a0:88:c2:03:00:10:0a:ab")
		}, "status 0\n"},
		{"virtual functions, unset and down", func(h *hostRun) {
			h.files.Function("mlx5_4", 0, "mlx5_20", "1: DOWN", "a088:c203:0010:0aaa")
			h.files.Function("mlx5_4", 1, "", "Follow", "00:00:00:00:00:00:00:00")
			h.files.Function("mlx5_4", 2, "", "Down", "a0:88:c2:03:00:10:0a:ab")
			h.files.Function("mlx5_4", 3, "", "", "")
		}, "error host.vf:0xa088c20300100020 mlx5_4: the port is active, and those of virtual functions are not: 0 (mlx5_20: down); GUID 0 of virtual functions: 1 (ip link set dev DEVICE vf N node_guid GUID, and port_guid); the policy keeps the ports of virtual functions down: 2 (ip link set dev DEVICE vf N state auto)\n" +
			"not judged: host.vf: 1 virtual function of mlx5_4: no driver of this host serves them, and the kernel does not show their GUIDs\nstatus 1\n"},
		{"a virtual function with the GUID of another", func(h *hostRun) {
			h.files.Function("mlx5_4", 0, "", "Follow", "a0:88:c2:03:00:10:0a:aa")
			h.files.Function("mlx5_5", 7, "", "Follow", "a0:88:c2:03:00:10:0a:aa")
		}, "critical host.vf:0xa088c20300100030 mlx5_5: virtual function 7 has the node GUID of virtual function 0 of mlx5_4: 0xa088c20300100aaa\nstatus 1\n"},
		{"symbol errors", port("mlx5_4", "counters/symbol_error", "9000"), "error host.errors:0xa088c20300100020/1 mlx5_4/1: 9000 symbol errors in 60 min; a bit error rate of 1e-14 allows 14\nstatus 1\n"},
		{"a symbol error", port("mlx5_4", "counters/symbol_error", "1"), "status 0\n"},
		{"buffer overruns", port("mlx5_4", "counters/excessive_buffer_overrun_errors", "1", "counters/port_rcv_errors", "9"), "error host.errors:0xa088c20300100020/1 mlx5_4/1: 1 burst of buffer overruns in 60 min\nstatus 1\n"},
		{"packets with errors", port("mlx5_4", "counters/port_rcv_errors", "4000"), "warning host.errors:0xa088c20300100020/1 mlx5_4/1: 4000 packets with errors in 60 min\nstatus 1\n"},
		{"no counters", port("mlx5_4", "counters", ""), "not judged: host.errors host.flap host.downed: mlx5_4/1: /sys/class/infiniband/mlx5_4/ports/1/counters: the kernel shows no counters of the port\nstatus 0\n"},
		{"one leaf", func(h *hostRun) {
			h.leaf = func(device string) int { return max(hosttest.Number(device), 3) }
		}, "warning host.rails:0xa088c20300100010/1 mlx5_3/1: mlx5_0/1 and mlx5_3/1 are cabled to the same leaf leaf-3 (port 1, port 4); most ports of the host have a leaf of their own\nstatus 1\n"},
		{"one leaf for all", func(h *hostRun) { h.leaf = func(string) int { return 3 } }, "status 0\n"},
		{"one leaf for all, and not meant so", func(h *hostRun) {
			h.leaf, h.words = func(string) int { return 3 }, []string{"--distinct-leaves"}
		}, "error host.rails:0xa088c20300100010/1 mlx5_3/1: mlx5_0/1 and mlx5_3/1 and mlx5_4/1 and mlx5_5/1 and mlx5_6/1 and mlx5_9/1 and mlx5_10/1 and mlx5_11/1 are cabled to the same leaf leaf-3 (port 1, port 4, port 5, port 6, port 7, port 10, port 11, port 12)\nstatus 1\n"},
		{"silent neighbour", func(h *hostRun) {
			h.leaf = func(device string) int { return max(hosttest.Number(device), 1) - 2 }
		}, "not judged: host.rails: the neighbour of mlx5_0/1 is unknown: SubnGet(NodeInfo) to route 0,1: timed out after 3 attempts in 300ms\nstatus 0\n"},
		{"no permission", func(h *hostRun) {
			h.open = func(p umad.HostPort) (engine.Transport, error) {
				return nil, fmt.Errorf("%s: permission denied; run as root", p.Umad)
			}
		}, "not judged: host.rails: the neighbour of mlx5_0/1, mlx5_3/1, mlx5_4/1 and 5 more is unknown: umad0: permission denied; run as root\nstatus 0\n"},
		{"invalid file", port("mlx5_4", "sm_lid", "?"), "not judged: host.down: mlx5_4/1: /sys/class/infiniband/mlx5_4/ports/1/sm_lid: invalid number \"?\"\nnot judged: host.gone: the files of mlx5_4/1 are invalid\nstatus 3\n"},
		{"RoCE alone", func(h *hostRun) {
			for _, device := range []string{"mlx5_0", "mlx5_3", "mlx5_4", "mlx5_5", "mlx5_6", "mlx5_9", "mlx5_10", "mlx5_11"} {
				port(device, "link_layer", "Ethernet")(h)
			}
		}, "not judged: host.count host.gone host.down host.init host.width host.speed host.pcie host.vf host.lid host.dup host.fw host.pkey host.flap host.downed host.errors host.rails: the host has no InfiniBand port\nstatus 0\n"},
		{"invalid expectation", expect("8xNDR,x", nil), "failed: this_host: for parameter expect: invalid ports \"x\"; want COUNTxSPEED such as 8xNDR, or COUNTxWIDTHxSPEED such as 8x2xHDR\nstatus 2\n"},
		{"invalid file of expectations", expect("MT4129\n", nil), "failed: this_host: expect: line 1: want MODEL PORTS [FIRMWARE]..., such as MT4129 8xNDR 28.39.1002\nstatus 2\n"},
		{"two kinds", expect("7xNDR,1xHDR", port("mlx5_4", "rate", "200 Gb/sec (4X HDR)")), "status 0\n"},
		{"of a model that is not expected", expect("MT4123 0xHDR\nMT4119 0xEDR\n", half), "error host.width:0xa088c20300100020/1 mlx5_4/1: width 2x; most ports of the model in this host: 4x\nstatus 1\n"},
		{"of another device than the manifest's", expect(manifest, half), "error host.width:0xa088c20300100020/1 mlx5_4/1: width 2x; most ports of the model in this host: 4x\nstatus 1\n"},
		{"LMC", port("mlx5_4", "lid_mask_count", "255"), "not judged: host.down: mlx5_4/1: /sys/class/infiniband/mlx5_4/ports/1/lid_mask_count: invalid number 255; want at most 7\nnot judged: host.gone: the files of mlx5_4/1 are invalid\nstatus 3\n"},
		{"LID of 17 bits", port("mlx5_4", "lid", "0x10100"), "not judged: host.down: mlx5_4/1: /sys/class/infiniband/mlx5_4/ports/1/lid: invalid number 65792; want at most 65535\nnot judged: host.gone: the files of mlx5_4/1 are invalid\nstatus 3\n"},
		{"invalid file, expected", expect("8xNDR", port("mlx5_4", "sm_lid", "?")), "not judged: host.count host.gone: the files of mlx5_4/1 are invalid\nnot judged: host.down: mlx5_4/1: /sys/class/infiniband/mlx5_4/ports/1/sm_lid: invalid number \"?\"\nstatus 3\n"},
		{"invalid file, and one is missing", expect("9xNDR", port("mlx5_4", "sm_lid", "?")), "error host.count:fabric fabric: node-0012: 7 InfiniBand ports; expected: 9 at 4x NDR\nnot judged: host.down: mlx5_4/1: /sys/class/infiniband/mlx5_4/ports/1/sm_lid: invalid number \"?\"\nnot judged: host.gone: the files of mlx5_4/1 are invalid\nstatus 3\n"},
		{"invalid file of the manifest's", expect(manifest, port("mlx5_3", "sm_lid", "?")), "not judged: host.count: the files of mlx5_3 are invalid\nnot judged: host.down: mlx5_3/1: /sys/class/infiniband/mlx5_3/ports/1/sm_lid: invalid number \"?\"\nnot judged: host.gone: the files of mlx5_3/1 are invalid\nstatus 3\n"},
		{"two kinds, one slow", expect("7xNDR,1xHDR", func(h *hostRun) {
			port("mlx5_4", "rate", "200 Gb/sec (4X HDR)")(h)
			port("mlx5_5", "rate", "100 Gb/sec (4X EDR)")(h)
		}), "error host.speed:0xa088c20300100030/1 mlx5_5/1: speed EDR; expected: NDR\nstatus 1\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, new(hostRun).on(t, c.fault)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
		for _, m := range regexp.MustCompile(`(?m)^\w+ (host\.\w+):`).FindAllStringSubmatch(c.want, -1) {
			found[m[1]] = true
		}
	}
	for _, c := range help.Checks() {
		if c.Audit == "host" && !found[c.Name] {
			t.Errorf("%s: no fault of it", c.Name)
		}
	}
}

// The first run has no counters to compare with; a second run at the same time compares, and
// does not wait for the first.
func TestHostRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := t.TempDir()
		h := &hostRun{files: hosttest.Rails()}
		run := func(want string) {
			t.Helper()
			report, status, err := h.report(t, state)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, lines(report, status)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		}
		run("not judged: host.gone host.flap host.downed host.errors: no earlier run of this job has read them\nstatus 0\n")
		time.Sleep(time.Hour)
		subnet := fabric.Subnet{Given: "host-node-0012"}
		st, err := audit.OpenState(state, subnet, "host")
		if err != nil {
			t.Fatal(err)
		}
		held, err := st.Lock()
		if err != nil {
			t.Fatal(err)
		}
		h.files.Port("mlx5_4", map[string]string{"counters/link_downed": "1"})
		const flap = "error host.downed:0xa088c20300100020/1 mlx5_4/1: the link went down 1 time in %d min\nstatus 1\n"
		run(fmt.Sprintf(flap, 60))
		held.Release()
		time.Sleep(time.Hour)
		run(fmt.Sprintf(flap, 120)) // the locked run kept nothing
		time.Sleep(time.Hour)
		run("status 0\n")
	})
}

// Without a directory for the state, counters are not compared, which is not health.
func TestHostWithoutState(t *testing.T) {
	h := &hostRun{files: hosttest.Rails()}
	report, status, err := h.report(t, "")
	if err != nil {
		t.Fatal(err)
	}
	const want = "not judged: host.gone host.flap host.downed host.errors: this session keeps no reads; give it a directory with --state DIR\nstatus 0\n"
	if diff := cmp.Diff(want, lines(report, status)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// A planarized adapter shows its port on one device, and its planes on another: one port, whose
// planes are judged.
func TestHostPlanes(t *testing.T) {
	planes := func(h *hostRun) {
		h.files.Port("mlx5_4", map[string]string{"cap_mask": "0xa751ec48", "rate": "800 Gb/sec (4X XDR)"}) // IsSMDisabled
		h.files.Set("sys/class/infiniband_mad/umad40/ibdev", "smi1")
		h.files.Set("sys/class/infiniband_mad/umad40/port", "1")
		h.files.Add("smi1", 40)
		h.files.Port("smi1", map[string]string{"gids/0": "fe80:0000:0000:0000:a088:c203:0010:0021", "lid": "0x102", "rate": "200 Gb/sec (1X XDR)", "counters": ""})
		h.words = []string{"--expect", "7xNDR,1xXDR"}
		h.leaf = func(device string) int { return map[string]int{"smi1": 4}[device] + hosttest.Number(device) }
	}
	if got := new(hostRun).on(t, planes); got != "status 0\n" {
		t.Errorf("healthy: %s", got)
	}
	got := new(hostRun).on(t, func(h *hostRun) {
		planes(h)
		h.files.Port("smi1", map[string]string{"state": "1: DOWN", "phys_state": "2: Polling"})
	})
	if !strings.Contains(got, "error host.down:0xa088c20300100280/1 smi1/1: the link is down (polling)\n") {
		t.Errorf("a plane is down: %s", got)
	}
}

// A host without devices has nothing to judge, and that is not health; where ports are expected
// it is a fault.
func TestHostWithoutDevice(t *testing.T) {
	h := &hostRun{files: hosttest.Files{MapFS: fstest.MapFS{}}}
	report, status, err := h.report(t, t.TempDir())
	if err != nil || status != 3 || len(report.Idle) != 1 || report.Complete() {
		t.Errorf("got %v, %s", err, lines(report, status))
	}
	h.words = []string{"--expect", "8xNDR"}
	report, status, err = h.report(t, t.TempDir())
	if err != nil || !strings.Contains(lines(report, status), "error host.count:fabric fabric: node-0012: 0 InfiniBand ports; expected: 8 at 4x NDR\n") || status != 1 {
		t.Errorf("got %v, %s", err, lines(report, status))
	}
}

// TestHostWords: each reason that counters cannot be compared has words in the audit.
func TestHostWords(t *testing.T) {
	src, err := script.EmbeddedSource("@std//audit/host.star")
	if err != nil {
		t.Fatal(err)
	}
	for _, why := range audit.Whys[1:] { // the first is left out
		if !strings.Contains(src, fmt.Sprintf("\n    %q: ", why)) {
			t.Errorf("no words for %q", why)
		}
	}
}

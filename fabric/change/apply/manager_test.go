package apply

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/change"
	"fabsh/mad"
)

// TestLocalManagerRouting: the routing of the OpenSM of a host, by its command line, its
// configuration and its log.
func TestLocalManagerRouting(t *testing.T) {
	const (
		source = "the configuration of OpenSM"
		logged = " tables configured on all switches\n"
	)
	for _, c := range []struct {
		name, cmdline, conf, log string
		want                     change.ManagerRouting
	}{
		{name: "defaults", cmdline: "opensm -F opensm.conf", want: change.ManagerRouting{Engines: []string{"minhop"}, Source: source, Options: &change.ManagerOptions{}}},
		{name: "configuration", cmdline: "opensm --config opensm.conf", conf: "# routing\nrouting_engine ftree,updn\nroot_guid_file roots\nscatter_ports 7\nport_shifting TRUE\nuse_ucast_cache TRUE\n",
			want: change.ManagerRouting{Engines: []string{"ftree", "updn"}, Source: source, Options: &change.ManagerOptions{Roots: []mad.GUID{0x10, 0x20}, Scatter: 7, Shifting: true, Cache: true}}},
		{name: "command line", cmdline: "opensm -F opensm.conf -R dnup -A", conf: "routing_engine updn\nroot_guid_file (null)\n",
			want: change.ManagerRouting{Engines: []string{"dnup"}, Source: source, Options: &change.ManagerOptions{Cache: true}}},
		{name: "roots are missing", cmdline: "opensm -F opensm.conf -R updn -a nothing", want: change.ManagerRouting{Engines: []string{"updn"}, Source: source}},
		{name: "without a configuration", cmdline: "opensm -F nothing", log: "x\nosm_ucast_mgr_process: minhop tables configured on all switches\n0x02 -> osm_ucast_mgr_process: updn tables configured on all switches\n",
			want: change.ManagerRouting{Engines: []string{"updn"}, Source: "LOG"}},
		{name: "a configuration that is cut", cmdline: "opensm -F opensm.conf", conf: "routing_eng", log: "x: updn" + logged + "x: " + logged, want: change.ManagerRouting{Engines: []string{"updn"}, Source: "LOG"}},
		{name: "a long line", cmdline: "opensm -F nothing", log: "x: updn" + logged + strings.Repeat("y", 70000) + "\nx: ftree" + logged, want: change.ManagerRouting{Engines: []string{"ftree"}, Source: "LOG"}},
		{name: "the end of a log begins within a name", cmdline: "opensm -F nothing", log: "x: df" + "sssp" + logged + strings.Repeat("y", maxLog-len("sssp"+logged))},
		{name: "no_fallback", cmdline: "opensm -F opensm.conf -R updn,no_fallback --port-shifting", want: change.ManagerRouting{Engines: []string{"updn"}, Source: source, Options: &change.ManagerOptions{Shifting: true, Unmodelled: []string{"no_fallback"}}}},
		{name: "an invalid number", cmdline: "opensm -F opensm.conf --scatter-ports=x -R updn", want: change.ManagerRouting{Engines: []string{"updn"}, Source: source}},
		{name: "options that change tables", cmdline: "opensm -F opensm.conf -QzX order -u cn --hop_weights_file=w --do_mesh_analysis -R ftree", conf: "io_guid_file (null)\nport_profile_switch_nodes FALSE # not set\nids_guid_file ids\nmax_reverse_hops 0\n",
			want: change.ManagerRouting{Engines: []string{"ftree"}, Source: source, Options: &change.ManagerOptions{ConnectRoots: true, Order: []mad.GUID{0x30}, Unmodelled: []string{"cn_guid_file", "hop_weights_file"}}}},
		{name: "options of the configuration", cmdline: "opensm -f -z -F opensm.conf", conf: "routing_engine dnup, updn\nconnect_roots TRUE\nids_guid_file \"ids\"\n",
			want: change.ManagerRouting{Engines: []string{"dnup", "updn"}, Source: source, Options: &change.ManagerOptions{ConnectRoots: true, Unmodelled: []string{"connect_roots", "ids_guid_file"}}}},
		{name: "the order is missing", cmdline: "opensm -F opensm.conf -R updn --guid_routing_order_file nothing", want: change.ManagerRouting{Engines: []string{"updn"}, Source: source}},
		{name: "an unknown engine", cmdline: "opensm -F opensm.conf -R magic"},
		{name: "another process", cmdline: ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			write := func(name, text string) {
				t.Helper()
				path := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			write("7/comm", "bash\n")
			if c.cmdline != "" {
				write("12/comm", "opensm\n")
				write("12/cmdline", strings.ReplaceAll(c.cmdline, " ", "\x00")+"\x00")
				write("12/cwd/opensm.conf", c.conf)
				write("12/cwd/order", "0x30\n")
				write("12/cwd/roots", "0x10\n\n0x20 # spine\nnot a GUID\n")
			}
			write("log", c.log)
			log := filepath.Join(dir, "log")
			if c.want.Source == "LOG" {
				c.want.Source = log
			}
			if d := cmp.Diff(c.want, managerRouting(dir, log)); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

package builtins

import (
	"strings"
	"testing"

	"fabsh/builtins/audits"
	"fabsh/fabric"
	"fabsh/fabric/audit"
)

// confOf is an opensm.conf that states what runs in the simulated subnet.
const confOf = "# OpenSM\nm_key 0x5ec7e75ec7e7\nsubnet_prefix 0xfe80000000000000\nlmc 0\nsubnet_timeout 18\npart_enforce off\nrouting_engine (null)\nsm_priority 14\n"

// confFault is an opensm.conf with other lines, and files beside it, that differ from what runs.
func confFault(check, lines, words string, files map[string]string) fault {
	return fault{name: check, alone: true, do: func(b *bench, _, _ *fabric.Port) []string {
		b.file("opensm.conf", confOf+lines)
		for name, text := range files {
			b.file(name, text)
		}
		b.words = append([]string{"config", "--conf", "opensm.conf"}, strings.Fields(words)...)
		if check == "conf.priority" {
			return []string{id(check, audit.OfPort(b.fabric.From()))}
		}
		return []string{id(check, audit.OfFabric())}
	}}
}

// confFaults are the faults that the audit config finds with --conf.
var confFaults = []fault{
	confFault("conf.settings", "subnet_timeout 17\n", "", nil),
	confFault("conf.priority", "sm_priority 5\n", "", nil),
	confFault("conf.partitions", "", "--partitions partitions.conf", map[string]string{"partitions.conf": "Default=0x7fff : ALL=full;\nnew=0x8005 : ALL=full;\n"}),
	confFault("conf.guids", "root_guid_file roots\n", "--roots roots", map[string]string{"roots": "0x1234\n"}),
	confFault("conf.qos", "qos FALSE\n", "--qos-policy qos", map[string]string{"qos": "qos-ulps\n default : 0\nend-qos-ulps\n"}),
	confFault("conf.routing", "routing_engine ftree\n", "", nil),
	confFault("conf.log", "log_file osm.log\n", "--log osm.log", map[string]string{"osm.log": "osm_ucast_mgr_process: updn tables configured on all switches\n"}),
}

// TestConf: opensm.conf and its files are compared with what runs; no key is shown.
func TestConf(t *testing.T) {
	const parts = "Default=0x7fff, ipoib : ALL=full;\n"
	for _, x := range []struct {
		lines, words string
		files        map[string]string
		want         string // findings, checks that are not judged, or the error
	}{
		{"", "", nil, ""},
		{"partition_config_file /etc/x\n", "", nil, "not judged: conf.partitions, partition_config_file is /etc/x; name a copy of that file with --partitions\n"},
		{"lmc 1\nhead_of_queue_lifetime 0x10\nmax_op_vls 0\n", "", nil, "head_of_queue_lifetime is 18, not 16: 64 ports, such as leaf-1/5"},
		{"lmc 9\n", "", nil, "warning conf.settings fabric: lmc: OpenSM ignores \"9\", and takes its default; want a number up to 7\n"},
		{"subnet_timeout abc\n", "", nil, "warning conf.settings fabric: subnet_timeout: OpenSM ignores \"abc\", and takes its default; want a number up to 31\n"},
		{"sm_priority 99\n", "", nil, "warning conf.settings fabric: sm_priority: OpenSM ignores \"99\", and takes its default; want a number up to 15\n"},
		{"guid 0x1234\n", "", nil, "warning conf.priority fabric: no subnet manager runs at port 0x0000000000001234, which the option guid names\n"},
		{"routing_engine nue\n", "", nil, "not judged: conf.routing, routing engine nue is not modelled\n"},
		{"routing_engine ar_updn\n", "", nil, "not judged: conf.routing, routing engine ar_updn is not modelled\n"},
		{"scatter_ports 8\n", "", nil, "not judged: conf.routing, scatter_ports is set, whose effect is not modelled\n"},
		{"routing_engine ftree\n", "", nil, "error conf.routing fabric: the forwarding tables are not those of ftree; they are those of minhop"},
		{"root_guid_file r\nrouting_engine updn\n", "", nil, "not judged: conf.routing, root_guid_file is set; name a copy of that file with --roots\n"},
		{"qos TRUE\n", "--qos-policy q --partitions p", map[string]string{"p": parts, "q": "qos-ulps\n default : 0\n any, pkey 0x0abc : 3\nend-qos-ulps\nport-groups\nport-group\nname: A\nport-guid: 0x1234\npartition: store\nend-port-group\nend-port-groups\n"},
			"q: 1 GUID of no port of the fabric, such as 0x0000000000001234; q names partitions that partitions.conf does not have: store, 0x0abc\n"},
		{"", "--log l", map[string]string{"l": "x\n"}, "not judged: conf.log, l does not state the routing engine in use\n"},
		{"", "--log l", map[string]string{"l": "minhop tables configured on all switches\nERR AA02: cannot parse root guids file 'x'\nERR 6104: cannot open key 0x5ec7e75ec7e7\n"},
			"warning conf.log fabric: l has 1 error about files that OpenSM could not use; the last: ERR AA02: cannot parse root guids file 'x'\n"},
	} {
		onSimWith(t, "fattree", smKey, nil, nil, func(t *testing.T, f *fixture) {
			b := &bench{t: t, f: f}
			b.file("opensm.conf", confOf+x.lines)
			for name, text := range x.files {
				b.file(name, text)
			}
			words := append([]string{"config", "--conf", "opensm.conf"}, strings.Fields(x.words)...)
			r := audited(t, f, audits.RunOptions{}, words...)
			got := told(r)
			for _, u := range r.Unjudged {
				got += "not judged: " + u.Check + ", " + u.Lacked + "\n"
			}
			if strings.Contains(got, "5ec7e7") || x.want == "" && got != "" || !strings.Contains(got, x.want) {
				t.Errorf("%q %s:\n%s\nwant %s", x.lines, x.words, got, x.want)
			}
		})
	}
}

// TestConfErrors: a line that OpenSM cannot take, and a file of something else, are errors that name the line, and show no
// key.
func TestConfErrors(t *testing.T) {
	onSimWith(t, "fattree", smKey, nil, nil, func(t *testing.T, f *fixture) {
		b := &bench{t: t, f: f}
		for text, want := range map[string]string{
			confOf + "<html>\n":                       "opensm.conf:9: want a line with an option of OpenSM and its value",
			"\x7fELF\x02\x01\x01\x00\x5ec7e75ec7e7\n": "opensm.conf:1: want a line with an option of OpenSM and its value",
		} {
			b.file("opensm.conf", text)
			set, err := audits.LoadAudits(t.Context(), f.Interpreter, []string{"config", "--conf", "opensm.conf"}, nil, false)
			if err != nil {
				t.Fatal(err)
			}
			r, err := set.Run(t.Context(), f.Interpreter, audits.RunOptions{})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, x := range r.Failures {
				got += x.Why()
			}
			if !strings.HasSuffix(got, want) {
				t.Errorf("%q: %q, want %q", text, got, want)
			}
		}
	})
}

// TestQoSPolicyErrors: a mistake in qos-policy.conf is an error that names its line.
func TestQoSPolicyErrors(t *testing.T) {
	onSimWith(t, "fattree", smKey, nil, nil, func(t *testing.T, f *fixture) {
		b := &bench{t: t, f: f}
		for text, want := range map[string]string{
			"qos-ulps\n default : 16\nend-qos-ulps\n": `q:2: invalid service level "16"; want 0 to 15`,
			"qos-levels\nqos-level\nname: A\n":        "q:2: section qos-level does not end",
			"qos-match-rules\nqos-match-rule\nqos-level-name: A\nend-qos-match-rule\nend-qos-match-rules\n": `q:3: qos-level-name "A" is not defined`,
			"end-qos-ulps\n": "q:1: end-qos-ulps without its beginning",
			"port-groups\nport-group\nport-guid: x\n": `q:3: invalid number "x"`,
			"\n<html>\n": `q:2: unknown section "<html>"; want one of qos-ulps`,
			"port-groups\nport-group\nname\nend-port-group\nend-port-groups\n": `q:3: invalid line "name"; want NAME: VALUE`,
		} {
			b.file("q", text)
			if got := b.code(`load("@std//lib/qospolicy.star", "read_policy"); print(catch(read_policy, "q").message)`); !strings.Contains(got, want) {
				t.Errorf("%q: %s, want %s", text, got, want)
			}
		}
	})
}

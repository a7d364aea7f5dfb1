package tenant

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// summary is a file as text, a tenant on a line.
func summary(f *File, err error) string {
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, t := range f.Tenants {
		fmt.Fprintf(&b, "%s hosts %v guids %v keys %v shared %v %v\n", t.Name, t.Hosts, t.GUIDs, t.Keys, t.Shared, t.Serves)
	}
	for _, n := range f.Notes {
		b.WriteString("note: " + n + "\n")
	}
	return b.String()
}

func TestRead(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"CSV", "# ours\ntenant,hosts,guids,pkeys,member,shared,serves\nred,\"n[1-2],a\",,0x12,full,,\nred,,0x0002c90310000001,0x8013 0x14=limited,,,\nstore,s1,,0x7fff=both,,yes,red\n",
			"red hosts [n1 n2 a] guids [0x0002c90310000001] keys [0x0012=full 0x0013=full 0x0014=limited] shared false []\nstore hosts [s1] guids [] keys [0x7fff=both] shared true [red]\n"},
		{"YAML", "---\ntenants:\n- tenant: red\n  hosts: n[1-2]\n  pkeys: [0x12, 0x13=limited]\n- name: store\n  guids: [0x2c90310000001]\n  shared: true\n",
			"red hosts [n1 n2] guids [] keys [0x0012 0x0013=limited] shared false []\nstore hosts [] guids [0x0002c90310000001] keys [] shared true []\n"},
		{"partitions.conf", "Default=0x7fff, ipoib : ALL=limited, SELF=full;\n# tenants\nred=0x8012, defmember=full : 0x1, 0x2=limited,\n 0x3;\nblue=0x13 : 0x3, ALL_SWITCHES=full; blue=0x13: 0x4=full, mgid=ff12::1, sl=2;\n",
			"red hosts [] guids [0x0000000000000001 0x0000000000000002] keys [0x0012] shared false []\nblue hosts [] guids [0x0000000000000004] keys [0x0013=full] shared false []\nred+blue hosts [] guids [0x0000000000000003] keys [0x0012=full 0x0013=limited] shared true [red blue]\nnote: ALL_SWITCHES of partition blue are not members of a tenant: they are too many ports to be one\n"},
		{"UFM", `{"0x7fff": {"partition": "management", "guids": [{"guid": "0000000000000009", "membership": "full"}]}, "0x12": {"partition": "red", "ip_over_ib": true, "guids": [{"guid": "0002c90310000001", "membership": "full", "index0": false}]}}`,
			"red hosts [] guids [0x0002c90310000001] keys [0x0012=full] shared false []\n"},
		{"UFM without members", `{"0x12": {"partition": "red"}}`, "t: P_Key 0x12: no list of its GUIDs; get it with /ufmRest/resources/pkeys?guids_data=true"},
		{"empty", " \n# x\n", "t: empty; want tenants as YAML (tenants: ...) or CSV (with a column tenant), OpenSM's partitions.conf, or UFM's partitions as JSON"},
		{"rubbish", "hello\n", "t: not a file of tenants; want tenants as YAML (tenants: ...) or CSV (with a column tenant), OpenSM's partitions.conf, or UFM's partitions as JSON"},
		{"separators", ",,,\n", "t: not a file of tenants; want tenants as YAML (tenants: ...) or CSV (with a column tenant), OpenSM's partitions.conf, or UFM's partitions as JSON"},
		{"no P_Key", "red : 0x1;", `t:1: partition "red" has no P_Key; OpenSM numbers such partitions itself; give it one`},
		{"a bad P_Key", "tenant,pkeys\nred,0x8000\n", `t:2: tenant red: invalid P_Key "0x8000"; want 0x0001 to 0x7fff, with =full, =limited or =both, or with bit 15 for full members`},
		{"a contradiction", "tenant,pkeys\nred,0x8012=limited\n", `t:2: tenant red: P_Key "0x8012=limited": bit 15 is that of full members, and the membership is limited`},
		{"two tenants", "tenant,hosts\nred,a\nblue,a\n", "t: host a is of tenants red and blue; a host that both may reach is a tenant of its own, with shared"},
		{"an unknown column", "tenant,rack\nred,a\n", `t:1: unknown column "rack"; supported: tenant, hosts, guids, pkeys, member, shared, serves`},
		{"an unknown word", "tenants:\n- tenant: red\n  rack: 3\n", "t: unmarshal errors:   line 3: field rack not found in type tenant.yamlTenant; want a list tenants, each with tenant, hosts or guids, and if any pkeys, member, shared, serves"},
		{"terminal controls", "tenant,hosts\n\"r\x1b[2J\",a\n", `t:2: invalid tenant "r\x1b[2J": want up to 200 printable characters without spaces`},
		{"serves whom", "tenant,shared,serves\nstore,yes,red\n", `t: tenant store: serves: unknown tenant "red"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, summary(Read(strings.NewReader(tt.text), "t"))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// FuzzRead: rubbish is an error, never a panic.
func FuzzRead(f *testing.F) {
	for _, s := range []string{"tenants:\n- tenant: a\n", "tenant,hosts\na,b[1-3]\n", "a=0x12 : 0x1;", `{"0x12": {"guids": []}}`} {
		f.Add(s)
	}
	f.Fuzz(func(_ *testing.T, s string) { Read(strings.NewReader(s), "t") })
}

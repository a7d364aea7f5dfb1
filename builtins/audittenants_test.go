package builtins

import (
	"slices"
	"strings"
	"testing"

	"fabsh/builtins/audits"
	"fabsh/builtins/changes"
	"fabsh/builtins/program"
	"fabsh/fabric/tenant"
)

// tenantsFile are two tenants and a service for both.
const tenantsFile = `tenant,hosts,pkeys,member,shared
red,"node-[0002-0004]",0x0012 0x0014=limited,full,
blue,"node-[0005-0008]",0x0013 0x0014=limited,full,
store,node-0009,0x0014,full,yes
`

// isolate gives each host of tenantsFile the keys of its tenant, and its switch port too, which checks P_Keys.
const isolate = `
f = discover()
for n in f.cas:
    i = int(n.name.split(" ")[0][-4:])
    own = [0x8012, 0x14] if i in range(2, 5) else [0x8013, 0x14] if i in range(5, 9) else [0x8014] if i == 9 else []
    for p in [n.ports[1], n.ports[1].peer]:
        set_pkeys(p, [0x7fff if i > 1 else 0xffff] + own)
for p in [n.ports[1].peer for n in f.cas]:
    smp_set("PortInfo", p, partition_enforcement_inbound = True, partition_enforcement_outbound = True)
def port(name):
    return f.node(name + " HCA-1").ports[1]
`

// TestAuditTenants: each fault of isolated tenants is found, and nothing about others.
func TestAuditTenants(t *testing.T) {
	for name, test := range map[string]struct {
		fault string // a script
		words []string
		want  []string // checks besides those of the healthy subnet, which a finding begins with
	}{
		"isolated":                    {"", nil, nil},
		"a key of others":             {`set_pkeys(port("node-0003"), {5: 0x8013}); set_pkeys(port("node-0003").peer, {5: 0x8013})`, nil, []string{"tenant.reach node-0003 HCA-1/1: red can reach blue: key 0x8013 at node-0003 HCA-1/1, index 5", "tenant.keys node-0003 HCA-1/1: unlike those of tenant red: other P_Keys: 0x0013=full"}},
		"full instead of limited":     {`set_pkeys(port("node-0006"), {2: 0x8014})`, nil, []string{"tenant.reach node-0006 HCA-1/1: blue can reach red: key 0x8014", "tenant.keys node-0006 HCA-1/1: unlike those of tenant blue: other P_Keys: 0x0014=full instead of 0x0014=limited"}},
		"a key that the switch drops": {`set_pkeys(port("node-0003"), {5: 0x8013})`, nil, []string{"tenant.keys node-0003"}},
		"no checks":                   {`smp_set("PortInfo", port("node-0003").peer, partition_enforcement_inbound = False)`, nil, []string{"tenant.enforce f"}},
		"another entry 0":             {`set_pkeys(port("node-0003"), [0x8012, 0x7fff, 0x14])`, nil, []string{"tenant.index0 node-0003"}},
		"options":                     {"", []string{"--profile=nico", "--opensm=opensm.conf", "--ufm=gv.cfg"}, []string{"tenant.traps f", "tenant.profile f"}},
	} {
		t.Run(name, func(t *testing.T) {
			onSim(t, "", nil, func(t *testing.T, f *fixture) {
				write(t, f.fs, "/work/tenants.csv", tenantsFile)
				write(t, f.fs, "/work/opensm.conf", "m_key_protection_level 1\nvs_key_enable 2\n")
				write(t, f.fs, "/work/gv.cfg", "[Sub]\ndefault_membership = full\n")
				if _, explained, status := f.run(isolate + test.fault); status != 0 {
					t.Fatal(explained)
				}
				r := audited(t, f, audits.RunOptions{Once: true}, append([]string{"tenants", "--tenants=tenants.csv"}, test.words...)...)
				var found []string
				for _, line := range strings.Split(strings.TrimSpace(told(r)), "\n") {
					_, line, _ = strings.Cut(line, " ")
					if check, _, _ := strings.Cut(line, " "); check != "tenant.default" && check != "tenant.mkey" && check != "tenant.sm" && check != "tenant.sa" {
						found = append(found, line)
					}
				}
				for _, want := range test.want {
					ok := false
					for _, line := range found {
						ok = ok || strings.HasPrefix(line, want)
					}
					if !ok {
						t.Errorf("missing %q in:\n%s", want, told(r))
					}
				}
				checks := map[string]bool{}
				for _, want := range test.want {
					check, _, _ := strings.Cut(want, " ")
					checks[check] = true
				}
				for _, line := range found {
					if check, _, _ := strings.Cut(line, " "); !checks[check] {
						t.Errorf("also found %q", line)
					}
				}
			})
		})
	}
}

// TestAuditVirtualTenants: that P_Keys of virtual ports cannot be read is stated.
func TestAuditVirtualTenants(t *testing.T) {
	for spec, want := range map[string]string{"fattree:k=4,levels=2": "", "fattree:k=4,levels=2,vports=1": "virtual ports' P_Keys: 4 virtual ports at ports of tenants, and the layout of their tables is not public"} {
		onSim(t, spec, nil, func(t *testing.T, f *fixture) {
			write(t, f.fs, "/work/tenants.csv", "tenant,hosts\nred,node-[0001-0002]\nblue,node-[0003-0004]\n")
			got := ""
			for _, u := range audited(t, f, audits.RunOptions{Once: true}, "tenants", "--tenants=tenants.csv").UnjudgedChecks() {
				if slices.Contains(u.Checks, "tenant.keys") {
					got = u.Lacked
				}
			}
			if got != want {
				t.Errorf("%s: %q, want %q", spec, got, want)
			}
		})
	}
}

// TestPlanTenants: a plan that joins tenants is refused, or states it where that is allowed; others
// are made.
func TestPlanTenants(t *testing.T) {
	const joins = `set_pkeys(port("node-0003"), {5: 0x8013}); set_pkeys(port("node-0003").peer, {5: 0x8013})`
	const reason = "red can reach blue: key 0x8013 at node-0003 HCA-1/1, index 5, and key 0x8013 at node-0005 HCA-1/1, index 1"
	for name, test := range map[string]struct {
		code         string
		judged, okay bool // with --tenants, with --allow-tenants
		want         string
		noted        string
	}{
		"joins":       {joins, true, false, "the plan joins tenants: " + reason, ""},
		"allowed":     {joins, true, true, "", "the plan joins tenants, which --allow-tenants allows: " + reason},
		"not judged":  {joins, false, false, "", ""},
		"only a host": {`set_pkeys(port("node-0003"), {5: 0x8013})`, true, false, "", ""}, // its switch port drops these packets
		"taken away":  {`set_pkeys(port("node-0003"), {1: None})`, true, false, "", ""},
		"unchecked":   {`set_pkeys(port("node-0003"), {5: 0x8013}); smp_set("PortInfo", port("node-0003").peer, partition_enforcement_inbound = False, partition_enforcement_outbound = False)`, true, false, "the plan joins tenants: " + reason, ""},
	} {
		onSim(t, "", nil, func(t *testing.T, f *fixture) {
			if _, explained, status := f.run(isolate); status != 0 {
				t.Fatal(explained)
			}
			o := changes.ProofOptions{AllowTenants: test.okay}
			if test.judged {
				file, err := tenant.Read(strings.NewReader(tenantsFile), "tenants.csv")
				if err != nil {
					t.Fatal(err)
				}
				o.Tenants = file
			}
			planning, err := changes.StartRecording(t.Context(), f.Runtime, o)
			if err != nil {
				t.Fatal(err)
			}
			if err := program.RunCode(t.Context(), f.Interpreter, "m.star", "f = discover(); port = lambda name: f.node(name + \" HCA-1\").ports[1]; "+test.code); err != nil {
				t.Fatalf("%s: %s", name, f.Explain(err))
			}
			p, err := planning.Finish(changes.WithProof(t.Context(), f.Runtime, o), "m.star")
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%s: %v, want %q", name, err, test.want)
			}
			noted := ""
			if p != nil {
				for _, note := range p.Report.NotJudged {
					if strings.Contains(note, "tenants") {
						noted = note
					}
				}
			}
			if !strings.HasPrefix(noted, test.noted) || (noted != "") != (test.noted != "") {
				t.Errorf("%s: noted %q, want %q", name, noted, test.noted)
			}
		})
	}
}

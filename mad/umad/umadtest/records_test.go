//go:build kernelibtest

package umadtest

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// trusted asks saquery with the SM_Key that OpenSM has by default.
func trusted(t *testing.T, args ...string) string {
	t.Helper()
	return diag(t, "saquery", append([]string{"--smkey", "1"}, args...)...)
}

// testRecords makes, changes and deletes records, which saquery sees.
func testRecords(t *testing.T, s *subnet) {
	const me = `p = smp_get("PortInfo", dr("0"), 1); me = gid(sa_get("NodeRecord", lid=p.lid).port_guid, prefix=p.gid_prefix); `
	gid := strings.TrimSpace(fabsh(t.Context(), me+"print(me)"))
	group := regexp.MustCompile(`MGID\.+ff12:1::7\n\s*Mlid\.+0xC001\n`)
	member := regexp.MustCompile(`MGID\.+ff12:1::7\n\s*Mlid\.+0xC001\n\s*PortGid\.+` + gid + `\n\s*ScopeState\.+(\S+)\n`)
	state := func() string { // "": there is no group
		if m := member.FindStringSubmatch(trusted(t, "-m")); m != nil && group.MatchString(diag(t, "saquery", "-g")) {
			return m[1]
		}
		return ""
	}
	const change = me + `print(sa_%s("MCMemberRecord", mgid="ff12:1::7", port_gid=me, join_state="%s_member"%s).join_state)`
	for _, step := range []struct {
		verb, state, more string
		out               string
		peer              string // ScopeState of the member; "": there is no group
	}{
		{"set", "full", ", q_key=7, p_key=0xffff, sl=0, flow_label=0, tclass=0", `("full_member",)`, "0x1"},
		{"set", "non", "", `("full_member", "non_member")`, "0x3"},
		{"delete", "non", "", `("full_member",)`, "0x1"},
		{"delete", "full", "", `()`, ""},
	} {
		is(t, step.verb+" "+step.state, fabsh(t.Context(), fmt.Sprintf(change, step.verb, step.state, step.more), "--write"), step.out+"\n")
		is(t, "ScopeState after "+step.verb+" "+step.state, state(), step.peer)
	}
	got := fabsh(t.Context(), fmt.Sprintf(change, "delete", "full", ""), "--write")
	if !strings.Contains(got, "request invalid (status 0x0200)") || !strings.HasSuffix(got, "[exit status 3]\n") {
		t.Errorf("who is no member leaves: %s", got)
	}
	got = fabsh(t.Context(), fmt.Sprintf(change, "set", "full", ""))
	if !strings.Contains(got, "refused: it would change the fabric; allow changes with --write") || !strings.HasSuffix(got, "[exit status 2]\n") {
		t.Errorf("without --write: %s", got)
	}

	const service = me + `s = sa_%s("ServiceRecord", service_id=0x77, service_gid=me, service_p_key=0xffff%s); print(s.service_name, s.service_data64, s.service_key)`
	is(t, "announced", fabsh(t.Context(), fmt.Sprintf(service, "set", `, service_name="a test", service_key="secret", service_data64=[1, 2]`), "--write"), "a test (1, 2) none\n")
	if out := diag(t, "saquery", "SR"); !strings.Contains(out, "ServiceName.............a test\n") {
		t.Errorf("saquery SR: %s", out)
	}
	is(t, "found", fabsh(t.Context(), `print([s.service_id for s in sa_gettable("ServiceRecord", service_data64=[1, 2])])`), "[119]\n")
	is(t, "taken back", fabsh(t.Context(), fmt.Sprintf(service, "delete", ""), "--write"), "a test (1, 2) none\n")
	if out := diag(t, "saquery", "SR"); strings.Contains(out, "ServiceName.............a test\n") {
		t.Errorf("saquery SR: %s", out)
	}
}

// testPaths asks for paths between sets of ports, which OpenSM knows, and for
// traces, which it does not.
func testPaths(t *testing.T, s *subnet) {
	is(t, "sa_getmulti", fabsh(t.Context(), `
prefix = smp_get("PortInfo", dr("0"), 1).gid_prefix
g = [gid(r.port_guid, prefix=prefix) for r in sa_gettable("NodeRecord", node_type="ca")]
paths = sa_getmulti(sgids=g[:3], dgids=g[3:7])
print(len(paths), paths == [sa_get("PathRecord", sgid=s, dgid=d) for s in g[:3] for d in g[3:7]])`), "12 True\n")
	// A request of two segments, of which OpenSM heeds 11 ports.
	is(t, "12 ports", fabsh(t.Context(), `
prefix = smp_get("PortInfo", dr("0"), 1).gid_prefix
g = [gid(r.port_guid, prefix=prefix) for r in sa_gettable("NodeRecord", node_type="ca")]
print(len(sa_getmulti(sgids=g[:6], dgids=g[6:12])))`), "30\n")
	got := fabsh(t.Context(), `sa_gettrace(slid=1, dlid=2)`, "-t", "1s")
	want := "timed out after 3 attempts in 3s; method probably not supported: the subnet administrator answers other requests (OpenSM drops requests that it does not support)\n"
	if !strings.Contains(got, want) || !strings.HasSuffix(got, "[exit status 3]\n") {
		t.Errorf("sa_gettrace: %s", got)
	}
}

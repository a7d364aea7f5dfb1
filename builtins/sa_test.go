package builtins

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fabsh/builtins/lang"
	"fabsh/mad/ibsim/ibsimtest"
)

// saChanges are multicast groups and services, made, joined, left and deleted.
// What answers shows depends on neither LIDs nor links. me and other are the
// GIDs of two ports, of which me is ours.
const saChanges = `
f = discover()
prefix = "0xfe80000000000000"
me, other = [gid(r, prefix=prefix) for r in [f.cas[0].ports[1].guid, f.cas[1].ports[1].guid]]
mtu = {"mtu_selector": "exactly", "mtu": "2048", "rate_selector": "exactly", "rate": "10"}
new = {"q_key": 7, "p_key": 0xffff, "sl": 0, "flow_label": 0, "tclass": 0}

def answer(fn, *args, **kwargs):
    r = catch(fn, *args, **kwargs)
    return r or r.status

def join(mgid, port, state="full_member", **more):
    return answer(sa_set, "MCMemberRecord", mgid=mgid, port_gid=port, join_state=state, **more)

def leave(mgid, port, state="full_member", **more):
    return answer(sa_delete, "MCMemberRecord", mgid=mgid, port_gid=port, join_state=state, **more)

def group(mgid, **more):
    return answer(sa_get, "MCMemberRecord", mgid=mgid, **more)

def service(fn, id, gid, **more):
    return answer(fn, "ServiceRecord", service_id=id, service_gid=gid, **more)

g, h, ip = "ff12:1::7", "ff1e::8", "ff12:401b:ffff::1"
`

var saChangeSteps = []string{
	`group("ff12:401b:ffff::ffff:ffff")`,
	`group(g)`,
	// What it takes to make a group.
	`answer(sa_set, "MCMemberRecord", mgid=g, port_gid=me)`,
	`join(g, me)`,
	`join(g, me, q_key=7, p_key=0xffff, sl=0, flow_label=0)`,
	`join(g, me, "non_member", **new)`,
	`join(g, "fe80::1234", **new)`,
	`join(g, "fe81::1234", **new)`,
	`join(g, me, mtu_selector="exactly", mtu_code=9, **new)`,
	`join(g, me, rate_selector="exactly", rate_code=1, **new)`,
	`join("fe12::7", me, **new)`,
	`join("ff32::7", me, **new)`,
	`join("ff12:a01b::7", me, **new)`,
	`join("ff12:401b:8001::7", me, **new)`,
	`join(g, me, **dict(new, p_key=0))`,
	`join(g, me, **dict(new, p_key=0x8005))`,
	`join(g, me, mlid=0xc010, hop_limit=3, packet_life_time_selector="exactly", packet_life_time=9, **dict(new, **mtu))`,
	`group(g)`,
	`group(g, port_gid=me)`,
	`group(g, port_gid=other)`,
	`group(g, p_key=0x7fff)`,
	`group(g, q_key=8)`,
	`group(g, mtu_selector="greater_than", mtu="2048")`,
	`group(g, mtu_selector="greater_than", mtu="1024")`,
	`group(g, rate_selector="less_than", rate="10")`,
	`group(g, join_state="full_member")`,
	`group(g, join_state="non_member")`,
	`group(g, scope="link_local")`,
	// Joining, as more, and for another.
	`join(g, me, "send_only_non_member")`,
	`join(g, me, "non_member", q_key=8)`,
	`join(g, me, "non_member", mtu_selector="greater_than", mtu="2048")`,
	`join(g, me, ())`,
	`join(g, other)`,
	`join(g, other, "non_member")`,
	`group(g, port_gid=other)`,
	// Leaving.
	`leave(g, me, "non_member")`,
	`leave(g, me, ("full_member", "non_member"))`,
	`leave(g, me)`,
	`leave(g, me)`,
	`leave(g, me, "send_only_non_member")`,
	`leave(g, me, "send_only_non_member")`,
	`leave(g, other, ("full_member", "non_member"))`,
	`group(g)`,
	`leave(g, me)`,
	// Without full members a group is gone.
	`join(h, me, scope="global", **dict(new, **mtu))`,
	`join(h, other, "non_member")`,
	`leave(h, me)`,
	`group(h)`,
	// A member that is more than one thing, the last full one.
	`join(h, me, ("full_member", "non_member"), **dict(new, **mtu))`,
	`leave(h, me)`,
	`group(h)`,
	`join(h, me, "send_only_full_member", **dict(new, **mtu))`,
	`leave(h, me, "send_only_full_member")`,
	// MTU and rate that are not said exactly.
	`join(h, me, mtu_selector="less_than", mtu="2048", rate_selector="less_than", rate="10", **new)`,
	`leave(h, me)`,
	`join(h, me, mtu_selector="less_than", mtu="4096", rate_selector="less_than", rate="300", **new)`,
	`leave(h, me)`,
	`join(h, me, mtu_selector="exactly", mtu="2048", rate_selector="greater_than", rate="10", **new)`,
	`leave(h, me)`,
	`join(h, me, mtu_selector="less_than", mtu="256", **new)`,
	`join(h, me, mtu_selector="greater_than", mtu="4096", **new)`,
	`join(h, me, rate_selector="less_than", rate="2.5", **new)`,
	`join(h, me, rate_selector="greater_than", rate="300", **new)`,
	// The administrator chooses the MGID.
	`join("::", me, **dict(new, **mtu))`,
	`leave("ff12:a01b:fe80::", me)`,
	// IPoIB's.
	`join(ip, me, **dict(new, q_key=0xb1b, **mtu))`,
	`join(ip, me, **new)`,
	`leave(ip, me)`,
	`join("ff12:401b:ffff::ffff:ffff", me)`,
	`leave("ff12:401b:ffff::ffff:ffff", me)`,
	`group("ff12:401b:ffff::ffff:ffff")`,
	// Services.
	`service(sa_get, 5, me)`,
	`answer(sa_set, "ServiceRecord", service_id=5)`,
	`service(sa_set, 5, me, service_p_key=0xffff, service_name="five", service_key="secret", service_data8=list(range(16)))`,
	`service(sa_get, 5, me)`,
	`answer(sa_get, "ServiceRecord", service_name="five")`,
	`answer(sa_get, "ServiceRecord", service_name="six")`,
	`answer(sa_get, "ServiceRecord", service_data8=list(range(16)))`,
	`answer(sa_get, "ServiceRecord", service_data8=list(range(1, 17)))`,
	`answer(sa_get, "ServiceRecord", service_key="another")`,
	`answer(sa_get, "ServiceRecord", service_lease=1)`,
	`service(sa_set, 5, me, service_p_key=0xffff, service_name="anew", service_lease=3600)`,
	`service(sa_get, 5, me)`,
	`service(sa_set, 5, me, service_p_key=0x8005)`,
	`service(sa_set, 6, other, service_p_key=0xffff)`,
	`service(sa_set, 6, "fe80::1234", service_p_key=0xffff)`,
	`service(sa_set, 7, other)`,
	`service(sa_get, 7, other)`,
	`service(sa_delete, 7, other, service_p_key=0xffff)`,
	`service(sa_delete, 7, other)`,
	`service(sa_delete, 5, me)`,
	`service(sa_delete, 5, me, service_p_key=0xffff)`,
	`service(sa_delete, 5, me, service_p_key=0xffff)`,
	`service(sa_delete, 6, other, service_p_key=0xffff)`,
}

// saChangesWanted are the answers: OpenSM's, as another test makes sure of.
const saChangesWanted = "testdata/output/sachanges.jsonl"

// TestSAChanges makes them on the simulated subnet.
func TestSAChanges(t *testing.T) {
	file := filepath.Join(t.TempDir(), "net")
	if err := os.WriteFile(file, []byte(ibsimtest.Net(t, "ring")), 0o600); err != nil {
		t.Fatal(err)
	}
	onSim(t, file, nil, func(t *testing.T, f *fixture) { golden(t, saChangesWanted, saAnswers(t, f)) })
}

func saAnswers(t *testing.T, f *fixture) string {
	t.Helper()
	var code strings.Builder
	code.WriteString(saChanges)
	for _, step := range saChangeSteps {
		code.WriteString("show(" + step + ")\n")
	}
	f.Format = lang.FormatJSONL
	out, explained, status := f.run(code.String())
	if status != 0 {
		t.Fatal(explained)
	}
	if n := strings.Count(out, "\n"); n != len(saChangeSteps) {
		t.Fatalf("%d answers to %d requests:\n%s", n, len(saChangeSteps), out)
	}
	return out
}

// TestGetmultiWarns: more ports than OpenSM heeds, and some without a path.
func TestGetmultiWarns(t *testing.T) {
	for code, want := range map[string]string{
		`sa_getmulti(sgids=g[:6], dgids=g[6:12])`:               "",
		`sa_getmulti(sgids=g[:5], dgids=g[6:12], p_key=0x8005)`: "",
		`sa_getmulti(sgids=g[:6], dgids=g[6:12], p_key=0x8005)`: "warning: sa_getmulti: no paths for 12 of the 12 ports; OpenSM uses only the first 11 ports of a request\n",
		`sa_getmulti(sgids=g[:6], dgids=g[6:12], numb_path=1)`:  "",
	} {
		onSim(t, "", nil, func(t *testing.T, f *fixture) {
			_, explained, status := f.run(`g = [gid(r.port_guid, prefix="0xfe80000000000000") for r in sa_gettable("NodeRecord", node_type="ca")]; ` + code)
			if got := f.stderr.String(); got != want || status != 0 {
				t.Errorf("%s: %q %s", code, got, explained)
			}
		})
	}
}

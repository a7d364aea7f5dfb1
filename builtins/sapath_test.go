package builtins

import "testing"

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

package builtins

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/fabric/format"
	"fabsh/fabric/routing/routingtest"
	"fabsh/mad/ibsim/ibsimtest"
)

// TestLanesOfOpenSM reads the tables of a running OpenSM with their virtual lanes and service levels, and
// repairs them after the loss of a link. Without these, the tables close a credit loop.
func TestLanesOfOpenSM(t *testing.T) {
	const spec = "torus:dims=4/4,hosts=2"
	var net, less bytes.Buffer
	for text, spec := range map[*bytes.Buffer]string{&net: spec, &less: spec + ",remove_links=1"} {
		if err := format.Dump(text, routingtest.Topology(t, spec), "ibnetdiscover"); err != nil {
			t.Fatal(err)
		}
	}
	first := regexp.MustCompile(`(?m)^Ca\t\d+ "([^"]*)"`).FindStringSubmatch(net.String())[1]
	f := onIbsim(t, net.String(), ibsimtest.FixtureOptions{SM: first, SMArgs: []string{"-Q", "-R", "dfsssp,no_fallback"}, RMPP: true}, func(o *SessionOptions) {
		if err := os.WriteFile(filepath.Join(o.Dir, "less.net"), less.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	})
	f.Format = lang.FormatText
	out, explained, status := f.run(`
def judge(t):
    v = t.verify()
    return t.lanes, v.unreachable, v.acyclic
f, less = discover(), load_fabric("less.net")
one, t = get_routes(f), get_routes(f, lanes=True)
print(judge(one), judge(t))
r = t.repair(less)
print(len(f.links) - len(less.links), judge(r), [n for n in r.notes if "credit loop" in n])
`)
	if diff := cmp.Diff("(1, 0, False) (8, 0, True)\n1 (8, 0, True) []\n", out); diff != "" || status != 0 {
		t.Errorf("status %d: %s (-want +got):\n%s", status, explained, diff)
	}
}

// TestVerifyInLanesOfOpenSM: tables of a running OpenSM with lash close a credit loop on one virtual lane,
// and none with the service levels of its path records.
func TestVerifyInLanesOfOpenSM(t *testing.T) {
	var net bytes.Buffer
	if err := format.Dump(&net, routingtest.Topology(t, "torus:dims=4/4,hosts=1"), "ibnetdiscover"); err != nil {
		t.Fatal(err)
	}
	first := regexp.MustCompile(`(?m)^Ca\t\d+ "([^"]*)"`).FindStringSubmatch(net.String())[1]
	f := onIbsim(t, net.String(), ibsimtest.FixtureOptions{SM: first, SMArgs: []string{"-Q", "-R", "lash,no_fallback"}, RMPP: true}, nil)
	f.Format = lang.FormatText
	out, explained, status := f.run("discover()\nt = get_routes(); print([(v.acyclic, v.lanes) for v in (t.verify(), t.verify(lanes=True))])")
	if diff := cmp.Diff("[(False, 1), (True, 2)]\n", out); diff != "" || status != 0 {
		t.Errorf("status %d: %s (-want +got):\n%s", status, explained, diff)
	}
	if diff := cmp.Diff("", textOf(audited(t, f.fixture, audits.RunOptions{}, "routing"))); diff != "" {
		t.Error(diff)
	}
}

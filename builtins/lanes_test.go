package builtins

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/builtins/audits"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/sim"
	"fabsh/mad"
)

// TestCreditLoopInLanes: a credit loop of the tables is reported if it is one on the lanes and service
// levels that packets use, and is not judged if these are unknown, live and in a file.
func TestCreditLoopInLanes(t *testing.T) {
	const judge = `v = get_routes().verify(lanes=True); print(v.ok, v.acyclic, len(v.cycle), v.acyclic_reason)`
	for _, test := range []struct {
		name, spec string
		do         func(t *testing.T, f *fixture, swept *fabric.Fabric)
		want       string
		finding    bool
	}{
		{name: "all on SL 0", spec: "torus:dims=3/4,hosts=1", want: "False False 4 None", finding: true},
		{name: "of more LIDs than are read", spec: "ring:n=7,hosts=80", want: "False False 7 None", finding: true},
		{name: "SL2VL unknown", spec: "ring:n=7", do: func(t *testing.T, f *fixture, swept *fabric.Fabric) {
			n := swept.NodeByName("switch-3")[0]
			for num := 1; num <= n.NumPorts(); num++ {
				if err := f.Env.Sim.Faults.LosePackets(sim.End{Node: n.ID(), Num: num}, 100, mad.AttrSLtoVLMappingTable.ID); err != nil {
					t.Fatal(err)
				}
			}
		}, want: `None None 0 the SL2VL of "switch-3" (0x0002c90300100020) from port 1 to port 2: SubnGet(SLtoVLMappingTable out_port 2 in_port 1) to route 0,1,3,3: timed out after 6 attempts in 3s`},
		{name: "no path records", spec: "ring:n=7", do: func(t *testing.T, f *fixture, swept *fabric.Fabric) {
			p := f.Env.Sim.Faults
			for i := range swept.Nodes() {
				for num := 1; num <= swept.Nodes()[i].NumPorts(); num++ {
					if err := p.LosePackets(sim.End{Node: swept.Nodes()[i].ID(), Num: num}, 100, mad.AttrPathRecord.ID); err != nil {
						t.Fatal(err)
					}
				}
			}
		}, want: "None None 0 query of the subnet administrator: SubnAdmGetTable(PathRecord) to LID 8: timed out after 3 attempts in 3s"},
		{name: "no loop", spec: "fattree:k=4", want: "True True 0 None"},
	} {
		t.Run(test.name, func(t *testing.T) {
			onSimWith(t, test.spec, smKey, nil, nil, func(t *testing.T, f *fixture) {
				swept, err := topology.SweepQuietly(t.Context(), f.Runtime)
				if err != nil {
					t.Fatal(err)
				}
				if test.do != nil {
					test.do(t, f, swept)
				}
				out, explained, _ := f.run("discover()\n" + judge)
				if diff := cmp.Diff(test.want, strings.TrimSpace(out)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", explained, diff)
				}
				r := audited(t, f, audits.RunOptions{}, "routing")
				if found := strings.Contains(textOf(r), "rt.creditloop  "); found != test.finding {
					t.Error(textOf(r))
				}
				if unjudged := strings.Contains(textOf(r), "not judged: rt.creditloop"); unjudged != strings.HasPrefix(test.want, "None") {
					t.Error(textOf(r))
				}
			})
		})
	}
	t.Run("a file", func(t *testing.T) {
		onSimWith(t, "ring:n=7", smKey, nil, nil, func(t *testing.T, f *fixture) {
			f.run("discover()")
			file := ofFile(t, kept(t, f))
			defer file.Close()
			out, explained, _ := file.run(judge)
			if want := "None None 0 on one virtual lane the tables close one, and the file has no service levels of paths; verify --sl FILE and load_routes(path, sl=, sl2vl=) read them from another\n"; out != want {
				t.Error(out, explained)
			}
			if text := textOf(audited(t, file, audits.RunOptions{}, "routing")); !strings.HasPrefix(text, "not judged: rt.creditloop, on one") {
				t.Error(text)
			}
		})
	})
}

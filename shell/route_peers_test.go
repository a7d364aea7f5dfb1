//go:build linux

package shell

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"fabsh/mad/ibsim/ibsimtest"
)

// TestRouteUnderOpenSM: what fabsh route writes is what OpenSM's engine file
// loads, dumps again byte for byte, and gives the switches; ibroute sees it
// there, and ibdmchk comes to the same verdict.
func TestRouteUnderOpenSM(t *testing.T) {
	t.Parallel()
	net := ibsimtest.FatTree(4, 2, 4)
	before := ibsimtest.Start(t, net, ibsimtest.FixtureOptions{SM: "host-3-3", SMArgs: []string{"-s", "0", "-D", "0x43"}})
	lst := filepath.Join(before.Dir, "opensm-subnet.lst")
	t.Run("OpenSM's own", func(t *testing.T) {
		got := outcome(fabsh(t, nil, "-F", "file:"+lst, "-o", "csv", "verify", "--lfts", filepath.Join(before.Dir, "opensm-lfts.dump")))
		want := "ok,policy,judged,endpoints,pairs,unreachable,unreachable_switches,excused,loops,acyclic,max_hops,hops,detours,channels,waits,violations,cycle,broken,violating,notes,switch_pairs,to_switches,left_out,disjoint,adaptive,adaptive_reason,lanes,apart,parts,acyclic_reason,unjudged,no_table\n" +
			`true,file,"static forwarding tables, SL 0","{""ports"":16,""cas"":16,""routers"":0,""switches"":0,""classes"":{""cn"":16}}",240,0,0,0,0,true,4,"[0,0,48,0,192]",[240],16,24,0,[],[],[],"[""adaptive routing not determined""]",96,96,[],,,,1,0,[],,0,[]` +
			"\n[exit status 0]\n"
		if got != want {
			t.Errorf("got  %swant %s", got, want)
		}
	})
	for _, policy := range []string{"minhop", "updn", "ftree", "nue", "@examples//dmodk.star"} {
		t.Run(policy, func(t *testing.T) {
			dir := t.TempDir()
			dump := filepath.Join(dir, "lfts.dump")
			said := outcome(on(t, before, "route", policy, "--verify", "--diff", "--out", dump))
			if want := "use with opensm -R file,no_fallback -U " + dump + "\n[exit status 0]\n"; !strings.HasSuffix(said, want) || !strings.HasPrefix(said, "verdict      ok\n") {
				t.Fatalf("%s\nwant it to end in %s", said, want)
			}

			after := ibsimtest.Start(t, net, ibsimtest.FixtureOptions{SM: "host-3-3", SMArgs: []string{"-s", "0", "-D", "0x43", "-R", "file,no_fallback", "-U", dump}})
			ours, err := os.ReadFile(dump)
			if err != nil {
				t.Fatal(err)
			}
			theirs, err := os.ReadFile(filepath.Join(after.Dir, "opensm-lfts.dump"))
			if err != nil {
				t.Fatal(err)
			}
			if string(ours) != string(theirs) {
				t.Errorf("OpenSM dumps other tables than it was given:\n%s\nwant\n%s", theirs, ours)
			}

			routes := outcome(on(t, after, "-c", `print(*[json.decode(json.encode(s.route)) for s in discover().switches])`))
			var seen strings.Builder
			for route := range strings.FieldsSeq(strings.TrimSuffix(routes, "[exit status 0]\n")) {
				seen.WriteString(after.Run(t, "ibroute", "-a", "-D", route))
			}
			ibroute := filepath.Join(dir, "ibroute")
			if err := os.WriteFile(ibroute, []byte(seen.String()), 0o666); err != nil {
				t.Fatal(err)
			}
			got := outcome(on(t, after, "-I", dir, "-c", fmt.Sprintf(
				`f = discover(); t = load_routes(%q, f); print(t.diff(get_routes(f)).entries, load_routes(%q, f).diff(t).entries, t.notes)`, dump, ibroute)))
			if want := "0 0 []\n[exit status 0]\n"; got != want {
				t.Errorf("the switches and ibroute have, of %s and of each other, different entries: %swant %s", dump, got, want)
			}
		})
	}
}

// TestRouteIbdmchk: ibdmchk finds credit loops where verify does, in the files
// that fabsh writes for it.
func TestRouteIbdmchk(t *testing.T) {
	for _, test := range []struct {
		spec, policy string
		ok           bool
	}{
		{"sim:ring:n=5", "minhop", false},
		{"sim:ring:n=5", "updn", true},
		{"sim:fattree:k=4,levels=3", "minhop", true},
		{"sim:fattree:k=4,levels=3", "@examples//dmodk.star", true},
	} {
		t.Run(test.spec+" "+test.policy, func(t *testing.T) {
			dir := t.TempDir()
			dump := filepath.Join(dir, "lfts.dump")
			said := outcome(fabsh(t, nil, "-F", test.spec, "route", test.policy, "--out", dump))
			if !strings.HasSuffix(said, "[exit status 0]\n") {
				t.Fatal(said)
			}
			for name, code := range map[string]string{
				"lst":    `discover().dump("opensm-subnet")`,
				"fdbs":   fmt.Sprintf(`load_routes(%q).dump("opensm-fdbs")`, dump),
				"mcfdbs": `""`,
			} {
				text := outcome(fabsh(t, nil, "-F", test.spec, "-I", dir, "-c", "print("+code+")"))
				text, ok := strings.CutSuffix(text, "[exit status 0]\n")
				if !ok {
					t.Fatal(text)
				}
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			c := ibsimtest.Command(t, "ibdmchk", "-s", "lst", "-f", "fdbs", "-m", "mcfdbs")
			c.Dir = dir
			answer, _ := c.CombinedOutput() // it crashes at its end
			verdict := outcome(fabsh(t, nil, "-F", test.spec, "-o", "csv", "verify", "--lfts", dump))
			theirs, ours := strings.Contains(string(answer), "no credit loops found"), strings.HasSuffix(verdict, "[exit status 0]\n")
			if theirs != test.ok || ours != test.ok || !strings.Contains(string(answer), "credit loops") {
				t.Errorf("want free of credit loops: %v\nibdmchk says\n%s\nfabsh says\n%s", test.ok, answer, verdict)
			}
		})
	}
}

// pathSLs asks the subnet administrator for the service level of each path.
const pathSLs = `
ports = [p for n in discover().cas for p in n.ports]
for p in ports:
    for q in ports:
        if p != q:
            print(p.node.guid, q.lid, sa_get("PathRecord", slid=p.lid, dlid=q.lid).sl)
`

// TestRouteLanes: OpenSM's dfsssp breaks the credit loops of a torus by service
// levels and virtual lanes: verify sees that in the tables that OpenSM dumps,
// and not without them.
func TestRouteLanes(t *testing.T) {
	net := outcome(fabsh(t, nil, "sim", "torus:dims=4/4,hosts=1"))
	net = strings.TrimSuffix(net, "[exit status 0]\n")
	s := ibsimtest.Start(t, net, ibsimtest.FixtureOptions{SM: regexp.MustCompile(`(?m)^Ca\t\d+ "([^"]*)"`).FindStringSubmatch(net)[1], SMArgs: []string{"-D", "0x43", "-Q", "-R", "dfsssp,no_fallback"}})
	psl, ok := strings.CutSuffix(outcome(on(t, s, "-c", pathSLs)), "[exit status 0]\n")
	if !ok || strings.Count(psl, "\n") != 16*15 || !regexp.MustCompile(`(?m) [1-9]$`).MatchString(psl) {
		t.Fatal(psl)
	}
	file := func(name string) string { return filepath.Join(s.Dir, name) }
	if err := os.WriteFile(file("psl"), []byte(psl), 0o666); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"true,file,\"static forwarding tables, their service levels and virtual lanes\",\"{\"\"ports\"\":16,\"\"cas\"\":16,\"\"routers\"\":0,\"\"switches\"\":0,\"\"classes\"\":{\"\"cn\"\":16}}\",240,0,0,0,0,true,": {"--sl", file("psl"), "--slvl", file("opensm-sl2vl.dump")},
		"false,file,\"static forwarding tables, their service levels, all on VL 0\",\"{\"\"ports\"\":16,\"\"cas\"\":16,\"\"routers\"\":0,\"\"switches\"\":0,\"\"classes\"\":{\"\"cn\"\":16}}\",240,0,0,0,0,false,":    {"--sl", file("psl")},
		"false,file,\"static forwarding tables, SL 0\",\"{\"\"ports\"\":16,\"\"cas\"\":16,\"\"routers\"\":0,\"\"switches\"\":0,\"\"classes\"\":{\"\"cn\"\":16}}\",240,0,0,0,0,false,":                                 {},
	} {
		args = append([]string{"-F", "file:" + file("opensm-subnet.lst"), "-o", "csv", "verify", "--lfts", file("opensm-lfts.dump")}, args...)
		if got := outcome(fabsh(t, nil, args...)); !strings.Contains(got, "\n"+want) {
			t.Errorf("%v: %s\nwant %s", args, got, want)
		}
	}
}

package builtins

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"fabsh/builtins/audits"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/format"
	hosthealth "fabsh/fabric/hosts"
)

// fabricsDir is the directory of dumps of real fabrics, which the project does not ship: that of
// FABSH_FABRICS, or the one beside the repository.
func fabricsDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("FABSH_FABRICS")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared", "fabrics")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no dumps of real fabrics: %v", err)
	}
	return dir
}

// realFabric loads a dump.
func realFabric(t *testing.T, dir, name string) *fabric.Fabric {
	t.Helper()
	file, err := os.Open(filepath.Join(dir, name+".topo.gz"))
	if err != nil {
		t.Skip(err)
	}
	defer file.Close()
	r, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	f, err := format.Load(strings.NewReader(string(text)), name, nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestRealFabrics: the standard audits report what is wrong with real fabrics, by careful
// inspection, and nothing else of warning or above. What dumps lack is named.
func TestRealFabrics(t *testing.T) {
	dir := fabricsDir(t)
	for _, x := range []struct {
		name  string
		found string // of warning and above
		infos string // checks, and how many
	}{
		{"vendor-lab.1", "", ""},
		{"vendor-lab.3", strings.Repeat("warning topo.loopback\n", 19), "2 link.speed, 1 name.default"},
		{"vendor-lab.6-CS8500", "warning link.uplinks 0xb8cef603006178ba 19 of 20\nwarning link.uplinks 0xb8cef60300617cda 19 of 20\n", "4 host.rails, 2 name.default"},
		{"vendor-lab.8-empty-lid", "", "1 lid.range"},
		{"small-1", "error link.asymmetric 0x0008f10400410015/1\nerror link.asymmetric 0x005442ba00003080/12\n", "3 name.default"},
		{"small-3", "warning link.speed 0xf4521403005764b0/8\n" + strings.Repeat("warning topo.loopback\n", 3), "1 name.default"},
		{"ufm-director", strings.Repeat("warning link.uplinks 19 of 20\n", 5), "1 lid.range, 1 name.default"},
		{"lyon-x5", "error link.uplinks 0x0008f10500108bba 4 of 12\n", "4 name.default"},
		{"rack-lab", "warning link.uplinks 0xf452140300115da0 7 of 8\n", ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			file := ofFile(t, realFabric(t, dir, x.name))
			defer file.Close()
			set, err := audits.LoadAudits(t.Context(), file.Interpreter, nil, nil, false)
			if err != nil {
				t.Fatal(err)
			}
			r, err := set.Run(t.Context(), file.Interpreter, audits.RunOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			infos := map[string]int{}
			for i := range r.Findings {
				f := &r.Findings[i]
				if f.Severity < audit.Warning {
					infos[f.Check]++
					continue
				}
				line := f.Severity.String() + " " + f.Check
				if n := strings.Count(x.found, f.Check); n < 3 {
					line += " " + f.Subject.Key()
				}
				if f.Check == "link.uplinks" {
					line += fmt.Sprintf(" %v of %v", datum(f, "uplinks"), datum(f, "usual"))
				}
				got = append(got, line+"\n")
			}
			slices.Sort(got)
			if text := strings.Join(got, ""); text != x.found {
				t.Errorf("got\n%swant\n%s", text, x.found)
			}
			var list []string
			for check, n := range infos {
				list = append(list, fmt.Sprintf("%d %s", n, check))
			}
			slices.SortFunc(list, func(a, b string) int { return strings.Compare(a[2:], b[2:]) })
			if text := strings.Join(list, ", "); text != x.infos {
				t.Errorf("infos: got %s, want %s", text, x.infos)
			}
			if r.Complete() || !r.Answered() {
				t.Errorf("complete %v, answered %v", r.Complete(), r.Answered())
			}
			for _, check := range []string{"link.init", "link.width", "lid.zero", "mtu.neighbor", "ctr.ber", "sm.none"} {
				if !slices.ContainsFunc(r.Unjudged, func(u audit.Unjudged) bool { return u.Check == check && u.Lacked != "" }) {
					t.Errorf("%s is not among the checks that were not judged", check)
				}
			}
		})
	}
}

func datum(f *audit.Finding, name string) any {
	for _, d := range f.Data {
		if d.Name == name {
			text, _ := json.Marshal(fmt.Sprint(d.Value))
			return strings.Trim(string(text), `"`)
		}
	}
	return nil
}

// TestRealFabricsNodes: every adapter of real fabrics is of a host or named as unnamed; without a
// live fabric, the standard audits leave no host ok; and no line for Slurm has a name to quote.
func TestRealFabricsNodes(t *testing.T) {
	dir := fabricsDir(t)
	line := regexp.MustCompile(`^case "\$\(sinfo -a -h -n ([A-Za-z0-9._][A-Za-z0-9._-]*) -o %E\)" in none\|'fabsh: '\*\) scontrol update NodeName=[A-Za-z0-9._-]+ State=DRAIN Reason='fabsh: [ -&(-~]*' ;; esac\n$`)
	for _, name := range []string{"small-1", "rack-lab", "vendor-lab.8-empty-lid"} {
		f := realFabric(t, dir, name)
		file := ofFile(t, f)
		defer file.Close()
		set, err := audits.LoadAudits(t.Context(), file.Interpreter, []string{"links", "topology"}, nil, false)
		if err != nil {
			t.Fatal(err)
		}
		report, err := set.Run(t.Context(), file.Interpreter, audits.RunOptions{})
		if err != nil {
			t.Fatal(err)
		}
		nodes := hosthealth.Judge([]*audit.Report{report}, hosthealth.JudgeOptions{})
		if len(nodes.Hosts)+len(nodes.Unnamed) == 0 || nodes.Has(hosthealth.OK) {
			t.Errorf("%s: %d hosts, one of them ok, though the dump has no states; unnamed %q", name, len(nodes.Hosts), nodes.Unnamed)
		}
		for i := range nodes.Hosts {
			nodes.Hosts[i].State = hosthealth.Unhealthy
		}
		slurm, err := hosthealth.SchedulerFormatByName("slurm")
		if err != nil {
			t.Fatal(err)
		}
		text, refused := slurm.Write(nodes, hosthealth.Output{})
		if n := strings.Count(text, "\n"); n+len(refused) != len(nodes.Hosts) {
			t.Errorf("%s: %d lines for %d hosts; refused %v", name, n, len(nodes.Hosts), refused)
		}
		for l := range strings.Lines(text) {
			if !line.MatchString(l) {
				t.Errorf("%s: %q", name, l)
			}
		}
	}
}

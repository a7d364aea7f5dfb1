package serve

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/jobs"
	"fabsh/fabric/routing/routingtest"
)

// TestJobs: pages of links and hosts, and predictions, have the jobs that run there, and no others; a list that
// changed takes the place of the one before.
func TestJobs(t *testing.T) {
	s, tables := siteWithTables(t, "fattree:k=4,levels=2") // node-0001 and node-0002 at leaf-1
	show := func(address string) string {
		t.Helper()
		w := ask(t, s, "GET", address, "")
		if w.Code != 200 {
			t.Errorf("%s: %d", address, w.Code)
		}
		return text(w.Body.String())
	}
	for _, address := range []string{"/link/leaf-1/3", "/node/node-0001%20HCA-1", "/paths?without=leaf-1"} {
		if got := show(address); !strings.Contains(got, "--jobs FILE") {
			t.Errorf("%s without jobs: %s", address, got)
		}
	}
	s.SetJobs([]jobs.Job{
		{ID: "7", Name: "train", User: "mira", Hosts: []string{"node-0001", "node-0007"}},
		{ID: "8", Name: hostile, User: hostile, Hosts: []string{"node-0003", "node-0004"}}, // at one leaf: no link between switches
		{ID: "9", Hosts: []string{"node-0005", "elsewhere"}},
	}, noon.Add(-time.Minute))
	p, err := tables.Routes.Trace(routingtest.LID(t, tables.Routes.Graph(), "node-0001 HCA-1"), routingtest.LID(t, tables.Routes.Graph(), "node-0007 HCA-1"))
	if err != nil {
		t.Fatal(err)
	}
	var up *fabric.Port // that job 7 uses out of leaf-1
	for _, l := range linksOf(p) {
		if l.from.Node().Name() == "leaf-1" {
			up = l.from
		}
	}
	for _, c := range []struct {
		address  string
		has, not []string
	}{
		{"/link/leaf-1/" + portKey(up)[len("leaf-1/"):], []string{"Jobs over this link", "7 train of mira traffic 1; hosts 2: node-[0001,0007]", "Jobs of a file of"}, []string{"8 &lt;script&gt;", "--jobs FILE"}},
		{"/link/leaf-2/3", []string{"None of 3 jobs that run."}, []string{"mira"}},
		{"/link/leaf-1/1", []string{"Jobs of node-0001", "7 train of mira hosts 2"}, []string{"node-0003", "traffic"}},
		{"/node/node-0001%20HCA-1", []string{"Jobs of node-0001", "7 train of mira"}, []string{"node-0003", "--jobs FILE"}},
		{"/node/node-0003%20HCA-1", []string{"8 &lt;script&gt;"}, []string{"mira"}},
		{"/node/node-0002%20HCA-1", []string{"None of 3 jobs that run."}, []string{"mira"}},
		{"/node/leaf-1", nil, []string{"Jobs", "--jobs FILE"}},
		{"/paths?without=leaf-1", []string{"Jobs without it", "7 train of mira traffic 1; hosts 2: node-[0001,0007] ; lost 1: node-0001", "1 running job has hosts or traffic there; some lose hosts"}, []string{"node-0003", "--jobs FILE"}},
		{"/paths?without=leaf-2/1", []string{"8 &lt;script&gt;", "lost 1: node-0003"}, []string{"mira"}},
	} {
		got := show(c.address)
		for _, want := range c.has {
			if !strings.Contains(got, want) {
				t.Errorf("%s without %q: %s", c.address, want, got)
			}
		}
		for _, not := range c.not {
			if strings.Contains(got, not) {
				t.Errorf("%s has %q: %s", c.address, not, got)
			}
		}
	}
	var impact struct{ Jobs []struct{ ID string } }
	if err := json.Unmarshal(ask(t, s, "GET", "/api/impact?without=leaf-1", "").Body.Bytes(), &impact); err != nil || len(impact.Jobs) != 1 || impact.Jobs[0].ID != "7" {
		t.Errorf("%v %+v", err, impact)
	}
	s.SetJobs([]jobs.Job{{ID: "10", Hosts: []string{"node-0001.example", "node-0007"}}}, noon)
	if got := show("/node/node-0001%20HCA-1"); !strings.Contains(got, "10 hosts 2") || strings.Contains(got, "mira") {
		t.Errorf("another list: %s", got)
	}
	if got := show("/paths?without=leaf-1"); !strings.Contains(got, "10 traffic") || strings.Contains(got, "mira") {
		t.Errorf("another list: %s", got)
	}
	s.SetJobs([]jobs.Job{{ID: "11", Hosts: []string{"other-1", "other-2"}}}, noon)
	if got := show("/link/leaf-1/3"); !strings.Contains(got, "compare the names of hosts") {
		t.Errorf("other names: %s", got)
	}
	s.SetJobs(nil, noon)
	if got := show("/link/leaf-1/3"); !strings.Contains(got, "No job runs.") {
		t.Errorf("no jobs: %s", got)
	}
}

// TestManyJobs: a page of many jobs is short, and says how many are left out.
func TestManyJobs(t *testing.T) {
	s, _ := siteWithTables(t, "fattree:k=4,levels=2")
	var list []jobs.Job
	for i := range 5000 {
		list = append(list, jobs.Job{ID: strings.Repeat("x", 50) + string(rune('a'+i%26)), Hosts: []string{"node-0001", "node-0007"}})
	}
	s.SetJobs(list, noon)
	for _, address := range []string{"/node/node-0001%20HCA-1", "/paths?without=leaf-1"} {
		w := ask(t, s, "GET", address, "")
		if got := text(w.Body.String()); !strings.Contains(got, "and 4,900 more") || w.Body.Len() > 200_000 {
			t.Errorf("%s: %d bytes: %.3000s", address, w.Body.Len(), got)
		}
	}
}

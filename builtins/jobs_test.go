package builtins

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// jobsFile are two jobs whose paths cross by d-mod-k, one with a host that is missing, and one
// that waits.
const jobsFile = `JOBID,NAME,PARTITION,USER,STATE,NODELIST
7,cfd,urgent,ada,RUNNING,node-[0001,0009]
8,md,batch,bob,RUNNING,NODE-0002.example.com,node-0013
9,x,batch,eve,PENDING,(Resources)
10,io,batch,eve,RUNNING,node-[0005-0006,0017,0099]
`

// TestJobTraffic: jobs share links by d-mod-k, and none by the policy of two classes.
func TestJobTraffic(t *testing.T) {
	onSim(t, "fattree", nil, func(t *testing.T, f *fixture) {
		write(t, f.fs, "/work/jobs.csv", jobsFile)
		out, explained, status := f.run(`
load("@examples//job_classes.star", classes="route")
f = discover()
jobs = load_jobs("jobs.csv")
print(jobs[1], jobs[1].hosts)
r = f.graph().route("ftree")
t = r.job_traffic(jobs, "ring")
show(t)
show(t.jobs)
show(t.shared)
print(t.loads["leaf-1/5"], r.congestion(r.job_matrix(jobs, "ring")).max)
two = classes(f, jobs="jobs.csv", first=["urgent"])
print(two.job_traffic(jobs, "ring").num_shared, two.verify().ok, two.diff(r).entries > classes(f, jobs="jobs.csv", first=["urgent"], keep=True).diff(r).entries)
print(r.job_traffic({"a": ["node-0001"], "b": "node-0001, node-0002"}, "rails").jobs.select(lambda j: j.missing or j.slowdown > 1))
for bad in [lambda: r.job_traffic([1]), lambda: r.job_traffic(jobs + jobs), lambda: r.job_traffic({1: "a"}), lambda: r.job_traffic({"a": "a[1-"}), lambda: r.job_traffic({"a": [1]}), lambda: r.job_traffic({"a": 1}), lambda: r.job_traffic({"": "a"}), lambda: r.job_traffic({"a": ["b", ""]}), lambda: r.job_traffic(5),
    lambda: r.job_traffic({}, "gather"), lambda: r.job_matrix({}, "gather"), lambda: load_jobs("none.csv"), lambda: classes(f), lambda: classes(f, jobs="jobs.csv", first=["admin"])]:
    print(catch(bad).message)
`)
		want := `job(id="8", name="md", user="bob", partition="batch", ...) ["NODE-0002.example.com", "node-0013"]
pattern     ring
num_jobs    3
num_shared  1
worst       7
max         2
port        leaf-1/5
adaptive    False
id  hosts  missing        ports  leaves  least_leaves  pods  least_pods  alone  together  slowdown  shared  lost
7       2  []                 2       2             1     -           -      1         2         2       1     0
8       2  []                 2       2             1     -           -      1         2         2       1     0
10      3  ["node-0099"]      3       2             1     -           -      1         1         1       0     0
port      to         traffic  jobs
leaf-1/5  spine-1/1        2  ["7", "8"]
{"7": 1.0, "8": 1.0} 2.0
0 True True
[]
job_traffic: for parameter jobs: element 0: got int, want job
job_traffic: for parameter jobs: element 3: job "7" is listed twice
job_traffic: for parameter jobs: got the key 1, want the id of a job as a string
job_traffic: for parameter jobs: job "a": host list "a[1-": a bracket is not closed
job_traffic: for parameter jobs: job "a": got int, want the name of a host
job_traffic: for parameter jobs: job "a": got int, want hosts
job_traffic: for parameter jobs: got the key "", want the id of a job as a string
job_traffic: for parameter jobs: job "a": the name of a host is empty
job_traffic: for parameter jobs: got int, want a list of job, or a dict of id to hosts
job_traffic: unknown pattern "gather"; supported: all-to-all, ring, bidirectional-ring, recursive-doubling, halving-doubling, tree, rails, pxn, experts, experts-across, experts-direct, sharp, incast, storage
job_matrix: unknown pattern "gather"; supported: all-to-all, ring, bidirectional-ring, recursive-doubling, halving-doubling, tree, rails, pxn, experts, experts-across, experts-direct, sharp, incast, storage
load_jobs: none.csv: no such file
fail: use --jobs FILE, and --first PARTITION or --first USER
fail: no job of admin runs
`
		if diff := cmp.Diff(want, out+explained); diff != "" || status != 0 {
			t.Errorf("status %d, %s", status, diff)
		}
	})
}

// TestLoadsOfNamesakes: the loads of switches that share a name are kept apart.
func TestLoadsOfNamesakes(t *testing.T) {
	onSim(t, "ring:n=4,hosts=2", nil, func(t *testing.T, f *fixture) {
		write(t, f.fs, "/work/jobs.csv", "JOBID,NODELIST\n1,node-[0001-0004]\n2,node-[0005,0007]\n")
		dump, _, _ := f.run("print(discover().dump())")
		for n := range 4 {
			dump = strings.ReplaceAll(dump, fmt.Sprintf(`"switch-%d"`, n+1), `"SwitchX"`)
		}
		write(t, f.fs, "/work/twins.topo", dump)
		out, explained, status := f.run(`
r = load_fabric("twins.topo").graph().route("updn")
jobs = load_jobs("jobs.csv")
print(sorted(r.job_traffic(jobs, "ring").loads.items()))
print(sorted(r.congestion(r.job_matrix(jobs, "ring")).loads.items()))
print(len(r.balance().routes), len(r.balance().lids))
`)
		want := `[("0x0002c90300100000/4", {"1": 1.0}), ("0x0002c90300100010/3", {"1": 1.0}), ("0x0002c90300100020/4", {"2": 1.0}), ("0x0002c90300100030/3", {"2": 1.0})]
[("0x0002c90300100000/4", 1.0), ("0x0002c90300100010/3", 1.0), ("0x0002c90300100020/4", 1.0), ("0x0002c90300100030/3", 1.0)]
8 8
`
		if diff := cmp.Diff(want, out+explained); diff != "" || status != 0 {
			t.Errorf("status %d, %s", status, diff)
		}
	})
}

// TestJobClassesAggregation: where all switches have aggregation nodes, jobs of two classes share no link,
// no entry for a host leaves its class, and the aggregation nodes reach each other.
func TestJobClassesAggregation(t *testing.T) {
	onSim(t, "pgft:m=4/4/4,w=1/4/4,p=1/1/1,aggregation=yes", nil, func(t *testing.T, f *fixture) {
		write(t, f.fs, "/work/jobs.csv", jobsFile)
		out, explained, status := f.run(`
load("@examples//job_classes.star", classes="route")
f = discover()
t = classes(f, jobs="jobs.csv", first=["urgent"])
v = t.verify()
print(t.job_traffic(load_jobs("jobs.csv"), "all-to-all").num_shared, v.ok, v.unreachable, v.unreachable_switches)
`)
		if diff := cmp.Diff("0 True 0 0\n", out+explained); diff != "" || status != 0 {
			t.Errorf("status %d, %s", status, diff)
		}
	})
}

// TestReportJobs: the three tables of the report, and what it refuses.
func TestReportJobs(t *testing.T) {
	onSim(t, "fattree", nil, func(t *testing.T, f *fixture) {
		write(t, f.fs, "/work/jobs.csv", jobsFile)
		f.run(`sim.traffic([("node-0001 HCA-1", "node-0009 HCA-1"), ("node-0002 HCA-1", "node-0013 HCA-1"), ("node-0005 HCA-1", "node-0009 HCA-1")], rate="20GB/s")`)
		got := ""
		for _, words := range [][]string{
			{"--jobs", "jobs.csv", "--pattern", "ring", "--over", "2s"}, {"--jobs", "jobs.csv", "--over", "2s", "--threshold", "2000000000"},
			{"--jobs", "jobs.csv", "--placement"}, {"--jobs", "jobs.csv", "--shared"},
			{}, {"--jobs", "jobs.csv", "--shared", "--placement"}, {"--jobs", "jobs.csv", "--threshold", "x"}, {"--jobs", "none.csv"},
		} {
			got += f.report("jobs", words...)
		}
		want := `port               wait_per_second  jobs  to         guid                num
leaf-2/5                 1.875e+09  10    spine-1/2  0x0002c90300100010    5
node-0001 HCA-1/1        1.875e+09  7     leaf-1/1   0x0002c90310000000    1
node-0002 HCA-1/1        1.875e+09  8     leaf-1/2   0x0002c90310000010    1
node-0005 HCA-1/1        1.875e+09  10    leaf-2/1   0x0002c90310000040    1
fabric: 44 nodes (12 switches, 32 CAs), 64 links, complete
jobs: 3
hosts of jobs: 7
hosts of jobs that are not in the fabric: 1: node-0099
links that several jobs use: 1
worst-hit job: 7; its slowest flow takes 2.0 times as long as without the other jobs
ports that waited: 4
[exit status 1]
port  wait_per_second  jobs  to  guid  num
fabric: 44 nodes (12 switches, 32 CAs), 64 links, complete
jobs: 3
hosts of jobs: 7
hosts of jobs that are not in the fabric: 1: node-0099
links that several jobs use: 1
worst-hit job: 7; its slowest flow takes 2.0 times as long as without the other jobs
ports that waited: 0
[exit status 0]
job  name  user  hosts  leaves  least_leaves  pods  least_pods  shared  slowdown
7    cfd   ada       2       2             1     -           -       1         2
8    md    bob       2       2             1     -           -       1         2
10   io    eve       3       2             1     -           -       0         1
fabric: 44 nodes (12 switches, 32 CAs), 64 links, complete
jobs: 3
hosts of jobs: 7
hosts of jobs that are not in the fabric: 1: node-0099
links that several jobs use: 1
worst-hit job: 7; its slowest flow takes 2.0 times as long as without the other jobs
[exit status 0]
port      traffic  jobs  to         guid                num
leaf-1/5        2  7 8   spine-1/1  0x0002c90300100000    5
fabric: 44 nodes (12 switches, 32 CAs), 64 links, complete
jobs: 3
hosts of jobs: 7
hosts of jobs that are not in the fabric: 1: node-0099
links that several jobs use: 1
worst-hit job: 7; its slowest flow takes 2.0 times as long as without the other jobs
[exit status 0]
jobs: missing --jobs FILE, such as the output of squeue --json[exit status 2]
jobs: --shared and --placement: give one of them[exit status 2]
jobs: --threshold: invalid number "x"[exit status 2]
jobs: load_jobs: none.csv: no such file[exit status 2]
`
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

// TestReportJobsShortened: the lists of the report have at most 200 characters, and longer ones end with "...".
func TestReportJobsShortened(t *testing.T) {
	onSim(t, "fattree", nil, func(t *testing.T, f *fixture) {
		if _, explained, status := f.run(`set_lft("leaf-2", {discover().node("node-0001 HCA-1").lid: None})`); status != 0 {
			t.Fatal(explained)
		}
		numbers := func(n int, separator string) string {
			var list []string
			for i := range n {
				list = append(list, strconv.Itoa(1001+2*i)) // never adjacent
			}
			return strings.Join(list, separator)
		}
		for _, x := range []struct{ hosts, jobs int }{{38, 40}, {39, 41}} {
			hosts, ids := "gone-["+numbers(x.hosts, ",")+"]", numbers(x.jobs, " ")
			file := "JOBID,NODELIST\n1,\"" + hosts + "\"\n"
			for id := range strings.FieldsSeq(ids) {
				file += id + ",\"node-0001,node-0005\"\n"
			}
			write(t, f.fs, "/work/jobs.csv", file)
			if len(hosts) > 200 {
				hosts, ids = hosts[:200]+"...", ids[:200]+"..."
			}
			want := fmt.Sprintf("hosts of jobs that are not in the fabric: %d: %s\njobs with flows that do not arrive: %d: %s\n", x.hosts, hosts, x.jobs, ids)
			if got := f.report("jobs", "--jobs", "jobs.csv", "--shared"); !strings.Contains(got, want) {
				t.Errorf("got %s\nwant %s", got, want)
			}
		}
	})
}

// withoutLID is a transport on which the port with a LID has none.
type withoutLID struct {
	engine.Transport
	lid uint64
}

func (w withoutLID) Recv(d *engine.Datagram) error {
	err := w.Transport.Recv(d)
	info, lid := d.MAD[mad.ClassSubnDirected.DataOffset():], mad.AttrPortInfo.Field("lid")
	if h := mad.ParseHeader(d.MAD[:]); err == nil && h.Attribute == mad.AttrPortInfo.ID && lid.Uint(info) == w.lid {
		lid.SetUint(info, 0)
	}
	return err
}

// TestReportJobsLID: hosts that are in the fabric, but have no LID, are a line of their own.
func TestReportJobsLID(t *testing.T) {
	wrap := func(tr engine.Transport) engine.Transport { return withoutLID{tr, 15} }
	onSimWith(t, "fattree", nil, wrap, nil, func(t *testing.T, f *fixture) {
		write(t, f.fs, "/work/jobs.csv", "JOBID,NODELIST\n1,\"Node-0003.example.com,node-0004,gone\"\n")
		const want = "hosts of jobs: 1\nhosts of jobs that are not in the fabric: 1: gone\nhosts of jobs without a LID: 1: Node-0003.example.com; a subnet manager must assign LIDs first\n"
		if got := f.report("jobs", "--jobs", "jobs.csv", "--shared"); !strings.Contains(got, want) {
			t.Errorf("got %s\nwant %s", got, want)
		}
	})
}

// TestJobClasses: the jobs of two classes have no link in common in a tree of three levels,
// whatever the names of their hosts are; entries without a path over the spines of their class
// are reported.
func TestJobClasses(t *testing.T) {
	const script = `
load("@examples//job_classes.star", classes="route")
r = classes(discover(), jobs="jobs.csv", first=["urgent"])
jobs = load_jobs("jobs.csv")
links = [set(r.job_traffic([j for j in jobs if (j.partition == "urgent") == first]).loads) for first in [True, False]]
print(len(links[0]), len(links[1]), len(links[0] & links[1]), r.verify().ok)
print(catch(classes, discover(), jobs="jobs.csv", first=["urgent"], roots="center").message)
`
	var hosts [2][]string
	for i := range 128 {
		hosts[i*i/3%2] = append(hosts[i*i/3%2], fmt.Sprintf("NODE-%04d.example.com", i+1))
	}
	for _, tt := range []struct{ net, want string }{
		{"fattree:k=8,levels=3", "256 254 0 True\nfail: two classes need two top switches; found: 1\n"},
		{"fattree:k=8,levels=3,remove_links=3%,seed=1", "entries without a path over the spines of their class: 7\n250 269 23 True\nfail: two classes need two top switches; found: 1\n"},
	} {
		onSim(t, tt.net, nil, func(t *testing.T, f *fixture) {
			write(t, f.fs, "/work/jobs.csv", "JOBID,PARTITION,NODELIST\n7,urgent,"+strings.Join(hosts[0], ",")+"\n8,batch,"+strings.Join(hosts[1], ",")+"\n")
			out, explained, status := f.run(script)
			if diff := cmp.Diff(tt.want, out+explained); diff != "" || status != 0 {
				t.Errorf("%s: status %d, %s", tt.net, status, diff)
			}
		})
	}
}

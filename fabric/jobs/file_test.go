package jobs

import (
	"fmt"
	"strings"
	"testing"

	"fabsh/fabric/hosts"
)

// summary is jobs as text, one on a line.
func summary(list []Job, err error) string {
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, j := range list {
		fmt.Fprintf(&b, "%s %s %s %s: %s\n", j.ID, j.Name, j.User, j.Partition, hosts.Fold(j.Hosts))
	}
	return b.String()
}

func TestRead(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"squeue --json", `{"meta": {"jobs": [1]}, "jobs": [
			{"job_id": 7, "name": "cfd", "user_name": "ada", "partition": "batch", "job_state": ["RUNNING"], "nodes": "node[001-004,7]"},
			{"job_id": 8, "job_state": ["PENDING"], "nodes": ""},
			{"job_id": 9, "job_state": ["COMPLETED"], "nodes": "node[001-002]"},
			{"job_id": {"set": true, "infinite": false, "number": 10}, "job_state": "RUNNING", "nodes": null, "job_resources": {"nodes": {"count": 2, "list": "gpu1,gpu[2-3],gpu1"}}},
			{"job_id": "11_4", "nodes": "a", "job_resources": null}
		], "warnings": []}`, "7 cfd ada batch: node[001-004],node7\n10   : gpu[1-3]\n11_4   : a\n"},
		{"no jobs run", `{"jobs": []}`, ""},
		{"squeue -o", "JOBID,PARTITION,NAME,USER,STATE,NODES,NODELIST(REASON)\n7,batch,cfd,ada,RUNNING,5,node[001-004,7]\n8,batch,x,bob,PENDING,1,(Resources)\n", "7 cfd ada batch: node[001-004],node7\n"},
		{"quotes, byte order mark, CRLF", "\ufeffjob_id, nodes ,name\r\n7,\"node[1-2,4]\",\"a, b\"\r\n", "7 a, b  : node[1-2,4]\n"},
		{"JSON with a byte order mark", "\ufeff{\"jobs\": [{\"job_id\": 7, \"nodes\": \"a\"}]}", "7   : a\n"},
		{"Slurm 21.08", `{"jobs": [{"job_id": 7, "name": "cfd", "user_name": "ada", "job_state": "RUNNING", "nodes": "node[1-2]", "job_resources": {"nodes": "node[1-2]", "allocated_hosts": 2, "allocated_nodes": {"0": {"cpus": 1}, "1": {"cpus": 1}}}}]}`, "7 cfd ada : node[1-2]\n"},
		{"Slurm 23.02", `{"jobs": [{"job_id": 7, "job_state": "RUNNING", "nodes": "node1", "job_resources": {"nodes": "node1", "allocated_nodes": [{"nodename": "node1"}]}}]}`, "7   : node1\n"},
		{"Slurm 24.05", `{"jobs": [{"job_id": 7, "job_state": ["RUNNING"], "nodes": "node1", "job_resources": {"nodes": {"count": 1, "list": "node1", "allocation": [{"name": "node1"}]}}}]}`, "7   : node1\n"},
		{"sacct", `{"jobs": [
			{"job_id": 7, "name": "cfd", "user": "ada", "partition": "batch", "state": {"current": ["RUNNING"], "reason": "None"}, "nodes": "node[1-2]", "array": {"job_id": 0, "task_id": {"set": false, "number": 0}}},
			{"job_id": 8, "state": {"current": "COMPLETED"}, "nodes": "node3"},
			{"job_id": 9, "state": {"current": ["RUNNING"]}, "nodes": "node4", "array": {"job_id": 6, "task_id": {"set": true, "number": 2}}},
			{"job_id": 10, "state": {"current": ["PENDING"]}, "nodes": "None assigned"},
			{"job_id": 14, "state": {"current": ["RUNNING"]}, "nodes": "node5", "het": {"job_id": 13, "job_offset": {"set": true, "number": 1}}}]}`, "7 cfd ada batch: node[1-2]\n6_2   : node4\n13+1   : node5\n"},
		{"arrays and heterogeneous jobs", `{"jobs": [
			{"job_id": 12, "array_job_id": {"set": true, "number": 11}, "array_task_id": {"set": true, "number": 0}, "het_job_id": {"set": true, "number": 0}, "het_job_offset": {"set": true, "number": 0}, "nodes": "a"},
			{"job_id": 14, "array_job_id": 11, "array_task_id": 3, "het_job_id": 0, "nodes": "b"},
			{"job_id": 15, "array_job_id": 0, "array_task_id": null, "het_job_id": {"set": true, "number": 13}, "het_job_offset": {"set": true, "number": 1}, "nodes": "c"},
			{"job_id": 16, "array_job_id": {"set": true, "number": 0}, "array_task_id": {"set": false, "number": 0}, "nodes": "d"}]}`,
			"11_0   : a\n11_3   : b\n13+1   : c\n16   : d\n"},
		{"an unset id", `{"jobs": [{"job_id": {"set": false, "number": 0}, "nodes": "a"}]}`, `jobs.txt: a job without an id on "a"`},
		{"a list of names", `{"jobs": [{"job_id": 7, "nodes": ["a", "b"]}, {"job_id": 8, "nodes": []}]}`, "7   : a,b\n"},
		{"hosts of another type", `{"jobs": [{"job_id": 7, "nodes": 5}]}`, "jobs.txt: byte 35: unexpected JSON number of nodes; want the output of squeue --json"},
		{"a list of another type", `{"jobs": [{"job_id": 7, "nodes": [5]}]}`, "jobs.txt: byte 37: unexpected JSON number of nodes; want the output of squeue --json"},
		{"a job of another type", `{"jobs": [7]}`, "jobs.txt: byte 11: unexpected JSON number of a job; want the output of squeue --json"},
		{"a comma in a name", "JOBID,NAME,STATE,NODELIST\n7,a,R,node1,node2\n8,a,b,RUNNING,node1\n", `jobs.txt:3: 5 fields, and the header has 4; quote fields with a ',', or use the output of squeue --json`},
		{"a bar in a name", "JOBID|NAME|NODELIST\n8|a|b|node1\n", `jobs.txt:2: 4 fields, and the header has 3; quote fields with a '|', or use the output of squeue --json`},
		{"a quote in a name", "JOBID,NAME,NODELIST\n7,say \"hi\",node1\n", `jobs.txt:2: column 7: bare " in non-quoted-field; quote the field, or use the output of squeue --json`},
		{"bars", "JOBID|ST|NODELIST|NAME\n7|R|node[1-2,4]|a,b\n8|CG|node5|c\n", "7 a,b  : node[1-2,4]\n"},
		{"steps of sacct", "JobID|State|NodeList\n7|RUNNING|a,b\n7.batch|RUNNING|a\n7.0|RUNNING|a,b\n", "7   : a,b\n"},
		{"ids of another scheduler", "id|nodes\n7.server|a\n8.server|b\n", "7.server   : a\n8.server   : b\n"},
		{"a list", `[{"job_id": 7, "nodes": "a"}]`, `jobs.txt: a JSON list; want the output of squeue --json, an object with the list "jobs"`},
		{"spaces", "id;nodes\n7; a, b[1-2] \n", "7   : a,b[1-2]\n"},
		{"tabs", "id\tuser\thosts\n7\t\tnode[1-2,4]\n", "7   : node[1-2,4]\n"},
		{"UTF-16", "\xff\xfej\x00o\x00b\x00", "jobs.txt: UTF-16 text is unsupported; write the file as UTF-8 (PowerShell: squeue --json | Out-File -Encoding utf8 FILE)"},
		{"a byte order mark alone", "\ufeff", "jobs.txt: empty; want the output of squeue --json, or a table of jobs"},
		{"empty", " \n", "jobs.txt: empty; want the output of squeue --json, or a table of jobs"},
		{"cut", `{"jobs": [{"job_id": 7`, "jobs.txt: the file ends within its JSON; write it again with squeue --json"},
		{"cut after a job", `{"jobs": [{"job_id": 7, "nodes": "a"}`, "jobs.txt: the file ends within its JSON; write it again with squeue --json"},
		{"no jobs", `{"nodes": []}`, `jobs.txt: no "jobs"; want the output of squeue --json`},
		{"jobs is an object", `{"jobs": {}}`, `jobs.txt: "jobs" is not one list; want the output of squeue --json`},
		{"twice", `{"jobs": [], "jobs": []}`, `jobs.txt: "jobs" is not one list; want the output of squeue --json`},
		{"more", `{"jobs": []} {}`, "jobs.txt: byte 14: more than one JSON value"},
		{"no id", `{"jobs": [{"nodes": "a"}]}`, `jobs.txt: a job without an id on "a"`},
		{"an id of another type", `{"jobs": [{"job_id": [7], "nodes": "a"}]}`, "jobs.txt: byte 39: unexpected JSON array of job_id; want the output of squeue --json"},
		{"escapes in an id", `{"jobs": [{"job_id": "7\u001b[2J", "nodes": "a"}]}`, `jobs.txt: job "7\x1b[2J": "7\x1b[2J" has a space or a character that cannot be printed`},
		{"escapes in a host", "id,nodes\n7,a\x1bb\n", `jobs.txt:2: job "7": "a\x1bb" has a space or a character that cannot be printed`},
		{"several hosts in a field", "id|nodes\n7|a b\n", `jobs.txt:2: job "7": "a b" has a space or a character that cannot be printed`},
		{"same id", "id,nodes\n7,a\n7,b\n", `jobs.txt:3: job "7" is listed twice`},
		{"header", "a,b\n1,2\n", `jobs.txt:1: the header "a,b" has no column of ids, or none of hosts; want the output of squeue --json, or a header such as JOBID,USER,NODELIST`},
		{"fields", "nodes,id\na,b,7\n", `jobs.txt:2: 3 fields, and the header has 2; quote fields with a ',', or use the output of squeue --json`},
		{"a number of nodes", "JOBID,NODES\n7,12\n", "jobs.txt:2: NODES is the number of nodes; want a column NODELIST: squeue -o '%i,%j,%u,%T,%N'"},
		{"list", "id,nodes\n7,node[1-\n", `jobs.txt:2: job "7": host list "node[1-": a bracket is not closed`},
		{"too many names", "id,nodes\n7,\"a[1-65536]b[1-65536]\"\n", `jobs.txt:2: job "7": host list "[1-65536]": more than 1048576 names`},
		{"too many hosts", "id,nodes\n" + manyJobs(17), "jobs.txt:18: more than 65536 jobs, or 1048576 hosts of jobs"},
	} {
		if got := summary(Read(strings.NewReader(tt.text), "jobs.txt")); got != tt.want {
			t.Errorf("%s:\n%q, want\n%q", tt.name, got, tt.want)
		}
	}
}

// manyJobs are lines of jobs of 65,536 hosts.
func manyJobs(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d,a%d-[1-65536]\n", i, i)
	}
	return b.String()
}

func FuzzRead(f *testing.F) {
	for _, text := range []string{
		`{"jobs": [{"job_id": 7, "job_state": ["RUNNING"], "nodes": "node[001-004,7]"}]}`,
		`{"jobs": [{"job_id": {"number": 7}, "job_resources": {"nodes": {"list": "a"}}}], "x": [{}]}`,
		"JOBID,USER,NODELIST\n7,ada,node[001-004,7]\n", "id|nodes\n7|a,b\n", "id,nodes\n7,\"a\"\"\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := Read(strings.NewReader(text), "x")
		if err != nil {
			if list != nil {
				t.Errorf("jobs beside the error %v", err)
			}
			return
		}
		seen := map[string]bool{}
		for _, j := range list {
			if j.ID == "" || seen[j.ID] || len(j.Hosts) == 0 {
				t.Errorf("%q: job %q of %d hosts", text, j.ID, len(j.Hosts))
			}
			seen[j.ID] = true
		}
	})
}

package jobs

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/fabric/hosts"
)

const byteOrderMark = "\ufeff" // of Windows' tools

const (
	maxFile  = 256 << 20 // bytes
	maxJobs  = 1 << 16
	maxHosts = 1 << 20 // of all jobs
)

// Read reads the jobs that run and have hosts from a file: the output of squeue --json, or a
// table of jobs, with a header, that has a column of lists of hosts. Ids are as squeue
// prints them. name is used in errors.
func Read(r io.Reader, name string) ([]Job, error) {
	r, err := format.Bounded(r, name, maxFile)
	if err != nil {
		return nil, err
	}
	f := &file{name: name, seen: map[string]bool{}}
	in := bufio.NewReader(r)
	switch mark, _ := in.Peek(len(byteOrderMark)); {
	case string(mark) == byteOrderMark:
		in.Discard(len(mark))
	case len(mark) > 1 && (string(mark[:2]) == "\xff\xfe" || string(mark[:2]) == "\xfe\xff"):
		return nil, fmt.Errorf("%s: UTF-16 text is unsupported; write the file as UTF-8 (PowerShell: squeue --json | Out-File -Encoding utf8 FILE)", name)
	}
	for {
		c, err := in.ReadByte()
		switch {
		case errors.Is(err, io.EOF):
			return nil, fmt.Errorf("%s: empty; want the output of squeue --json, or a table of jobs", name)
		case err != nil:
			return nil, fmt.Errorf("%s: %w", name, err)
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			continue
		}
		in.UnreadByte()
		if c == '{' || c == '[' {
			err = f.readJSON(in)
		} else {
			err = f.readTable(in)
		}
		if err != nil {
			return nil, err
		}
		return f.jobs, nil
	}
}

// file is a file that is read.
type file struct {
	name  string // in errors; in a table, with the line
	jobs  []Job
	hosts int
	seen  map[string]bool // ids
}

// add adds a job unless it does not run, or has no hosts.
func (f *file) add(j Job, states []string, list string) error {
	running := func(state string) bool {
		return state == "" || strings.EqualFold(state, "RUNNING") || strings.EqualFold(state, "R")
	}
	if len(states) > 0 && !slices.ContainsFunc(states, running) {
		return nil
	}
	list = strings.TrimSpace(list)
	if list == "" || list[0] == '(' || list == "None assigned" { // squeue has the reason in parentheses
		return nil
	}
	if j.ID == "" {
		return fmt.Errorf("%s: a job without an id on %.60q", f.name, list)
	}
	if of, _, dotted := strings.Cut(j.ID, "."); dotted && f.seen[of] {
		return nil // a step of the job: sacct lists 7.batch and 7.0 below 7
	}
	if f.seen[j.ID] {
		return fmt.Errorf("%s: job %.60q is listed twice", f.name, j.ID)
	}
	f.seen[j.ID] = true
	names, err := hosts.Expand(list)
	if err != nil {
		return fmt.Errorf("%s: job %.60q: %w", f.name, j.ID, err)
	}
	if err := printable(append(names, j.ID)); err != nil {
		return fmt.Errorf("%s: job %.60q: %w", f.name, j.ID, err)
	}
	known := make(map[string]bool, len(names))
	for _, name := range names {
		if !known[name] {
			known[name] = true
			j.Hosts = append(j.Hosts, name)
		}
	}
	f.hosts += len(j.Hosts)
	if len(f.jobs) == maxJobs || f.hosts > maxHosts {
		return fmt.Errorf("%s: more than %d jobs, or %d hosts of jobs", f.name, maxJobs, maxHosts)
	}
	f.jobs = append(f.jobs, j)
	return nil
}

// printable returns an error unless all characters of ids and names of hosts are printable:
// they are columns and words of reports.
func printable(words []string) error {
	for _, word := range words {
		if strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsPrint(r) || r == ' ' }) {
			return fmt.Errorf("%.60q has a space or a character that cannot be printed", word)
		}
	}
	return nil
}

// slurmJob is a job in the output of squeue --json (slurm src/plugins/data_parser, JOB_INFO), or
// of sacct --json (JOB). Versions differ in what is a word or a list, and a number or an object.
type slurmJob struct {
	ID        slurmNumber `json:"job_id"`
	ArrayID   slurmNumber `json:"array_job_id"`
	TaskID    slurmNumber `json:"array_task_id"`
	HetID     slurmNumber `json:"het_job_id"`
	HetOffset slurmNumber `json:"het_job_offset"`
	Name      string      `json:"name"`
	User      string      `json:"user_name"`
	Partition string      `json:"partition"`
	State     slurmWords  `json:"job_state"`
	Nodes     slurmNodes  `json:"nodes"`
	Resources *struct {
		Nodes slurmNodes `json:"nodes"`
	} `json:"job_resources"`

	// Of sacct.
	Array struct {
		ID     slurmNumber `json:"job_id"`
		TaskID slurmNumber `json:"task_id"`
	} `json:"array"`
	Het struct {
		ID     slurmNumber `json:"job_id"`
		Offset slurmNumber `json:"job_offset"`
	} `json:"het"`
	Account struct {
		State slurmWords `json:"current"`
	} `json:"state"`
	AccountUser string `json:"user"`
}

// id is the id that squeue prints: 11_3 for a task of an array, and 13+1 for a part of a
// heterogeneous job.
func (j *slurmJob) id() string {
	array, task := cmp.Or(j.ArrayID, j.Array.ID), cmp.Or(j.TaskID, j.Array.TaskID)
	het, offset := cmp.Or(j.HetID, j.Het.ID), cmp.Or(j.HetOffset, j.Het.Offset)
	switch {
	case array != "" && array != "0" && task != "":
		return string(array + "_" + task)
	case het != "" && het != "0" && offset != "":
		return string(het + "+" + offset)
	}
	return string(j.ID)
}

// slurmNumber is a number: 5, or {"set": true, "number": 5}; "" if it is not set.
type slurmNumber string

// UnmarshalJSON implements [json.Unmarshaler].
func (n *slurmNumber) UnmarshalJSON(b []byte) error {
	var object struct {
		Set    *bool
		Number json.Number
	}
	switch b[0] {
	case '"':
		return json.Unmarshal(b, (*string)(n))
	case '{':
		err := json.Unmarshal(b, &object)
		if object.Set == nil || *object.Set {
			*n = slurmNumber(object.Number)
		}
		return err
	}
	err := json.Unmarshal(b, &object.Number)
	*n = slurmNumber(object.Number)
	return err
}

// slurmWords are words: "RUNNING", or ["RUNNING"].
type slurmWords []string

// UnmarshalJSON implements [json.Unmarshaler].
func (w *slurmWords) UnmarshalJSON(b []byte) error {
	if b[0] == '[' {
		return json.Unmarshal(b, (*[]string)(w))
	}
	var one string
	err := json.Unmarshal(b, &one)
	*w = slurmWords{one}
	return err
}

// slurmNodes is a list of hosts: "node[1-2]", {"list": "node[1-2]"}, or ["node1", "node2"].
type slurmNodes string

// UnmarshalJSON implements [json.Unmarshaler].
func (n *slurmNodes) UnmarshalJSON(b []byte) error {
	var object struct{ List string }
	var list []string
	switch b[0] {
	case '{':
		err := json.Unmarshal(b, &object)
		*n = slurmNodes(object.List)
		return err
	case '[':
		err := json.Unmarshal(b, &list)
		*n = slurmNodes(strings.Join(list, ","))
		return err
	}
	return json.Unmarshal(b, (*string)(n))
}

// readJSON reads the member "jobs" of an object.
func (f *file) readJSON(r io.Reader) error {
	d := json.NewDecoder(r)
	d.UseNumber()
	fail := func(err error) error {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("%s: the file ends within its JSON; write it again with squeue --json", f.name)
		}
		if wrong := new(json.UnmarshalTypeError); errors.As(err, &wrong) {
			return fmt.Errorf("%s: byte %d: unexpected JSON %s of %.60s; want the output of squeue --json", f.name, d.InputOffset(), wrong.Value, cmp.Or(wrong.Field, "a job"))
		}
		return fmt.Errorf("%s: byte %d: %w", f.name, d.InputOffset(), err)
	}
	if open, err := d.Token(); err != nil {
		return fail(err)
	} else if open != json.Delim('{') {
		return fmt.Errorf(`%s: a JSON list; want the output of squeue --json, an object with the list "jobs"`, f.name)
	}
	found := false
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return fail(err)
		}
		if key != "jobs" {
			var other json.RawMessage
			if err := d.Decode(&other); err != nil {
				return fail(err)
			}
			continue
		}
		if open, err := d.Token(); err != nil {
			return fail(err)
		} else if open != json.Delim('[') || found {
			return fmt.Errorf(`%s: "jobs" is not one list; want the output of squeue --json`, f.name)
		}
		found = true
		for d.More() {
			var j slurmJob
			if err := d.Decode(&j); err != nil {
				return fail(err)
			}
			if j.Nodes == "" && j.Resources != nil {
				j.Nodes = j.Resources.Nodes
			}
			if err := f.add(Job{ID: j.id(), Name: j.Name, User: cmp.Or(j.User, j.AccountUser), Partition: j.Partition}, append(j.State, j.Account.State...), string(j.Nodes)); err != nil {
				return err
			}
		}
		if _, err := d.Token(); err != nil {
			return fail(err)
		}
	}
	if _, err := d.Token(); err != nil {
		return fail(err)
	}
	if !found {
		return fmt.Errorf(`%s: no "jobs"; want the output of squeue --json`, f.name)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: byte %d: more than one JSON value", f.name, d.InputOffset())
	}
	return nil
}

// columns are the names of a table's columns, without case and underscores, of which the
// first that the table has counts. They are the names of squeue and sacct, and plain ones:
// NODES is a number of nodes if there is NODELIST too.
var columns = struct{ id, name, user, partition, state, hosts []string }{
	id: []string{"jobid", "id", "job"}, name: []string{"name", "jobname"}, user: []string{"user", "username"}, partition: []string{"partition"},
	state: []string{"state", "st", "jobstate"}, hosts: []string{"nodelist", "nodelist(reason)", "hosts", "hostlist", "nodes"},
}

// states are the states of jobs, as squeue(1) lists them, short and long.
var states = strings.Fields(`BF BOOT_FAIL CA CANCELLED CD COMPLETED CF CONFIGURING CG COMPLETING DL DEADLINE F FAILED
	NF NODE_FAIL OOM OUT_OF_MEMORY PD PENDING PR PREEMPTED R RUNNING RD RESV_DEL_HOLD RF REQUEUE_FED RH REQUEUE_HOLD
	RQ REQUEUED RS RESIZING RV REVOKED SI SIGNALING SE SPECIAL_EXIT SO STAGE_OUT ST STOPPED S SUSPENDED TO TIMEOUT`)

// readTable reads a table with a header, separated by commas, |, tabs or semicolons. If the
// last column of a table with commas has the hosts, they may be in several fields:
// job,node[1-2,4] needs no quotes. squeue does not quote the commas of a job's name either,
// and then the field of the state has something else.
func (f *file) readTable(r *bufio.Reader) error {
	start, err := r.Peek(4096)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	header, _, _ := strings.Cut(string(start), "\n")
	c := csv.NewReader(r)
	for _, separator := range "|\t;" {
		if strings.ContainsRune(header, separator) {
			c.Comma = separator
		}
	}
	c.FieldsPerRecord, c.ReuseRecord, c.TrimLeadingSpace = -1, true, c.Comma == ','
	file := f.name
	defer func() { f.name = file }()
	unreadable := func(err error) error {
		if wrong := new(csv.ParseError); errors.As(err, &wrong) {
			return fmt.Errorf("%s:%d: column %d: %w; quote the field, or use the output of squeue --json", file, wrong.Line, wrong.Column, wrong.Err)
		}
		return fmt.Errorf("%s: %w", file, err)
	}
	names, err := c.Read()
	if err != nil {
		return unreadable(err)
	}
	names = slices.Clone(names)
	for i, name := range names {
		names[i] = strings.ReplaceAll(strings.ToLower(strings.TrimSpace(name)), "_", "")
	}
	column := func(of []string) int {
		for _, name := range of {
			if i := slices.Index(names, name); i >= 0 {
				return i
			}
		}
		return -1
	}
	id, list := column(columns.id), column(columns.hosts)
	if id < 0 || list < 0 {
		return fmt.Errorf("%s:1: the header %q has no column of ids, or none of hosts; want the output of squeue --json, or a header such as JOBID,USER,NODELIST", f.name, fabric.Clip(strings.TrimSpace(header)))
	}
	for {
		row, err := c.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return unreadable(err)
		}
		line, _ := c.FieldPos(0)
		f.name = fmt.Sprintf("%s:%d", file, line)
		n, state := len(row), column(columns.state)
		if n > len(names) && c.Comma == ',' && list == len(names)-1 && (state < 0 || slices.Contains(states, strings.ToUpper(strings.TrimSpace(row[state])))) {
			row[list] = strings.Join(row[list:], ",")
			row = row[:len(names)]
		}
		if len(row) != len(names) {
			return fmt.Errorf("%s: %d fields, and the header has %d; quote fields with a %q, or use the output of squeue --json", f.name, n, len(names), c.Comma)
		}
		field := func(of []string) string {
			if i := column(of); i >= 0 {
				return strings.TrimSpace(row[i])
			}
			return ""
		}
		if names[list] == "nodes" && strings.Trim(row[list], " 0123456789") == "" && row[list] != "" {
			return fmt.Errorf("%s: NODES is the number of nodes; want a column NODELIST: squeue -o '%%i,%%j,%%u,%%T,%%N'", f.name)
		}
		j := Job{ID: strings.Clone(field(columns.id)), Name: strings.Clone(field(columns.name)), User: strings.Clone(field(columns.user)), Partition: strings.Clone(field(columns.partition))}
		if err := f.add(j, []string{field(columns.state)}, strings.Clone(row[list])); err != nil {
			return err
		}
	}
}

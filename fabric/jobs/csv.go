package jobs

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// columns are the names of a table's columns, without case and underscores, of which the
// first that the table has counts. They are those of squeue and sacct, and plain ones: NODES
// is a number of nodes if there is NODELIST too.
var columns = struct{ id, name, user, partition, state, hosts []string }{
	id: []string{"jobid", "id", "job"}, name: []string{"name", "jobname"}, user: []string{"user", "username"}, partition: []string{"partition"},
	state: []string{"state", "st", "jobstate"}, hosts: []string{"nodelist", "nodelist(reason)", "hosts", "hostlist", "nodes"},
}

// states are those of jobs, as squeue(1) lists them, short and long.
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
		return fmt.Errorf("%s:1: the header %.80q has no column of ids, or none of hosts; want the output of squeue --json, or a header such as JOBID,USER,NODELIST", f.name, strings.TrimSpace(header))
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

package shell

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// reader is the process that is told to read a file again, by SIGHUP: OpenSM,
// which then makes a heavy sweep and has its routing engine read its file
// (opensm main.c, osm_manager_loop). What it was at the beginning decides who
// is signalled later: a process ID may be another's by then.
type reader struct {
	pid   int
	file  string // that holds the ID; "": the ID was given
	name  string
	start string // of the process, in the kernel's clock
}

// proc is where the kernel tells of processes.
const proc = "/proc"

// findReader looks at the process of an ID, or of a file that holds one.
func findReader(arg string) (*reader, error) {
	r := &reader{}
	if pid, err := strconv.Atoi(arg); err == nil {
		r.pid = pid
	} else {
		r.file = arg
	}
	if err := r.look(); err != nil {
		return nil, fmt.Errorf("--reload %s: %w", arg, err)
	}
	return r, nil
}

// look fills in what the process is now.
func (r *reader) look() error {
	if r.file != "" {
		pid, err := readPID(r.file)
		if err != nil {
			return err
		}
		r.pid = pid
	}
	if r.pid <= 1 {
		return fmt.Errorf("%d is no process to be signalled", r.pid)
	}
	dir := filepath.Join(proc, strconv.Itoa(r.pid))
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if errors.Is(err, os.ErrNotExist) {
		if r.file != "" {
			return fmt.Errorf("there is no process %d, which the file names: is it left over from an earlier run?", r.pid)
		}
		return fmt.Errorf("there is no process %d", r.pid)
	} else if err != nil {
		return err
	}
	if r.name, r.start, err = parseStat(string(stat)); err != nil {
		return fmt.Errorf("%s/stat: %w", dir, err)
	}
	if err := syscall.Kill(r.pid, 0); err != nil {
		return fmt.Errorf("%v is not ours to signal (%w): run fabsh as its user", r, err)
	}
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return err
	}
	if !catchesHUP(string(status)) {
		return fmt.Errorf("%v does not catch SIGHUP, which would end it: is it the subnet manager?", r)
	}
	return nil
}

// String is who the process is.
func (r *reader) String() string { return fmt.Sprintf("%s (process %d)", r.name, r.pid) }

// reload signals the process, if it is the one that it was; of a file, if its
// process has the same name.
func (r *reader) reload() (string, error) {
	before := *r
	err := r.look()
	switch {
	case err == nil && r.file == "" && r.start != before.start:
		err = fmt.Errorf("process %d is %s now, another process", r.pid, r.name)
	case err == nil && r.name != before.name:
		err = fmt.Errorf("process %d, which %s names, is %s, and not %s", r.pid, r.file, r.name, before.name)
	case err == nil:
		err = syscall.Kill(r.pid, syscall.SIGHUP)
	}
	if err == nil {
		return r.String(), nil
	}
	*r = before
	if r.file == "" {
		return "", fmt.Errorf("%w: %v is gone: %w", errNoReader, r, err)
	}
	return "", err
}

// readPID reads a file of a process ID.
func readPID(path string) (int, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 64))
	if err != nil {
		return 0, err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0, fmt.Errorf("it holds no process ID, but %.20q", b)
	}
	return pid, nil
}

// parseStat finds the name and the start time in /proc/PID/stat: field 2, in
// parentheses and with any characters in it, and field 22 (proc_pid_stat(5)).
func parseStat(stat string) (name, start string, err error) {
	open, end := strings.IndexByte(stat, '('), strings.LastIndexByte(stat, ')')
	if open < 0 || end < open {
		return "", "", fmt.Errorf("not understood: %.40q", stat)
	}
	fields := strings.Fields(stat[end+1:]) // from field 3 on
	if len(fields) < 20 {
		return "", "", fmt.Errorf("not understood: %.40q", stat)
	}
	return stat[open+1 : end], fields[19], nil
}

// catchesHUP: of the signals that the process catches, SigCgt in
// /proc/PID/status, SIGHUP is one.
func catchesHUP(status string) bool {
	for line := range strings.Lines(status) {
		if digits, ok := strings.CutPrefix(line, "SigCgt:"); ok {
			mask, err := strconv.ParseUint(strings.TrimSpace(digits), 16, 64)
			return err == nil && mask>>(syscall.SIGHUP-1)&1 == 1
		}
	}
	return false
}

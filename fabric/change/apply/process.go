// Package opensm controls a running OpenSM from outside: which process it is, whether it
// routes by a file of tables, and the signal that has it read the file again.
//
//	process.go   Process: finding and signalling it
//	settings.go  which file of tables it reads

package apply

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

// OpenSM is the process that SIGHUP has read a file again: OpenSM, which then
// makes a heavy sweep and has its routing engine read its file (opensm main.c,
// osm_manager_loop). Only the process that it was at first is signalled: the ID
// may have been given to another since.
type OpenSM struct {
	// PIDFile is the file that holds the ID; "": the ID was given.
	PIDFile string

	pid   int
	name  string
	start string // of the process, in the kernel's clock
}

// proc is the directory of proc(5).
const proc = "/proc"

// ErrOpenSMEnded reports that the process to reload has exited.
var ErrOpenSMEnded = errors.New("the process to reload has exited")

// FindOpenSM finds the process of arg, an ID or a file that holds one.
func FindOpenSM(arg string) (*OpenSM, error) {
	p := &OpenSM{}
	if pid, err := strconv.Atoi(arg); err == nil {
		p.pid = pid
	} else {
		p.PIDFile = arg
	}
	if err := p.look(); err != nil {
		return nil, fmt.Errorf("--reload %s: %w", arg, err)
	}
	return p, nil
}

// look reads what the process is now.
func (p *OpenSM) look() error {
	if p.PIDFile != "" {
		pid, err := readPID(p.PIDFile)
		if err != nil {
			return err
		}
		p.pid = pid
	}
	if p.pid <= 1 {
		return fmt.Errorf("process %d: cannot be signalled; give the ID of the subnet manager", p.pid)
	}
	dir := filepath.Join(proc, strconv.Itoa(p.pid))
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if errors.Is(err, os.ErrNotExist) {
		if p.PIDFile != "" {
			return fmt.Errorf("process %d, named by the file, does not exist; the file may be left from an earlier run", p.pid)
		}
		return fmt.Errorf("process %d does not exist", p.pid)
	} else if err != nil {
		return err
	}
	if p.name, p.start, err = parseStat(string(stat)); err != nil {
		return fmt.Errorf("%s/stat: %w", dir, err)
	}
	if err := syscall.Kill(p.pid, 0); err != nil {
		return fmt.Errorf("%v: cannot be signalled: %w; run fabsh as its user", p, err)
	}
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return err
	}
	if !catchesHUP(string(status)) {
		return fmt.Errorf("%v does not handle SIGHUP, which would end it; is it the subnet manager?", p)
	}
	return nil
}

// String returns the name and the ID of the process.
func (p *OpenSM) String() string { return fmt.Sprintf("%s (process %d)", p.name, p.pid) }

// Reload signals the process, if it has the start time that it had; for a file, if the
// process that the file names now has the same name. It returns the name and the ID of
// the process. The error is ErrOpenSMEnded if the process has ended and no file names another.
func (p *OpenSM) Reload() (string, error) {
	before := *p
	err := p.look()
	switch {
	case err == nil && p.PIDFile == "" && p.start != before.start:
		err = fmt.Errorf("process %d is now %s, another process", p.pid, p.name)
	case err == nil && p.name != before.name:
		err = fmt.Errorf("process %d, named by %s, is %s, not %s", p.pid, p.PIDFile, p.name, before.name)
	case err == nil:
		err = syscall.Kill(p.pid, syscall.SIGHUP)
	}
	if err == nil {
		return p.String(), nil
	}
	*p = before
	if p.PIDFile == "" {
		return "", fmt.Errorf("%w: %v: %w", ErrOpenSMEnded, p, err)
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
		return 0, fmt.Errorf("invalid process ID %.20q", b)
	}
	return pid, nil
}

// parseStat finds the name and the start time in /proc/PID/stat: field 2, in
// parentheses and with any characters in it, and field 22 (proc_pid_stat(5)).
func parseStat(stat string) (name, start string, err error) {
	open, end := strings.IndexByte(stat, '('), strings.LastIndexByte(stat, ')')
	if open < 0 || end < open {
		return "", "", fmt.Errorf("invalid content %.40q", stat)
	}
	fields := strings.Fields(stat[end+1:]) // from field 3 on
	if len(fields) < 20 {
		return "", "", fmt.Errorf("invalid content %.40q", stat)
	}
	return stat[open+1 : end], fields[19], nil
}

// catchesHUP reports whether the process handles SIGHUP: whether SigCgt in
// /proc/PID/status, the mask of caught signals, has it.
func catchesHUP(status string) bool {
	for line := range strings.Lines(status) {
		if digits, ok := strings.CutPrefix(line, "SigCgt:"); ok {
			mask, err := strconv.ParseUint(strings.TrimSpace(digits), 16, 64)
			return err == nil && mask>>(syscall.SIGHUP-1)&1 == 1
		}
	}
	return false
}

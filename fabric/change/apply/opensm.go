package apply

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"fabsh/fabric/format"
)

// OpenSM is a running OpenSM process, which fabsh controls from outside: SIGHUP makes it
// sweep heavily, and its routing engine reads its file of tables again (opensm main.c,
// osm_manager_loop). Only the process that was found at first is signalled: its ID may have
// been given to another process since.
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
	if err := p.inspect(); err != nil {
		return nil, fmt.Errorf("--reload %s: %w", arg, err)
	}
	return p, nil
}

// inspect reads what the process is now.
func (p *OpenSM) inspect() error {
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

// Reload signals the process, if its start time is as before; for a file, if the process
// that the file names now has the name of the first one. It returns the name and the ID of
// the process. The error is ErrOpenSMEnded if the process has ended and no file names another.
func (p *OpenSM) Reload() (string, error) {
	before := *p
	err := p.inspect()
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

// settings are the settings of OpenSM that are set, by their names in its configuration.
type settings map[string]string

// maxConfig bounds what is read of the configuration, in bytes.
const maxConfig = 16 << 20

// defaultConfigs are where OpenSM has its configuration if its command line names no other: the first
// is that of Debian and of its source, the other that of RHEL (opensm.spec,
// --with-opensm-conf-sub-dir=rdma).
var defaultConfigs = []string{"/etc/opensm/opensm.conf", "/etc/rdma/opensm.conf"}

// CheckTables returns nil if p takes its tables from the file alone, else the reason why it
// does not.
func (p *OpenSM) CheckTables(file string) error {
	dir := filepath.Join(proc, strconv.Itoa(p.pid))
	line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
	if err != nil {
		return err
	}
	cwd := filepath.Join(dir, "cwd")
	set, err := settingsOf(strings.Split(strings.TrimRight(string(line), "\x00"), "\x00"), func(path string) (io.ReadCloser, error) {
		return format.OpenRegular(pathFrom(cwd, path))
	})
	if err != nil {
		return err
	}
	const configure = "start OpenSM with -R file,no_fallback -U FILE, or set routing_engine file,no_fallback and lfts_file FILE in its configuration"
	engine, lfts := set["routing_engine"], set["lfts_file"]
	switch {
	case engine == "":
		return fmt.Errorf("%v routes by its default engine, not by a file; %s", p, configure)
	case engine != "file,no_fallback":
		return fmt.Errorf("%v routes by %q; %s", p, engine, configure)
	case lfts == "":
		return fmt.Errorf("%v has no file of tables; %s", p, configure)
	}
	theirs, err := os.Stat(pathFrom(cwd, lfts))
	if err != nil {
		return fmt.Errorf("the file of tables that %v reads: %w", p, format.FileError(err))
	}
	ours, err := os.Stat(file)
	if err != nil {
		return format.FileError(err)
	}
	if !os.SameFile(theirs, ours) {
		return fmt.Errorf("%v reads %s, not %s", p, lfts, file)
	}
	return nil
}

// pathFrom returns path as a process sees it whose working directory is dir.
func pathFrom(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// lineOptions are the short options of OpenSM's command line, with a colon where they have a
// value (opensm main.c, short_option), and longOptions the settings of its long ones that
// have another name than in its configuration or no value. Others are named alike.
const lineOptions = "F:c:i:w:O:f:ed:D:g:l:L:s:t:a:u:m:X:R:zM:U:S:P:Y:ANZ:WBIQvVhoryxp:n:q:k:C:G:H:J:"

var (
	letterSettings = map[byte]string{
		'F': "config", 'R': "routing_engine", 'U': "lfts_file", 'a': "root_guid_file", 'A': "use_ucast_cache",
		'w': "hop_weights_file", 'O': "port_search_ordering_file", 'u': "cn_guid_file", 'G': "io_guid_file", 'm': "ids_guid_file",
		'X': "guid_routing_order_file", 'z': "connect_roots", 'H': "max_reverse_hops",
	}
	longSettings = map[string]string{
		"ucast_cache": "use_ucast_cache", "scatter-ports": "scatter_ports", "port-shifting": "port_shifting", "dimn_ports_file": "port_search_ordering_file",
	}
	// switches are settings that the command line has without a value.
	switches = []string{"use_ucast_cache", "port_shifting", "connect_roots", "do_mesh_analysis"}
)

// settingsOf returns the settings of a command line of OpenSM, whose options override its
// configuration (opensm main.c).
func settingsOf(args []string, open func(path string) (io.ReadCloser, error)) (settings, error) {
	line := lineSettings(args)
	configs := defaultConfigs
	named := line["config"] != ""
	if named {
		configs = []string{line["config"]}
	}
	var f io.ReadCloser
	var err error
	for _, line["config"] = range configs {
		if f, err = open(line["config"]); err == nil || !errors.Is(err, os.ErrNotExist) {
			break
		}
	}
	if err != nil {
		if !named && errors.Is(err, os.ErrNotExist) {
			delete(line, "config")
			return line, nil
		}
		if line["routing_engine"] != "" && line["lfts_file"] != "" {
			return line, nil // nothing in it counts
		}
		return line, fmt.Errorf("the configuration of OpenSM: %w", format.FileError(err))
	}
	defer f.Close()
	file := settings{}
	lines := bufio.NewScanner(io.LimitReader(f, maxConfig))
	for lines.Scan() {
		text, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(text)
		if len(words) < 2 {
			continue
		}
		value := words[1]
		if words[0] == "routing_engine" {
			value = strings.Join(words[1:], "")
		}
		file[words[0]] = strings.Trim(value, `"`)
	}
	for name, value := range file {
		if line[name] == "" && value != "(null)" && !strings.EqualFold(value, "FALSE") {
			line[name] = value
		}
	}
	return line, lines.Err()
}

// lineSettings returns the settings of a command line.
func lineSettings(args []string) settings {
	set := settings{}
	for i := 1; i < len(args) && args[i] != "--"; i++ {
		next := func() string {
			if i++; i < len(args) {
				return args[i]
			}
			return ""
		}
		if name, long := strings.CutPrefix(args[i], "--"); long {
			name, value, hasValue := strings.Cut(name, "=")
			switch name = cmp.Or(longSettings[name], name); {
			case slices.Contains(switches, name):
				value = "TRUE"
			case !hasValue && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-"):
				value = next()
			}
			set[name] = value
			continue
		}
		letters, short := strings.CutPrefix(args[i], "-")
		for short && letters != "" {
			letter := letters[0]
			letters = letters[1:]
			value := "TRUE"
			if _, after, _ := strings.Cut(lineOptions, string(letter)); strings.HasPrefix(after, ":") {
				if value, letters = letters, ""; value == "" {
					value = next()
				}
			}
			if name := letterSettings[letter]; name != "" {
				set[name] = value
			}
		}
	}
	return set
}

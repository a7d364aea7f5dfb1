package session

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/fabric/export"
	"fabsh/mad"
)

// FabricVariable gives -F where the command line does not.
const FabricVariable = "FABSH_FABRIC"

// Settings are the session flags. They do not change once they are parsed; a
// command that needs other settings makes a copy.
type Settings struct {
	flags  *pflag.FlagSet   // of fabsh without a command
	groups []*pflag.FlagSet // of the session flags, as help lists them

	Root string // where the files of the system are; "": /

	Fabric  string
	CA      string
	Port    Number
	Timeout Duration
	Retries Number
	Window  Number

	PlanFile string // --plan

	Write       bool
	OverrideSM  bool
	ReadOnly    bool
	VirtualTime bool
	TrapAgent   bool

	SL    Number
	PKey  Number
	SMLID Number

	Keys    string
	NameMap string

	Record   string
	Profile  string
	Deadline Duration
	Memory   ByteSize // 0: as much as defaultMemory says
	MaxSteps Number
	State    string

	Include []string
	Out     string
	CSVRaw  bool
	Where   string
	Columns []string
	Format  OutputFormat
	Color   ColorMode
	Quiet   bool
	NoPager bool
	Verbose int
}

// AddFlags declares the session flags in f, which join all before they are parsed.
func (s *Settings) AddFlags(f, all *pflag.FlagSet) {
	s.flags = all
	s.Port = Number{min: 1, max: 254}
	s.Timeout = Duration{Unit: time.Millisecond, Units: "milliseconds"} // as in infiniband-diags
	s.Deadline = Duration{Unit: time.Second, Units: "seconds"}
	s.MaxSteps = Number{min: 1, max: math.MaxInt}
	s.Retries = Number{max: 100, Value: 2, IsSet: true}
	s.Window = Number{min: 1, max: 1 << 16}
	s.SL = Number{max: 15}
	s.PKey = Number{min: 1, max: 0xffff}
	s.SMLID = Number{min: 1, max: int(mad.MaxUnicastLID)}
	s.Format = OutputFormat(lang.FormatText)
	s.Color = ColorAuto

	which := s.group("Which fabric")
	which.StringVarP(&s.Fabric, "fabric", "F", "", "use `FABRIC`: "+kindsUsage()+" (environment: "+FabricVariable+")")
	which.StringVarP(&s.CA, "ca", "C", "", "send from `DEVICE`; with ibsim and sim, from that node (default: the first that is up)")
	which.VarP(&s.Port, "port", "P", "send from port `NUMBER` of the device (default: the first that is up)")
	which.Var(&s.SL, "sl", "send general management packets on service level `N` (default: that of the path record)")
	which.Var(&s.PKey, "pkey", "send general management packets with partition key `KEY` (default: 0xffff or 0x7fff, whichever the port has)")
	which.Var(&s.SMLID, "sm-lid", "query the subnet administrator at `LID` (default: the port's SM LID)")
	which.StringVar(&s.NameMap, "node-name-map", "", "read node names from `FILE`, lines of GUID \"name\" (default: the file of infiniband-diags)")

	safety := s.group("Safety")
	safety.BoolVar(&s.Write, "write", false, "allow requests that change the fabric (a simulated fabric is always writable)")
	safety.BoolVar(&s.OverrideSM, "override-sm", false, "with --write: also change attributes that a running subnet manager owns, and apply plans of links beside it")
	safety.BoolVar(&s.TrapAgent, "trap-agent", false, "with --write: receive traps sent to this port: sa_subscribe(source=\"traps\")")
	safety.BoolVar(&s.ReadOnly, "read-only", false, "refuse all changes, also of a simulated fabric")
	safety.StringVar(&s.PlanFile, "plan", "", "record requests that change the fabric in the plan `FILE` instead of sending them (see fabsh change)")
	safety.StringVar(&s.Keys, "keys", "", "read management keys from `FILE` (mode 0600); - prompts for them")

	limits := s.group("Limits")
	limits.VarP(&s.Timeout, "timeout", "t", "wait `TIME` for an answer: milliseconds, or a duration such as 2s (default 1s)")
	limits.Var(&s.Retries, "retries", "resend an unanswered request `N` times")
	limits.Var(&s.Window, "window", "send at most `N` requests before an answer (default 32; with ibsim 64)")
	limits.Var(&s.Deadline, "deadline", "stop after `TIME`: seconds, or a duration such as 500ms; at the prompt, per statement")
	limits.Var(&s.Memory, "memory", "limit the memory of scripts to `SIZE`, such as 512MiB (default: 4GiB or a quarter of the machine's memory, whichever is smaller)")
	limits.BoolVar(&s.VirtualTime, "virtual-time", false, "with a simulated fabric: use a virtual clock; sleep() returns at once")
	limits.Var(&s.MaxSteps, "max-steps", "limit scripts to `N` steps of the interpreter; at the prompt, per statement (default: unlimited)")

	output := s.group("Scripts and output")
	output.StringVar(&s.State, "state", "", "directory `DIR` for state kept between runs (default: /"+systemState+" for root, else ~/.local/state/fabsh; none if the fabric is simulated or replayed)")
	output.StringVar(&s.Record, "record", "", "write all MADs to the pcap `FILE` (for Wireshark and -F replay:FILE), with keys zeroed; FILE.part until the session ends")
	output.StringVar(&s.Profile, "profile", "", "write a time profile of scripts, including waits, to `FILE` (for go tool pprof)")
	output.StringArrayVarP(&s.Include, "include", "I", nil, "also search `DIR` for files that scripts load and read (repeatable)")
	output.StringVar(&s.Out, "out", "", "allow scripts to write files below directory `DIR` (--out after a command is that command's output file)")
	output.VarP(&s.Format, "format", "o", "output `FORMAT`: text, json, jsonl, csv or prom, metrics for Prometheus (prom=treydock, prom=guilbaults: with the metric names of these exporters); of audit also nodes, hosts by health")
	output.StringVar(&s.Where, "where", "", "show only rows of tables for which `EXPR` is true: 'lid > 10 and type == \"ca\"'")
	output.StringSliceVar(&s.Columns, "columns", nil, "show only these `COLUMNS` of tables, in this order: name,lid")
	output.Var(&s.Color, "color", "color output `WHEN`: auto (at a terminal, unless NO_COLOR is set), always or never")
	output.BoolVar(&s.CSVRaw, "csv-raw", false, "with -o csv: do not escape cells that a spreadsheet could run as formulas")
	output.BoolVarP(&s.Quiet, "quiet", "q", false, "print no warnings, progress or banner")
	output.BoolVar(&s.NoPager, "no-pager", false, "at the prompt: do not open a pager for output longer than the screen")
	output.CountVarP(&s.Verbose, "verbose", "v", "print the number of MADs; -vv: print a stack trace on internal errors")

	for _, g := range s.groups {
		f.AddFlagSet(g)
	}
}

// group begins a group of flags, which help lists under its title.
func (s *Settings) group(title string) *pflag.FlagSet {
	g := pflag.NewFlagSet(title, pflag.ContinueOnError)
	g.SortFlags = false
	s.groups = append(s.groups, g)
	return g
}

// Check returns an error if flags contradict each other.
func (s *Settings) Check() error {
	switch {
	case s.Write && s.ReadOnly:
		return errors.New("--write: not allowed with --read-only")
	case s.TrapAgent && !s.Write:
		return errors.New("--trap-agent: needs --write, because traps are answered with TrapRepress")
	case s.CSVRaw && s.Format != OutputFormat(lang.FormatCSV):
		return errors.New("--csv-raw: needs -o csv")
	case s.Format == formatNodes:
		return errors.New("-o nodes: only for fabsh audit")
	case s.OverrideSM && !s.Write:
		return errors.New("--override-sm: needs --write")
	}
	return nil
}

// TakeNodes reports whether -o is nodes, and replaces it by a format in which only the command
// writes to standard output.
func (s *Settings) TakeNodes() bool {
	if s.Format != formatNodes {
		return false
	}
	s.Format = OutputFormat(lang.FormatJSON)
	return true
}

// Output returns the format of what is shown.
func (s *Settings) Output() lang.Format {
	if s.CSVRaw {
		return lang.FormatRawCSV
	}
	return lang.Format(s.Format)
}

// View returns the rows and columns of the tables that are shown.
func (s *Settings) View() lang.View { return lang.View{Where: s.Where, Columns: s.Columns} }

// FabricSpec returns the fabric that -F, -C, -P or the environment selects, and
// whether any of them is set.
func (s *Settings) FabricSpec() (spec string, given bool) {
	if s.Fabric != "" || s.Given("fabric") {
		return s.Fabric, true
	}
	named := s.Given("ca") || s.Given("port")
	if spec := os.Getenv(FabricVariable); spec != "" {
		return spec, true
	}
	return "umad", named
}

// Given reports whether the command line has a flag.
func (s *Settings) Given(flag string) bool { return s.flags.Changed(flag) }

// Set sets a session flag, as the command line does.
func (s *Settings) Set(flag, value string) error { return s.flags.Set(flag, value) }

// Lookup returns the flag of this name, or nil.
func (s *Settings) Lookup(flag string) *pflag.Flag { return s.flags.Lookup(flag) }

// Visit calls fn with each flag that the command line has.
func (s *Settings) Visit(fn func(*pflag.Flag)) { s.flags.Visit(fn) }

// Groups returns the session flags as help lists them, under the names of the groups.
func (s *Settings) Groups() []*pflag.FlagSet { return s.groups }

// Names returns the session flags as a command line writes them.
func (s *Settings) Names() (names []string) {
	for _, g := range s.groups {
		names = append(names, FlagNames(g)...)
	}
	return names
}

// FlagNames returns flags as a command line writes them: "--fabric" and "-F".
func FlagNames(f *pflag.FlagSet) (names []string) {
	f.VisitAll(func(f *pflag.Flag) {
		names = append(names, "--"+f.Name)
		if f.Shorthand != "" {
			names = append(names, "-"+f.Shorthand)
		}
	})
	return names
}

// Number is a flag's integer within limits; it may be unset.
type Number struct {
	Value, min, max int
	IsSet           bool
}

func (n *Number) Set(text string) error {
	v, err := strconv.ParseInt(text, 0, strconv.IntSize)
	if err != nil || int(v) < n.min || int(v) > n.max {
		return fmt.Errorf("want a number from %d to %d", n.min, n.max)
	}
	n.Value, n.IsSet = int(v), true
	return nil
}

func (n *Number) String() string {
	if !n.IsSet {
		return ""
	}
	return strconv.Itoa(n.Value)
}

func (n *Number) Type() string { return "int" }

// Duration is a flag's time; a bare number counts units.
type Duration struct {
	Value time.Duration // 0: not given
	Unit  time.Duration
	Units string // their name
}

func (d *Duration) Set(text string) error {
	t, err := time.ParseDuration(text)
	if n, numErr := strconv.ParseFloat(text, 64); numErr == nil {
		t, err = time.Duration(n*float64(d.Unit)), nil
	}
	switch {
	case err != nil:
		return fmt.Errorf("want %s, or a time such as 500ms or 2s", d.Units)
	case t <= 0 || t > 24*time.Hour:
		return errors.New("want more than 0, and at most 24h")
	}
	d.Value = t
	return nil
}

func (d *Duration) String() string {
	if d.Value == 0 {
		return ""
	}
	return d.Value.String()
}

func (d *Duration) Type() string { return "time" }

// OutputFormat is a flag's output format.
type OutputFormat lang.Format

// formatNodes is an output format of audits only: hosts by their health.
const formatNodes OutputFormat = "nodes"

func (f *OutputFormat) Set(text string) error {
	if dialect, ok := lang.Format(text).Dialect(); ok {
		if _, err := export.ParseDialect(dialect); err != nil {
			return err
		}
		*f = OutputFormat(strings.TrimSuffix(text, "="))
		return nil
	}
	var names []string
	for _, known := range lang.Formats {
		if text == string(known) {
			*f = OutputFormat(known)
			return nil
		}
		names = append(names, string(known))
	}
	if names = append(names, string(formatNodes)); text == string(formatNodes) {
		*f = formatNodes
		return nil
	}
	return fmt.Errorf("want text, json, jsonl, csv or prom; nodes with audit%s", fabric.DidYouMean(text, names))
}

func (f *OutputFormat) String() string { return string(*f) }
func (f *OutputFormat) Type() string   { return "format" }

// ByteSize is a flag's number of bytes.
type ByteSize uint64

// Bounds of --memory. fabsh itself needs the minimum.
const (
	minMemory ByteSize = 64 << 20
	maxMemory ByteSize = 1 << 50
)

// units are the powers of 1024, from the largest.
var units = []struct {
	name  string
	bytes ByteSize
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// Set takes 512MiB, 4G, 1.5GiB, or a number of bytes.
func (s *ByteSize) Set(text string) error {
	number, unit := strings.TrimRight(text, "KMGTiB"), ByteSize(1)
	if suffix := text[len(number):]; suffix != "" {
		unit = 0
		for _, u := range units {
			if suffix == u.name || suffix == u.name[:1] {
				unit = u.bytes
			}
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	// The negation also covers NaN.
	if bytes := n * float64(unit); err != nil || !(bytes >= float64(minMemory) && bytes <= float64(maxMemory)) {
		return errors.New("want a size of 64MiB or more, such as 512MiB or 4GiB")
	}
	*s = ByteSize(n * float64(unit))
	return nil
}

// String is the size in the largest unit of which it is a multiple.
func (s *ByteSize) String() string {
	for _, u := range units {
		if *s > 0 && *s%u.bytes == 0 {
			return strconv.FormatUint(uint64(*s/u.bytes), 10) + " " + u.name
		}
	}
	return ""
}

func (s *ByteSize) Type() string { return "size" }

// defaultMemory returns the memory limit of scripts without --memory: 4 GiB, or a
// quarter of the machine's memory if that is less.
func defaultMemory() ByteSize {
	machine := machineMemory()
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} { // of a container
		text, err := os.ReadFile(file)
		if n, numErr := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil && numErr == nil {
			machine = min(machine, ByteSize(n))
		}
	}
	return max(minMemory, min(4<<30, machine/4)) &^ (1<<20 - 1)
}

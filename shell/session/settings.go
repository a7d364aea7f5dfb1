package session

import (
	"errors"
	"math"
	"os"
	"time"

	"github.com/spf13/pflag"

	"fabsh/builtins/lang"
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

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

// Settings are the session flags. They do not change once they are parsed: a
// command that wants others makes a copy.
type Settings struct {
	flags  *pflag.FlagSet   // of fabsh without a command
	groups []*pflag.FlagSet // of the session flags, as help lists them

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
	which.StringVarP(&s.Fabric, "fabric", "F", "", "the `FABRIC`: "+kindsUsage()+" (environment: "+FabricVariable+")")
	which.StringVarP(&s.CA, "ca", "C", "", "send from `DEVICE` (with ibsim and sim: from that node; default: the first that is up)")
	which.VarP(&s.Port, "port", "P", "send from the device's port `NUMBER` (default: its first that is up)")
	which.Var(&s.SL, "sl", "service level `N` of performance and administration packets (default: the path's)")
	which.Var(&s.PKey, "pkey", "their partition key `KEY` (default: 0xffff or 0x7fff, as the port has it)")
	which.Var(&s.SMLID, "sm-lid", "ask the subnet administrator at `LID` (default: as the port says)")
	which.StringVar(&s.NameMap, "node-name-map", "", "take the names of nodes from `FILE`: lines of GUID \"name\" (default: that of infiniband-diags)")

	safety := s.group("Safety")
	safety.BoolVar(&s.Write, "write", false, "allow what changes the fabric (a simulated one may always be changed)")
	safety.BoolVar(&s.OverrideSM, "override-sm", false, "with --write: change what a running subnet manager owns, too")
	safety.BoolVar(&s.TrapAgent, "trap-agent", false, "with --write: let scripts take the traps sent to this port: sa_subscribe(source=\"traps\")")
	safety.BoolVar(&s.ReadOnly, "read-only", false, "allow no change, of a simulated fabric either")
	safety.StringVar(&s.PlanFile, "plan", "", "send nothing that changes the fabric, but write what would be sent to the plan `FILE` (see fabsh change)")
	safety.StringVar(&s.Keys, "keys", "", "show the keys in `FILE`, which has mode 0600, to who wants them; - asks for them at the terminal")

	limits := s.group("Limits")
	limits.VarP(&s.Timeout, "timeout", "t", "wait `TIME` for an answer: in ms, or such as 2s (default 1s)")
	limits.Var(&s.Retries, "retries", "send an unanswered request `N` times more")
	limits.Var(&s.Window, "window", "have at most `N` requests wait for an answer at once (default 32; with ibsim 64)")
	limits.Var(&s.Deadline, "deadline", "ask nothing more after `TIME`: in seconds, or such as 500ms; at the prompt, for each statement")
	limits.Var(&s.Memory, "memory", "let scripts use `SIZE` of memory: such as 512MiB or 4GiB (default: 4 GiB, or a quarter of the machine's)")
	limits.BoolVar(&s.VirtualTime, "virtual-time", false, "of a simulated fabric: let time stand still while scripts run, and pass at once while they sleep")
	limits.Var(&s.MaxSteps, "max-steps", "let scripts take `N` steps of the interpreter; at the prompt, each statement (default: any number)")

	output := s.group("Scripts and output")
	output.StringVar(&s.State, "state", "", "keep in the folder `DIR` what one run tells the next (default: "+systemState+" for root, else ~/.local/state/fabsh)")
	output.StringVar(&s.Record, "record", "", "write all MADs to the pcap `FILE`, which Wireshark opens; keys are left out")
	output.StringVar(&s.Profile, "profile", "", "write where scripts spend their time, waiting included, to `FILE`: go tool pprof reads it")
	output.StringArrayVarP(&s.Include, "include", "I", nil, "look in `DIR` too for what scripts load and read (repeatable)")
	output.StringVar(&s.Out, "out", "", "let scripts write files below the folder `DIR` (a command's own --out, after it, is a file)")
	output.VarP(&s.Format, "format", "o", "show values as `FORMAT`: text, json, jsonl, csv, or prom, metrics for Prometheus (prom=treydock, prom=guilbaults: by the names of these exporters)")
	output.Var(&s.Color, "color", "color text `WHEN`: auto (at a terminal, unless NO_COLOR is set), always or never")
	output.BoolVar(&s.CSVRaw, "csv-raw", false, "with -o csv: put no apostrophe before texts that a spreadsheet would carry out")
	output.BoolVarP(&s.Quiet, "quiet", "q", false, "no warnings, no progress, no banner")
	output.CountVarP(&s.Verbose, "verbose", "v", "say how many MADs it took; twice: of a bug in fabsh, where it is")

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

// Check finds what contradicts itself, before anything is opened.
func (s *Settings) Check() error {
	switch {
	case s.Write && s.ReadOnly:
		return errors.New("--write and --read-only exclude each other")
	case s.TrapAgent && !s.Write:
		return errors.New("--trap-agent has no meaning without --write: traps are answered by TrapRepress")
	case s.CSVRaw && s.Format != OutputFormat(lang.FormatCSV):
		return errors.New("--csv-raw has no meaning without -o csv")
	case s.OverrideSM && !s.Write:
		return errors.New("--override-sm has no meaning without --write")
	}
	return nil
}

// Output returns the format of what is shown.
func (s *Settings) Output() lang.Format {
	if s.CSVRaw {
		return lang.FormatRawCSV
	}
	return lang.Format(s.Format)
}

// FabricSpec returns the fabric asked for, and whether anybody asked.
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

// Lookup returns a flag of the command line; nil: there is none of this name.
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

package shell

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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
	"fabsh/mad/engine"
)

// fabricVariable gives -F where the command line does not.
const fabricVariable = "FABSH_FABRIC"

// settings are the session flags.
type settings struct {
	flags  *pflag.FlagSet   // of fabsh without a command
	groups []*pflag.FlagSet // of the session flags, as help lists them

	fabric  string
	ca      string
	port    number
	timeout duration
	retries number
	window  number

	planFile, planFrom string // --plan, and what the plan is made from; "": what ran

	write       bool
	overrideSM  bool
	readOnly    bool
	virtualTime bool
	trapAgent   bool

	sl    number
	pkey  number
	smLID number

	keys    string
	nameMap string

	record   string
	profile  string
	deadline duration
	memory   byteSize // 0: as much as defaultMemory says
	maxSteps number
	state    string

	include []string
	out     string
	csvRaw  bool
	format  outputFormat
	color   colorMode
	quiet   bool
	verbose int

	etc         string          // folder of the site's configuration
	siteKeys    *engine.Keys    // ibdiag.conf's
	handed      *engine.Keys    // by the process that started this one
	secrets     []fs.FileInfo   // files of keys
	opening     context.Context // of opening the fabric; nil: it may take for ever
	changing    bool            // a command on changes runs, which tells of open ones itself
	plainSpeeds bool            // ibdiag.conf: vendors' speeds are not asked for
}

func (s *settings) addFlags(f *pflag.FlagSet) {
	s.flags = f
	s.etc = "/etc"
	s.port = number{min: 1, max: 254}
	s.timeout = duration{unit: time.Millisecond, units: "milliseconds"} // as in infiniband-diags
	s.deadline = duration{unit: time.Second, units: "seconds"}
	s.maxSteps = number{min: 1, max: math.MaxInt}
	s.retries = number{max: 100, value: 2, isSet: true}
	s.window = number{min: 1, max: 1 << 16}
	s.sl = number{max: 15}
	s.pkey = number{min: 1, max: 0xffff}
	s.smLID = number{min: 1, max: int(mad.MaxUnicastLID)}
	s.format = outputFormat(lang.FormatText)
	s.color = colorAuto

	which := s.group("Which fabric")
	which.StringVarP(&s.fabric, "fabric", "F", "", "the `FABRIC`: "+kindsUsage()+" (environment: "+fabricVariable+")")
	which.StringVarP(&s.ca, "ca", "C", "", "send from `DEVICE` (with ibsim and sim: from that node; default: the first that is up)")
	which.VarP(&s.port, "port", "P", "send from the device's port `NUMBER` (default: its first that is up)")
	which.Var(&s.sl, "sl", "service level `N` of performance and administration packets (default: the path's)")
	which.Var(&s.pkey, "pkey", "their partition key `KEY` (default: 0xffff or 0x7fff, as the port has it)")
	which.Var(&s.smLID, "sm-lid", "ask the subnet administrator at `LID` (default: as the port says)")
	which.StringVar(&s.nameMap, "node-name-map", "", "take the names of nodes from `FILE`: lines of GUID \"name\" (default: that of infiniband-diags)")

	safety := s.group("Safety")
	safety.BoolVar(&s.write, "write", false, "allow what changes the fabric (a simulated one may always be changed)")
	safety.BoolVar(&s.overrideSM, "override-sm", false, "with --write: change what a running subnet manager owns, too")
	safety.BoolVar(&s.trapAgent, "trap-agent", false, "with --write: let scripts take the traps sent to this port: sa_subscribe(source=\"traps\")")
	safety.BoolVar(&s.readOnly, "read-only", false, "allow no change, of a simulated fabric either")
	safety.StringVar(&s.planFile, "plan", "", "send nothing that changes the fabric, but write what would be sent to the plan `FILE` (see fabsh change)")
	safety.StringVar(&s.keys, "keys", "", "show the keys in `FILE`, which has mode 0600, to who wants them; - asks for them at the terminal")

	limits := s.group("Limits")
	limits.VarP(&s.timeout, "timeout", "t", "wait `TIME` for an answer: in ms, or such as 2s (default 1s)")
	limits.Var(&s.retries, "retries", "send an unanswered request `N` times more")
	limits.Var(&s.window, "window", "have at most `N` requests wait for an answer at once (default 32; with ibsim 64)")
	limits.Var(&s.deadline, "deadline", "ask nothing more after `TIME`: in seconds, or such as 500ms; at the prompt, for each statement")
	limits.Var(&s.memory, "memory", "let scripts use `SIZE` of memory: such as 512MiB or 4GiB (default: 4 GiB, or a quarter of the machine's)")
	limits.BoolVar(&s.virtualTime, "virtual-time", false, "of a simulated fabric: let time stand still while scripts run, and pass at once while they sleep")
	limits.Var(&s.maxSteps, "max-steps", "let scripts take `N` steps of the interpreter; at the prompt, each statement (default: any number)")

	output := s.group("Scripts and output")
	output.StringVar(&s.state, "state", "", "keep in the folder `DIR` what one run tells the next (default: "+systemState+" for root, else ~/.local/state/fabsh)")
	output.StringVar(&s.record, "record", "", "write all MADs to the pcap `FILE`, which Wireshark opens; keys are left out")
	output.StringVar(&s.profile, "profile", "", "write where scripts spend their time, waiting included, to `FILE`: go tool pprof reads it")
	output.StringArrayVarP(&s.include, "include", "I", nil, "look in `DIR` too for what scripts load and read (repeatable)")
	output.StringVar(&s.out, "out", "", "let scripts write files below the folder `DIR` (a command's own --out, after it, is a file)")
	output.VarP(&s.format, "format", "o", "show values as `FORMAT`: text, json, jsonl, csv, or prom, metrics for Prometheus (prom=treydock, prom=guilbaults: by the names of these exporters)")
	output.Var(&s.color, "color", "color text `WHEN`: auto (at a terminal, unless NO_COLOR is set), always or never")
	output.BoolVar(&s.csvRaw, "csv-raw", false, "with -o csv: put no apostrophe before texts that a spreadsheet would carry out")
	output.BoolVarP(&s.quiet, "quiet", "q", false, "no warnings, no progress, no banner")
	output.CountVarP(&s.verbose, "verbose", "v", "say how many MADs it took; twice: of a bug in fabsh, where it is")

	for _, g := range s.groups {
		f.AddFlagSet(g)
	}
}

// group begins a group of flags, which help lists under its title.
func (s *settings) group(title string) *pflag.FlagSet {
	g := pflag.NewFlagSet(title, pflag.ContinueOnError)
	g.SortFlags = false
	s.groups = append(s.groups, g)
	return g
}

// check finds what contradicts itself, before anything is opened.
func (s *settings) check() error {
	switch {
	case s.write && s.readOnly:
		return errors.New("--write and --read-only exclude each other")
	case s.trapAgent && !s.write:
		return errors.New("--trap-agent has no meaning without --write: traps are answered by TrapRepress")
	case s.csvRaw && s.format != outputFormat(lang.FormatCSV):
		return errors.New("--csv-raw has no meaning without -o csv")
	case s.overrideSM && !s.write:
		return errors.New("--override-sm has no meaning without --write")
	}
	return nil
}

// output is the format of what is shown.
func (s *settings) output() lang.Format {
	if s.csvRaw {
		return lang.FormatRawCSV
	}
	return lang.Format(s.format)
}

// fabricSpec is the fabric asked for, and whether anybody asked.
func (s *settings) fabricSpec() (spec string, given bool) {
	if s.flags.Changed("fabric") {
		return s.fabric, true
	}
	named := s.flags.Changed("ca") || s.flags.Changed("port")
	if spec := os.Getenv(fabricVariable); spec != "" {
		return spec, true
	}
	return "umad", named
}

// number is a flag's integer within limits; it may be unset.
type number struct {
	value, min, max int
	isSet           bool
}

func (n *number) Set(text string) error {
	v, err := strconv.ParseInt(text, 0, strconv.IntSize)
	if err != nil || int(v) < n.min || int(v) > n.max {
		return fmt.Errorf("want a number from %d to %d", n.min, n.max)
	}
	n.value, n.isSet = int(v), true
	return nil
}

func (n *number) String() string {
	if !n.isSet {
		return ""
	}
	return strconv.Itoa(n.value)
}

func (n *number) Type() string { return "int" }

// duration is a flag's time; a bare number counts units.
type duration struct {
	value time.Duration // 0: not given
	unit  time.Duration
	units string // their name
}

func (d *duration) Set(text string) error {
	t, err := time.ParseDuration(text)
	if n, numErr := strconv.ParseFloat(text, 64); numErr == nil {
		t, err = time.Duration(n*float64(d.unit)), nil
	}
	switch {
	case err != nil:
		return fmt.Errorf("want %s, or a time such as 500ms or 2s", d.units)
	case t <= 0 || t > 24*time.Hour:
		return errors.New("want more than 0, and at most 24h")
	}
	d.value = t
	return nil
}

func (d *duration) String() string {
	if d.value == 0 {
		return ""
	}
	return d.value.String()
}

func (d *duration) Type() string { return "time" }

// outputFormat is a flag's output format.
type outputFormat lang.Format

func (f *outputFormat) Set(text string) error {
	if dialect, ok := lang.Format(text).Dialect(); ok {
		if _, err := export.ParseDialect(dialect); err != nil {
			return err
		}
		*f = outputFormat(strings.TrimSuffix(text, "="))
		return nil
	}
	var names []string
	for _, known := range lang.Formats {
		if text == string(known) {
			*f = outputFormat(known)
			return nil
		}
		names = append(names, string(known))
	}
	return fmt.Errorf("want text, json, jsonl, csv or prom%s", fabric.DidYouMean(text, names))
}

func (f *outputFormat) String() string { return string(*f) }
func (f *outputFormat) Type() string   { return "format" }

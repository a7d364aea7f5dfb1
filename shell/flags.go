package shell

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// fabricVariable gives -F where the command line does not.
const fabricVariable = "FABSH_FABRIC"

// settings are the session flags.
type settings struct {
	flags *pflag.FlagSet

	fabric  string
	ca      string
	port    number
	timeout duration
	retries number
	window  number

	write      bool
	overrideSM bool
	readOnly   bool
	trapAgent  bool

	sl    number
	pkey  number
	smLID number

	keys    string
	nameMap string

	record   string
	deadline duration
	memory   byteSize // 0: as much as defaultMemory says
	maxSteps number

	include []string
	out     string
	state   string // --state; stateDir has the default
	csvRaw  bool
	format  outputFormat
	color   colorMode
	quiet   bool
	verbose int

	etc         string          // folder of the site's configuration
	siteKeys    *engine.Keys    // ibdiag.conf's
	secrets     []fs.FileInfo   // files of keys
	opening     context.Context // of opening the fabric; nil: it may take for ever
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

	f.StringVarP(&s.fabric, "fabric", "F", "", "the `FABRIC`: "+kindsUsage()+" (environment: "+fabricVariable+")")
	f.StringVarP(&s.ca, "ca", "C", "", "send from `DEVICE` (with ibsim and sim: from that node; default: the first that is up)")
	f.VarP(&s.port, "port", "P", "send from the device's port `NUMBER` (default: its first that is up)")
	f.VarP(&s.timeout, "timeout", "t", "wait `TIME` for an answer: in ms, or such as 2s (default 1s)")
	f.Var(&s.retries, "retries", "send an unanswered request `N` times more")
	f.Var(&s.window, "window", "have at most `N` requests wait for an answer at once (default 32; with ibsim 64)")
	f.BoolVar(&s.write, "write", false, "allow what changes the fabric (a simulated one may always be changed)")
	f.BoolVar(&s.overrideSM, "override-sm", false, "with --write: change what a running subnet manager owns, too")
	f.BoolVar(&s.trapAgent, "trap-agent", false, "with --write: let scripts take the traps sent to this port: sa_subscribe(source=\"traps\")")
	f.BoolVar(&s.readOnly, "read-only", false, "allow no change, of a simulated fabric either")
	f.Var(&s.sl, "sl", "service level `N` of performance and administration packets (default: the path's)")
	f.Var(&s.pkey, "pkey", "their partition key `KEY` (default: 0xffff or 0x7fff, as the port has it)")
	f.Var(&s.smLID, "sm-lid", "ask the subnet administrator at `LID` (default: as the port says)")
	f.StringVar(&s.keys, "keys", "", "show the keys in `FILE`, which has mode 0600, to who wants them; - asks for them at the terminal")
	f.StringVar(&s.nameMap, "node-name-map", "", "take the names of nodes from `FILE`: lines of GUID \"name\" (default: that of infiniband-diags)")
	f.StringVar(&s.record, "record", "", "write all MADs to the pcap `FILE`, which Wireshark opens; keys are left out")
	f.Var(&s.deadline, "deadline", "ask nothing more after `TIME`: in seconds, or such as 500ms; at the prompt, for each statement")
	f.Var(&s.memory, "memory", "let scripts use `SIZE` of memory: such as 512MiB or 4GiB (default: 4 GiB, or a quarter of the machine's)")
	f.Var(&s.maxSteps, "max-steps", "let scripts take `N` steps of the interpreter; at the prompt, each statement (default: any number)")
	f.StringArrayVarP(&s.include, "include", "I", nil, "look in `DIR` too for what scripts load and read (repeatable)")
	f.StringVar(&s.out, "out", "", "let scripts write files below the folder `DIR` (a command's own --out, after it, is a file)")
	f.StringVar(&s.state, "state", "", "keep what one run needs of the run before below the folder `DIR` (default: "+systemState+" for root, else that of the user)")
	f.VarP(&s.format, "format", "o", "show values as `FORMAT`: text, json, jsonl or csv")
	f.Var(&s.color, "color", "color text `WHEN`: auto (at a terminal, unless NO_COLOR is set), always or never")
	f.BoolVar(&s.csvRaw, "csv-raw", false, "with -o csv: put no apostrophe before texts that a spreadsheet would carry out")
	f.BoolVarP(&s.quiet, "quiet", "q", false, "no warnings, no progress, no banner")
	f.CountVarP(&s.verbose, "verbose", "v", "say how many MADs it took; twice: of a bug in fabsh, where it is")
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
	if err != nil || t <= 0 || t > 24*time.Hour {
		return fmt.Errorf("want %s, or a time such as 500ms or 2s", d.units)
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
	var names []string
	for _, known := range lang.Formats {
		if text == string(known) {
			*f = outputFormat(known)
			return nil
		}
		names = append(names, string(known))
	}
	return fmt.Errorf("want text, json, jsonl or csv%s", fabric.DidYouMean(text, names))
}

func (f *outputFormat) String() string { return string(*f) }
func (f *outputFormat) Type() string   { return "format" }

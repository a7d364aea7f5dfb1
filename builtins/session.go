// Package builtins makes a [Session]: it assembles the framework (lang), the scripts
// (script) and the vocabularies into everything that a script can use.
//
// Other packages run code in a session: program runs scripts and their tests, audits
// runs audits, remedies runs remedies, check finds errors of scripts and explains
// errors, help writes help. [ReportPage] makes the page of a report.
// The tests of the vocabularies are here because they open a session.
//
// The values, by their type in Starlark:
//
//	fabric     *fabric.Fabric, an immutable snapshot
//	node       a switch, channel adapter or router of it
//	port       a port of a node
//	ports      a node's ports, by number
//	link       two ports
//	route      a directed route
//	PortInfo   (and each other attribute) a record: raw bytes, read by field
//	lft        a linear forwarding table
//	graph      a fabric in the form for routing algorithms; hops are its distances
//	routes     the tables of all switches; a row is one of them
//	finding    a problem found by an audit
//	verdict    (and path, congestion, ...) a result: named parts
//	table      rows and columns to show
//	subscription   future events: each is a record (notice) or a lost
//	sim        operations on a simulated fabric
//	error      the failure of a target; the only falsy value
//
// Identifiers are plain values: a LID is an int, a GUID or GID a canonical
// string, an enumerated field a word. Attributes never do I/O; functions and
// methods may. Nothing waits except through lang.Block.
package builtins

import (
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/spf13/afero"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"fabsh/builtins/audits"
	"fabsh/builtins/check"
	"fabsh/builtins/datagrams"
	"fabsh/builtins/help"
	"fabsh/builtins/lang"
	"fabsh/builtins/script"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/export"
	"fabsh/fabric/format"
	"fabsh/mad"
)

// SessionOptions are the settings of a session. The zero value of each is usable.
type SessionOptions struct {
	topology.Facts

	Stdout, Stderr io.Writer   // nil: discarded
	Format         lang.Format // of show and the prompt; empty: text
	View           lang.View   // of the tables that are shown
	Documents      bool        // the reader of lang.FormatJSON takes several documents

	Include []string // -I: directories with modules; readable
	// Sealed makes the directories of Include the only ones that scripts read.
	Sealed bool
	Out    string // --out: the directory that scripts may write to; empty: none
	// FS replaces the operating system's files. Nil: the real files,
	// confined to the working directory, Include, Out and the scripts' directories.
	FS  afero.Fs
	Dir string // working directory; empty: "."
	// Secrets are files that scripts may not read under any name.
	Secrets []fs.FileInfo

	// Flags are the flags of the program, such as "--format" and "-o". If one is among a
	// script's options, the error states its right place.
	Flags []string

	Quiet   bool
	Verbose int
	// Progress receives, at long intervals, the progress of a long operation; empty
	// when it is done. Nil: progress is discarded.
	Progress func(string)
	// Width returns the current maximum of columns in a line of text; 0 or nil:
	// unlimited.
	Width func() int
	// Shaded reports whether text may have cells in colour: runes of lang.Cell.
	// Nil: it may not.
	Shaded func() bool
	// Help returns additional help pages of the program. Nil: none.
	Help func() []help.Page
	// Clock is the session's time. Nil: the real one.
	Clock lang.Clock
}

// Session is one run of fabsh: a fabric, a set of streams, and everything that a
// script can do with them. One evaluation runs at a time.
type Session struct {
	*lang.Runtime
	*check.Explainer
	Env         *topology.Env       // the fabric
	Interpreter *script.Interpreter // what runs scripts

	subscribers *datagrams.Subscribers // what scripts subscribed to
}

// NewSession returns a new session. It sends nothing.
func NewSession(o SessionOptions) (*Session, error) {
	if o.Stdout == nil {
		o.Stdout = io.Discard
	}
	if o.Stderr == nil {
		o.Stderr = io.Discard
	}
	if o.Format == "" {
		o.Format = lang.FormatText
	}
	if dialect, ok := o.Format.Dialect(); ok {
		if _, err := export.ParseDialect(dialect); err != nil {
			return nil, err
		}
	} else if !slices.Contains(lang.Formats, o.Format) && o.Format != lang.FormatRawCSV {
		return nil, fmt.Errorf("output format %q: unknown; supported: %v", string(o.Format), lang.Formats)
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	if o.Clock == nil {
		o.Clock = lang.RealClock{}
	}
	files, err := lang.NewFiles(o.FS, o.Dir, o.Include, o.Out)
	if err != nil {
		return nil, err
	}
	files.Forbid(o.Secrets...)
	if o.Sealed {
		o.Include = slices.Clone(o.Include) // relative to the working directory, which Seal changes
		for i, dir := range o.Include {
			o.Include[i] = files.Abs(dir)
		}
		files.Seal(format.HoldsKeys)
	}
	r := &lang.Runtime{Stdout: o.Stdout, Stderr: o.Stderr, Format: o.Format, View: o.View, Documents: o.Documents, Quiet: o.Quiet, Progress: o.Progress, Width: o.Width, Shaded: o.Shaded, Clock: o.Clock, Files: files, DidYouMean: fabric.DidYouMean, IsMeasure: mad.IsRate, Activity: new(lang.Activity)}
	in := script.New(r, o.Include, o.Flags)
	s := &Session{Runtime: r, Env: topology.EnvOf(r), Interpreter: in}
	r.Measure = func(v starlark.Value) error { return audits.ShowMetrics(r, v) }
	known := check.NewAttributes()
	r.Comparisons = func(f *syntax.File, globals starlark.StringDict) []lang.WrongWord {
		return check.Comparisons(in, known, f, globals)
	}
	*lang.StateOf[help.Program](r) = help.Program{Pages: o.Help}
	s.Env.Open(o.Facts)
	s.subscribers = lang.StateOf[datagrams.Subscribers](r)
	if o.Engine != nil {
		s.subscribers = datagrams.NewSubscribers(r)
	}
	in.Globals = predeclared(r)
	s.Explainer = &check.Explainer{Sources: in.Sources, Globals: in.Globals, Stack: o.Verbose > 1}
	s.Explainer.IsCommand = func(name string) bool {
		return o.Help != nil && slices.ContainsFunc(o.Help(), func(p help.Page) bool { return p.Kind == help.KindCommand && p.Name == name })
	}
	return s, nil
}

// Unsubscribe ends all subscriptions, within a second or so. It may be called
// while a script runs.
func (s *Session) Unsubscribe() { s.subscribers.Close() }

// Close ends all subscriptions and closes the session's directories. The caller owns
// the engine.
func (s *Session) Close() error {
	s.Unsubscribe()
	script.StopScenario(s.Runtime)
	s.Env.Unload()
	return s.Files.Close()
}

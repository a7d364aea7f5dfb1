// Package builtins is a session: it assembles the framework (lang), the scripts (script)
// and the vocabularies into all that a script can say.
//
//	session.go      a session and its options
//	predeclared.go  the global names
//
// What is done with a session is in packages below: program and audits/run run scripts and
// audits, scripttest their tests, check finds what is wrong with them; help and explain
// are what people read; metrics, page and read serve commands written in Go.
// Tests of the vocabularies open a session, and so stand here.
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
//	graph      a fabric as routing algorithms want it; hops are its distances
//	routes     the tables of all switches; a row is one of them
//	finding    what an audit found
//	verdict    (and path, congestion, ...) a result: named parts
//	table      rows and columns to show
//	subscription   events to come: each a record (notice) or a lost
//	sim        what can be done to a simulated fabric
//	error      what became of a target that failed; the only falsy one
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
	"sync"

	"github.com/spf13/afero"
	"go.starlark.net/starlark"

	"fabsh/builtins/audits"
	"fabsh/builtins/changes"
	"fabsh/builtins/datagrams"
	"fabsh/builtins/explain"
	"fabsh/builtins/help"
	"fabsh/builtins/lang"
	"fabsh/builtins/metrics"
	"fabsh/builtins/page"
	"fabsh/builtins/script"
	"fabsh/builtins/topology"
	"fabsh/builtins/types"
	"fabsh/fabric"
	"fabsh/fabric/change/apply"
	"fabsh/fabric/export"
	"fabsh/fabric/sa"
)

// Options is what a session stands on. The zero value of each is usable.
type Options struct {
	topology.Env

	Stdout, Stderr io.Writer   // nil: discarded
	Format         lang.Format // of show and the prompt; empty: text

	Include []string // -I: folders with modules, and readable
	Out     string   // --out: the folder that scripts may write to; empty: none
	// FS stands for the operating system's files. Nil: the real ones,
	// confined to the working directory, Include, Out and the scripts' folders.
	FS  afero.Fs
	Dir string // working directory; empty: "."
	// Secrets are files that scripts may not read, by whatever name.
	Secrets []fs.FileInfo

	// Flags are the program's own, "--format" and "-o": of one among a script's
	// options the error says where it goes.
	Flags []string

	Quiet   bool
	Verbose int
	// Progress is told, seldom, how far something long has come; empty
	// when it is done. Nil: nobody is.
	Progress func(string)
	// Width is how many columns a line of text may have, at the moment; 0, or nil:
	// there is no limit.
	Width func() int
	// Blocks tells whether text may have half blocks in colour: runes of lang.Cells.
	// Nil: it may not.
	Blocks func() bool
	// State is the folder below which perf_rates(over="last") keeps what it reads,
	// and Job under which name. Empty: it keeps nothing.
	State, Job string
	Version    string // of the program, for pages
	// Help returns what help knows of the program besides. Nil: nothing.
	Help func() []help.Page
	// User makes changes, which StartGuard starts a guard process for. Nil: plan.apply()
	// makes none.
	User       string
	StartGuard apply.StartGuard
	// Clock is the session's time. Nil: the real one.
	Clock lang.Clock
}

// Session is one run of fabsh: a fabric, a set of streams, and all that a
// script can say to them. One evaluation runs at a time.
type Session struct {
	*lang.Runtime
	*explain.Explainer
	Env         *topology.Env       // the fabric
	Interpreter *script.Interpreter // what runs scripts

	subscribers *datagrams.Subscribers // what scripts subscribed to
}

// NewSession makes a session. It sends nothing.
func NewSession(o Options) (*Session, error) {
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
		return nil, fmt.Errorf("unknown output format %q: use one of %v", string(o.Format), lang.Formats)
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
	r := &lang.Runtime{Stdout: o.Stdout, Stderr: o.Stderr, Format: o.Format, Quiet: o.Quiet, Progress: o.Progress, Width: o.Width, Blocks: o.Blocks, Clock: o.Clock, Files: files, DidYouMean: fabric.DidYouMean, Activity: new(lang.Activity)}
	in := script.New(r, o.Include, o.Flags)
	s := &Session{Runtime: r, Env: topology.EnvOf(r), Interpreter: in}
	r.Measure = func(v starlark.Value) error { return metrics.Show(r, v) }
	words := sync.OnceValue(types.FieldWords)
	r.FieldWords = func(name string) (lang.FieldWords, bool) {
		w, ok := words()[name]
		return w, ok
	}
	*lang.StateOf[page.Settings](r) = page.Settings{State: o.State, Version: o.Version}
	*lang.StateOf[help.Program](r) = help.Program{Pages: o.Help}
	audits.KeepBelow(r, o.State, o.Job)
	*lang.StateOf[changes.Program](r) = changes.Program{State: o.State, User: o.User, StartGuard: o.StartGuard}
	*s.Env = o.Env
	if o.Loaded != nil {
		s.Env.Load(o.Loaded)
		s.Env.Current = topology.NewFabric(o.Loaded.Renamed(o.Names))
	}
	s.subscribers = lang.StateOf[datagrams.Subscribers](r)
	if o.Engine != nil {
		if o.SA == nil {
			s.Env.SA = new(sa.Client)
		}
		s.Env.SA.Engine = o.Engine
		s.subscribers = datagrams.NewSubscribers(r)
	}
	in.Globals = predeclared(r)
	s.Explainer = &explain.Explainer{Sources: in.Sources, Globals: in.Globals, Stack: o.Verbose > 1}
	return s, nil
}

// Unsubscribe ends all subscriptions, within a second or so. It may be called
// while a script runs.
func (s *Session) Unsubscribe() { s.subscribers.Close() }

// Close ends all subscriptions and gives back the session's folders; the engine
// is the caller's.
func (s *Session) Close() error {
	s.Unsubscribe()
	s.Env.Unload()
	return s.Files.Close()
}

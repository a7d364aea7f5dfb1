package builtins

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/afero"
	"go.starlark.net/starlark"

	"fabsh/fabric"
	"fabsh/fabric/sa"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// Options is what a session stands on. The zero value of each is usable.
type Options struct {
	// Engine reaches the fabric; nil when the session reads a file.
	Engine *engine.Engine
	// Absent is why there is neither Engine nor Loaded; what needs a
	// fabric fails with it.
	Absent error
	// Sim is the simulated fabric that Engine reaches; nil: it is none of this process.
	Sim *sim.Subnet
	// Loaded is the fabric of that file.
	Loaded *fabric.Fabric
	// Names are what nodes are called, whatever they say themselves.
	Names map[mad.GUID]string
	// PlainSpeeds: discover asks for no vendor's own speeds.
	PlainSpeeds bool

	Stdout, Stderr io.Writer // nil: discarded
	Format         Format    // of show and the prompt; empty: text

	Write      bool // --write: changes of the fabric are allowed
	TrapAgent  bool // --trap-agent: traps that come to this port may be taken
	OverrideSM bool // --override-sm: also where a subnet manager owns what is changed

	// What general management packets carry, where it is not to be found out.
	SL    *uint8  // nil: that of a PathRecord
	PKey  uint16  // 0: 0xffff or 0x7fff, whichever the port has
	SMLID mad.LID // of the subnet administrator; 0: as the port says

	Include []string // -I: folders with modules, and readable
	Out     string   // --out: the folder that scripts may write to; empty: none
	// FS stands for the operating system's files. Nil: the real ones,
	// confined to the working directory, Include, Out and the scripts' folders.
	FS  afero.Fs
	Dir string // working directory; empty: "."

	Quiet   bool
	Verbose int
	// Progress is told, seldom, how far something long has come; empty
	// when it is done. Nil: nobody is.
	Progress func(string)
	// Clock is the session's time. Nil: the real one.
	Clock Clock
}

// Session is one run of fabsh: a fabric, a set of streams, and all that a
// script can say to them. One evaluation runs at a time.
type Session struct {
	o       Options
	clock   Clock
	files   *files
	modules map[string]*module
	sources map[string]string // of what has been run, for error messages

	predeclared starlark.StringDict
	builtins    []*Builtin

	fabric *fabricValue // the latest that discover found; nil if there is none yet
	sa     *sa.Client   // nil without an Engine
	guard  guard

	subscribers subscribers

	account       account
	warnedOfPaths bool // that their service levels are not known
	refused       bool // a change was refused, whatever became of the script
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
		o.Format = FormatText
	}
	if !slices.Contains(Formats, o.Format) {
		return nil, fmt.Errorf("unknown output format %q: use one of %v", string(o.Format), Formats)
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	s := &Session{o: o, clock: o.Clock, modules: map[string]*module{}, sources: map[string]string{}}
	if s.clock == nil {
		s.clock = realClock{}
	}
	var err error
	if s.files, err = newFiles(o.FS, o.Dir, o.Include, o.Out); err != nil {
		return nil, err
	}
	if o.Loaded != nil {
		s.fabric = newFabric(o.Loaded.Renamed(o.Names))
	}
	if o.Engine != nil {
		s.sa = &sa.Client{Engine: o.Engine, SMLID: o.SMLID, SL: o.SL, PKey: o.PKey}
		s.subscribers = subscribers{reports: sa.NewSubscriber(s.sa), traps: sa.NewTrapSubscriber(o.Engine)}
	}
	s.predeclare()
	return s, nil
}

// Close ends all subscriptions and gives back the session's folders; the engine
// is the caller's.
func (s *Session) Close() error {
	s.Unsubscribe()
	return s.files.close()
}

// Predeclared is every global name that a script finds. The caller may change
// the map.
func (s *Session) Predeclared() starlark.StringDict { return maps.Clone(s.predeclared) }

// Builtins are the functions among them, sorted by name.
func (s *Session) Builtins() []*Builtin { return s.builtins }

// emit writes to the session's streams.
func (s *Session) emit(st stream, text string) error {
	w := s.o.Stdout
	if st == stderr {
		w = s.o.Stderr
	}
	_, err := io.WriteString(w, text)
	return err
}

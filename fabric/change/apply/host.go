package apply

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/discover"
	"fabsh/fabric/sa"
	"fabsh/mad/engine"
)

// Host is the port and the process from which changes of a live fabric are made.
type Host struct {
	Engine *engine.Engine
	SA     *sa.Client
	// Sweep is how the fabric is discovered before a change is reverted.
	Sweep discover.Options
	Clock Clock
	// Log gets a line on each step.
	Log io.Writer
	// State is the folder that has one folder of a journal for each subnet; "": there
	// is none.
	State string
	// User is who makes changes.
	User string
	// StartGuard starts the guard process of a journal, and returns when it is ready.
	StartGuard StartGuard
}

// Clock is the time that changes wait in.
type Clock interface {
	Now() time.Time
	// Sleep returns after d, or earlier with the cause when ctx ends.
	Sleep(ctx context.Context, d time.Duration) error
}

// StartGuard starts the guard process of a journal.
type StartGuard func(ctx context.Context, journal string) (Guard, error)

// MayWrite returns why no change is made from this host; nil: some may be.
func (h *Host) MayWrite() error {
	if !h.Engine.Write() {
		return errors.New("change: it would change the fabric, which requires --write (before the word change)")
	}
	return nil
}

// inProcess reports whether the fabric is simulated in this process, and ends with it:
// no other process reaches it, to guard a change or to confirm it.
func (h *Host) inProcess() bool { return h.Engine.Traits().Name == "sim" }

// place returns the folder of the folders of journals, and the local port.
func (h *Host) place() (dir string, port engine.Port, err error) {
	if h.State == "" {
		return "", port, errors.New("change: no directory for the journal; give --state DIR")
	}
	if dir, err = filepath.Abs(h.State); err == nil {
		port, err = h.Engine.Port()
	}
	return dir, port, err
}

// runOf makes changes of the subnet of f.
func (h *Host) runOf(f *fabric.Fabric) (*Run, error) {
	if h.inProcess() {
		return &Run{Host: h}, nil
	}
	dir, port, err := h.place()
	if err != nil {
		return nil, err
	}
	subnet := fabric.SubnetOf(f, "")
	if !subnet.IsKnown() {
		return &Run{Host: h, Dir: filepath.Join(dir, portFolder+port.PortGUID.String())}, nil
	}
	return &Run{Host: h, Dir: subnet.Folder(dir)}, nil
}

// tell writes a line to the log.
func (h *Host) tell(text string) {
	if h.Log != nil {
		fmt.Fprintln(h.Log, text)
	}
}

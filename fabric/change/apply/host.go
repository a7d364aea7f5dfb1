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

// Host is the port and the process from which changes of a live fabric are applied.
type Host struct {
	Engine *engine.Engine
	SA     *sa.Client
	// Sweep discovers the fabric before a change is reverted.
	Sweep discover.Options
	Clock Clock
	// Log receives a line for each step.
	Log io.Writer
	// State is the directory that contains one directory with a journal for each subnet;
	// "": there is no such directory.
	State string
	// User is the user who applies changes.
	User string
	// OverrideSM allows changes of links beside a running subnet manager.
	OverrideSM bool
	// StartGuard starts the guard process of a journal, and returns when it is ready.
	StartGuard StartGuard
}

// Clock measures the time that changes wait.
type Clock interface {
	Now() time.Time
	// Sleep returns after d, or earlier with the cause when ctx ends.
	Sleep(ctx context.Context, d time.Duration) error
}

// StartGuard starts the guard process of a journal.
type StartGuard func(ctx context.Context, journal string) (Guard, error)

// MayWrite returns an error if no change may be applied from this host.
func (h *Host) MayWrite() error {
	if !h.Engine.Write() {
		return errors.New("change: it would change the fabric, which requires --write (before the word change)")
	}
	return nil
}

// inProcess reports whether the fabric is simulated in this process: then no other
// process can guard or confirm a change.
func (h *Host) inProcess() bool { return h.Engine.Traits().Name == "sim" }

// place returns the directory that contains the directories of journals, and the local
// port.
func (h *Host) place() (dir string, port engine.Port, err error) {
	if h.State == "" {
		return "", port, errors.New("change: no directory for the journal; give --state DIR")
	}
	if dir, err = filepath.Abs(h.State); err == nil {
		port, err = h.Engine.Port()
	}
	return dir, port, err
}

// runOf returns a Run for the subnet of f.
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

// log writes a line to the log.
func (h *Host) log(text string) {
	if h.Log != nil {
		fmt.Fprintln(h.Log, text)
	}
}

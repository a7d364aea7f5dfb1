package shell

import (
	"errors"
	"fmt"
	"path/filepath"

	"fabsh/builtins/lang"
	"fabsh/fabric/format"
	"fabsh/mad/capture"
)

// openReplay reads a recording, which then stands for the fabric.
func openReplay(o *settings, path string) (*connection, error) {
	if path == "" {
		return nil, errors.New("-F replay: which recording? write -F replay:FILE")
	}
	f, err := lang.OpenNamed(o.context(), path)
	if err != nil {
		return nil, late(err)
	}
	defer f.Close()
	r, err := format.Bounded(f, path, maxRecording)
	if err != nil {
		return nil, err
	}
	recording, err := capture.Load(r, path)
	if err != nil {
		return nil, late(err)
	}
	t := capture.NewReplay(recording)
	return &connection{name: "replay:" + filepath.Base(path), transport: t, clock: t, warning: recording.Incomplete()}, nil
}

// maxRecording is how long a recording may be, in bytes: that of a sweep of the
// largest subnet, with 1.5 million requests and their answers. In memory it takes
// up to three times as much.
const maxRecording = 1 << 30

// startRecording has c record what goes over it, if the command line says so.
// The file is written straight to its name, MAD by MAD: what a session leaves
// that ends badly is whole.
func (a *app) startRecording(c *connection) error {
	switch {
	case a.record == "":
		return nil
	case c.loaded != nil:
		return errors.New("--record: a file is read, and nothing goes to a fabric that could be recorded")
	case c.clock != nil:
		return errors.New("--record: what is replayed is a recording already")
	case c.transport == nil:
		return nil // no fabric, and code that may need none
	}
	f, err := format.Create(a.record)
	if err != nil {
		c.transport.Close()
		return fmt.Errorf("--record: %w", noFile(err))
	}
	t, err := capture.Record(c.transport, f)
	if err != nil {
		c.transport.Close()
		return &hostError{fmt.Errorf("--record %s: %w", a.record, err)}
	}
	c.transport = t
	return nil
}

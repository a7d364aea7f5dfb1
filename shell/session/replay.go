package session

import (
	"errors"
	"fmt"
	"path/filepath"

	"fabsh/builtins/lang"
	"fabsh/fabric/format"
	"fabsh/mad/capture"
)

// replay reads a recording, which takes the place of the fabric.
func (c connector) replay(path string) (*Connection, error) {
	if path == "" {
		return nil, errors.New("-F replay: missing file; write -F replay:FILE")
	}
	f, err := lang.OpenNamed(c.ctx, path)
	if err != nil {
		return nil, Late(err)
	}
	defer f.Close()
	r, err := format.Bounded(f, path, maxRecording)
	if err != nil {
		return nil, err
	}
	recording, err := capture.Load(r, path)
	if err != nil {
		return nil, Late(err)
	}
	t := capture.NewReplay(recording)
	opened := &Connection{Name: "replay:" + filepath.Base(path), transport: t, clock: t}
	if err := recording.Incomplete(); err != nil {
		opened.warnings = append(opened.warnings, err)
	}
	return opened, nil
}

// maxRecording is the maximum length of a recording, in bytes: that of a sweep of the
// largest subnet, with 1.5 million requests and their answers. In memory it takes up to
// three times as much.
const maxRecording = 1 << 30

// record records the traffic of c in the file at path; "": no recording.
func (c *Connection) record(path string) error {
	switch {
	case path == "":
		return nil
	case c.loaded != nil:
		return errors.New("--record: the session reads a file, so no traffic can be recorded")
	case c.clock != nil:
		return errors.New("--record: the session replays a recording; copy that file")
	case c.transport == nil:
		return nil // no fabric, and code that may not need one
	}
	f, err := createRecording(path)
	if err != nil {
		c.transport.Close()
		return fmt.Errorf("--record: %w", format.FileError(err))
	}
	t, err := capture.Record(c.transport, f)
	if err != nil {
		c.transport.Close()
		if file, ok := f.(*recordFile); ok {
			file.discard()
		}
		return &HostError{fmt.Errorf("--record %s: %w", path, err)}
	}
	c.transport = t
	return nil
}

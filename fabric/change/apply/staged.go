package apply

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/change/certificate"
	"fabsh/fabric/device"
	"fabsh/fabric/format"
	"fabsh/fabric/plural"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// Staged describes how OpenSM, with its engine file, receives the tables of each round:
// OpenSM writes them, and fabsh sends no Set.
type Staged struct {
	// File is the file that OpenSM reads, and Reload the process to signal: its ID, or
	// the name of a file that contains it.
	File   string `json:"file"`
	Reload string `json:"reload"`
	// Before is the original file, compressed by gzip.
	Before []byte `json:"before"`
}

// stageWithin is how long OpenSM may take for the heavy sweep that follows SIGHUP, and
// for its writes.
const stageWithin = 2 * time.Minute

// newStaged stages a change of cells for OpenSM. reload is its process ID, or a file that
// contains it. It checks that OpenSM reads this file and no other. live are the current
// tables of the switches.
func newStaged(file, reload string, live *routes.Routes, cells []*certificate.Change) (*Staged, error) {
	for _, c := range cells {
		if c.Attr != mad.AttrLinearForwardingTable {
			return nil, fmt.Errorf("--stage: the file that OpenSM reads contains only forwarding tables, but the plan changes %s; let OpenSM write it by an engine of its own, or stop OpenSM", c.Name)
		}
	}
	p, err := FindOpenSM(reload)
	if err != nil {
		return nil, &FabricError{err}
	}
	if file, err = filepath.Abs(file); err != nil {
		return nil, err
	}
	if err := p.CheckTables(file); err != nil {
		return nil, err
	}
	if p.PIDFile != "" {
		if reload, err = filepath.Abs(p.PIDFile); err != nil {
			return nil, err
		}
	}
	before, err := readStaged(file, live)
	if err != nil {
		return nil, fmt.Errorf("--stage: %w", format.FileError(err))
	}
	return &Staged{File: file, Reload: reload, Before: before}, nil
}

// process finds the OpenSM for which a change is staged, and checks that it reads the
// file.
func (s *Staged) process() (*OpenSM, error) {
	p, err := FindOpenSM(s.Reload)
	if err == nil {
		err = p.CheckTables(s.File)
	}
	return p, err
}

// readStaged returns the current file, compressed. Its tables must equal live: otherwise
// the change would start from tables that were not examined.
func readStaged(file string, live *routes.Routes) ([]byte, error) {
	f, err := format.OpenRegular(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxLine))
	if err != nil {
		return nil, err
	}
	there, err := routes.Load(live.Graph().Fabric(), routes.Files{LFTs: file}, openRegular)
	if err != nil {
		return nil, err
	}
	if d := live.Diff(there.On(live.Graph())); d.Entries > 0 {
		return nil, fmt.Errorf("%s differs from the tables of the switches in %s of %s: OpenSM has not read it, or failed to", file,
			plural.Count(d.Entries, "entry", "entries"), plural.Count(len(d.Switches), "switch", "switches"))
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(text); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// stager is the mode in which OpenSM writes the tables of each round.
type stager struct {
	*Staged
	sets
	f      *fabric.Fabric
	opensm *OpenSM
	live   *routes.Routes // the current tables of the switches
}

// write passes the tables after writes to OpenSM, and waits until they read back.
func (s *stager) write(ctx context.Context, writes []certificate.Write, _ []exchange, now [][]byte) error {
	if s.live == nil {
		read, failed, err := device.ReadRoutes(ctx, s.Engine, s.f)
		if err != nil {
			return err
		}
		if len(failed) > 0 {
			return &AccessError{len(failed), failed[0].Err}
		}
		s.live = read
	}
	next := s.live.Clone()
	put := func(i int, data []byte) error {
		cell := s.cells[i]
		sw := next.Graph().SwitchByGUID(cell.Node)
		if sw < 0 || cell.Attr != mad.AttrLinearForwardingTable {
			return fmt.Errorf("%s: not supported: OpenSM's file contains only forwarding tables of switches", cell.Name)
		}
		if row, first := next.Row(sw), int(cell.Modifier)*mad.LFTBlock; first < len(row) {
			copy(row[first:], data)
		}
		return nil
	}
	for i := range now {
		if err := put(i, now[i]); err != nil {
			return err
		}
	}
	for _, w := range writes {
		if err := put(w.Change, w.Data); err != nil {
			return err
		}
	}
	if err := s.replace(ctx, next); err != nil {
		return err
	}
	if _, err := s.opensm.Reload(); err != nil {
		return err
	}
	return s.wait(ctx, writes, now)
}

// replace writes the file, if it reads back as next.
func (s *stager) replace(ctx context.Context, next *routes.Routes) error {
	return format.WriteChecked(s.File, func(w io.Writer) error { return next.Write(ctx, w, format.KindLFTs) }, func(name string) error {
		back, err := routes.Load(next.Graph().Fabric(), routes.Files{LFTs: name}, openRegular)
		if err != nil {
			return fmt.Errorf("new file: cannot be read back: %w", err)
		}
		if d := next.Diff(back.On(next.Graph())); d.Entries > 0 {
			return fmt.Errorf("new file: reads back with differences: %s", plural.Count(d.Entries, "entry", "entries"))
		}
		return nil
	})
}

// wait waits until the switches have the values of writes.
func (s *stager) wait(ctx context.Context, writes []certificate.Write, now [][]byte) error {
	for waited := time.Duration(0); ; waited += poll {
		back, err := s.read(ctx, cellsOf(writes))
		if err != nil {
			return err
		}
		left, first := 0, ""
		for i, w := range writes {
			if !s.cells[w.Change].Same(back[i].data, w.Data) {
				if left++; left == 1 {
					first = s.cells[w.Change].Name
				}
			}
		}
		if left == 0 {
			for _, w := range writes {
				now[w.Change] = w.Data
			}
			return nil
		}
		if waited >= stageWithin {
			return &CheckError{fmt.Sprintf("OpenSM was signaled to read %s, but after %v %s not written: %s", s.File, stageWithin, plural.Count(left, "block is", "blocks are"), first)}
		}
		if err := s.Sleep(ctx, poll); err != nil {
			return err
		}
	}
}

// reverted restores the contents that the file had before the change. OpenSM then reads
// it, if it still runs.
func (s *stager) reverted() error {
	z, err := gzip.NewReader(bytes.NewReader(s.Before))
	if err != nil {
		return err
	}
	err = format.WriteFile(context.Background(), s.File, func(w io.Writer) error {
		_, err := io.Copy(w, io.LimitReader(z, maxLine))
		return err
	})
	_, reloadErr := s.opensm.Reload()
	return errors.Join(err, reloadErr)
}

// openRegular opens a file of tables.
func openRegular(path string) (io.ReadCloser, error) { return format.OpenRegular(path) }

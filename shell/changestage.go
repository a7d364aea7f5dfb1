package shell

import (
	"fmt"
	"path/filepath"

	"fabsh/fabric/change/apply"
	"fabsh/fabric/opensm"
	"fabsh/fabric/routing"
	"fabsh/mad"
)

// stage checks that OpenSM reads the file and nothing else, and notes the file.
// live are the tables that the switches have.
func (s *session) stage(live *routing.Routes, cells []*apply.Cell, o *applyOptions) (*apply.Staged, error) {
	for _, c := range cells {
		if c.Attr != mad.AttrLinearForwardingTable {
			return nil, fmt.Errorf("--stage: the file that OpenSM reads has forwarding tables alone, and the plan changes %s: where that is needed, OpenSM must write it by an engine of its own, or be stopped", c.Name)
		}
	}
	p, err := opensm.Find(o.reload)
	if err != nil {
		return nil, &hostError{err}
	}
	file, err := filepath.Abs(o.stage)
	if err != nil {
		return nil, err
	}
	if err := p.CheckTables(file); err != nil {
		return nil, err
	}
	reload := o.reload
	if p.PIDFile != "" {
		if reload, err = filepath.Abs(p.PIDFile); err != nil {
			return nil, err
		}
	}
	staged, err := apply.Stage(file, reload, live)
	if err != nil {
		return nil, fmt.Errorf("--stage: %w", noFile(err))
	}
	return staged, nil
}

// reloader finds the OpenSM of a change.
func reloader(staged *apply.Staged) (func() error, error) {
	p, err := opensm.Find(staged.Reload)
	if err == nil {
		err = p.CheckTables(staged.File)
	}
	if err != nil {
		return nil, &hostError{err}
	}
	return func() error {
		_, err := p.Reload()
		return err
	}, nil
}

package builtins

import (
	"context"
	"errors"
	"fmt"

	"go.starlark.net/starlark"

	"fabsh/fabric/sa"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// putSA makes call a request to the subnet administrator.
func (c *call) putSA(call *engine.Call, p *engine.Port, m mad.Method, attr *mad.Attribute, modifier uint32, mask uint64, data []byte) error {
	return c.session().putSA(call, p, m, attr, modifier, mask, data)
}

func (s *Session) putSA(call *engine.Call, p *engine.Port, m mad.Method, attr *mad.Attribute, modifier uint32, mask uint64, data []byte) error {
	return s.sa.Put(call, p, sa.Request{Method: m, Attr: attr, Modifier: modifier, Mask: mask, Record: data})
}

// probe sends requests of fabsh's own, which do not count for the exit status.
func (c *call) probe(calls []*engine.Call) error {
	e, err := c.engine()
	if err != nil {
		return err
	}
	return c.wait(func(ctx context.Context) error { return e.Do(ctx, calls...) })
}

// saLookup asks for the records with one component.
func (c *call) saLookup(attr *mad.Attribute, component string, v starlark.Value) ([]*record, error) {
	p, err := c.localPort()
	if err != nil {
		return nil, err
	}
	data := make([]byte, attr.Size)
	f, err := setNamed(attr, data, component, v)
	if err != nil {
		return nil, err
	}
	var call engine.Call
	if err := c.putSA(&call, &p, mad.MethodGetTable, attr, 0, f.Mask(), data); err != nil {
		return nil, err
	}
	if err := c.transact([]*engine.Call{&call}); err != nil {
		return nil, err
	}
	return tableOf(attr, &call)
}

// tableOf are the records of an answer; none where the administrator says so.
func tableOf(attr *mad.Attribute, call *engine.Call) ([]*record, error) {
	var me *engine.Error
	if errors.As(call.Err, &me) && me.Err == nil && me.Status == mad.StatusNoRecords {
		return nil, nil
	}
	if call.Err != nil {
		return nil, call.Err
	}
	seq, err := call.Records(attr.Size)
	if err != nil {
		return nil, err
	}
	var list []*record
	for data := range seq {
		list = append(list, answered(attr, 0, data))
	}
	return list, nil
}

// pathLID asks for the LID behind a GID.
func (c *call) pathLID(g mad.GID) (mad.LID, error) {
	if _, err := c.engine(); err != nil {
		return 0, err
	}
	var path mad.PathRecord
	err := c.wait(func(ctx context.Context) (err error) {
		path, err = c.session().sa.Path(ctx, g)
		return err
	})
	c.count(err)
	return path.DLID, err
}

// serviceLevels learns the service levels of the paths to lids. What the subnet
// administrator does not tell is 0, with one warning a session.
func (c *call) serviceLevels(p *engine.Port, lids []mad.LID) error {
	err := c.wait(func(ctx context.Context) error { return c.session().sa.LearnPaths(ctx, p, lids) })
	var unknown *sa.PathError
	if errors.As(err, &unknown) {
		if s := c.session(); !s.warnedOfPaths {
			s.warnedOfPaths = true
			c.fiber().warn("the service level of paths is not known, so 0 is used (--sl sets another): %v", unknown)
		}
		return nil
	}
	return c.named(err)
}

// named says whose --pkey it is that the port does not have.
func (c *call) named(err error) error {
	var pkey *sa.PKeyError
	if errors.As(err, &pkey) {
		return fmt.Errorf("%s: %w", c.Name, err)
	}
	return err
}

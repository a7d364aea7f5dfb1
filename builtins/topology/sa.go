package topology

import (
	"context"
	"errors"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/fabric/sa"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// SACall returns a request to the subnet administrator, for Transact or SendProbes.
func SACall(c *lang.Call, r sa.Request) (*engine.Call, error) {
	p, err := LocalPort(c)
	if err != nil {
		return nil, err
	}
	call := new(engine.Call)
	if err := EnvOf(c.Runtime()).SA.Put(call, &p, r); err != nil {
		return nil, SAFailed(c, r.Attr, err)
	}
	return call, nil
}

// SARecords returns the records of an answer, with the layout attr. It returns none if
// the status of the answer is "no records".
func SARecords(attr *mad.Attribute, call *engine.Call) ([]*records.Record, error) {
	seq, err := sa.Records(call, attr)
	if err != nil {
		return nil, err
	}
	var list []*records.Record
	for data := range seq {
		list = append(list, records.NewAnswer(attr, 0, data))
	}
	return list, nil
}

// SAFailed returns the error of a request for records of attr.
func SAFailed(c *lang.Call, attr *mad.Attribute, err error) error {
	return FailedRequest(c, &Target{Label: attr.Name + " of the subnet administrator"}, err)
}

// nodeRecords reads the NodeRecords that match query in one component.
func nodeRecords(c *lang.Call, query *mad.NodeRecord, component string) (list []mad.NodeRecord, err error) {
	if _, err := ReaderOf(c); err != nil {
		return nil, err
	}
	client := EnvOf(c.Runtime()).SA
	err = c.Block(func(ctx context.Context) error {
		all, err := client.Table(ctx, sa.NewRequest(mad.MethodGetTable, mad.AttrNodeRecord, query, component))
		if err != nil {
			return err
		}
		for data := range all {
			var r mad.NodeRecord
			r.Decode(data)
			list = append(list, r)
		}
		return nil
	})
	CountUnanswered(c, err)
	return list, err
}

// pathTo reads a path to the port with a GID.
func pathTo(c *lang.Call, g mad.GID) (path mad.PathRecord, err error) {
	if _, err := ReaderOf(c); err != nil {
		return path, err
	}
	client := EnvOf(c.Runtime()).SA
	err = c.Block(func(ctx context.Context) (err error) {
		path, err = client.Path(ctx, g)
		return err
	})
	CountUnanswered(c, err)
	return path, err
}

// pathWarning records whether the session has warned of unknown paths.
type pathWarning struct{ given bool }

// LearnPaths reads the service levels of the paths from p to lids, which
// sa.Client.PutGMP then uses. If the subnet administrator does not report one, it is 0,
// with one warning in each session.
func LearnPaths(c *lang.Call, p *engine.Port, lids []mad.LID) error {
	client := EnvOf(c.Runtime()).SA
	err := c.Block(func(ctx context.Context) error { return client.LearnPaths(ctx, p, lids) })
	var unknown *sa.PathError
	if errors.As(err, &unknown) {
		if w := lang.StateOf[pathWarning](c.Runtime()); !w.given {
			w.given = true
			c.Fiber().Warn("the service level of paths is unknown; using 0 (--sl sets another): %v", unknown)
		}
		return nil
	}
	return ownPKey(err)
}

// ownPKey converts the error about a P_Key that the port does not have to one that the
// builtin's name precedes.
func ownPKey(err error) error {
	var pkey *sa.PKeyError
	if errors.As(err, &pkey) {
		return lang.Errorf("%w", err)
	}
	return err
}

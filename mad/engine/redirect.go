package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"fabsh/mad"
)

// An agent may redirect the requests of its class: it answers any of them with status
// "redirection required" and a ClassPortInfo that has the target (IBA 13.4.7, 13.4.8.1;
// libibmad rpc.c, redirect_port; opensm osm_perfmgr.c, handle_redirect). Do follows it,
// and the engine remembers it for all later calls, until the target does not answer.

// redirects are the known redirections. It is safe for concurrent use: a table is never
// changed, but replaced.
type redirects struct {
	mu    sync.Mutex // held to replace it
	table atomic.Pointer[redirectTable]
}

func (r *redirects) load() redirectTable {
	if t := r.table.Load(); t != nil {
		return *t
	}
	return nil
}

// of returns the destination of c.
func (r *redirects) of(c *Call) redirected { return r.load().of(c) }

// forget removes the redirection of calls like c.
func (r *redirects) forget(c *Call) {
	if _, known := r.load()[redirectKeyOf(c, &c.To)]; known {
		r.change(func(t redirectTable) error { t.forget(c); return nil })
	}
}

// add records that requests like c to from go to next, unless that makes a
// circle.
func (r *redirects) add(c *Call, from Address, next redirected) error {
	return r.change(func(t redirectTable) error { return t.add(c, from, next) })
}

// change replaces the table by a copy that was changed.
func (r *redirects) change(by func(redirectTable) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := maps.Clone(r.load())
	if t == nil {
		t = redirectTable{}
	}
	err := by(t)
	r.table.Store(&t)
	return err
}

// redirectTable is the targets of redirected agents.
type redirectTable map[redirectKey]redirected

// redirected is the target of a redirection.
type redirected struct {
	Address
	// vouched is set if the subnet administrator reported that the port with this
	// GID has this LID.
	vouched bool
}

// redirectKey is an agent that redirects.
type redirectKey struct {
	class mad.Class
	lid   mad.LID
	gid   mad.GID
	qp    uint32
}

func redirectKeyOf(c *Call, a *Address) redirectKey {
	k := redirectKey{class: mad.Class(c.MAD[mad.ClassOffset]), lid: a.LID, qp: a.QP}
	if a.HasGRH {
		k.gid = a.GID
	}
	return k
}

// maxRedirects is the largest number of redirections of a request.
const maxRedirects = 4

// of returns the destination of c.
func (t redirectTable) of(c *Call) redirected {
	a := redirected{Address: c.To}
	for range min(len(t), maxRedirects) {
		next, ok := t[redirectKeyOf(c, &a.Address)]
		if !ok {
			break
		}
		a = next
	}
	return a
}

// forget removes the redirection of calls like c.
func (t redirectTable) forget(c *Call) {
	for a := c.To; ; {
		k := redirectKeyOf(c, &a)
		next, ok := t[k]
		if !ok {
			return
		}
		delete(t, k)
		a = next.Address
	}
}

// add records that requests like c to from go to next, unless that makes a
// circle.
func (t redirectTable) add(c *Call, from Address, next redirected) error {
	t[redirectKeyOf(c, &from)] = next
	path := []redirectKey{redirectKeyOf(c, &c.To)}
	words := []string{c.To.String()}
	for a := c.To; ; {
		next, ok := t[redirectKeyOf(c, &a)]
		if !ok {
			return nil
		}
		a = next.Address
		k := redirectKeyOf(c, &a)
		words = append(words, a.String())
		switch {
		case slices.Contains(path, k):
			t.forget(c)
			return fmt.Errorf("the redirections go round in a circle: %s; the agents there are set up wrongly", strings.Join(words, ", "))
		case len(path) > maxRedirects:
			t.forget(c)
			return fmt.Errorf("there are more than %d redirections: %s; the agents there are set up wrongly", maxRedirects, strings.Join(words, ", "))
		}
		path = append(path, k)
	}
}

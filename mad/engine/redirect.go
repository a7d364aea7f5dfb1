package engine

import (
	"context"
	"errors"
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
func (r *redirects) of(c *Call) redirectTarget { return r.load().of(c) }

// forget removes the redirection of calls like c.
func (r *redirects) forget(c *Call) {
	if _, known := r.load()[redirectKeyOf(c, &c.To)]; known {
		r.change(func(t redirectTable) error { t.forget(c); return nil })
	}
}

// add records that requests like c to from go to next, unless that makes a
// circle.
func (r *redirects) add(c *Call, from Address, next redirectTarget) error {
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
type redirectTable map[redirectKey]redirectTarget

// redirectTarget is the target of a redirection.
type redirectTarget struct {
	Address
	// confirmed is set if the subnet administrator reported that the port with this
	// GID has this LID.
	confirmed bool
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
func (t redirectTable) of(c *Call) redirectTarget {
	a := redirectTarget{Address: c.To}
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
func (t redirectTable) add(c *Call, from Address, next redirectTarget) error {
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

// Destination returns the address that calls like c go to now: the target of its
// agent's redirection, if any.
func (e *Engine) Destination(c *Call) Address {
	return e.redirects.of(c).Address
}

// redirectError is the error of a call that its agent redirects. The call keeps its
// request.
type redirectError struct {
	status mad.Status
	from   Address
	info   mad.ClassPortInfo
}

// redirection returns the redirection of c in response m, or nil.
func redirection(c *Call, m []byte) *redirectError {
	h := mad.ParseHeader(m)
	offset := h.DataOffset()
	if h.Status&mad.StatusRedirect == 0 || h.Class.Family() == mad.ClassSubn || len(m) < offset+mad.AttrPerfClassPortInfo.Size {
		return nil
	}
	r := &redirectError{status: h.Status, from: c.s.to}
	r.info.Decode(m[offset:])
	return r
}

func (r *redirectError) Error() string {
	if r.info.RedirectLID == 0 {
		return fmt.Sprintf("query GID %v instead", r.info.RedirectGID)
	}
	return fmt.Sprintf("query LID %d, queue pair %#x, instead", r.info.RedirectLID, r.info.RedirectQP)
}

// follow redirects the calls that were redirected, and returns them. If that is
// impossible, the call's error has the reason. The error is the end of ctx. Calls of
// Options.Resolve are not followed: their target would have to be resolved itself.
func (e *Engine) follow(ctx context.Context, calls []*Call) ([]*Call, error) {
	var again []*Call
	for _, c := range calls {
		var r *redirectError
		if c.Err == nil || !errors.As(c.Err, &r) || ctx.Value(resolveKey{}) != nil {
			continue
		}
		next, err := e.target(ctx, c, &r.info)
		if err == nil {
			err = e.redirects.add(c, r.from, next)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			failed := c.failure(err)
			failed.Status = r.status
			c.Err = failed
			continue
		}
		again = append(again, c)
	}
	return again, nil
}

// target returns the target of a redirection.
func (e *Engine) target(ctx context.Context, c *Call, info *mad.ClassPortInfo) (redirectTarget, error) {
	if info.RedirectQP == 0 {
		return redirectTarget{}, errors.New("the agent redirects to queue pair 0, which is not valid for its class")
	}
	a := Address{LID: info.RedirectLID, QP: info.RedirectQP, SL: info.RedirectSL, PKeyIndex: c.To.PKeyIndex}
	if info.RedirectQKey != mad.GeneralQKey {
		a.QKey = info.RedirectQKey
	}
	if info.RedirectGID != (mad.GID{}) {
		a.HasGRH, a.GID = true, info.RedirectGID
		a.FlowLabel, a.TrafficClass, a.HopLimit = info.RedirectFL, info.RedirectTC, 0xff
	}
	port, err := e.Port()
	if err != nil {
		return redirectTarget{}, err
	}
	if key := info.RedirectPKey; key != 0 {
		i := port.PKeyIndex(key)
		if i < 0 {
			return redirectTarget{}, fmt.Errorf("the agent redirects to partition %#04x, which the local port is not in", key)
		}
		a.PKeyIndex = uint16(i)
	}
	switch {
	case a.LID == 0 && !a.HasGRH:
		return redirectTarget{}, errors.New("the agent redirects to nowhere: it names neither LID nor GID")
	case a.LID == 0:
		a.LID, err = e.resolve(ctx, a.GID)
		return redirectTarget{a, true}, err
	case !e.options.Keys.names(&a):
		return redirectTarget{a, false}, nil
	}
	// A forged redirection may have another's GID with the forger's LID.
	lid, err := e.resolve(ctx, a.GID)
	return redirectTarget{a, err == nil && (lid^a.LID)>>e.LMC(lid) == 0}, nil
}

// resolveKey marks the context of Options.Resolve.
type resolveKey struct{}

// ErrNoSA is returned by Options.Resolve without a subnet administrator.
var ErrNoSA = errors.New("no subnet administrator can resolve it")

// resolve returns the LID of a GID.
func (e *Engine) resolve(ctx context.Context, gid mad.GID) (mad.LID, error) {
	lid, err := mad.LID(0), ErrNoSA
	if e.options.Resolve != nil {
		lid, err = e.options.Resolve(context.WithValue(ctx, resolveKey{}, true), e, gid)
	}
	switch {
	case errors.Is(err, ErrNoSA):
		return 0, fmt.Errorf("the agent redirects to GID %v without a LID, and %w", gid, ErrNoSA)
	case err != nil:
		return 0, fmt.Errorf("the agent redirects to GID %v without a LID, and the query of the LID failed: %w", gid, err)
	}
	return lid, nil
}

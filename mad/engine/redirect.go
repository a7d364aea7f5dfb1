package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"fabsh/mad"
)

// An agent may have the requests of its class go elsewhere: to any of them it
// answers with status "redirection required" and a ClassPortInfo that says
// where (IBA 13.4.7, 13.4.8.1; libibmad rpc.c, redirect_port; opensm
// osm_perfmgr.c, handle_redirect). Do goes there, and the engine remembers it
// for all later calls, until there is silence.

// redirects are the redirections that are known: where requests to an agent go
// instead. Engine.mu guards them.
type redirects map[redirectKey]redirected

// redirected is a place to go to instead.
type redirected struct {
	Address
	// vouched: the subnet administrator says that the port with this GID has this
	// LID.
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

// maxRedirects is how many agents may hand a request on.
const maxRedirects = 4

// of is where c goes.
func (r redirects) of(c *Call) redirected {
	a := redirected{Address: c.To}
	for range min(len(r), maxRedirects) {
		next, ok := r[redirectKeyOf(c, &a.Address)]
		if !ok {
			break
		}
		a = next
	}
	return a
}

// Destination is where calls like c go now: to where its agent redirects, if it
// does.
func (e *Engine) Destination(c *Call) Address {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.redirects.of(c).Address
}

// forget has calls like c go where they went at first.
func (r redirects) forget(c *Call) {
	for a := c.To; ; {
		k := redirectKeyOf(c, &a)
		next, ok := r[k]
		if !ok {
			return
		}
		delete(r, k)
		a = next.Address
	}
}

// add notes that what c asks of from is to go to next, unless that leads in
// a circle.
func (r redirects) add(c *Call, from Address, next redirected) error {
	r[redirectKeyOf(c, &from)] = next
	path := []redirectKey{redirectKeyOf(c, &c.To)}
	words := []string{c.To.String()}
	for a := c.To; ; {
		next, ok := r[redirectKeyOf(c, &a)]
		if !ok {
			return nil
		}
		a = next.Address
		k := redirectKeyOf(c, &a)
		words = append(words, a.String())
		switch {
		case slices.Contains(path, k):
			r.forget(c)
			return fmt.Errorf("the redirections go round in a circle: %s; the agents there are set up wrongly", strings.Join(words, ", "))
		case len(path) > maxRedirects:
			r.forget(c)
			return fmt.Errorf("there are more than %d redirections: %s; the agents there are set up wrongly", maxRedirects, strings.Join(words, ", "))
		}
		path = append(path, k)
	}
}

// redirect is the error of a call whose agent sends it elsewhere. The call
// keeps its request.
type redirect struct {
	status mad.Status
	from   Address
	info   mad.ClassPortInfo
}

// redirection is what response m says of where c should go; nil: nothing.
func redirection(c *Call, m []byte) *redirect {
	h := mad.ParseHeader(m)
	offset := h.DataOffset()
	if h.Status&mad.StatusRedirect == 0 || h.Class.Family() == mad.ClassSubn || len(m) < offset+mad.AttrPerfClassPortInfo.Size {
		return nil
	}
	r := &redirect{status: h.Status, from: c.s.to}
	r.info.Decode(m[offset:])
	return r
}

func (r *redirect) Error() string {
	if r.info.RedirectLID == 0 {
		return fmt.Sprintf("ask GID %v instead", r.info.RedirectGID)
	}
	return fmt.Sprintf("ask LID %d, queue pair %#x, instead", r.info.RedirectLID, r.info.RedirectQP)
}

// follow has those of calls that were redirected go where they should, and
// returns them. Where that cannot be, the call's error says why. The error is
// the end of ctx. Calls of Options.Resolve are not followed: to know where they
// should go another would have to be resolved.
func (e *Engine) follow(ctx context.Context, calls []*Call) ([]*Call, error) {
	var again []*Call
	for _, c := range calls {
		var r *redirect
		if c.Err == nil || !errors.As(c.Err, &r) || ctx.Value(resolving{}) != nil {
			continue
		}
		next, err := e.target(ctx, c, r)
		if err == nil {
			e.mu.Lock()
			err = e.redirects.add(c, r.from, next)
			e.mu.Unlock()
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

// target is the place that a redirection tells.
func (e *Engine) target(ctx context.Context, c *Call, r *redirect) (redirected, error) {
	info := &r.info
	if info.RedirectQP == 0 {
		return redirected{}, errors.New("the agent redirects to queue pair 0, which is none of its kind")
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
		return redirected{}, err
	}
	if key := info.RedirectPKey; key != 0 {
		i := port.PKeyIndex(key)
		if i < 0 {
			return redirected{}, fmt.Errorf("the agent redirects to partition %#04x, which the local port is not in", key)
		}
		a.PKeyIndex = uint16(i)
	}
	switch {
	case a.LID == 0 && !a.HasGRH:
		return redirected{}, errors.New("the agent redirects to nowhere: it names neither LID nor GID")
	case a.LID == 0:
		a.LID, err = e.resolve(ctx, a.GID)
		return redirected{a, true}, err
	case !e.options.Keys.names(&a):
		return redirected{a, false}, nil
	}
	// Who forges a redirection may give the GID of another with a LID of its own.
	lid, err := e.resolve(ctx, a.GID)
	return redirected{a, err == nil && (lid^a.LID)>>e.LMC(lid) == 0}, nil
}

// resolving marks the context of Options.Resolve.
type resolving struct{}

// ErrNoSA is returned by Options.Resolve where there is nobody to ask.
var ErrNoSA = errors.New("there is no subnet administrator to ask for one")

// resolve finds the LID behind a GID.
func (e *Engine) resolve(ctx context.Context, gid mad.GID) (mad.LID, error) {
	lid, err := mad.LID(0), ErrNoSA
	if e.options.Resolve != nil {
		lid, err = e.options.Resolve(context.WithValue(ctx, resolving{}, true), e, gid)
	}
	switch {
	case errors.Is(err, ErrNoSA):
		return 0, fmt.Errorf("the agent redirects to GID %v without a LID, and %w", gid, ErrNoSA)
	case err != nil:
		return 0, fmt.Errorf("the agent redirects to GID %v without a LID, and asking for one failed: %w", gid, err)
	}
	return lid, nil
}

package engine

import (
	"context"
	"errors"
	"fmt"

	"fabsh/mad"
)

// Destination returns where calls like c go now: to where its agent redirects, if it
// does.
func (e *Engine) Destination(c *Call) Address {
	return e.redirects.of(c).Address
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

// target is the place that a redirection tells.
func (e *Engine) target(ctx context.Context, c *Call, info *mad.ClassPortInfo) (redirected, error) {
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

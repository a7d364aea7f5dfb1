package engine

import (
	"context"
	"errors"
	"fmt"

	"fabsh/mad"
)

// Destination returns the address that calls like c go to now: the target of its
// agent's redirection, if any.
func (e *Engine) Destination(c *Call) Address {
	return e.redirects.of(c).Address
}

// redirect is the error of a call that its agent redirects. The call keeps its
// request.
type redirect struct {
	status mad.Status
	from   Address
	info   mad.ClassPortInfo
}

// redirection returns the redirection of c in response m, or nil.
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

// target returns the target of a redirection.
func (e *Engine) target(ctx context.Context, c *Call, info *mad.ClassPortInfo) (redirected, error) {
	if info.RedirectQP == 0 {
		return redirected{}, errors.New("the agent redirects to queue pair 0, which is not valid for its class")
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
	// A forged redirection may have another's GID with the forger's LID.
	lid, err := e.resolve(ctx, a.GID)
	return redirected{a, err == nil && (lid^a.LID)>>e.LMC(lid) == 0}, nil
}

// resolving marks the context of Options.Resolve.
type resolving struct{}

// ErrNoSA is returned by Options.Resolve without a subnet administrator.
var ErrNoSA = errors.New("no subnet administrator can resolve it")

// resolve returns the LID of a GID.
func (e *Engine) resolve(ctx context.Context, gid mad.GID) (mad.LID, error) {
	lid, err := mad.LID(0), ErrNoSA
	if e.options.Resolve != nil {
		lid, err = e.options.Resolve(context.WithValue(ctx, resolving{}, true), e, gid)
	}
	switch {
	case errors.Is(err, ErrNoSA):
		return 0, fmt.Errorf("the agent redirects to GID %v without a LID, and %w", gid, ErrNoSA)
	case err != nil:
		return 0, fmt.Errorf("the agent redirects to GID %v without a LID, and the query of the LID failed: %w", gid, err)
	}
	return lid, nil
}

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

// redirected is where c goes by the redirections that are known.
func (e *Engine) redirected(c *Call) Address {
	a := c.To
	for range min(len(e.redirects), maxRedirects) {
		next, ok := e.redirects[redirectKeyOf(c, &a)]
		if !ok {
			break
		}
		a = next
	}
	return a
}

// forgetRedirect has calls like c go where they went at first.
func (e *Engine) forgetRedirect(c *Call) {
	for a := c.To; ; {
		k := redirectKeyOf(c, &a)
		next, ok := e.redirects[k]
		if !ok {
			return
		}
		delete(e.redirects, k)
		a = next
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
	offset := h.Class.DataOffset()
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
// the end of ctx.
func (e *Engine) follow(ctx context.Context, calls []*Call) ([]*Call, error) {
	var again []*Call
	for _, c := range calls {
		var r *redirect
		if c.Err == nil || !errors.As(c.Err, &r) {
			continue
		}
		next, err := e.target(ctx, c, r)
		if err == nil {
			err = e.remember(c, r.from, next)
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

// remember notes that what c asks of from is to go to next, unless that leads
// in a circle.
func (e *Engine) remember(c *Call, from, next Address) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.redirects[redirectKeyOf(c, &from)] = next
	way := []redirectKey{redirectKeyOf(c, &c.To)}
	words := []string{c.To.String()}
	for a := c.To; ; {
		next, ok := e.redirects[redirectKeyOf(c, &a)]
		if !ok {
			return nil
		}
		a = next
		k := redirectKeyOf(c, &a)
		words = append(words, a.String())
		switch {
		case slices.Contains(way, k):
			e.forgetRedirect(c)
			return fmt.Errorf("the redirections go round in a circle: %s; the agents there are set up wrongly", strings.Join(words, ", "))
		case len(way) > maxRedirects:
			e.forgetRedirect(c)
			return fmt.Errorf("there are more than %d redirections: %s; the agents there are set up wrongly", maxRedirects, strings.Join(words, ", "))
		}
		way = append(way, k)
	}
}

// target is the address that a redirection tells.
func (e *Engine) target(ctx context.Context, c *Call, r *redirect) (Address, error) {
	info := &r.info
	if info.RedirectQP == 0 {
		return Address{}, errors.New("the agent redirects to queue pair 0, which is none of its kind")
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
		return Address{}, err
	}
	if key := info.RedirectPKey; key != 0 {
		i := port.PKeyIndex(key)
		if i < 0 {
			return Address{}, fmt.Errorf("the agent redirects to partition %#04x, which the local port is not in", key)
		}
		a.PKeyIndex = uint16(i)
	}
	if a.LID != 0 {
		return a, nil
	}
	if !a.HasGRH {
		return Address{}, errors.New("the agent redirects to nowhere: it names neither LID nor GID")
	}
	return a, e.resolve(ctx, &port, &a)
}

// resolve asks the subnet administrator for the LID behind a's GID.
func (e *Engine) resolve(ctx context.Context, port *Port, a *Address) error {
	if port.SMLID == 0 {
		return fmt.Errorf("the agent redirects to GID %v without a LID, and there is no subnet administrator to ask for one", a.GID)
	}
	query := mad.PathRecord{DGID: a.GID, SGID: mad.MakeGID(port.GIDPrefix, port.PortGUID), NumbPath: 1}
	var data [64]byte
	query.Encode(data[:])
	var mask uint64
	for _, name := range []string{"dgid", "sgid", "numb_path"} {
		mask |= mad.AttrPathRecord.Field(name).Mask()
	}
	var c Call
	c.PutSA(mad.MethodGet, mad.AttrPathRecord.ID, 0, mask, data[:])
	c.SetLID(port.SMLID)
	c.To.SL = port.SMSL
	if i := port.PKeyIndex(mad.DefaultPKey); i >= 0 {
		c.To.PKeyIndex = uint16(i)
	}
	if err := e.do(ctx, []*Call{&c}); err != nil {
		return err
	}
	if c.Err != nil {
		return fmt.Errorf("the agent redirects to GID %v without a LID, and asking for one failed: %w", a.GID, c.Err)
	}
	var path mad.PathRecord
	path.Decode(c.Data())
	a.LID = path.DLID
	return nil
}

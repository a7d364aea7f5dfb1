package fabric

import (
	"context"
	"errors"
	"fmt"

	"fabsh/mad"
)

// KeyError is that a port did not answer for want of its M_Key.
type KeyError struct {
	Err   error // what was asked
	Given bool  // there was one, a wrong one
}

func (e *KeyError) Error() string {
	if e.Given {
		return fmt.Sprintf("%v: the port has another M_Key than the one that was sent, and answers no Set without it", e.Err)
	}
	return fmt.Sprintf("%v: the port has an M_Key, and answers no Set without it", e.Err)
}

func (e *KeyError) Unwrap() error { return e.Err }

// doubtKeys finds out whether ports that answered the Get of a change but not
// its Set have an M_Key: PortInfo shows it, or says that it is not shown (IBA
// 14.2.4.1, M_KeyProtectBits).
func doubtKeys(ctx context.Context, e *mad.Engine, changes []*Change) error {
	var silent []*Change
	var calls []*mad.Call
	for _, c := range changes {
		if c.Before != nil && c.After == nil && errors.Is(c.Err, mad.ErrTimeout) {
			silent = append(silent, c)
			calls = append(calls, smp(new(mad.Call), c.Dest, mad.MethodGet, mad.AttrPortInfo, 0, nil))
		}
	}
	if err := e.Do(ctx, calls...); err != nil {
		return err
	}
	keys := e.Options().Keys
	for i, c := range silent {
		if calls[i].Err != nil {
			continue
		}
		var info mad.PortInfo
		info.Decode(calls[i].Data())
		sent := keys.Of(c.Dest.Guard)
		if info.MKey != sent || info.MKey == 0 && info.MKeyProtectBits != 0 {
			c.Err = &KeyError{Err: c.Err, Given: sent != 0}
		}
	}
	return nil
}

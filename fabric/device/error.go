package device

import (
	"context"
	"fmt"

	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// UnsupportedError reports why a node cannot do what was requested: it is of another
// type, or has no such port or entry. The request is wrong, not the node.
type UnsupportedError struct{ Reason string }

func (e *UnsupportedError) Error() string { return e.Reason }

func unsupported(format string, args ...any) error {
	return &UnsupportedError{fmt.Sprintf(format, args...)}
}

// KeyError reports that a port did not answer a Set for want of its M_Key.
type KeyError struct {
	Err   error // of the Set
	Given bool  // a wrong M_Key was sent
}

func (e *KeyError) Error() string {
	if e.Given {
		return fmt.Sprintf("%v: the port has another M_Key than the one that was sent and requires it for a Set", e.Err)
	}
	return fmt.Sprintf("%v: the port has an M_Key and requires it for a Set", e.Err)
}

func (e *KeyError) Unwrap() error { return e.Err }

// lostSet is a Set without an answer, to a port that had answered a Get.
type lostSet struct {
	dest fabric.Dest
	err  *error
}

// checkKeys makes KeyErrors of the errors of those Sets whose ports have an M_Key
// that was not sent: PortInfo shows it, or indicates by M_KeyProtectBits that it is
// not shown (IBA 14.2.4.1).
func checkKeys(ctx context.Context, e *engine.Engine, sets []lostSet) error {
	var calls []*engine.Call
	for _, s := range sets {
		calls = append(calls, s.dest.Put(new(engine.Call), mad.MethodGet, mad.AttrPortInfo, 0, nil))
	}
	if err := e.Do(ctx, calls...); err != nil {
		return err
	}
	keys := e.Options().Keys
	for i, s := range sets {
		if calls[i].Err != nil {
			continue
		}
		var info mad.PortInfo
		info.Decode(calls[i].Data())
		sent := keys.Of(s.dest.Guard)
		if info.MKey != sent || info.MKey == 0 && info.MKeyProtectBits != 0 {
			*s.err = &KeyError{Err: *s.err, Given: sent != 0}
		}
	}
	return nil
}

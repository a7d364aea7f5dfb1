package device

import (
	"context"
	"errors"
	"fmt"

	"fabsh/fabric"
	"fabsh/fabric/sa"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// KeyClass is a management class with a key, and the devices that have it.
type KeyClass struct {
	Name string // "vs", "n2n" or "cc"
	// Devices answered; the key does not protect Unprotected.
	Devices, Unprotected int
	Failed               []error // of devices that did not answer
}

// ReadKeys reads whether the keys of the classes of NVIDIA and of congestion control protect:
// one request per device and class that the device announces. Keys themselves are not kept. The
// error is the end of ctx, or an error of the local port.
func ReadKeys(ctx context.Context, c *sa.Client, f *fabric.Fabric) ([]KeyClass, error) {
	c.Engine.KnowNodes(f.NodeInfos())
	r := answerReader{ctx: ctx, client: c, f: f}
	agents, _, _ := r.agentPorts()
	var devices []*fabric.Port // the first port of each
	for i, p := range agents {
		if i == 0 || agents[i-1].Node() != p.Node() {
			devices = append(devices, p)
		}
	}
	local, err := r.learn(devices)
	if err != nil {
		return nil, err
	}
	classes := []KeyClass{{Name: "vs"}, {Name: "n2n"}, {Name: "cc"}}
	for i, x := range []struct {
		attr *mad.Attribute
		bit  string
	}{{mad.AttrVSKeyInfo, "protect_bit"}, {mad.AttrN2NKeyInfo, "protect_bit"}, {mad.AttrCongestionKeyInfo, "cc_key_protect_bit"}} {
		if err := classes[i].read(ctx, c, &local, devices, x.attr, x.attr.Field(x.bit)); err != nil {
			return nil, err
		}
	}
	return classes, nil
}

// read reads an attribute of the devices, whose field is set if the key protects.
func (k *KeyClass) read(ctx context.Context, c *sa.Client, local *engine.Port, devices []*fabric.Port, attr *mad.Attribute, protects *mad.Field) error {
	calls, open := make([]engine.Call, len(devices)), make([]*engine.Call, len(devices))
	for i, p := range devices {
		calls[i].PutMAD(mad.Header{Class: attr.Class, ClassVersion: attr.Class.Version(), Method: mad.MethodGet, Attribute: attr.ID}, nil)
		calls[i].Guard = p.Guard()
		if err := c.PutGMP(&calls[i], local, p.LID()); err != nil {
			return err
		}
		open[i] = &calls[i]
	}
	if err := c.Engine.Do(ctx, open...); err != nil {
		return err
	}
	for i := range calls {
		var refused *engine.Error
		switch err := calls[i].Err; {
		case err == nil:
			k.Devices++
			if protects.Uint(calls[i].MAD[attr.Offset():]) == 0 {
				k.Unprotected++
			}
		case errors.Is(err, engine.ErrUnsupported), errors.As(err, &refused) && refused.Err == nil:
		default:
			k.Failed = append(k.Failed, err)
		}
	}
	return nil
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

// unansweredSet is a Set without an answer, to a port that had answered a Get.
type unansweredSet struct {
	dest fabric.Dest
	err  *error
}

// checkKeys makes KeyErrors of the errors of Sets whose ports have an M_Key
// that was not sent: PortInfo shows it, or indicates by M_KeyProtectBits that it is
// not shown (IBA 14.2.4.1).
func checkKeys(ctx context.Context, e *engine.Engine, sets []unansweredSet) error {
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

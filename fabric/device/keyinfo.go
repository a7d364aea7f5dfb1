package device

import (
	"context"
	"errors"

	"fabsh/fabric"
	"fabsh/fabric/sa"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// KeyClass is a management class with a key, and the devices that have it.
type KeyClass struct {
	Name string // "vs", "n2n" or "cc"
	// Devices answered; of Unprotected, the key does not protect.
	Devices, Unprotected int
	Failed               []error // of devices that did not answer
}

// ReadKeys reads whether the keys of the classes of NVIDIA and of congestion control protect:
// one request per device and class that the device announces. Keys themselves are not kept. The
// error is the end of ctx, or that of the local port.
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

package topology

import (
	"fmt"

	"fabsh/builtins/lang"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// Who is silent is not asked for ever: of devices of a kind none of which has
// answered, silentDevices are asked, and each of them silentRequests times.
const (
	silentDevices  = 8
	silentRequests = 2
)

// kind are devices that are likely to have the same agents, of a class.
type kind struct {
	class            mad.Class
	vendor, revision uint32
	device           uint16
}

// silence is what is known of a kind.
type silence struct {
	answered bool             // one of them did, if only to refuse
	devices  map[mad.GUID]int // requests that nobody answered, by device
	last     error            // of such a request
}

// mute: no answer is expected of the device.
func (s *silence) mute(device mad.GUID) bool {
	return !s.answered && (s.devices[device] >= silentRequests || s.devices[device] == 0 && len(s.devices) >= silentDevices)
}

// SendOptional is SendProbes of requests of a class that devices need not have an
// agent of; targets say for whom each is. In a run of audits devices that are silent
// like all of their kind are not asked: their requests have the error of one that was.
func SendOptional(c *lang.Call, class mad.Class, targets []*Target, calls []*engine.Call) error {
	o := lang.StateOf[Observer](c.Runtime())
	if o.Tell == nil {
		return SendProbes(c, calls)
	}
	if o.silent == nil {
		o.silent = map[kind]*silence{}
	}
	kinds := make([]*silence, len(calls)) // nil: not known
	members := map[*silence][]int{}
	for i, t := range targets {
		if t.Node == nil || t.Node.Info() == nil {
			continue
		}
		info := t.Node.Info()
		k := kind{class, info.VendorID, info.Revision, info.DeviceID}
		if o.silent[k] == nil {
			o.silent[k] = &silence{devices: map[mad.GUID]int{}}
		}
		kinds[i] = o.silent[k]
		members[kinds[i]] = append(members[kinds[i]], i)
	}
	first := make([]bool, len(calls)) // some of a kind, from all over the fabric: neighbours may be silent together
	for s, all := range members {
		if n := silentDevices - len(s.devices); !s.answered && n > 0 {
			for j := range min(n, len(all)) {
				first[all[j*len(all)/min(n, len(all))]] = true
			}
		}
	}
	for _, wave := range []bool{true, false} {
		var send []int
		for i := range calls {
			switch s := kinds[i]; {
			case (s == nil || first[i]) != wave:
			case s != nil && s.mute(targets[i].Node.GUID()):
				calls[i].Err = fmt.Errorf("not asked, for none of %d devices of its kind has answered: %w", len(s.devices), s.last)
			default:
				send = append(send, i)
			}
		}
		if err := sendAndLearn(c, targets, calls, kinds, send); err != nil {
			return err
		}
	}
	return nil
}

// sendAndLearn sends those of calls whose indices are given, and learns who answers.
func sendAndLearn(c *lang.Call, targets []*Target, calls []*engine.Call, kinds []*silence, indices []int) error {
	if len(indices) == 0 {
		return nil
	}
	send := make([]*engine.Call, len(indices))
	for n, i := range indices {
		send[n] = calls[i]
	}
	err := SendProbes(c, send)
	for _, i := range indices {
		switch s := kinds[i]; {
		case s == nil:
		case !engine.Unanswered(calls[i].Err):
			s.answered = true
		default:
			s.devices[targets[i].Node.GUID()]++
			s.last = calls[i].Err
		}
	}
	return err
}

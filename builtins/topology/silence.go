package topology

import (
	"fmt"

	"fabsh/builtins/lang"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// Limits for devices of one kind of which none has answered: requests go to at most
// silentDevices devices, and to each at most silentRequests times.
const (
	silentDevices  = 8
	silentRequests = 2
)

// kind identifies a class, and devices that are likely to have the same agents.
type kind struct {
	class            mad.Class
	vendor, revision uint32
	device           uint16
}

// silence records the answers of a kind.
type silence struct {
	answered bool             // a device has answered, perhaps with a refusal
	devices  map[mad.GUID]int // unanswered requests, by device
	last     error            // of the last unanswered request
}

// unresponsive reports whether no answer is expected from the device.
func (s *silence) unresponsive(device mad.GUID) bool {
	return !s.answered && (s.devices[device] >= silentRequests || s.devices[device] == 0 && len(s.devices) >= silentDevices)
}

// SendOptional is SendProbes for requests of a class whose agent is optional; targets
// are the targets of the requests. If no device of a kind has answered, a run of audits
// no longer sends requests to that kind: they get the error of an earlier request.
func SendOptional(c *lang.Call, class mad.Class, targets []*Target, calls []*engine.Call) error {
	o := lang.StateOf[Observer](c.Runtime())
	if o.Report == nil {
		return SendProbes(c, calls)
	}
	kinds := make([]*silence, len(calls)) // nil: unknown
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
	first := make([]bool, len(calls)) // a sample of each kind from the whole fabric, because a failure may affect neighbours
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
			case s != nil && s.unresponsive(targets[i].Node.GUID()):
				calls[i].Err = fmt.Errorf("no request sent, because none of %d devices of its kind has answered: %w", len(s.devices), s.last)
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

// sendAndLearn sends the calls with the given indices and records which devices answer.
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

//go:build linux

package run

import (
	"encoding/binary"
	"slices"
	"syscall"

	"fabsh/mad"
)

// agent is a registration of a program.
type agent struct {
	file    *deviceFile
	id      uint32
	number  uint16 // on its port, which the transaction IDs of its requests have
	gsi     bool   // it sends from queue pair 1
	rmpp    bool   // the kernel splits and joins for it
	class   mad.Class
	version uint8
	oui     [3]byte
	methods [2]uint64 // that it receives
}

// maxOUIs is how many OUIs of a vendor class may be registered (MAX_MGMT_OUI).
const maxOUIs = 8

// Ioctl executes a request. argument is of ioctlArgumentSize bytes. changed are the bytes of
// it that are to be written back, at once, whether or not there is an error; commit, if
// it is not nil, must be called after that, with whether they could be.
func (f *deviceFile) Ioctl(request uint32, argument []byte) (changed []byte, offset int, errno syscall.Errno, commit func(written bool)) {
	p := f.port
	p.mu.Lock()
	defer p.mu.Unlock()
	u32 := binary.NativeEndian.Uint32
	var r registration
	switch request {
	case enablePKey:
		if f.registered {
			return nil, 0, syscall.EINVAL, nil
		}
		f.header = headerSize
		return nil, 0, 0, nil
	case unregisterAgent:
		id := u32(argument)
		if id >= maxAgents || f.agents[id] == nil {
			return nil, 0, syscall.EINVAL, nil
		}
		f.remove(int(id))
		return nil, 0, 0, func(bool) { p.client.Registered() }
	case registerAgent:
		r = registration{qp: uint32(argument[20]), class: argument[21], version: argument[22], oui: [3]byte(argument[23:]), rmpp: argument[26]}
		r.methods = methodsOf(argument[4:])
	case registerAgent2:
		r = registration{qp: u32(argument[4:]), class: argument[8], version: argument[9], flags: u32(argument[12:]), rmpp: argument[36]}
		r.methods = methodsOf(argument[16:])
		oui := u32(argument[32:])
		r.oui = [3]byte{byte(oui >> 16), byte(oui >> 8), byte(oui)}
		if r.qp > 1 {
			return nil, 0, syscall.EINVAL, nil
		}
		if r.flags&^userRMPP != 0 {
			return binary.NativeEndian.AppendUint32(nil, userRMPP), 12, syscall.EINVAL, nil
		}
		if r.class != 0 && oui>>24 != 0 {
			return nil, 0, syscall.EINVAL, nil
		}
	default:
		return nil, 0, syscall.ENOTTY, nil
	}
	a, errno := f.register(&r)
	if errno != 0 {
		return nil, 0, errno, nil
	}
	return binary.NativeEndian.AppendUint32(nil, a.id), 0, 0, func(written bool) {
		p.mu.Lock()
		if !written {
			f.remove(int(a.id))
		} else if !f.registered {
			f.registered = true
			if request == registerAgent2 {
				f.header = headerSize
			}
		}
		p.mu.Unlock()
		p.client.Registered()
	}
}

// registration is a request for an agent.
type registration struct {
	qp, flags            uint32
	class, version, rmpp uint8
	oui                  [3]byte
	methods              [2]uint64
}

// methodsOf reads a mask of methods: bit m of 128, in longs.
func methodsOf(b []byte) [2]uint64 {
	return [2]uint64{binary.NativeEndian.Uint64(b), binary.NativeEndian.Uint64(b[8:])}
}

// register makes an agent (ib_umad_reg_agent, ib_register_mad_agent).
func (f *deviceFile) register(r *registration) (*agent, syscall.Errno) {
	if r.qp > 1 {
		return nil, syscall.EINVAL
	}
	id := uint32(0)
	for f.agents[id] != nil {
		if id++; id == maxAgents {
			return nil, syscall.ENOMEM
		}
	}
	if r.rmpp > 1 {
		return nil, syscall.EINVAL
	}
	class := mad.Class(r.class)
	smp := class.Family() == mad.ClassSubn
	switch {
	case class == 0: // it only sends
		if r.flags != 0 {
			return nil, syscall.EINVAL
		}
		r.methods, r.version = [2]uint64{}, 0
	case r.version >= 8, class >= 0x50 && class != mad.ClassSubnDirected,
		class.HasOUI() && r.oui == [3]byte{}, r.rmpp != 0 && !hasRMPP(class), smp != (r.qp == 0):
		return nil, syscall.EINVAL
	}
	p := f.port
	ouis := map[[3]byte]bool{}
	for _, a := range p.agents {
		if a.class == class && a.version == r.version && class != 0 {
			ouis[a.oui] = true
			if (a.oui == r.oui || !class.HasOUI()) && (a.methods[0]&r.methods[0] != 0 || a.methods[1]&r.methods[1] != 0) {
				return nil, syscall.EINVAL
			}
		}
	}
	if class.HasOUI() && !ouis[r.oui] && len(ouis) == maxOUIs {
		return nil, syscall.EINVAL
	}
	for range 1 << 16 {
		if p.last++; p.last != 0 && p.agents[p.last] == nil {
			break
		}
	}
	if p.last == 0 || p.agents[p.last] != nil {
		return nil, syscall.ENOMEM
	}
	a := &agent{file: f, id: id, number: p.last, gsi: r.qp == 1, rmpp: r.rmpp == 1 && r.flags&userRMPP == 0, class: class, version: r.version, oui: r.oui, methods: r.methods}
	f.agents[id], p.agents[a.number] = a, a
	return a, 0
}

// remove removes an agent, and what waits for it. What is in the queue stays.
func (f *deviceFile) remove(id int) {
	a := f.agents[id]
	f.agents[id] = nil
	delete(f.port.agents, a.number)
	for key, list := range f.sent {
		list = slices.DeleteFunc(list, func(s *sent) bool {
			if s.agent == a {
				s.timer.Stop()
			}
			return s.agent == a
		})
		if f.sent[key] = list; len(list) == 0 {
			delete(f.sent, key)
		}
	}
	for key, t := range f.transfers {
		if key.agent == a {
			t.timer.Stop()
			delete(f.transfers, key)
		}
	}
}

// hasRMPP reports whether MADs of a class may have several segments
// (ib_is_mad_class_rmpp).
func hasRMPP(c mad.Class) bool {
	switch c {
	case mad.ClassSubnAdm, mad.ClassDevMgt, 0x10, 0x12:
		return true
	}
	return c.HasOUI()
}

// dataOffset is where the data of a class begin, for the kernel (ib_get_mad_data_offset).
func dataOffset(c mad.Class) int {
	switch c {
	case mad.ClassSubnAdm:
		return mad.SADataOffset
	case mad.ClassDevMgt, 0x10, 0x12:
		return 64
	}
	if c.HasOUI() {
		return mad.VendorDataOffset
	}
	return mad.HeaderSize
}

//go:build linux

package run

import (
	"encoding/binary"
	"testing"

	"fabsh/mad"
)

// kinds are MADs of every kind that the device treats in its own way: class, method, and
// the RMPP header of those that have one.
var kinds = []struct {
	class  mad.Class
	method mad.Method
	rmpp   mad.RMPPHeader
}{
	{class: mad.ClassSubnDirected, method: mad.MethodGet},
	{class: mad.ClassSubn, method: mad.MethodTrap},
	{class: mad.ClassSubn, method: mad.MethodTrapRepress},
	{class: mad.ClassPerf, method: mad.MethodGet},
	{class: 7, method: mad.MethodSend},
	{class: mad.ClassBM, method: mad.MethodSend},
	{class: 9, method: mad.MethodGet},
	{class: 0x32, method: mad.MethodGet},
	{class: 0x50, method: mad.MethodGet},
	{class: mad.ClassSubnAdm, method: mad.MethodGetTable},
	{class: mad.ClassSubnAdm, method: mad.MethodGet | mad.Response},
	{class: mad.ClassDevMgt, method: mad.MethodGet, rmpp: mad.RMPPHeader{RMPPVersion: 1, RMPPType: mad.RMPPTypeData, RMPPFlags: 3, SegmentNumber: 1}},
	{class: mad.ClassSubnAdm, method: mad.MethodGetMulti, rmpp: mad.RMPPHeader{RMPPVersion: 1, RMPPType: mad.RMPPTypeData, RMPPFlags: 7, SegmentNumber: 1, PayloadLength: 40}},
	{class: mad.ClassSubnAdm, method: mad.MethodGetMulti, rmpp: mad.RMPPHeader{RMPPVersion: 1, RMPPType: mad.RMPPTypeData, RMPPFlags: 1, SegmentNumber: 2}},
	{class: mad.ClassSubnAdm, method: mad.MethodGetTable | mad.Response, rmpp: mad.RMPPHeader{RMPPVersion: 1, RMPPType: mad.RMPPTypeData, RMPPFlags: 5, SegmentNumber: 3, PayloadLength: 1}},
	{class: mad.ClassSubnAdm, method: mad.MethodGetMulti, rmpp: mad.RMPPHeader{RMPPVersion: 1, RMPPType: mad.RMPPTypeACK, RMPPFlags: 1, SegmentNumber: 1, PayloadLength: 9}},
	{class: mad.ClassSubnAdm, method: mad.MethodGetMulti, rmpp: mad.RMPPHeader{RMPPVersion: 1, RMPPType: mad.RMPPTypeACK, RMPPFlags: 1, PayloadLength: 1}},
	{class: mad.ClassSubnAdm, method: mad.MethodGetMulti, rmpp: mad.RMPPHeader{RMPPVersion: 1, RMPPType: mad.RMPPTypeStop, RMPPFlags: 1, RMPPStatus: mad.RMPPStatusResourcesExhausted}},
	{class: mad.ClassSubnAdm, method: mad.MethodGetMulti, rmpp: mad.RMPPHeader{RMPPVersion: 1, RMPPType: mad.RMPPTypeAbort, RMPPFlags: 1, RMPPStatus: mad.RMPPStatusUnspecified}},
	{class: mad.ClassSubnAdm, method: mad.MethodGetMulti, rmpp: mad.RMPPHeader{RMPPVersion: 2, RMPPType: 9, RMPPFlags: 7}},
}

// Writes of any bytes, after any registration, end: to the own port, where two agents
// receive all requests of two classes, to the subnet's agents, and to its administrator.
func FuzzWrite(f *testing.F) {
	for _, flags := range []byte{0, 1} {
		for _, k := range kinds {
			request := make([]byte, 40)
			request[8], request[9], request[36], request[12] = byte(k.class), k.class.Version(), 0, flags
			if k.class.Family() != mad.ClassSubn {
				request[4] = 1
			}
			if k.class == mad.ClassSubnAdm || k.class == mad.ClassDevMgt {
				request[36] = 1
			}
			if k.class.HasOUI() {
				request[32] = 7
			}
			b := testMessage(0, 1, 1, func(head, m []byte) {
				if k.class == mad.ClassSubnDirected {
					return
				}
				clear(m)
				binary.BigEndian.PutUint16(head[28:], 0) // the fuzzed function's own
				h := mad.Header{Class: k.class, ClassVersion: k.class.Version(), Method: k.method, Attribute: mad.AttrNodeRecord.ID, TID: 7}
				h.Put(m)
				k.rmpp.Encode(m[mad.RMPPOffset:])
				if k.class.HasOUI() {
					m[mad.VendorOUIOffset+2] = 7
				}
			})
			f.Add(request, b)
			f.Add(request, append(b, make([]byte, 300)...))
			withGRH := append([]byte(nil), b...)
			withGRH[32] = 1
			f.Add(request, withGRH)
		}
	}
	f.Fuzz(func(t *testing.T, request, b []byte) {
		h := newHost(t)
		file, server := h.open(), h.open()
		defer file.Close()
		defer server.Close()
		for _, class := range []mad.Class{mad.ClassSubnAdm, 9} {
			request := make([]byte, 40)
			request[4], request[8], request[9] = 1, byte(class), class.Version()
			binary.NativeEndian.PutUint64(request[16:], ^uint64(0)>>1)
			if class == mad.ClassSubnAdm {
				request[36] = 1
			}
			ioctl(server, register2, request)
		}
		if len(request) >= 40 {
			ioctl(file, register2, request[:40])
			ioctl(file, register, request[:28])
		}
		port := h.Client().PortInfo(0)
		for _, lid := range []mad.LID{0, port.LID, port.MasterSMLID} {
			b := append([]byte(nil), b...)
			if lid > 0 && len(b) > 30 {
				binary.BigEndian.PutUint16(b[28:], uint16(lid))
			}
			file.Write(b)
			file.WriteAccepted(b)
			file.Read(1<<16, func([]byte) bool { return true }, func() {})
			server.Read(1<<16, func([]byte) bool { return true }, func() {})
		}
	})
}

package sa

import (
	"encoding/binary"
	"testing"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// TestCopies: where the copies of many events never come, little is kept of them.
func TestCopies(t *testing.T) {
	e := engine.New(silent{closed: make(chan bool)}, engine.Options{})
	defer e.Close()
	s := NewSubscriber(&Client{Engine: e})
	info := mad.InformInfo{LIDRangeBegin: mad.AllLIDs, IsGeneric: 1, Type: mad.InformTypeAll, ProducerType: mad.ProducerTypeAll}
	for _, n := range []uint16{128, mad.AllTraps} {
		info.TrapNumber = n
		s.add(newSubscription(s), []mad.InformInfo{info})
	}
	notice := mad.Notice{IsGeneric: true, TrapNumber: 128, IssuerLID: 3}
	var c engine.Call
	data := make([]byte, noticeSize)
	notice.Encode(data)
	c.PutSA(mad.MethodReport, mad.AttrSubnAdmNotice.ID, 0, 0, data)
	for i := range uint32(100 * maxCopies) {
		binary.BigEndian.PutUint32(c.MAD[mad.SADataOffset+12:], i)
		if !s.deliver(&engine.Datagram{MAD: c.MAD[:]}) {
			t.Fatal("nobody has asked for it")
		}
		if n := len(s.copies); n > maxCopies {
			t.Fatalf("copies of %d events are waited for", n)
		}
	}
}

// silent is a transport over which nothing comes.
type silent struct {
	engine.Basic
	closed chan bool
}

func (s silent) Send(*engine.Datagram) error { return nil }
func (s silent) Recv(*engine.Datagram) error { <-s.closed; return engine.ErrClosed }
func (s silent) Port() (engine.Port, error)  { return engine.Port{LID: 1, SMLID: 1}, nil }
func (s silent) Traits() engine.Traits       { return engine.Traits{} }
func (s silent) Close() error                { close(s.closed); return nil }

package capture

import (
	"sync/atomic"
	"testing"
	"testing/synctest"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// direct is a peer by which the reader can send. Every tenth datagram it would
// have to wait for, which leaves it to the writer.
type direct struct {
	*peer
	beforeWait            func() (again bool)
	writer, reader, tries atomic.Int32
}

func (d *direct) BeforeWait(f func() (again bool)) bool {
	d.beforeWait = f
	return true
}

func (d *direct) TrySend(m *engine.Datagram) (bool, error) {
	if d.tries.Add(1)%10 == 0 {
		return false, nil
	}
	d.reader.Add(1)
	return true, d.peer.Send(m)
}

func (d *direct) Send(m *engine.Datagram) error {
	d.writer.Add(1)
	return d.peer.Send(m)
}

func (d *direct) Recv(m *engine.Datagram) error {
	for d.beforeWait != nil && len(d.recv) == 0 && d.beforeWait() {
	}
	return d.peer.Recv(m)
}

// TestRecordedFastPath: the reader sends through a recorder as it does without,
// and what it sends is recorded once, before the answer.
func TestRecordedFastPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 200
		tr := &direct{peer: newPeer(engine.Traits{}, func(p *peer, d engine.Datagram, nth int) { p.after(ms, respond(d, 1)) })}
		recording := record(t, tr, engine.Options{}, func(e *engine.Engine) {
			calls := make([]*engine.Call, n)
			for i := range calls {
				calls[i] = smp(mad.AttrPortInfo, uint32(i), 1)
			}
			do(t, e, calls...)
		})
		if w, r := tr.writer.Load(), tr.reader.Load(); w+r != n || r < n/2 {
			t.Errorf("%d sent by the writer, %d by the reader", w, r)
		}
		asked, answered := map[uint32]int{}, map[uint32]int{}
		for _, p := range packets(t, recording)[5:] {
			switch i := mad.ParseHeader(p.Payload).Modifier; p.Interface {
			case sent:
				asked[i]++
			case received:
				if answered[i]++; asked[i] != 1 {
					t.Errorf("request %d was recorded %d times before its answer", i, asked[i])
				}
			}
		}
		for i := range uint32(n) {
			if asked[i] != 1 || answered[i] != 1 {
				t.Errorf("request %d was recorded %d times, its answer %d times", i, asked[i], answered[i])
			}
		}
	})
}

package mad

import (
	"context"
	"testing"
	"testing/synctest"
)

func TestEcho(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := NewEngine(newFake(func(f *fakeTransport, d Datagram) { f.deliver(respond(d)) }), Options{})
		defer mustClose(t, e)
		var calls []*Call
		for i := range 100000 {
			calls = append(calls, getNodeInfo(LID(i%300+1)))
		}
		if err := e.Do(context.Background(), calls...); err != nil {
			t.Fatal(err)
		}
		for _, c := range calls {
			if c.Err != nil {
				t.Fatal(c.Err)
			}
		}
		t.Logf("%+v", e.Stats())
	})
}

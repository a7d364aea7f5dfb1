package ibsim_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"fabsh/mad"
	"fabsh/mad/engine"
	"fabsh/mad/ibsim"
	"fabsh/mad/ibsim/ibsimtest"
)

func TestClosed(t *testing.T) {
	t.Parallel()
	f := ibsimtest.Start(t, ibsimtest.Net(t, "ring"), ibsimtest.FixtureOptions{})
	tr := attach(t, ibsim.Options{Socket: f.Name})
	recv := make(chan error)
	go func() { recv <- tr.Recv(&engine.Datagram{}) }()
	tr.Close()
	if err := <-recv; err != engine.ErrClosed {
		t.Errorf("the Recv that waited: %v", err)
	}
	if err := tr.Recv(&engine.Datagram{}); err != engine.ErrClosed {
		t.Errorf("Recv: %v", err)
	}
	if err := send(tr, nodeInfo(mad.DirectedRoute{0})); err != engine.ErrClosed {
		t.Errorf("Send: %v", err)
	}
	if _, err := tr.Port(); err != engine.ErrClosed {
		t.Errorf("Port: %v", err)
	}
}

func send(tr engine.Transport, c *engine.Call) error {
	return tr.Send(&engine.Datagram{Address: c.To, MAD: c.MAD[:], Timeout: time.Second})
}

// An ibsim that ends in mid-run ends all waiting.
func TestKilled(t *testing.T) {
	t.Parallel()
	t.Run("reader", func(t *testing.T) {
		t.Parallel()
		f := ibsimtest.Start(t, ibsimtest.Net(t, "ring"), ibsimtest.FixtureOptions{})
		tr := attach(t, ibsim.Options{Socket: f.Name})
		recv := make(chan error)
		go func() { recv <- tr.Recv(&engine.Datagram{}) }()
		f.Kill(t)
		checkGone(t, f, <-recv)
		checkGone(t, f, tr.Recv(&engine.Datagram{}))
		checkGone(t, f, send(tr, nodeInfo(mad.DirectedRoute{0})))
		_, err := tr.Port()
		checkGone(t, f, err)
	})
	t.Run("writer", func(t *testing.T) {
		t.Parallel()
		f := ibsimtest.Start(t, ibsimtest.Net(t, "ring"), ibsimtest.FixtureOptions{})
		tr := attach(t, ibsim.Options{Socket: f.Name})
		f.Kill(t)
		checkGone(t, f, send(tr, nodeInfo(mad.DirectedRoute{0})))
		checkGone(t, f, tr.Recv(&engine.Datagram{}))
	})
	// With answers outstanding, and with the writer waiting because ibsim
	// takes nothing.
	t.Run("frozen", func(t *testing.T) {
		t.Parallel()
		f := ibsimtest.Start(t, ibsimtest.Net(t, "ring"), ibsimtest.FixtureOptions{})
		tr := attach(t, ibsim.Options{Socket: f.Name})
		f.Freeze(t)
		sent := make(chan error)
		go func() {
			for {
				if err := send(tr, nodeInfo(mad.DirectedRoute{0})); err != nil {
					sent <- err
					return
				}
			}
		}()
		f.Kill(t)
		checkGone(t, f, <-sent)
		checkGone(t, f, tr.Recv(&engine.Datagram{}))
	})
	t.Run("engine", func(t *testing.T) {
		t.Parallel()
		f := ibsimtest.Start(t, ibsimtest.Net(t, "ring"), ibsimtest.FixtureOptions{})
		e := engine.New(attach(t, ibsim.Options{Socket: f.Name}), engine.Options{Timeout: time.Hour})
		defer e.Close()
		f.Freeze(t)
		calls := make([]*engine.Call, 100)
		for i := range calls {
			calls[i] = nodeInfo(mad.DirectedRoute{0, 1, uint8(1 + i%8)})
		}
		done := make(chan error)
		go func() { done <- e.Do(t.Context(), calls...) }()
		f.Kill(t)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		for _, c := range calls {
			var me *engine.Error
			if !errors.As(c.Err, &me) {
				t.Fatalf("a call ended with %v", c.Err)
			}
			checkGone(t, f, me.Err)
		}
	})
}

func checkGone(t *testing.T, f *ibsimtest.Fixture, err error) {
	t.Helper()
	want := fmt.Sprintf("ibsim at %q: it has ended or crashed; start it and attach again", f.Name)
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// Someone else can disconnect us by ibsim's console, and another client take
// our place.
func TestDisplaced(t *testing.T) {
	t.Parallel()
	f := ibsimtest.Start(t, ibsimtest.Net(t, "ring"), ibsimtest.FixtureOptions{})
	tr := attach(t, ibsim.Options{Socket: f.Name})
	f.Console(t, "X 0")
	attach(t, ibsim.Options{Socket: f.Name})
	err := send(tr, nodeInfo(mad.DirectedRoute{0}))
	want := fmt.Sprintf("ibsim at %q: another client has our slot; attach again", f.Name)
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	tr.Close()
	if clients := f.Attached(t); len(clients) != 1 {
		t.Errorf("the one that was displaced has taken the other's place away: %q", clients)
	}
}

// What ibsim has no time for is an error soon enough, and the next request is
// not mistaken about the late reply.
func TestFrozenFacts(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes 5 s")
	}
	f := ibsimtest.Start(t, ibsimtest.Net(t, "ring"), ibsimtest.FixtureOptions{})
	tr := attach(t, ibsim.Options{Socket: f.Name})
	before, err := tr.Port()
	if err != nil {
		t.Fatal(err)
	}
	resume := f.Freeze(t)
	_, err = tr.Port()
	want := fmt.Sprintf("ibsim at %q: local port: no reply within 5s; it is stopped, or waits for a client that does not read its answers: ", f.Name)
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got  %v\nwant %s...", err, want)
	}
	resume()
	after, err := tr.Port()
	if err != nil || after.NodeGUID != before.NodeGUID || after.Num != before.Num {
		t.Errorf("after the stop: %+v, %v; before %+v", after, err, before)
	}
}

//go:build linux

package server

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"fabsh/mad"
	"fabsh/mad/engine"
	"fabsh/mad/ibsim"
)

// TestControlOtherUser: datagrams of other users are refused, or not read, unless AnyUser says
// that they are served.
func TestOtherUser(t *testing.T) {
	s := serve(t, "ring:n=3", false)
	e := engine.New(s.attach(t, ibsim.Options{}), engine.Options{Retries: -1, Timeout: 300e6})
	defer e.Close()
	ask := func() error {
		var c engine.Call
		c.PutSMP(mad.MethodGet, mad.AttrNodeInfo.ID, 0, nil)
		c.SetRoute(mad.DirectedRoute{0})
		e.Do(t.Context(), &c)
		return c.Err
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	s.Do(func() { s.user = os.Getuid() + 1 })
	if err := ask(); err == nil || !strings.Contains(err.Error(), "timed out") {
		t.Errorf("a request of another user: %v", err)
	}
	_, err := ibsim.Attach(ibsim.Options{Socket: s.Name})
	if want := "attach: another user started this server, and it serves only that user; fabsh sim --any-user serves all"; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	if want := fmt.Sprintf("a client of user %d is refused: ", os.Getuid()); !strings.Contains(s.log(), want) {
		t.Errorf("the log is %s", s.log())
	}
	s.Do(func() { s.AnyUser = true })
	if err := ask(); err != nil {
		t.Error(err)
	}
	s.attach(t, ibsim.Options{})
}

// TestOwnLimits: what ibsim must not get, fabsh's own server answers: blocks of tables
// above LID 30,719, and the class of congestion control.
func TestOwnLimits(t *testing.T) {
	s := serve(t, "fattree:k=4,levels=2", false)
	e := engine.New(s.attach(t, ibsim.Options{}), engine.Options{Write: true})
	defer e.Close()
	f := sweep(t, s.attach(t, ibsim.Options{}))
	sw := f.OfType(mad.NodeTypeSwitch)[0]
	ask := func(put func(*engine.Call)) *engine.Call {
		t.Helper()
		c := new(engine.Call)
		put(c)
		c.SetLID(sw.LID())
		if e.Do(t.Context(), c); c.Err != nil {
			t.Errorf("%v", c.Err)
		}
		return c
	}
	lft := make([]byte, 64)
	lft[5] = 3
	ask(func(c *engine.Call) { c.PutSMP(mad.MethodSet, mad.AttrLinearForwardingTable.ID, 40000/64, lft) })
	c := ask(func(c *engine.Call) { c.PutSMP(mad.MethodGet, mad.AttrLinearForwardingTable.ID, 40000/64, nil) })
	if got := c.Data()[5]; got != 3 {
		t.Errorf("the entry is %d", got)
	}
	c = ask(func(c *engine.Call) {
		c.PutMAD(mad.Header{Class: mad.ClassCongestion, ClassVersion: mad.ClassCongestion.Version(), Method: mad.MethodGet, Attribute: mad.AttrCongestionInfo.ID}, nil)
	})
	var info mad.CongestionInfo
	if info.Decode(c.Data()); info.ControlTableCap == 0 {
		t.Errorf("%+v", info)
	}
}

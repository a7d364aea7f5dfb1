package builtins

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/sa"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// echo is a transport that notes requests, and answers those that want one with
// what they hold; baseboards', by Send.
type echo struct {
	engine.Transport
	answers chan engine.Datagram
	silent  bool

	mu   sync.Mutex
	sent []string
}

// onEcho runs fn in a session whose datagrams e answers.
func onEcho(t *testing.T, e *echo, fn func(t *testing.T, f *fixture)) {
	t.Helper()
	sl := uint8(0)
	onSim(t, "ring:n=2", func(o *SessionOptions) {
		o.Engine.Close()
		e.Transport, e.answers = attach(t, "ring:n=2"), make(chan engine.Datagram, 10)
		o.Engine = engine.New(e, engine.Options{Write: true})
		o.SA = &sa.Client{SL: &sl}
	}, func(t *testing.T, f *fixture) {
		defer f.Env.Engine.Close()
		fn(t, f)
	})
}

// take is what was sent so far.
func (e *echo) take() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sent
}

func (e *echo) Send(d *engine.Datagram) error {
	h := mad.ParseHeader(d.MAD)
	h.TID = 0
	m := slices.Clone(d.MAD)
	h.Put(m)
	e.mu.Lock()
	e.sent = append(e.sent, strings.TrimRight(fmt.Sprintf("LID %d: %s", d.LID, words(m)), "0 "))
	e.mu.Unlock()
	if e.silent || !h.IsAnswered() {
		return nil
	}
	h = mad.ParseHeader(d.MAD)
	if h.Class == mad.ClassBM && h.Method == mad.MethodSend {
		h.Modifier |= 1
	} else if h.Method |= mad.Response; h.Method == mad.MethodSet|mad.Response {
		h.Method = mad.MethodGetResp
	}
	m = slices.Clone(d.MAD)
	h.Put(m)
	e.answers <- engine.Datagram{Address: d.Address, MAD: m}
	return nil
}

func (e *echo) BeforeWait(func() bool) bool { return false }

func (e *echo) Recv(d *engine.Datagram) error {
	a, ok := <-e.answers
	if !ok {
		return engine.ErrClosed
	}
	d.Address, d.MAD = a.Address, append(d.MAD[:0], a.MAD...)
	return nil
}

func (e *echo) Close() error {
	close(e.answers)
	return e.Transport.Close()
}

// words are bytes in hexadecimal, 4 a word.
func words(b []byte) string {
	var list []string
	for i := 0; i < len(b); i += 4 {
		list = append(list, hex.EncodeToString(b[i:i+4]))
	}
	return strings.Join(list, " ")
}

// TestMADOnWire: where everything stands in requests of all kinds of classes
// (IBA 13.4.3, 13.6.2, 15.2.1.1, 16.5.1, A10.4.1), and what is made of answers.
func TestMADOnWire(t *testing.T) {
	const none = "00000000 00000000 00000000"
	zeros := func(n int) string { return strings.Repeat(" 00000000", n) + " " }
	for _, test := range []struct {
		name, code, out string
		sent            []string
	}{
		{"vendor class below 0x10", `mad_get(0x17, 5, mgmt_class=0x0a, data="0102").vs_key`, `hidden`,
			[]string{"LID 5: 010a0101 " + none + " 00170000 00000000 0102"}},
		{"vendor class with OUI", `mad_send(0x77, 5, mgmt_class=0x31, oui=0xabcdef, method="get", modifier=9, data=[1, 2, 3])[:4] == bytes("\x01\x02\x03\x00")`, `True`,
			[]string{"LID 5: 01310101 " + none + " 00770000 00000009 " + none + " 00abcdef 010203"}},
		{"whose layout is known", `mad_get("HostInfo", 5, data=bytes("me")).text`, `me`,
			[]string{"LID 5: 01330101 " + none + " 00110000 00000000 " + none + " 00001405 6d65"}},
		{"of another vendor it is not", `type(mad_get("HostInfo", 5, oui=1))`, `bytes`,
			[]string{"LID 5: 01330101 " + none + " 00110000 00000000 " + none + " 00000001"}},
		{"subnet administration", `mad_get("NodeRecord", 5, lid=7, modifier=1).lid`, `7`,
			[]string{"LID 5: 01030201 " + none + " 00110000 00000001 " + none + " 00000000 00000000 00000000 00000000 00000001 0007"}},
		{"its version 1", `mad_send("NodeRecord", 5, mgmt_class="subn_adm", class_version=1, method="get", data="0007").lid`, `7`,
			[]string{"LID 5: 01030101 " + none + " 00110000 00000000 " + none + " 00000000 00000000 00000070 05000000 00000000 00000000 00000000 0007"}},
		{"version 1 by numbers", `mad_send(0x31, 5, mgmt_class=3, class_version=1, method=0x15, data="07", mask=5).service_id`, fmt.Sprint(7 << 56),
			[]string{"LID 5: 01030115 " + none + " 00310000 00000000 " + none + " 00000000 00000000 000000b0 05000000 00000000 00000000 00000005 07"}},
		{"a record that version 1 alone has", `mad_send("RangeRecord", 5, class_version=1, method="get", data="07").data[:2] == bytes("\x07\x00")`, `True`,
			[]string{"LID 5: 01030101 " + none + " 00340000 00000000 " + none + " 00000000 00000000 000000c0 05000000 00000000 00000000 00000000 07"}},
		{"a layout that version 1 alone has", `mad_send("Notice", 5, mgmt_class="subn_adm", class_version=1, method="report", lid_addr=7, port_no=9, is_generic=1, trap_number=64).port_no`, `9`,
			[]string{"LID 5: 01030106 " + none + " 00020000 00000000 " + none + " 00000000 00000000 00000040 05000000 00000000 00000000 00000189 80000000 00400000 00000007 09"}},
		{"an older name", `mad_send("SwitchRecord", 5, method="get", lid=7).lid`, `7`,
			[]string{"LID 5: 01030201 " + none + " 00140000 00000000 " + none + " 00000000 00000000 00000000 00000000 00000001 0007"}},
		{"a subnet manager is read, and then asked for something", `smp_set("SMInfo", 5, modifier=4, priority=2).priority`, `2`,
			[]string{"LID 5: 01010101 " + none + " 002",
				"LID 5: 01010102 " + none + " 00200000 00000004" + zeros(15) + "2"}},
		{"or asked alone", `smp_set("SMInfo", 5, modifier=5).priority`, `0`,
			[]string{"LID 5: 01010101 " + none + " 002", "LID 5: 01010102 " + none + " 00200000 00000005"}},
		{"congestion control", `mad_get("CongestionControlTable", 5, block=3).ccti_limit`, `0`,
			[]string{"LID 5: 01210201 " + none + " 00170000 00000003"}},
		{"whose log is elsewhere", `mad_get("CongestionLog", 5, data="0233").congestion_flags`, `51`,
			[]string{"LID 5: 01210201 " + none + " 00130000 00000000 00000000 00000000 0233"}},
		{"baseboard management answers by Send", `mad_send("ReadVPD", 5, bm_sequence=1, vpd_bytes=3).bm_sequence`, `1`,
			[]string{"LID 5: 01050103 " + none + " 00210000 00000000" + zeros(10) + "00010000 000003"}},
		{"device management", `mad_get("ServiceEntries", 5, first=1, last=2, slot=3).service_id[0]`, `0`,
			[]string{"LID 5: 01060101 " + none + " 00120000 00030201"}},
		{"communication management", `mad_send(0x0010, 5, mgmt_class=7, data="ff")`, `None`,
			[]string{"LID 5: 01070203 " + none + " 00100000 00000000 ff"}},
		{"an application's", `mad_send(0x0010, 5, mgmt_class=0x12, method=0x7f) == bytes("\x00" * 232)`, "True",
			[]string{"LID 5: 0112017f " + none + " 001"}},
		{"a Set of nothing", `type(mad_set("TestDeviceOnce", 5, slot=3))`, "test_device_once",
			[]string{"LID 5: 01060102 " + none + " 00220000 00000003"}},
		{"a Set reads first", `mad_set("SwitchCongestionSetting", 5, marking_rate=0x77).marking_rate`, "119",
			[]string{"LID 5: 01210201 " + none + " 0014",
				"LID 5: 01210202 " + none + " 00140000 00000000" + zeros(28) + "00000077"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := new(echo)
			onEcho(t, e, func(t *testing.T, f *fixture) {
				out, explained, _ := f.run("print(" + test.code + ")")
				if got := strings.TrimSuffix(out, "\n") + explained; got != test.out {
					t.Errorf("%s, want %s", got, test.out)
				}
				if diff := cmp.Diff(test.sent, e.take()); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestMADOnce: what is not known to read only is sent once.
func TestMADOnce(t *testing.T) {
	for code, want := range map[string]int{
		`mad_get("CongestionInfo", 5)`:                                                  6,
		`mad_get("GeneralInfo", 5)`:                                                     1,
		`mad_set("SwitchCongestionSetting", 5, data="00")`:                              1,
		`mad_send(0x0010, 5, mgmt_class=0x12, method=0x7f)`:                             1,
		`mad_send("ReadVPD", 5)`:                                                        1,
		`[type(r) for r in mad_send("Notice", [5, 6], mgmt_class="bm", method="trap")]`: 2,
	} {
		e := &echo{silent: true}
		onEcho(t, e, func(t *testing.T, f *fixture) {
			f.run(code)
			if n := len(e.take()); n != want {
				t.Errorf("%s: sent %d times, want %d", code, n, want)
			}
		})
	}
}

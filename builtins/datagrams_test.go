package builtins

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/builtins/lang"
	"fabsh/builtins/program"
	"fabsh/builtins/topology"
	"fabsh/fabric/sa"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// addressed is a transport whose port has P_Keys, and whose subnet manager has
// a service level, that are not the usual; paths have service level 4. It
// notes how general management packets are addressed.
type addressed struct {
	engine.Transport
	pkeys  []uint16
	silent bool // the subnet administrator, for paths

	mu   sync.Mutex
	sent []string
}

func (a *addressed) Port() (engine.Port, error) {
	p, err := a.Transport.Port()
	p.PKeys, p.SMSL = a.pkeys, 5
	return p, err
}

func (a *addressed) Send(d *engine.Datagram) error {
	h := mad.ParseHeader(d.MAD)
	attr := mad.Lookup(h.Class, h.Attribute)
	a.mu.Lock()
	a.sent = append(a.sent, fmt.Sprintf("%s to LID %d, QP %d, SL %d, P_Key index %d", attr.Name, d.LID, d.QP, d.SL, d.PKeyIndex))
	a.mu.Unlock()
	if a.silent && attr == mad.AttrPathRecord {
		return nil
	}
	return a.Transport.Send(d)
}

func (a *addressed) TrySend(d *engine.Datagram) (bool, error) { return true, a.Send(d) }

func (a *addressed) Recv(d *engine.Datagram) error {
	err := a.Transport.Recv(d)
	if err == nil && mad.ParseHeader(d.MAD).Attribute == mad.AttrPathRecord.ID {
		mad.AttrPathRecord.Field("sl").SetUint(d.MAD[mad.ClassSubnAdm.DataOffset():], 4)
	}
	return err
}

// take is what was sent since the last time.
func (a *addressed) take() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	sent := a.sent
	a.sent = nil
	return sent
}

// TestGMPAddress: a general management packet takes the service level of its
// path and the P_Key of the default partition, the subnet administrator is
// asked as the port says, and flags go before all that.
func TestGMPAddress(t *testing.T) {
	const read = `perf_get("PortCounters", [1, 1, 2], 1); perf_get("PortCounters", 2, 1)`
	sl := uint8(7)
	for _, test := range []struct {
		name   string
		pkeys  []uint16
		silent bool
		adapt  func(*SessionOptions)
		code   string
		want   []string
		stderr string
	}{
		{"full member", []uint16{0x8001, 0x7fff, 0xffff}, false, nil, read, []string{
			"PathRecord to LID 3, QP 1, SL 5, P_Key index 2",
			"PathRecord to LID 3, QP 1, SL 5, P_Key index 2",
			"PortCounters to LID 1, QP 1, SL 4, P_Key index 2",
			"PortCounters to LID 1, QP 1, SL 4, P_Key index 2",
			"PortCounters to LID 2, QP 1, SL 4, P_Key index 2",
			"PortCounters to LID 2, QP 1, SL 4, P_Key index 2",
		}, ""},
		{"limited member", []uint16{0x8001, 0x7fff}, false, nil, `perf_get("PortCounters", 2, 1)`, []string{
			"PathRecord to LID 3, QP 1, SL 5, P_Key index 1",
			"PortCounters to LID 2, QP 1, SL 4, P_Key index 1",
		}, ""},
		{"flags", []uint16{0x8001, 0x7fff, 0xffff}, false, func(o *SessionOptions) { o.SA = &sa.Client{SL: &sl, PKey: 0x7fff, SMLID: 4} },
			`perf_get("PortCounters", 2, 1); catch(sa_get, "NodeRecord", lid=1)`, []string{
				"PortCounters to LID 2, QP 1, SL 7, P_Key index 1",
				"NodeRecord to LID 4, QP 1, SL 7, P_Key index 1",
			}, ""},
		{"paths unknown", []uint16{0xffff}, true, nil, read, []string{
			"PathRecord to LID 3, QP 1, SL 5, P_Key index 0",
			"PathRecord to LID 3, QP 1, SL 5, P_Key index 0",
			"PortCounters to LID 1, QP 1, SL 0, P_Key index 0",
			"PortCounters to LID 1, QP 1, SL 0, P_Key index 0",
			"PortCounters to LID 2, QP 1, SL 0, P_Key index 0",
			"PortCounters to LID 2, QP 1, SL 0, P_Key index 0",
		}, "warning: the service level of paths is unknown; using 0 (--sl sets another): SubnAdmGet(PathRecord) to LID 3: timed out after 1 attempt in 1s\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var a *addressed
			onSim(t, "ring:n=2", func(o *SessionOptions) {
				o.Engine.Close()
				a = &addressed{Transport: attach(t, "ring:n=2"), pkeys: test.pkeys, silent: test.silent}
				o.Engine = engine.New(a, engine.Options{Retries: -1})
				if test.adapt != nil {
					test.adapt(o)
				}
			}, func(t *testing.T, f *fixture) {
				defer f.Env.Engine.Close()
				setPKeys(t, a.Transport, test.pkeys)
				_, explained, status := f.run(test.code)
				if explained != "" || status != 0 {
					t.Errorf("%s, status %d", explained, status)
				}
				got := a.take()
				slices.Sort(got)
				if diff := cmp.Diff(slices.Sorted(slices.Values(test.want)), got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(test.stderr, f.stderr.String()); diff != "" {
					t.Errorf("stderr (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestPathsInBulk: from bulkPaths targets on, one table tells all paths.
func TestPathsInBulk(t *testing.T) {
	for _, test := range []struct {
		code        string
		least, most int
	}{
		{`perf_get("ClassPortInfo", range(1, 64))`, 63, 63},
		{`perf_get("ClassPortInfo", range(1, 65))`, 1, 5},
	} {
		var a *addressed
		onSim(t, "ring:n=40", func(o *SessionOptions) {
			o.Engine.Close()
			a = &addressed{Transport: attach(t, "ring:n=40"), pkeys: []uint16{0xffff}}
			o.Engine = engine.New(a, engine.Options{})
		}, func(t *testing.T, f *fixture) {
			defer f.Env.Engine.Close()
			if _, explained, _ := f.run(test.code); explained != "" {
				t.Fatal(explained)
			}
			n := 0
			for _, s := range a.take() {
				if strings.HasPrefix(s, "PathRecord") {
					n++
				}
			}
			if n < test.least || n > test.most {
				t.Errorf("%s: %d requests for paths, want %d to %d", test.code, n, test.least, test.most)
			}
		})
	}
}

// TestPKeyNotThere: no packet goes out with another P_Key than --pkey says.
func TestPKeyNotThere(t *testing.T) {
	var a *addressed
	onSim(t, "ring:n=2", func(o *SessionOptions) {
		o.Engine.Close()
		a = &addressed{Transport: attach(t, "ring:n=2"), pkeys: []uint16{0xffff, 0x8001}}
		o.Engine, o.SA = engine.New(a, engine.Options{}), &sa.Client{PKey: 0x8002}
	}, func(t *testing.T, f *fixture) {
		defer f.Env.Engine.Close()
		const want = "the local port is not in the partition of --pkey 0x8002: it has 0xffff, 0x8001; the subnet manager sets them (OpenSM: partitions.conf)"
		for _, code := range []string{`perf_get("PortCounters", 2, 1)`, `sa_get("NodeRecord", lid=1)`, `discover(via="sa")`} {
			if _, explained, _ := f.run(code); !strings.Contains(explained, want) {
				t.Errorf("%s: %s", code, explained)
			}
		}
		if sent := a.take(); len(sent) > 0 {
			t.Errorf("sent %v", sent)
		}
	})
}

// setPKeys sets the first entries of the P_Key table of the port of a transport.
func setPKeys(t *testing.T, tr engine.Transport, keys []uint16) {
	t.Helper()
	var block []byte
	for _, key := range keys {
		block = binary.BigEndian.AppendUint16(block, key)
	}
	c := new(engine.Call)
	c.PutSMP(mad.MethodSet, mad.AttrPKeyTable.ID, 0, block)
	c.SetRoute(mad.DirectedRoute{0})
	if err := tr.Send(&engine.Datagram{Address: c.To, MAD: c.MAD[:]}); err != nil {
		t.Fatal(err)
	}
}

// echo is a transport that records requests, and answers requests that want a response with their
// own data; requests of the baseboard class, by Send.
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
		{"a word that needs another field", `mad_send("Notice", 5, mgmt_class="subn_adm", class_version=1, method="report", producer_type="switch", is_generic=1).producer_type`, `switch`,
			[]string{"LID 5: 01030106 " + none + " 00020000 00000000 " + none + " 00000000 00000000 00000040 05000000 00000000 00000000 00000005 80000002"}},
		{"a record of another class", `mad_send("Notice", 5, mgmt_class="bm", method="get", data=mad_send("Notice", 5, mgmt_class="subn_adm", class_version=1, method="report", is_generic=1, trap_number=64)).is_generic`, `1`,
			[]string{"LID 5: 01030106 " + none + " 00020000 00000000 " + none + " 00000000 00000000 00000040 05000000 00000000 00000000 00000009 80000000 004",
				"LID 5: 01050101 " + none + " 00020000 00000000" + zeros(10) + "80000000 004"}},
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
		`mad_get("GeneralInfo", 5)`:                                                     6,
		`mad_get(0x50, 5, mgmt_class=0x0a)`:                                             1,
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

// tidWatcher notes the transaction IDs of SNMP messages.
type tidWatcher struct {
	engine.Transport
	seen *[]string
}

func (w tidWatcher) note(d *engine.Datagram) {
	if mad.Class(d.MAD[mad.ClassOffset]) == mad.ClassSNMP {
		*w.seen = append(*w.seen, fmt.Sprintf("%#x", binary.BigEndian.Uint64(d.MAD[mad.TIDOffset:])))
	}
}

func (w tidWatcher) Send(d *engine.Datagram) error {
	w.note(d)
	return w.Transport.Send(d)
}

func (w tidWatcher) TrySend(d *engine.Datagram) (bool, error) { return true, w.Send(d) }

// TestSNMPTransaction: a message of SNMP in several MADs has one transaction ID in all
// (Shanley, InfiniBand Network Architecture, table 28-2). Of requests with an answer fabsh
// chooses it.
func TestSNMPTransaction(t *testing.T) {
	var seen []string
	wrap := func(tr engine.Transport) engine.Transport { return tidWatcher{tr, &seen} }
	onSimWith(t, "ring:n=3", nil, wrap, nil, func(t *testing.T, f *fixture) {
		const code = `
for n in [1, 2]:
    mad_send("PDUInfo", 2, mgmt_class="snmp", header={"transaction_id": 0x77}, data=[n])
print(catch(mad_send, "NodeInfo", dr("0"), method="get", header={"transaction_id": 5}).message)
`
		out, explained, _ := f.run(code)
		const want = "transaction_id cannot be set, because fabsh matches the answer by it; only requests without an answer (send, trap, trap_repress) may set it"
		if !strings.Contains(out+explained, want) || fmt.Sprint(seen) != "[0x77 0x77]" {
			t.Errorf("transaction IDs %v\n%s%s", seen, out, explained)
		}
	})
}

// TestNestedNames: the name of a record within a record leads to its fields.
func TestNestedNames(t *testing.T) {
	onSim(t, "ring:n=3", nil, func(t *testing.T, f *fixture) {
		_, explained, _ := f.run(`sa_gettable("NodeRecord", node_description="leaf-1")`)
		const want = "sa_gettable: NodeRecord.node_description: got string, want a record of type node_description; or give its fields by name: node_string\n"
		if !strings.HasPrefix(explained, want) {
			t.Errorf("%s", explained)
		}
	})
}

// TestStats: all counts, windows and round trips, in the same order each time.
func TestStats(t *testing.T) {
	const code = `
smp_get("NodeInfo", 1)
perf_get("PortCounters", [1, 2], 1)
sa_gettable("NodeRecord")
catch(smp_get, "NodeInfo", 999)
show(stats())
`
	for format, path := range map[lang.Format]string{lang.FormatText: "testdata/output/stats.text", lang.FormatJSON: "testdata/output/stats.json"} {
		onSim(t, "ring:n=2,delay=2ms", func(o *SessionOptions) { o.Format = format }, func(t *testing.T, f *fixture) {
			out, explained, _ := f.run(code)
			if explained != "" {
				t.Error(explained)
			}
			golden(t, path, out)
		})
	}
}

// BenchmarkSMPGet asks all 2,560 ports of a simulated tree at once, and decodes
// a field of each answer.
func BenchmarkSMPGet(b *testing.B) {
	_, transport := attachSubnet(b, "fattree:k=16,levels=3")
	engine := engine.New(transport, engine.Options{})
	defer engine.Close()
	var stdout, stderr bytes.Buffer
	s, err := NewSession(SessionOptions{Facts: topology.Facts{Engine: engine}, Stdout: &stdout, Stderr: &stderr})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	code := fmt.Sprintf(`
ports = list(discover().ports)
start = time.now()
for i in range(%d):
    if [p for p in smp_get("PortInfo", ports) if p.port_state != "active"]:
        fail("not all are active")
print(%[1]d * len(ports) / (time.now() - start).seconds)`, b.N)
	if err := program.RunCode(b.Context(), s.Interpreter, "<bench>", code); err != nil {
		b.Fatal(s.Explain(err))
	}
	rate, err := strconv.ParseFloat(strings.TrimSpace(stdout.String()), 64)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(rate, "MADs/s")
	b.ReportMetric(0, "ns/op") // with the discovery: of no use
}

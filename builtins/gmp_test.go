package builtins

import (
	"encoding/binary"
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

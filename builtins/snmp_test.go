package builtins

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"fabsh/mad"
	"fabsh/mad/engine"
)

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

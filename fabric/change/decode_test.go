package change_test

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"fabsh/fabric/change"
	"fabsh/fabric/jsonfile/jsonfiletest"
	"fabsh/fabric/routing/engines"
)

// fileOf is the file of a plan.
func fileOf(t testing.TB, p *change.Plan) string {
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestHostileFiles: what is not as plans are written is refused, with what is wrong.
func TestHostileFiles(t *testing.T) {
	good := fileOf(t, sample(t))
	lft := `"attribute":"LinearForwardingTable","modifier":0,"old":"`
	for _, test := range []struct{ old, new, want string }{
		{"{", "[", "m.plan: line 1: got [, want {; create the plan again with fabsh change plan --out"},
		{good, "", "m.plan: line 1: unexpected EOF"},
		{good, "null", "m.plan: line 1: got null, want {"},
		{good, "{}", `m.plan: line 1: missing "format", "from", "manager", "report", "nodes", "links", "targets", "sets"`},
		{good, good + "{}", "m.plan: line 46: unexpected '{' after the end"},
		{"fabsh plan 2", "fabsh plan 3", `m.plan: line 2: format: got "fabsh plan 3", want "fabsh plan 2": not a plan, or of another version`},
		{`"from":`, `"From":`, `m.plan: line 3: unknown member "From"`},
		{`"from": "maintenance.star",`, `"from": "x", "from": "y",`, `m.plan: line 3: duplicate "from"`},
		{`"modifier":0,`, `"modifier":0,"modifier":1,`, `m.plan: line 24: sets[0]: duplicate "modifier"`},
		{`"modifier":0,`, `"modifier":NaN,`, "m.plan: line 24: sets[0].modifier: got NaN, want a whole number up to 4294967295"},
		{`"modifier":0,`, `"modifier":-1,`, "m.plan: line 24: sets[0].modifier: got -1, want a whole number up to 4294967295"},
		{`"modifier":0,`, `"modifier":1e3,`, "m.plan: line 24: sets[0].modifier: got 1e3, want a whole number up to 4294967295"},
		{`"modifier":0,`, `"modifier":4294967296,`, "got 4294967296, want a whole number up to 4294967295"},
		{`"modifier":0,`, `"modifier":65536,`, "m.plan: line 24: sets[0]: modifier 0x10000: invalid for LinearForwardingTable; valid bits: 0xffff"},
		{`"modifier":258,`, `"modifier":65538,`, "invalid for SLtoVLMappingTable"},
		{`"attribute":"LinearForwardingTable"`, `"attribute":"NodeDescription"`, "m.plan: line 24: sets[0]: a Set of NodeDescription cannot be part of a plan"},
		{`"attribute":"LinearForwardingTable"`, `"attribute":"x"`, `m.plan: line 24: sets[0].attribute: unknown attribute "x"`},
		{lft, lft + "AAAA", "m.plan: line 24: sets[0]: LinearForwardingTable: expected 64 bytes, got 67 and 64"},
		{lft, lft + "!", "want bytes in base64"},
		{`"port_physical_state"`, `"m_key"`, "m.plan: line 28: sets[4]: PortInfo.m_key: a key cannot be part of a plan"},
		{`"port_physical_state"`, `"local_port_num"`, "PortInfo.local_port_num: read-only"},
		{`"port_physical_state"`, `"x\u0007y"`, `PortInfo: unknown field "x\ay"`},
		{`"old":5,"new":3`, `"old":5,"new":16`, "m.plan: line 28: sets[4]: PortInfo.port_physical_state: 5 and 16: the maximum is 15"},
		{`"fields":[{"name":"port_phys`, `"fields":[{"name":"lid","old":0,"new":1},{"name":"lid","old":0,"new":1},{"name":"port_phys`, "field lid after lid: fields must be sorted and unique"},
		{`"attribute":"PortInfo","modifier":2147483650,`, `"attribute":"PortInfo","modifier":2147483650,"old":"AAAA","new":"AAAA",`, "m.plan: line 28: sets[4]: PortInfo: expected changed fields, got bytes"},
		{`"target":0`, `"target":7`, "m.plan: line 24: sets[0].target: unknown target 7; the plan has 2"},
		{`"routes":["0,1"]`, `"routes":["1,1"]`, `m.plan: line 21: targets[0].routes[0]: directed route "1,1": element 0 stands for this node and must be 0`},
		{`"routes":["0,1"]`, `"routes":["0,1","0,2","0,3"]`, "m.plan: line 21: targets[0].routes: more than 2 elements"},
		{`"type":"switch"`, `"type":"unknown(1)"`, `m.plan: line 7: nodes[0].type: "unknown(1)": invalid NodeType`},
		{`"lids":[]`, `"lids":[[1,1,0],[0,1,0]]`, "m.plan: line 7: nodes[0].lids: port 0: ports must be unique"},
		{`"links": [`, `"links": [[0,9,0,1],`, "m.plan: line 13: links[0]: unknown port 9; node 0 has 3"},
		{`"links": [`, `"links": [[0,1,0],`, "m.plan: line 13: links[0]: 3 elements, want 4"},
		{`"lanes": 15`, `"lanes": 16`, "m.plan: line 33: certificate.lanes: got 16, want a whole number up to 15"},
		{`"accept_credit_loops": false`, `"accept_credit_loops": 0`, "m.plan: line 34: certificate.accept_credit_loops: got 0, want true or false"},
		{`"changes":[[0,0],[4,5]]`, `"changes":[[0,1],[1,5]]`, "m.plan: line 37: certificate.rounds[1].changes: 1: from 1 to 5: changes must be unique, in order"},
		{`"changes":[[0,0],[4,5]]`, `"changes":[[1,0]]`, "from 1 to 0: changes must be unique"},
		{`"changes":[[0,0],[4,5]]`, `"changes":[[0,1048576]]`, "at most 1048576 in all rounds"},
		{`"changes":[[0,0],[4,5]]`, `"changes":[[5,5]]`, "m.plan: line 37: certificate.rounds[1].between: blocks of changes that are not in the round"},
		{`"between":[`, `"between":[{"change":0,"entries":"AAAA"},`, "between: 1: duplicate change 0"},
		{`"drain_ms":1000`, `"drain_ms":-1`, "drain_ms: got -1, want a whole number up to"},
		{`"ranks": [`, `"ranks": ["!",`, "m.plan: line 39: certificate.ranks[0]: got \"!\", want bytes in base64"},
		{`"ranks": [`, `"Ranks": [`, `m.plan: line 39: certificate: unknown member "Ranks"`},
		{`"orders": [`, `"orders": [1,`, "m.plan: line 41: certificate.orders[0]: got 1, want ["},
		{`"new":3`, `"New":3`, `m.plan: line 28: sets[4].fields[0]: unknown member "New"`},
		{`,"new":3`, ``, `m.plan: line 28: sets[4].fields[0]: missing "new"`},
		{`"from": "m`, `"from": "\ud800`, `m.plan: line 3: from: half of a character, \ud800, in a string`},
		{`"from": "m`, "\"from\": \"\xff", `m.plan: line 3: from: string "\xffaintenance.star": invalid UTF-8`},
		{`"from": "`, `"from": "` + strings.Repeat("x", 1<<17), "string of more than 65536 bytes"},
		{`"from": `, `"from": ` + strings.Repeat("[", 100000), "m.plan: line 3: from: got [, want a string"},
		{`"from": `, `"from": ` + strings.Repeat("1", 100000), "m.plan: line 3: from: got 1111111111111111111111111111111111111111..., want at most 40 characters"},
	} {
		text := strings.Replace(good, test.old, test.new, 1)
		if text == good {
			t.Errorf("%q is not in the file:\n%s", test.old, good)
			continue
		}
		p, err := change.LoadPlan(strings.NewReader(text), "m.plan")
		if err == nil {
			t.Errorf("%.60q is taken: %v", test.new, p)
		} else if got := err.Error(); !strings.Contains(got, test.want) || !strings.HasPrefix(got, "m.plan: ") || len(got) > 400 {
			t.Errorf("%.60q: %s\nwant %s", test.new, got, test.want)
		}
	}
}

// TestMembers: a plan without any one of its members is refused, and the error names the member,
// unless it is documented what the plan means without it.
func TestMembers(t *testing.T) {
	p := sample(t)
	p.Choice, p.Static, p.Disables = &change.Choice{Load: 3, OwnLoad: 4}, true, []change.Switch{{GUID: 7, Name: "switch-7"}}
	p.Report.CreditLoop, p.Report.OldLoop = "a loop", "another"
	e := p.Report.Effect
	e.Kept, e.Ended, e.NotKept = []string{"a/1 by b/1"}, 4, "c/1 goes down too"
	e.OutOfReach, e.IdleSwitches, e.IdleLinks, e.AllLinks = 1, []string{"switch-3"}, 2, 3
	load := func(text []byte) error {
		_, err := change.LoadPlan(bytes.NewReader(text), "m.plan")
		return err
	}
	jsonfiletest.Members(t, change.PlanMembers(), load, []byte(fileOf(t, p)))
}

// TestHugeFiles: memory is bounded, whatever the file would come to.
func TestHugeFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	head := "{\n\"format\": \"fabsh plan 2\",\n"
	for _, test := range []struct{ head, unit, want string }{
		{head + `"from": "`, "x", "string of more than"},
		{head, "\n", "more than 65536 bytes of white space"},
		{head + `"nodes": [`, `{"guid":"0x0000000000000001","type":"ca","name":"","num_ports":1,"lids":[]},`, "nodes: more than 131072"},
		{head + `"report": {"not_judged": [`, `"",`, "more than 100"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := change.LoadPlan(io.MultiReader(strings.NewReader(test.head), &endless{unit: test.unit}), "m.plan")
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.40q: %v", test.head, err)
		}
		if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 512<<20 {
			t.Errorf("%.40q: the heap grew by %d MB", test.head, grown>>20)
		}
	}
}

// endless is a text for ever.
type endless struct {
	unit string
	at   int
}

func (e *endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = e.unit[e.at]
		e.at = (e.at + 1) % len(e.unit)
	}
	return len(b), nil
}

// FuzzLoad: no bytes cause a panic, also when the certificate is checked, and what is read can be
// written, and reads back unchanged.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(fileOf(f, sample(f))))
	f.Add([]byte(`{"format": "fabsh plan 2", "from": "", "manager": null, "report": null, "nodes": [], "links": [], "targets": [], "sets": [], "certificate": null}`))
	f.Add([]byte(`{"format": "fabsh plan 1", "from": "", "manager": null, "report": null, "nodes": [], "links": [], "targets": [], "sets": []}`))
	live := swept(f, "ring:n=4,hosts=1")
	f.Add([]byte(fileOf(f, planOf(f, live, computed(f, live.Graph(), "updn", engines.Options{Roots: []int{1}}), change.Tables{AcceptCreditLoops: true}))))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := change.LoadPlan(bytes.NewReader(data), "fuzz")
		if err != nil {
			return
		}
		for _, c := range p.Changes() {
			_ = c.Changed() + fmt.Sprint(c.Request(make([]byte, 64), c.New))
		}
		if p.Recorded != nil {
			_ = p.Line(p.Recorded)
		}
		_ = p.Unverified()
		if _, err := p.CheckCertificate(t.Context(), &change.Tables{Live: live}); err == nil && p.Certificate != nil {
			_ = p.NotCovered(&change.Tables{Live: live})
		}
		_ = p.Base.Since(&change.Fingerprint{})
		text := fileOf(t, p)
		again, err := change.LoadPlan(strings.NewReader(text), "fuzz")
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if got := fileOf(t, again); got != text {
			t.Errorf("it is read back as\n%s\nand was\n%s", got, text)
		}
	})
}

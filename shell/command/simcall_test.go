package command

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/builtins/script"
	"fabsh/builtins/topology"
	"fabsh/fabric/sim"
	"fabsh/fabric/sim/server"
	"fabsh/shell/session"
)

// callSeeds are a call of each method of sim, by arguments in JSON.
var callSeeds = map[string]string{
	"ar":           `{"engine":"updn"}`,
	"ar_fault":     `{"switch":"switch-1","fault":"off"}`,
	"unlink":       `{"port":"switch-1/2"}`,
	"link":         `{"port":"switch-1/2","to":"switch-2/3"}`,
	"swap":         `{"port":"switch-1/1","other":"switch-2/1"}`,
	"speed":        `{"port":"switch-1/2","speed":"edr","width":"2x"}`,
	"kill":         `{"node":"switch-2"}`,
	"reboot":       `{"node":"switch-2"}`,
	"restart_sm":   `{"node":"node-0002 HCA-1"}`,
	"set_counters": `{"port":"switch-1/2","port_xmit_data_sl3":7}`,
	"errors":       `{"port":"switch-1/2","symbol_error_counter":"20/s"}`,
	"traffic":      `{"pairs":[["node-0001 HCA-1","node-0002 HCA-1",1]],"rate":"1GB/s"}`,
	"flows":        `{}`,
	"loss":         `{"probability":0.1,"where":"switch-1/1"}`,
	"delay":        `{"delay":0.001,"jitter":0.001}`,
	"busy":         `{"node":"switch-1","requests":2}`,
	"m_key":        `{"node":"switch-1","key":81985529216486895,"lease":5}`,
	"trap":         `{"number":144,"where":"node-0001 HCA-1","lid_addr":3}`,
	"temperature":  `{"where":"switch-1/2","celsius":71.5}`,
	"fan":          `{"switch":"switch-1","number":0,"rpm":0}`,
	"supply":       `{"switch":"switch-1","number":1,"ok":false}`,
	"firmware":     `{"node":"switch-1","version":"31.2012.1024","psid":"MT_1"}`,
	"module":       `{"port":"switch-1/2","vendor":"ACME","length":2,"ber":1e-9}`,
	"down_reason":  `{"port":"switch-1/2","local":"cable_was_unplugged"}`,
}

// calling returns the handler of calls for a new subnet, and its log.
func calling(t testing.TB) (server.ControlHandler, *bytes.Buffer) {
	f, o, err := sim.Parse("ring:n=2")
	if err != nil {
		t.Fatal(err)
	}
	console := session.NewConsole(io.Discard, io.Discard)
	c, err := controlOf(&session.Program{Settings: new(session.Settings), Console: console}, sim.New(f, o), f, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	log := new(bytes.Buffer)
	return c.call(t.Context(), &actionLog{out: log, begin: time.Now()}), log
}

// actionsOf reads a log.
func actionsOf(t testing.TB, log *bytes.Buffer) (list []script.ScenarioAction) {
	for line := range bytes.Lines(log.Bytes()) {
		var a script.ScenarioAction
		if err := json.Unmarshal(line, &a); err != nil || !bytes.HasSuffix(line, []byte("\n")) {
			t.Fatalf("%q: %v", line, err)
		}
		list = append(list, a)
	}
	return list
}

// TestCalls: each method of sim can be called by another program. The log has the changes,
// with their caller, without keys.
func TestCalls(t *testing.T) {
	handle, log := calling(t)
	from := server.Peer{PID: 7, UID: 8}
	for _, method := range topology.SimType.Names {
		if method == "play" || method == "actions" { // only of a session
			continue
		}
		log.Reset()
		if _, err := handle(from, method, []byte(callSeeds[method])); err != nil {
			t.Errorf("%s %s: %v", method, callSeeds[method], err)
		}
		got := actionsOf(t, log)
		if method == "flows" {
			if len(got) > 0 {
				t.Errorf("reading is in the log: %v", got)
			}
			continue
		}
		if len(got) != 1 || got[0].Action != method || got[0].Peer == nil || *got[0].Peer != from || got[0].Error != "" || got[0].Time.IsZero() {
			t.Errorf("%s: the log has %s", method, log)
		}
		if strings.Contains(log.String(), "81985529216486895") {
			t.Errorf("%s: the log has the key", method)
		}
	}
}

// TestCallLog: names instead of GUIDs, and errors, of calls that change nothing too.
func TestCallLog(t *testing.T) {
	handle, log := calling(t)
	for _, call := range [][2]string{
		{"unlink", `{"port":"0x0002c90300100000/1"}`},
		{"traffic", `{"pairs":[["0x0002c90310000000","0x0002c90310000010/1"]]}`},
		{"unlink", `{"port":"switch-1/9"}`},
		{"unlink", `{"prot":"switch-1/2"}`},
		{"m_key", `{"node":"nosuch","key":12345}`},
		{"kill", `{"node":"swich-2"}`},
		{"nosuch", `{}`},
		{"unlink", `[1]`},
	} {
		handle(server.Peer{PID: 7, UID: 8}, call[0], []byte(call[1]))
	}
	var got []string
	for _, a := range actionsOf(t, log) {
		args, _ := json.Marshal(a.Args)
		got = append(got, strings.TrimSpace(a.Action+" "+string(args)+" "+a.Error))
	}
	want := []string{
		`unlink {"port":"switch-1/1"}`,
		`traffic {"pairs":[["node-0001 HCA-1","node-0002 HCA-1/1"]]}`,
		`unlink {"port":"switch-1/9"} "switch-1" (0x0002c90300100000) has ports 1 to 3, no port 9`,
		`unlink {"prot":"switch-1/2"} unexpected keyword argument prot (did you mean port?)`,
		`m_key {"key":"...","node":"nosuch"} for parameter node: the simulated fabric has no node "nosuch"`,
		`kill {"node":"swich-2"} for parameter node: the simulated fabric has no node "swich-2" (did you mean switch-2?)`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// FuzzCalls: no call stops the process that serves the subnet, and the log stays a log.
func FuzzCalls(f *testing.F) {
	for method, args := range callSeeds {
		f.Add(method, []byte(args))
	}
	f.Add("play", []byte(`{"scenario":"flap"}`))
	f.Add("nosuch", []byte(`[1,{"a":null}]`))
	f.Fuzz(func(t *testing.T, method string, args []byte) {
		handle, log := calling(t)
		result, err := handle(server.Peer{PID: 7, UID: 8}, method, args)
		if err == nil && !json.Valid(result) || err != nil && result != nil {
			t.Errorf("%s %s: %q, %v", method, args, result, err)
		}
		if list := actionsOf(t, log); len(list) > 1 || len(list) == 1 && list[0].Action != method {
			t.Errorf("%s %s: the log has %s", method, args, log)
		}
	})
}

//go:build linux

package builtins

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/builtins/program"
	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/ibsim/ibsimtest"
)

// reported runs a report, and fills v from its JSON. Status is what it must be.
func (f *peerFixture) reported(t *testing.T, v any, want int, name string, words ...string) {
	t.Helper()
	f.stdout.Reset()
	f.stderr.Reset()
	err := program.RunReport(t.Context(), f.Interpreter, name, words)
	if got := audits.ExitStatus(f.Runtime, err); got != want {
		t.Fatalf("%s %q: status %d, want %d: %s\n%s", name, words, got, want, f.Explain(err), f.stderr.String())
	}
	if err := json.Unmarshal(f.stdout.Bytes(), v); err != nil {
		t.Fatalf("%s %q: %v in %s", name, words, err, f.stdout.String())
	}
}

// TestReportsOfTools: on ibsim and OpenSM reports say what the tools say of whom
// they are named after.
func TestReportsOfTools(t *testing.T) {
	writable := func(o *SessionOptions) { o.Write, o.OverrideSM = true, true }
	onPeerNets(t, writable, func(t *testing.T, f *peerFixture) {
		fab := f.sweep(t)
		f.compareLinkReport(t)
		f.compareErrorReport(t, fab)
		f.compareClearing(t, fab)
		f.compareNodeReports(t)
		f.compareTableReports(t, fab)
		f.compareSM(t)
		f.comparePaths(t, fab)
	})
}

// compareLinkReport: the rows of iblinkinfo for both ends, and the rows of --down, are the tool's
// lines.
func (f *peerFixture) compareLinkReport(t *testing.T) {
	t.Helper()
	theirs := iblinkinfo(t, f.peer.Run(t, "iblinkinfo", "-l"))
	ours := map[string]linkEnd{}
	var rows []struct {
		A, B, Width, Speed, State string
		ALID                      int `json:"a_lid"`
		BLID                      int `json:"b_lid"`
		ANum                      int `json:"a_num"`
		BNum                      int `json:"b_num"`
	}
	f.reported(t, &rows, lang.StatusClean, "iblinkinfo")
	for _, r := range rows {
		a, b := asShown(r.A), asShown(r.B)
		ours[fmt.Sprintf("%d/%d", r.ALID, r.ANum)] = linkEnd{a, r.Width, r.Speed, r.State, r.ALID, b, r.BLID}
		ours[fmt.Sprintf("%d/%d", r.BLID, r.BNum)] = linkEnd{b, r.Width, r.Speed, r.State, r.BLID, a, r.ALID}
	}
	var down []struct {
		Port, State string
		LID, Num    int
	}
	f.reported(t, &down, lang.StatusClean, "iblinkinfo", "--down")
	for _, r := range down {
		if r.LID != 0 { // else a channel adapter's, which the tool does not know
			ours[fmt.Sprintf("%d/%d", r.LID, r.Num)] = linkEnd{Name: asShown(r.Port), State: r.State, LID: r.LID}
		}
	}
	if diff := cmp.Diff(theirs, ours); diff != "" || len(ours) < 20 {
		t.Errorf("iblinkinfo: %d ends (-tool +report):\n%s", len(ours), diff)
	}
	theirs = iblinkinfo(t, f.peer.Run(t, "iblinkinfo", "-l", "--switches-only"))
	ours, rows = map[string]linkEnd{}, nil
	f.reported(t, &rows, lang.StatusClean, "iblinkinfo", "--switches-only")
	for _, r := range rows {
		end := linkEnd{asShown(r.A), r.Width, r.Speed, r.State, r.ALID, "", r.BLID}
		if r.B != "" {
			end.Peer = asShown(r.B)
		} else {
			end = linkEnd{Name: end.Name, State: r.State, LID: r.ALID}
		}
		ours[fmt.Sprintf("%d/%d", r.ALID, r.ANum)] = end
	}
	if diff := cmp.Diff(theirs, ours); diff != "" || len(ours) < 8 {
		t.Errorf("iblinkinfo --switches-only: %d ports (-tool +report):\n%s", len(ours), diff)
	}
}

var counterLine = regexp.MustCompile(`(?m)^(\w+):\.*(\d+)$`)

// compareClearing compares which counters of a port the tools clear.
func (f *peerFixture) compareClearing(t *testing.T, fab *fabric.Fabric) {
	t.Helper()
	sw := fab.OfType(mad.NodeTypeSwitch)[0]
	node, lid := nodeIDs(t, f)[sw.GUID()], strconv.Itoa(int(sw.Port(0).LID()))
	var num string
	for p := range sw.Ports() {
		if p.Num() != 0 && p.Peer() != nil {
			num = strconv.Itoa(p.Num())
		}
	}
	// cleared returns the counters that clearing has made smaller than they were set.
	cleared := func(clearing func()) map[string]bool {
		for attr, counters := range seedable {
			for name, width := range counters {
				f.peer.Console(t, `PerformanceSet "%s"[%s] %s.%s=%d`, node, num, attr, name, uint64(1)<<(width-1))
			}
		}
		clearing()
		out := map[string]bool{}
		for attr, flag := range map[string]string{"PortCounters": "-L", "PortCountersExtended": "-x"} {
			for _, m := range counterLine.FindAllStringSubmatch(f.peer.Run(t, "perfquery", flag, lid, num), -1) {
				for name, width := range seedable[attr] {
					if strings.EqualFold(strings.TrimPrefix(m[1], "Port"), strings.TrimPrefix(name, "Port")) {
						value, _ := strconv.ParseUint(m[2], 10, 64)
						out[attr+"."+name] = value < uint64(1)<<(width-1)
					}
				}
			}
		}
		return out
	}
	for _, test := range []struct{ tool, report []string }{
		{[]string{"ibqueryerrors", "--skip-sl", "-k"}, []string{"ibqueryerrors", "--clear-errors"}},
		{[]string{"ibqueryerrors", "--skip-sl", "-K"}, []string{"ibqueryerrors", "--clear-counts"}},
		{[]string{"ibqueryerrors", "--skip-sl", "-k", "-K"}, []string{"ibqueryerrors", "--clear-errors", "--clear-counts"}},
		{[]string{"perfquery", "-r", lid, num}, []string{"perfquery", lid, num, "--reset-after-read"}},
		{[]string{"perfquery", "-R", lid, num}, []string{"perfquery", lid, num, "--reset-only"}},
		{[]string{"perfquery", "-x", "-r", lid, num}, []string{"perfquery", lid, num, "--extended", "--reset-after-read"}},
	} {
		theirs := cleared(func() { f.peer.Command(t, "", test.tool[0], test.tool[1:]...).Run() }) // exits 1 if there are errors
		ours := cleared(func() { f.report(test.report[0], test.report[1:]...) })
		if diff := cmp.Diff(theirs, ours); diff != "" || len(ours) < 15 {
			t.Errorf("%s: %d counters (-tool +report):\n%s", strings.Join(test.report, " "), len(ours), diff)
		}
	}
}

var (
	badPort    = regexp.MustCompile(`(?m)^   GUID (0x[0-9a-f]+) port (\d+): (.*)$`)
	errorCount = regexp.MustCompile(`\[(\w+) == (\d+)(?: \([^)]*\))?\]`)
)

// compareErrorReport: what ibsim was told to count is what both say.
func (f *peerFixture) compareErrorReport(t *testing.T, fab *fabric.Fabric) {
	t.Helper()
	ids := nodeIDs(t, f)
	for i := range fab.Nodes() {
		n := &fab.Nodes()[i]
		if p := n.Port(1); p != nil && p.Peer() != nil && i%3 == 0 {
			f.peer.Console(t, `PerformanceSet "%s"[1] PortCounters.SymbolErrorCounter=%d`, ids[n.GUID()], 5+i)
			f.peer.Console(t, `PerformanceSet "%s"[1] PortCounters.PortXmitDiscards=%d`, ids[n.GUID()], 7)
			f.peer.Console(t, `PerformanceSet "%s"[%d] PortCounters.LinkDownedCounter=%d`, ids[p.Peer().Node().GUID()], p.Peer().Num(), 255)
		}
	}
	theirs, ours := map[string]uint64{}, map[string]uint64{}
	// Its status is 1, for there are errors.
	out, err := f.peer.Command(t, "", "ibqueryerrors", "-t", "10000", "--skip-sl").Output()
	if err == nil {
		t.Fatalf("ibqueryerrors found nothing:\n%s", out)
	}
	for _, m := range badPort.FindAllStringSubmatch(string(out), -1) {
		guid, _ := strconv.ParseUint(m[1], 0, 64)
		for _, c := range errorCount.FindAllStringSubmatch(m[3], -1) {
			theirs[fmt.Sprintf("%#x/%s %s", guid, m[2], mad.SnakeName(c[1]))], _ = strconv.ParseUint(c[2], 10, 64)
		}
	}
	var rows []struct {
		GUID, Counter string
		Num           int
		Count         uint64
	}
	f.reported(t, &rows, lang.StatusFindings, "ibqueryerrors")
	for _, r := range rows {
		guid, _ := strconv.ParseUint(r.GUID, 0, 64)
		// The tool names a CA's port by its port GUID.
		guid = uint64(fab.NodeByGUID(mad.GUID(guid))[0].Port(r.Num).GUID())
		ours[fmt.Sprintf("%#x/%d %s", guid, r.Num, r.Counter)] = r.Count
	}
	if diff := cmp.Diff(theirs, ours); diff != "" || len(ours) < 10 {
		t.Errorf("ibqueryerrors: %d counters (-tool +report):\n%s", len(ours), diff)
	}
	var top []struct {
		Count uint64 `json:"symbol_error_counter"`
	}
	f.reported(t, &top, lang.StatusClean, "perfquery", "--top=1", "--by=SymbolErrorCounter")
	most := uint64(0)
	for name, count := range theirs {
		if strings.HasSuffix(name, " symbol_error_counter") {
			most = max(most, count)
		}
	}
	if len(top) != 1 || top[0].Count != most {
		t.Errorf("perfquery --top: %v, want %d", top, most)
	}
}

var nodeLine = regexp.MustCompile(`(?m)^\w+\t : (0x[0-9a-f]+) ports (\d+) devid \S+ vendid \S+ "(.*)"$`)

// compareNodeReports compares ibhosts and ibswitches with ibnetdiscover, which the
// tools of these names run.
func (f *peerFixture) compareNodeReports(t *testing.T) {
	t.Helper()
	for report, flag := range map[string]string{"ibhosts": "-H", "ibswitches": "-S"} {
		theirs, ours := map[string]string{}, map[string]string{}
		for _, m := range nodeLine.FindAllStringSubmatch(f.peer.Run(t, "ibnetdiscover", flag), -1) {
			theirs[m[1]] = m[2] + " " + strings.TrimSpace(m[3])
		}
		var rows []struct {
			GUID, Name string
			Ports      int
		}
		f.reported(t, &rows, lang.StatusClean, report)
		for _, r := range rows {
			ours[r.GUID] = fmt.Sprintf("%d %s", r.Ports, strings.TrimSuffix(asShown(r.Name+"/1"), "/1"))
		}
		if diff := cmp.Diff(theirs, ours); diff != "" || len(ours) == 0 {
			t.Errorf("%s (-tool +report):\n%s", report, diff)
		}
	}
}

var routeLine = regexp.MustCompile(`(?m)^(0x[0-9a-f]+) (\d+) : \((?:Channel Adapter|Switch|Router|path #\d+ out of \d+:) portguid (0x[0-9a-f]+)`)

// compareTableReports compares ibroute of all switches.
func (f *peerFixture) compareTableReports(t *testing.T, fab *fabric.Fabric) {
	t.Helper()
	for _, sw := range fab.OfType(mad.NodeTypeSwitch) {
		lid := strconv.Itoa(int(sw.Port(0).LID()))
		theirs, ours := map[int]string{}, map[int]string{}
		said := f.peer.Run(t, "ibroute", lid)
		for _, m := range routeLine.FindAllStringSubmatch(said, -1) {
			to, _ := strconv.ParseInt(m[1], 0, 32)
			port, _ := strconv.Atoi(m[2])
			theirs[int(to)] = fmt.Sprintf("%d %s", port, m[3])
		}
		var rows []struct {
			LID, Port int
			GUID      string
		}
		f.reported(t, &rows, lang.StatusClean, "ibroute", lid)
		for _, r := range rows {
			ours[r.LID] = fmt.Sprintf("%d %s", r.Port, r.GUID)
		}
		if diff := cmp.Diff(theirs, ours); diff != "" || len(ours) == 0 {
			t.Errorf("ibroute %s (-tool +report):\n%s\n%s", lid, diff, said)
		}
	}
}

// compareSM compares sminfo.
func (f *peerFixture) compareSM(t *testing.T) {
	t.Helper()
	m := regexp.MustCompile(`sm lid (\d+) sm guid (0x[0-9a-f]+), activity count \d+ priority (\d+) state \d+ SMINFO_(\w+)`).FindStringSubmatch(f.peer.Run(t, "sminfo"))
	var rows []struct {
		LID, Priority int
		GUID, State   string
	}
	f.reported(t, &rows, lang.StatusClean, "sminfo")
	if len(rows) != 1 || m == nil {
		t.Fatalf("sminfo: %v, the tool %q", rows, m)
	}
	guid, _ := strconv.ParseUint(m[2], 0, 64)
	want := fmt.Sprintf("%s %#016x %s %s", m[1], guid, m[3], strings.ToLower(m[4]))
	ourGUID, _ := strconv.ParseUint(rows[0].GUID, 0, 64)
	if got := fmt.Sprintf("%d %#016x %d %s", rows[0].LID, ourGUID, rows[0].Priority, rows[0].State); got != want {
		t.Errorf("sminfo: %s, the tool has %s", got, want)
	}
}

var hopLine = regexp.MustCompile(`(?m)^\[(\d+)\] -> .*?\{?(0x[0-9a-f]+)\}?\[(\d+)\]`)

// comparePaths compares ibtracert of some pairs, and of a multicast group whose
// tables this session writes.
func (f *peerFixture) comparePaths(t *testing.T, fab *fabric.Fabric) {
	t.Helper()
	cas := fab.OfType(mad.NodeTypeCA)
	var lids []string
	for _, ca := range cas {
		for p := range ca.Ports() {
			if p.LID() != 0 {
				lids = append(lids, strconv.Itoa(int(p.LID())))
				break
			}
		}
	}
	compare := func(tool []string, words ...string) {
		t.Helper()
		var theirs, ours []string
		for _, m := range hopLine.FindAllStringSubmatch(f.peer.Run(t, "ibtracert", tool...), -1) {
			theirs = append(theirs, m[1]+" "+m[3])
		}
		var rows []struct {
			FromNum int `json:"from_num"`
			ToNum   int `json:"to_num"`
		}
		f.reported(t, &rows, lang.StatusClean, "ibtracert", words...)
		for _, r := range rows {
			ours = append(ours, fmt.Sprintf("%d %d", r.FromNum, r.ToNum))
		}
		if diff := cmp.Diff(theirs, ours); diff != "" || len(ours) == 0 {
			t.Errorf("ibtracert %q (-tool +report):\n%s\n%s", words, diff, f.peer.Run(t, "ibtracert", tool...))
		}
	}
	for i, from := range lids[:3] {
		to := lids[len(lids)-1-i]
		if from != to {
			compare([]string{from, to}, from, to)
		}
	}
	// A group along one of these ways.
	from := lids[0]
	var hops []struct {
		GUID    string `json:"from_guid"`
		FromNum int    `json:"from_num"`
	}
	f.reported(t, &hops, lang.StatusClean, "ibtracert", from, lids[len(lids)-1])
	for _, h := range hops[1:] {
		guid, _ := strconv.ParseUint(h.GUID, 0, 64)
		lid := int(fab.NodeByGUID(mad.GUID(guid))[0].Port(0).LID())
		if _, explained, status := f.run(fmt.Sprintf("set_mft(%d, {0xc005: [%d]})", lid, h.FromNum)); status != 0 {
			t.Fatal(explained)
		}
	}
	compare([]string{"-m", "0xc005", from, lids[len(lids)-1]}, "--mlid", "0xc005", from, lids[len(lids)-1])
}

// TestReportsWithoutSM: on a subnet without a manager no port has a LID: counters are unknown, there
// is no master, and no path; the links are shown nevertheless.
func TestReportsWithoutSM(t *testing.T) {
	f := onIbsim(t, ibsimtest.FatTree(2, 1, 1), ibsimtest.FixtureOptions{}, func(o *SessionOptions) { o.Format = lang.FormatText })
	var out strings.Builder
	for _, words := range [][]string{{"iblinkinfo"}, {"ibqueryerrors", "--ca"}, {"sminfo"}, {"ibtracert", "host-0-0 HCA-1", "host-1-0 HCA-1"}, {"perfquery"}, {"saquery"}, {"ibroute", "leaf-0"}} {
		fmt.Fprintf(&out, "%q\n%s\n", words, f.report(words[0], words[1:]...))
	}
	golden(t, "testdata/reports/no_sm.txt", out.String())
}

// linkEnd is one end of a link, or a port without one.
type linkEnd struct {
	Name, Width, Speed, State string
	LID                       int
	Peer                      string
	PeerLID                   int
}

// TestLinks compares the shipped example with iblinkinfo.
func TestLinks(t *testing.T) {
	onPeerNets(t, nil, func(t *testing.T, f *peerFixture) {
		theirs := iblinkinfo(t, f.peer.Run(t, "iblinkinfo", "-l"))
		ours := map[string]linkEnd{}
		for _, args := range [][]string{nil, {"--down"}} {
			maps.Copy(ours, f.links(t, args...))
		}
		if len(ours) < 20 {
			t.Errorf("%d ports", len(ours))
		}
		if diff := cmp.Diff(theirs, ours); diff != "" {
			t.Errorf("(-iblinkinfo +links.star):\n%s", diff)
		}
	})
}

// links runs links.star, and returns its rows by LID and port.
func (f *peerFixture) links(t *testing.T, args ...string) map[string]linkEnd {
	t.Helper()
	f.stdout.Reset()
	if err := program.RunFile(context.Background(), f.Interpreter, "@examples//links.star", args); err != nil || audits.ExitStatus(f.Runtime, err) != 0 {
		t.Fatalf("%s\n%s", f.Explain(err), f.stderr.String())
	}
	var rows []struct {
		Port, Width, Speed, State, Peer string
		LID                             int
		PeerLID                         int `json:"peer_lid"`
	}
	if err := json.Unmarshal(f.stdout.Bytes(), &rows); err != nil {
		t.Fatal(err)
	}
	list := map[string]linkEnd{}
	for _, r := range rows {
		if r.LID == 0 {
			continue // a channel adapter's port that no link to the subnet leads to: the tool does not know it
		}
		num := r.Port[strings.LastIndexByte(r.Port, '/')+1:]
		list[fmt.Sprintf("%d/%s", r.LID, num)] = linkEnd{asShown(r.Port), r.Width, r.Speed, r.State, r.LID, asShown(r.Peer), r.PeerLID}
	}
	return list
}

// asShown is what iblinkinfo leaves of the name in "NAME/PORT".
func asShown(port string) string {
	i := strings.LastIndexByte(port, '/')
	if i < 0 {
		return port
	}
	return strings.TrimSpace(mangled(attributes{"": port[:i]}, "")) + port[i:]
}

var linkLine = regexp.MustCompile(`^0x[0-9a-f]{16} "(.*)" +(\d+) +(\d+)\[  \] ==\( *(?:(\d+X) +([0-9.]+ Gbps(?: \(FDR10\))?))? *(\w+)/ *(\w+)\)==> +(?:0x[0-9a-f]{16} +(\d+) +(\d+))?\[  \] "(.*)" \(.*\)\n$`)

// iblinkinfo parses its lines.
func iblinkinfo(t *testing.T, out string) map[string]linkEnd {
	t.Helper()
	speeds := map[string]string{"": "", "2.5 Gbps": "sdr", "5.0 Gbps": "ddr", "10.0 Gbps": "qdr", "10.0 Gbps (FDR10)": "fdr10",
		"14.0625 Gbps": "fdr", "25.78125 Gbps": "edr", "53.125 Gbps": "hdr"}
	list := map[string]linkEnd{}
	for line := range strings.Lines(out) {
		m := linkLine.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("what is %q", line)
		}
		end := linkEnd{
			Name: strings.TrimSpace(m[1]) + "/" + m[3], Width: strings.ToLower(m[4]), Speed: speeds[m[5]],
			State: strings.ToLower(m[6]),
		}
		end.LID, _ = strconv.Atoi(m[2])
		if m[8] != "" {
			end.PeerLID, _ = strconv.Atoi(m[8])
			end.Peer = strings.TrimSpace(m[10]) + "/" + m[9]
		}
		list[m[2]+"/"+m[3]] = end
	}
	return list
}

// TestDump compares a dump with ibnetdiscover's whole output, but for the
// order of records and the time.
func TestDump(t *testing.T) {
	onPeerNets(t, nil, func(t *testing.T, f *peerFixture) {
		sorted := func(out string) []string {
			_, rest, _ := strings.Cut(out, "\n# Topology file: generated ")
			_, rest, _ = strings.Cut(rest, "\n")
			list := strings.Split(strings.TrimSpace(rest), "\n\n")
			slices.Sort(list)
			return list
		}
		var ours string
		f.eval(t, &ours, `discover().dump("ibnetdiscover")`)
		theirs := sorted(f.peer.Run(t, "ibnetdiscover"))
		if len(theirs) < 10 {
			t.Errorf("%d records", len(theirs))
		}
		if diff := cmp.Diff(theirs, sorted(ours)); diff != "" {
			t.Errorf("(-ibnetdiscover +dump):\n%s", diff)
		}
	})
}

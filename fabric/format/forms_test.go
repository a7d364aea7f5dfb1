package format

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"fabsh/fabric"
	"fabsh/mad"
)

// formsNet is a switch with two hosts, by GUIDs of ibroute's table below.
const formsNet = `switchguid=0x2c90300001000(2c90300001000)
Switch	36 "S-0002c90300001000"		# "leaf 1" base port 0 lid 3 lmc 0
[1]	"H-0002c90300000010"[1](2c90300000011) 		# "host-a HCA-1" lid 1 4xHDR
[2]	"H-0002c90300000020"[1](2c90300000021) 		# "host-b HCA-1" lid 2 4xHDR

caguid=0x2c90300000010
Ca	1 "H-0002c90300000010"		# "host-a HCA-1"
[1](2c90300000011) 	"S-0002c90300001000"[1]		# lid 1 lmc 0 "leaf 1" lid 3 4xHDR

caguid=0x2c90300000020
Ca	1 "H-0002c90300000020"		# "host-b HCA-1"
[1](2c90300000021) 	"S-0002c90300001000"[2]		# lid 2 lmc 0 "leaf 1" lid 3 4xHDR
`

const formsTable = `Unicast lids [0x0-0x3] of switch Lid 3 guid 0x0002c90300001000 (leaf 1):
  Lid  Out   Destination
       Port     Info 
0x0001 001 : (Channel Adapter portguid 0x0002c90300000011: 'host-a HCA-1')
0x0002 002 : (Channel Adapter portguid 0x0002c90300000021: 'host-b HCA-1')
0x0003 000 : (Switch portguid 0x0002c90300001000: 'leaf 1')
`

const ibrouteError = "/usr/sbin/ibroute: iberror: failed: dump tables: linear forwarding table get failed\n"

// TestTableForms: tables as terminals, tools and ibdiagnet leave them.
func TestTableForms(t *testing.T) {
	f, err := Load(strings.NewReader(formsNet), "net", nil)
	if err != nil {
		t.Fatal(err)
	}
	const whole = "1:1 2:2 3:0"
	const fdbs = "osm_ucast_mgr_dump_ucast_routes: Switch 0x0002c90300001000\nLID    : Port : Hops : Optimal\n0x0001 : 001  : 00   : yes\n0x0002 : 002  : 00   : yes\n0x0003 : 000  : 00   : yes\n\n"
	withPLFT := strings.Replace(fdbs, "LID    :", "PLFT_NUM: 0\nLID    :", 1)
	message := "skipped 1 line among the tables, such as a message of the tool or a prompt: "
	for _, c := range []struct{ name, text, want string }{
		{"an error of the tool at the end", formsTable + ibrouteError, whole + "; x:7: " + message + ibrouteError},
		{"a message within", strings.Replace(formsTable, "0x0002 002", "ibwarn: [4711] _do_madrpc: recv failed: Connection timed out\n0x0002 002", 1) + "3 valid lids dumped \n",
			whole + "; x:5: " + message + "ibwarn: [4711] _do_madrpc: recv failed: Connection timed out"},
		{"blank lines within", strings.ReplaceAll(formsTable, "\n", "\n\n") + "3 valid lids dumped \n", whole},
		{"a code fence", "```\n" + formsTable + "3 valid lids dumped \n```\n", whole + "; x:1: skipped 1 line before the table, such as a banner or a prompt: ```; x:9: " + message + "```"},
		{"an error before the last LID", strings.Join(strings.SplitAfter(formsTable, "\n")[:5], "") + ibrouteError,
			"unread; x:6: " + message + ibrouteError + "; x:6: 1 table ends with a message of the tool before the last LID, and is not used: the first is that of LEAF; x: no table of 1 switch of the fabric: LEAF"},
		{"the older header", fdbs, whole},
		{"PLFT_NUM", withPLFT, whole},
		{"a private table", withPLFT + "PLFT_NUM: 1\nLID    : Port : Hops : Optimal\n0x0001 : 009  : 00   : yes\n",
			whole + "; x:1: 1 private table is not used (PLFT_NUM above 0), the first of LEAF: packets that use it may take other paths"},
		{"a private table with a header", withPLFT + strings.Replace(strings.Replace(fdbs, "LID    :", "PLFT_NUM: 2\nLID    :", 1), "001  :", "007  :", 1),
			whole + "; x:8: 1 private table is not used (PLFT_NUM above 0), the first of LEAF: packets that use it may take other paths"},
		{"a long preamble", strings.Repeat("DR path slid 0; dlid 0; 0,1 -> new remote switch\n", 4000) + formsTable + "3 valid lids dumped\n",
			whole + "; x:1: skipped 4000 lines before the table, such as a banner or a prompt: DR path slid 0; dlid 0; 0,1 -> new remote switch"},
		{"quoted", "> " + strings.ReplaceAll(strings.TrimSpace(formsTable)+"\n3 valid lids dumped", "\n", "\n> ") + "\n", whole + "; x: quoting (>) removed from the beginning of each line"},
	} {
		row := bytes.Repeat([]byte{99}, 5)
		var notes []string
		more, err := ReadLFTs(&Capture{Reader: strings.NewReader(c.text), Note: func(s string) { notes = append(notes, s) }}, "x", f, func(*fabric.Node) []byte { return row })
		var entries []string
		for lid, port := range row {
			if port != mad.NoPort {
				entries = append(entries, fmt.Sprintf("%d:%d", lid, port))
			}
		}
		got := strings.Join(entries, " ")
		if row[0] == 99 {
			got = "unread"
		}
		notes = slices.DeleteFunc(append(notes, more...), func(s string) bool { return strings.Contains(s, "the file may be cut short") })
		for _, s := range notes {
			got += "; " + s
		}
		if err != nil {
			got = err.Error()
		}
		want := strings.NewReplacer(ibrouteError, fabric.Clip(strings.TrimSpace(ibrouteError)), "LEAF", `"leaf 1" (0x0002c90300001000)`).Replace(c.want)
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, want)
		}
	}
}

// TestTopologyForms: topologies as terminals, mail programs, loggers and older tools leave them.
// Each becomes the same fabric, with a note, or without one.
func TestTopologyForms(t *testing.T) {
	each := func(prefix string) func(string) string {
		return func(s string) string {
			return prefix + strings.ReplaceAll(strings.TrimSuffix(s, "\n"), "\n", "\n"+prefix) + "\n"
		}
	}
	progress := strings.Repeat("DR path slid 0; dlid 0; 0,1 -> new remote switch {0002c90300001000} portnum 3 lid 3-3\"leaf 1\"\n", 3000)
	for _, c := range []struct {
		name   string
		change func(string) string
		note   string
	}{
		{"colors", func(s string) string {
			return "\x1b[?2004h\x1b]0;root@a\a" + strings.ReplaceAll(s, "4xHDR", "\x1b[01;31m\x1b[K4xHDR\x1b[m\x1b[K")
		}, "control characters of a terminal removed from"},
		{"backspaces", func(s string) string { return strings.ReplaceAll(s, "lid 1 ", "lid 12\b \b ") }, "control characters of a terminal removed from"},
		{"carriage returns", func(s string) string { return strings.ReplaceAll(s, "\n", "\r") }, "lines end with a carriage return"},
		{"a carriage return within", func(s string) string { return "progress 10%\rprogress 20%\r" + s }, "control characters"},
		{"quoting", each("> "), "quoting (>) removed"},
		{"quoting twice", each(">> "), "quoting (>) removed"},
		{"ISO time", each("2026-11-29T01:52:06.123Z "), "date and time removed"},
		{"brackets", each("[2026-11-29 01:52:06] "), "date and time removed"},
		{"syslog", each("Nov 29 01:52:06 node-1 dump[4711]: "), "date, host and program removed"},
		{"a last line of blanks", func(s string) string { return s + "    " }, ""},
		{"progress", func(s string) string { return progress + s }, "skipped 3000 lines before the dump"},
		{"a code fence", func(s string) string { return "```\n" + s + "```\n" }, "skipped 2 lines"},
		{"zero bytes", func(s string) string { return strings.ReplaceAll(s, "node-1", "node\x00-1") }, ""},
	} {
		for name, text := range map[string]string{"ibnetdiscover": capturedDump, "ibnetdiscover -p": capturedReport, "iblinkinfo": capturedLinks, "iblinkinfo -l": capturedLines} {
			want, err := Load(strings.NewReader(text), "x", nil)
			if err != nil {
				t.Fatal(err)
			}
			changed := c.change(text)
			if changed == text || c.name == "a last line of blanks" && name == "iblinkinfo" { // its rows begin with blanks
				continue
			}
			f, err := Load(strings.NewReader(changed), "x", nil)
			if c.name == "zero bytes" {
				if err == nil && f.Complete() && f.String() == want.String() && len(f.Problems()) == len(want.Problems()) && f.Nodes()[1].Name() == want.Nodes()[1].Name() {
					t.Errorf("%s, %s: no error and no note", name, c.name)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s, %s: %v", name, c.name, err)
				continue
			}
			if f.String() != want.String() {
				t.Errorf("%s, %s: %s, want %s", name, c.name, f, want)
			}
			for i := range want.Nodes() {
				if a, b := &f.Nodes()[i], &want.Nodes()[i]; a.Name() != b.Name() || a.LID() != b.LID() || a.GUID() != b.GUID() {
					t.Errorf("%s, %s: %s %d, want %s %d", name, c.name, a.Name(), a.LID(), b.Name(), b.LID())
				}
			}
			if c.note != "" && !strings.Contains(fmt.Sprint(f.Problems()), c.note) {
				t.Errorf("%s, %s: no note %q in %v", name, c.name, c.note, f.Problems())
			}
		}
	}
}

// TestOlderForms: a list of nodes of which a terminal made blanks of tabs; iblinkinfo before 2011,
// and its verdicts.
func TestOlderForms(t *testing.T) {
	list, err := Load(strings.NewReader("Ca      : 0x00000000000000a0 ports 1 \"node-1 HCA-1\"\nSwitch  : 0x0000000000000010 ports 36 \"leaf\" base port 0 lid 2 lmc 0\n"), "x", nil)
	if err != nil || len(list.Nodes()) != 2 || list.Nodes()[0].Name() != "leaf" {
		t.Errorf("%v, %v", list, err)
	}
	old := "Switch 0x0002c90300001000 leaf 1:\n           4    1[  ] ==( 4X 5.0 Gbps Active/  LinkUp)==>       1    1[  ] \"host-a HCA-1\" ( )\n           4    2[  ] ==( 4X 2.5 Gbps   Down/ Polling)==>             [  ] \"\" ( )\n"
	f, err := Load(strings.NewReader(old), "x", nil)
	if err != nil || f.Nodes()[0].Name() != "leaf 1" || f.Nodes()[0].Port(1).State() != mad.PortStateActive {
		t.Errorf("%v, %v", f, err)
	}
	if kind := Recognise([]byte("Switch 0x0002c90300001000\nLID    : Out Port(s)\n")); kind != KindMFTs {
		t.Errorf("a multicast table is %q", kind)
	}
	for verdict, want := range map[string]string{
		"( )": "4x 25.78125 4x", "( Could be 53.125 Gbps)": "4x hdr", "( Could be 12X / 53.125 Gbps )": "12x hdr", "(Could be 12X)": "12x edr", "( Could be 99 Gbps)": " ",
	} {
		text := strings.ReplaceAll("CA: host-a HCA-1:\n      0x0002c90300000011      1    1[  ] ==( 4X      25.78125 Gbps Active/  LinkUp)==>       3    1[  ] \"leaf 1\" VERDICT\nSwitch: 0x0002c90300001000 leaf 1:\n           3    1[  ] ==( 4X      25.78125 Gbps Active/  LinkUp)==>       1    1[  ] \"host-a HCA-1\" VERDICT\n", "VERDICT", verdict)
		f, err := Load(strings.NewReader(text), "x", nil)
		if err != nil {
			t.Errorf("%s: %v", verdict, err)
			continue
		}
		p := f.Nodes()[0].Port(1)
		degraded, known := p.Degraded()
		if verdict == "( )" {
			if degraded || !known || p.BestSpeed() != "edr" {
				t.Errorf("%s: %v %v %s", verdict, degraded, known, p.BestSpeed())
			}
			continue
		}
		if got := p.BestWidth() + " " + p.BestSpeed(); got != want || degraded != (want != " ") {
			t.Errorf("%s: best %q, want %q; degraded %v", verdict, got, want, degraded)
		}
		if want == " " && !strings.Contains(fmt.Sprint(f.Problems()), `"Could be 99 Gbps"`) {
			t.Errorf("%s: not quoted in %v", verdict, f.Problems())
		}
	}
}

// TestDerived: a dump that lacks a line or a record, or has a damaged one, loads without what is
// uncertain; contradictions are errors.
func TestDerived(t *testing.T) {
	whole, err := Load(strings.NewReader(capturedDump), "x", nil)
	if err != nil {
		t.Fatal(err)
	}
	const port2 = "[2]\t\"H-00000000000000b0\"[1](b1) \t\t# \"node-2 HCA-1\" lid 3 4xHDR\n"
	for _, c := range []struct{ name, old, new, want string }{
		{"a line is missing", port2, "", "x:25: 1 port has no line and was derived from the other end: leaf 1/2; the dump is damaged, or links changed while it was made"},
		{"a record is missing", capturedDump[strings.Index(capturedDump, "\nvendid=0x2c9\ndevid=0x101b\nsysimgguid=0xb0"):], "", "x:12: 1 node has no record and was derived from its links: H-00000000000000b0; the dump is cut short or damaged"},
		{"an open quote", `# "leaf 1" enhanced`, `# "leaf 1 enhanced`, "x:10: 1 quote is not closed"},
		{"an open quote of a port", `"leaf 1" lid 2 4xHDR`, `"leaf 1 lid 2 4xHDR`, "x:19: 2 quotes are not closed"},
		{"a damaged line", `[2]	"H-00000000000000b0"`, `[2]	H-00000000000000b0"`, "x:12: 1 port line is damaged and left out: [2]\tH-00"},
		{"an unknown speed", "4xHDR", "4xGDR", `an unknown width or speed, which stays unknown: "4xGDR"`},
		{"a contradiction", `[1](b1) 	"S-0000000000000001"[2]`, `[1](b1) 	"S-0000000000000001"[1]`, `error: x:12: expected "H-00000000000000b0"[1] to be connected to "S-0000000000000001"[2], but x:26 has "S-0000000000000001"[1]`},
	} {
		changed := strings.ReplaceAll(capturedDump, c.old, c.new)
		f, err := Load(strings.NewReader(changed), "x", nil)
		if message, isError := strings.CutPrefix(c.want, "error: "); isError {
			if err == nil || err.Error() != message {
				t.Errorf("%s: %v, want %s", c.name, err, message)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if len(f.Nodes()) != len(whole.Nodes()) || f.Links() != whole.Links() || !strings.Contains(fmt.Sprint(f.Problems()), c.want) || f.Complete() && c.name != "an unknown speed" {
			t.Errorf("%s: %s, %v", c.name, f, f.Problems())
		}
		for i := range f.Nodes() {
			if a, b := &f.Nodes()[i], &whole.Nodes()[i]; a.Name() != b.Name() || a.GUID() != b.GUID() || a.Port(1).LID() != b.Port(1).LID() {
				t.Errorf("%s: %s, want %s", c.name, a.Label(), b.Label())
			}
		}
	}
}

// TestDamagedEnds: a link with one damaged line is known from the other end, and the dump is judged;
// with both damaged the link is lost, and the dump is a part of a fabric.
func TestDamagedEnds(t *testing.T) {
	one := strings.Replace(capturedDump, `[2]	"H-00000000000000b0"`, `[2]	H-00000000000000b0"`, 1)
	both := strings.Replace(one, `[1](b1) 	"S-0000000000000001"[2]`, `[1](b1) 	S-0000000000000001"[2]`, 1)
	for name, c := range map[string]struct {
		text  string
		links int
		cut   bool
	}{"one": {one, 2, false}, "both": {both, 1, true}} {
		f, err := Load(strings.NewReader(c.text), "x", nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		cut := slices.ContainsFunc(f.Problems(), func(p fabric.Problem) bool { return p.Kind == fabric.ProblemCut })
		if f.Complete() || f.Links() != c.links || cut != c.cut {
			t.Errorf("%s: %s, cut %v: %v", name, f, cut, f.Problems())
		}
	}
}

// TestNotText: files that are not text are named, with what to do.
func TestNotText(t *testing.T) {
	for text, want := range map[string]string{
		"7z\xbc\xaf\x27\x1c\x00\x04":               "x: expected a topology, but this is a 7z archive; unpack it",
		"\x7fELF\x02\x01\x01\x00":                  "x: expected a topology, but this is a program",
		"\xd4\xc3\xb2\xa1\x02\x00\x04\x00\x00\x00": "x: expected a topology, but this is a capture of packets; fabsh decode explains them, and -F replay: answers from a recording",
		"S\x00w\x00i\x00t\x00c\x00h\x00":           "x: expected a topology, but this is a binary file, or text in UTF-16 without a byte order mark",
		"<html><body>\n<pre>\nSwitch\n":            "; it is a page of HTML; save the text of the dump",
	} {
		if _, err := Load(strings.NewReader(text), "x", nil); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	for _, err := range LFTs(strings.NewReader("PK\x03\x04\x00\x00"), "x") {
		if err == nil || err.Error() != "x: expected a table or list, but this is a zip archive, or an office document; unpack it, and name the file in it" {
			t.Error(err)
		}
	}
	if os.Getenv("FABSH_SOAK") == "" {
		return
	}
	long := strings.Repeat("progress\n", 1<<20) + capturedReport // 9 MB
	if f, err := Load(strings.NewReader(long), "x", nil); err != nil || len(f.Nodes()) != 3 {
		t.Errorf("behind 9 MB: %v, %v", f, err)
	}
}

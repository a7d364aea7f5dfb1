package format

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"mime/quotedprintable"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/mad"
)

// The damage matrix: files of real tools (infiniband-diags, OpenSM) on a simulated fat tree, each
// damaged as terminals, mail programs, loggers and full disks do. A damaged file is refused, or
// incomplete, with a message; or all its figures are those of the whole file. None is read as
// other figures.

// damagedFile is a file, and the figures that it has.
type damagedFile struct {
	name string
	text string
	read func(text string) (figures, notes []string, err error)
}

// loadFigures reads a topology.
func loadFigures(text string) (figures, notes []string, err error) {
	f, err := Load(strings.NewReader(text), "x", nil)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range f.Problems() {
		notes = append(notes, p.Text)
	}
	for line := range strings.Lines(describe(f)) {
		if !strings.HasPrefix(line, "fabric: ") && !slices.ContainsFunc(f.Problems(), func(p fabric.Problem) bool { return strings.HasPrefix(line, string(p.Kind)+": ") }) {
			figures = append(figures, line)
		}
	}
	return figures, notes, nil
}

// lftFigures returns a function that reads forwarding tables for f.
func lftFigures(f *fabric.Fabric) func(text string) (figures, notes []string, err error) {
	return func(text string) (figures, notes []string, err error) {
		rows := make([][]byte, len(f.Nodes()))
		note := func(s string) { notes = append(notes, s) }
		more, err := ReadLFTs(&Capture{Reader: strings.NewReader(text), Note: note}, "x", f, func(sw *fabric.Node) []byte {
			rows[sw.ID()] = make([]byte, 64)
			return rows[sw.ID()]
		})
		for id, row := range rows {
			for lid, port := range row {
				if port != mad.NoPort {
					figures = append(figures, fmt.Sprintln(f.Nodes()[id].Name(), lid, port))
				}
			}
		}
		return figures, append(notes, more...), err
	}
}

// besideFigures returns a function that reads a file in a directory with a topology: what nodes and the subnet
// administrator answer by it.
func besideFigures(topology, name string) func(text string) (figures, notes []string, err error) {
	return func(text string) (figures, notes []string, err error) {
		f, err := LoadDir(fstest.MapFS{"net.txt": {Data: []byte(topology)}, name: {Data: []byte(text)}}, "x", nil)
		if err != nil {
			return nil, nil, err
		}
		for _, a := range f.Answers() {
			figures = append(figures, fmt.Sprintln(a.Node, a.Port, a.Class, a.ID, a.Modifier, a.Data))
		}
		for _, p := range f.Problems() {
			notes = append(notes, p.Text)
		}
		return figures, notes, nil
	}
}

// archived returns an archive with a file.
func archived(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	w.WriteHeader(&tar.Header{Name: "run/ibdiagnet2.db_csv", Mode: 0o644, Size: int64(len(text))})
	io.WriteString(w, text)
	w.Close()
	z.Close()
	return b.String()
}

// damages are the kinds of damage.
func damages() []struct {
	name string
	do   func(s string) string
} {
	each := func(f func(line string) string) func(string) string {
		return func(s string) string {
			var b strings.Builder
			for line := range strings.Lines(s) {
				b.WriteString(f(strings.TrimSuffix(line, "\n")) + "\n")
			}
			return b.String()
		}
	}
	within := func(text string) func(string) string {
		return func(s string) string {
			lines := strings.SplitAfter(s, "\n")
			return strings.Join(slices.Insert(lines, len(lines)/2, text), "")
		}
	}
	at := func(f func(lines []string, i int) []string) func(string) string {
		return func(s string) string {
			lines := strings.SplitAfter(s, "\n")
			return strings.Join(f(lines, len(lines)*2/3), "")
		}
	}
	utf16 := func(s, mark string) string {
		b := []byte(mark)
		for _, c := range []byte(s) {
			b = append(b, c, 0)
		}
		return string(b)
	}
	zip := func(s string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		z.Write([]byte(s))
		z.Close()
		return b.String()
	}
	const message = "ibwarn: [4711] _do_madrpc: recv failed: Connection timed out\n"
	const prompt = "[root@node-1 ~]# "
	return []struct {
		name string
		do   func(s string) string
	}{
		{"CRLF", each(func(l string) string { return l + "\r" })},
		{"CRCRLF", each(func(l string) string { return l + "\r\r" })},
		{"CR", func(s string) string { return strings.ReplaceAll(s, "\n", "\r") }},
		{"byte order mark", func(s string) string { return byteOrderMark + s }},
		{"UTF-16", func(s string) string { return utf16(s, "\xff\xfe") }},
		{"UTF-16 without a mark", func(s string) string { return utf16(s, "") }},
		{"gzip", zip},
		{"gzip, cut", func(s string) string { z := zip(s); return z[:len(z)*2/3] }},
		{"cut at a line", at(func(l []string, i int) []string { return l[:i] })},
		{"cut in a line", func(s string) string { return s[:strings.LastIndexByte(s[:len(s)*2/3], '\n')+8] }},
		{"no last line end", func(s string) string { return strings.TrimSuffix(s, "\n") }},
		{"a last line of blanks", func(s string) string { return s + "  \t " }},
		{"tabs to blanks", func(s string) string { return strings.ReplaceAll(s, "\t", "        ") }},
		{"tabs lost", func(s string) string { return strings.ReplaceAll(s, "\t", "") }},
		{"a banner", func(s string) string { return "Welcome to node-1\n\nLast login: never\n" + prompt + "dump\n" + s }},
		{"a prompt", func(s string) string { return s + prompt + "exit\nlogout\n" }},
		{"long progress", func(s string) string {
			return strings.Repeat("DR path slid 0; dlid 0; 0,1 -> new Switch {0002c90300100000} portnum 0 lid 0-0 \"\"\n", 1500) + s
		}},
		{"a message within", within(message)},
		{"a message at the end", func(s string) string { return s + message }},
		{"blank lines", each(func(l string) string { return l + "\n" })},
		{"blanks at ends", each(func(l string) string { return l + "   " })},
		{"colors", each(func(l string) string { return "\x1b[01;31m\x1b[K" + l + "\x1b[m\x1b[K" })},
		{"backspaces", each(func(l string) string { return l + "xyz\b \b\b \b\b \b" })},
		{"quoting", each(func(l string) string { return "> " + l })},
		{"log prefixes", each(func(l string) string { return "2026-11-29 01:52:06,123 " + l })},
		{"a code block", func(s string) string { return "```\n" + s + "```\n" }},
		{"wrapped", each(func(l string) string {
			var b strings.Builder
			for len(l) > 60 {
				b.WriteString(l[:60] + "\n")
				l = l[60:]
			}
			return b.String() + l
		})},
		{"HTML", html.EscapeString},
		{"quoted-printable", func(s string) string {
			var b strings.Builder
			w := quotedprintable.NewWriter(&b)
			io.WriteString(w, s)
			w.Close()
			return strings.ReplaceAll(b.String(), "\r\n", "\n")
		}},
		{"base64", func(s string) string {
			text, b := base64.StdEncoding.EncodeToString([]byte(s)), strings.Builder{}
			for len(text) > 76 {
				b.WriteString(text[:76] + "\n")
				text = text[76:]
			}
			return b.String() + text + "\n"
		}},
		{"a line is missing", at(func(l []string, i int) []string {
			for strings.HasPrefix(l[i], "sysimgguid=") { // it may be missing
				i++
			}
			return slices.Delete(l, i, i+1)
		})},
		{"a line is there twice", at(func(l []string, i int) []string { return slices.Insert(l, i, l[i]) })},
		{"zero bytes", func(s string) string {
			return s[:len(s)/2] + strings.Repeat("\x00", 512) + s[min(len(s), len(s)/2+512):]
		}},
	}
}

// unseen are damages that a format cannot show: the file with it is a whole one of another subnet,
// or a part of a table that has no end. fabsh reports that such a topology does not state that it is
// whole. A row that is missing in db_csv leaves values unknown; a link of it, a port without a peer.
func unseen(file, damage string, whole, got []string) bool {
	if damage != "cut at a line" && damage != "a line is missing" {
		return false
	}
	if damage == "cut at a line" && strings.Contains(file, "-subnet.lst") || damage == "a line is missing" && strings.HasPrefix(file, "db_csv") {
		return true
	}
	switch file {
	case "plan": // a plan with fewer cables is one too
		return true
	case "ibhosts.txt", "ibswitches.txt", "ibnetdiscover-l.txt", "guid2lid", "opensm-lid-matrix.dump", "smpquery-sl2vl.txt", "opensm.fdbs", "net_dump_ext":
		return !slices.ContainsFunc(got, func(s string) bool { return !slices.Contains(whole, s) })
	}
	return false
}

var inLine = regexp.MustCompile(`^x\S*:\d+: `)

func TestDamage(t *testing.T) {
	const dir = "testdata/damage"
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	text := func(name string) string {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	subnet, err := Load(strings.NewReader(text("opensm-subnet.lst")), "subnet", nil)
	if err != nil {
		t.Fatal(err)
	}
	topology, err := Load(strings.NewReader(text("ibnetdiscover.txt")), "net", nil)
	if err != nil {
		t.Fatal(err)
	}
	var plan strings.Builder
	if err := Dump(&plan, topology, KindCables); err != nil {
		t.Fatal(err)
	}
	files := []damagedFile{{"db_csv", DBSample, loadFigures}, {"plan", plan.String(), loadFigures},
		{"archive", archived(DBSample), loadFigures}, {"db_csv in an archive", DBSample, func(text string) ([]string, []string, error) { return loadFigures(archived(text)) }}}
	run, err := os.ReadFile("testdata/ibdiagnet/ibdiagnet2.ibnetdiscover")
	if err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"cables", "sm", "pm", "nodes_info", "net_dump_ext"} {
		if data, err := os.ReadFile("testdata/ibdiagnet/ibdiagnet2." + suffix); err != nil {
			t.Error(err)
		} else {
			files = append(files, damagedFile{suffix, string(data), besideFigures(string(run), "ibdiagnet2."+suffix)})
		}
	}
	for _, e := range entries {
		f := damagedFile{e.Name(), text(e.Name()), loadFigures}
		rows := func(read func(io.Reader) ([]string, error)) func(string) (figures, notes []string, err error) {
			return func(text string) (figures, notes []string, err error) {
				figures, err = read(&Capture{Reader: strings.NewReader(text), Note: func(s string) { notes = append(notes, s) }})
				return figures, notes, err
			}
		}
		switch f.name {
		case "opensm-lfts.dump", "opensm.fdbs":
			f.read = lftFigures(subnet)
		case "dump_fts.txt", "ibroute.txt":
			f.read = lftFigures(topology)
		case "opensm-lid-matrix.dump":
			f.read = rows(func(r io.Reader) ([]string, error) {
				return rowsOf(HopRows(r, "x"), func(r *HopRow) []string { return []string{fmt.Sprint(r.GUID, r.LID, r.Hops, r.Owner)} })
			})
		case "smpquery-sl2vl.txt":
			f.read = rows(func(r io.Reader) ([]string, error) {
				return rowsOf(SL2VLs(r, "x"), func(r *SL2VL) []string { return []string{fmt.Sprint(r.LID, r.In, r.Out, r.VLs)} })
			})
		case "guid2lid":
			f.read = rows(func(r io.Reader) ([]string, error) {
				return rowsOf(GUIDLines(r, "x"), func(g GUIDLine) []string { return []string{fmt.Sprint(g.GUID, string(g.Rest))} })
			})
		}
		files = append(files, f)
	}
	kinds := damages()
	if os.Getenv("FABSH_SOAK") != "" { // at every line
		for i := range 200 {
			kinds = append(kinds, struct {
				name string
				do   func(s string) string
			}{"a line is missing", func(s string) string {
				lines := strings.SplitAfter(s, "\n")
				k := i % len(lines)
				if strings.HasPrefix(lines[k], "sysimgguid=") || strings.HasPrefix(lines[k], "# Initiated") { // may be missing
					k++
				}
				return strings.Join(slices.Delete(lines, k, k+1), "")
			}}, struct {
				name string
				do   func(s string) string
			}{"cut at a line", func(s string) string {
				lines := strings.SplitAfter(s, "\n")
				return strings.Join(lines[:i%len(lines)], "")
			}})
		}
	}
	same, noted, refused, invisible := 0, 0, 0, 0
	for _, f := range files {
		whole, wholeNotes, err := f.read(f.text)
		if err != nil || len(whole) == 0 {
			t.Errorf("%s: %d figures, %v", f.name, len(whole), err)
			continue
		}
		for _, d := range kinds {
			got, notes, err := f.read(d.do(f.text))
			notes = slices.DeleteFunc(notes, func(s string) bool { return slices.Contains(wholeNotes, s) })
			switch {
			case err != nil && !strings.HasPrefix(err.Error(), "x:") && !strings.HasPrefix(err.Error(), "x/run/ibdiagnet2.db_csv:"):
				t.Errorf("%s, %s: the message names no file: %v", f.name, d.name, err)
			case err != nil && !inLine.MatchString(err.Error()) && !strings.Contains(err.Error(), "expected") && !strings.Contains(err.Error(), "cut short"):
				t.Errorf("%s, %s: the message does not name the damage: %v", f.name, d.name, err)
			case err != nil:
				refused++
			case slices.Equal(got, whole), d.name == "a line is there twice" && slices.Equal(slices.Compact(got), whole):
				same++
			case len(notes) > 0:
				noted++
			case unseen(f.name, d.name, whole, got):
				invisible++
			default:
				t.Errorf("%s, %s: other figures without a message (-whole +damaged):\n%.1500s", f.name, d.name, cmp.Diff(whole, got))
			}
			if testing.Verbose() {
				t.Logf("%s, %s: %d of %d figures, notes %.200q, error %v", f.name, d.name, len(got), len(whole), notes, err)
			}
		}
	}
	t.Logf("%d files, %d kinds of damage: %d read the same, %d with a note, %d refused, %d not visible in the format", len(files), len(kinds), same, noted, refused, invisible)
}

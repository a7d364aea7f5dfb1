package format

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/xuri/excelize/v2"
)

// workbook makes a workbook; edit changes it before it is written.
func workbook(t testing.TB, edit func(x *excelize.File)) []byte {
	t.Helper()
	x := excelize.NewFile()
	defer x.Close()
	x.SetSheetName("Sheet1", "CL")
	for i, row := range [][]any{{"Rack", "U", "Name", "HCA/Port", "Rack", "U", "Name", "Port"}, {"R1", 1, "n1", 1, "R2", 20, "leaf", "1/1"}, {nil, 2, "n2", 1, "R2", 20, "leaf", "1/2"}} {
		if err := x.SetSheetRow("CL", fmt.Sprintf("A%d", i+1), &row); err != nil {
			t.Fatal(err)
		}
	}
	if edit != nil {
		edit(x)
	}
	var b bytes.Buffer
	if err := x.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestWorkbooks: what a workbook holds beside plain cells is read, or reported with sheet, row and column.
func TestWorkbooks(t *testing.T) {
	const both = "leaf/1, n1 mlx5_0/1\nleaf/2, n2 mlx5_0/1\n"
	for _, tt := range []struct {
		name             string
		edit             func(x *excelize.File)
		cables, problems string
	}{
		{"plain", nil, both, ""},
		{"hidden sheet", func(x *excelize.File) {
			x.NewSheet("Old")
			x.SetSheetRow("Old", "A1", &[]any{"A-Node", "A-Port", "Z-Node", "Z-Port"})
			x.SetSheetRow("Old", "A2", &[]any{"leaf", "1/1", "spine", "1/1"})
			x.SetSheetVisible("Old", false)
		}, both, "left out: book.xlsx: sheet \"Old\" is hidden and was not read; unhide it to read it\n"},
		{"sheet of another kind", func(x *excelize.File) {
			x.NewSheet("Notes")
			x.SetSheetRow("Notes", "A1", &[]any{"Cabling is done by night"})
		}, both, "left out: book.xlsx: sheet \"Notes\" has no header with two ends and was not read\n"},
		{"date", func(x *excelize.File) {
			style, _ := x.NewStyle(&excelize.Style{NumFmt: 16})
			x.SetCellValue("CL", "H3", 46024)
			x.SetCellStyle("CL", "H3", "H3", style)
		}, "leaf/1, n1 mlx5_0/1\n", `invalid: book.xlsx: 1 row could not be used: sheet CL row 3: expected a port in column Port, not the date 2026-01-02 of cell H3, which a spreadsheet made of a port such as 1/2; format the column as text and type the port again
sheet CL row 3: expected a port in column Port, not the date 2026-01-02 of cell H3, which a spreadsheet made of a port such as 1/2; format the column as text and type the port again
`},
		{"formula without a value", func(x *excelize.File) {
			x.SetCellValue("CL", "H3", nil)
			x.SetCellFormula("CL", "H3", "A1")
		}, "leaf/1, n1 mlx5_0/1\n", `invalid: book.xlsx: 1 row could not be used: sheet CL row 3: expected a port in column Port, not the formula of cell H3 without a stored value; save the workbook after it was computed
sheet CL row 3: expected a port in column Port, not the formula of cell H3 without a stored value; save the workbook after it was computed
`},
		{"merged name", func(x *excelize.File) { // one host with two adapters
			x.MergeCell("CL", "C2", "C3")
			x.SetCellValue("CL", "D3", 2)
		}, "leaf/1, n1 mlx5_0/1\nleaf/2, n1 mlx5_1/1\n", ""},
		{"merged port", func(x *excelize.File) { x.MergeCell("CL", "H2", "H3") }, "leaf/1, n1 mlx5_0/1\n",
			"invalid: book.xlsx: 1 end is used more than once: port 1/1 of leaf in sheet CL row 2 and sheet CL row 3\nleaf 1/1: sheet CL row 2 n1/1, sheet CL row 3 n2/1\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, err := Load(bytes.NewReader(workbook(t, tt.edit)), "book.xlsx", nil)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.cables, cablesOf(f)); d != "" {
				t.Errorf("cables (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tt.problems, planProblemsOf(f)); d != "" {
				t.Errorf("problems (-want +got):\n%s", d)
			}
		})
	}
}

// TestWorkbookMacros: macros and links to other files are ignored, and the plan states it.
func TestWorkbookMacros(t *testing.T) {
	plain := workbook(t, nil)
	z, err := zip.NewReader(bytes.NewReader(plain), int64(len(plain)))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	out := zip.NewWriter(&b)
	for _, f := range z.File {
		if err := out.Copy(f); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"xl/vbaProject.bin", "xl/externalLinks/externalLink1.xml"} {
		w, err := out.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(w, "<x/>")
	}
	out.Close()
	f, err := Load(&b, "book.xlsm", nil)
	if err != nil {
		t.Fatal(err)
	}
	const want = "left out: book.xlsm: links to other files are ignored; their stored values are used\nleft out: book.xlsm: macros are ignored\n"
	if d := cmp.Diff(want, planProblemsOf(f)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestWorkbookBomb: a workbook that unpacks to more than the limit is refused before it takes memory.
func TestWorkbookBomb(t *testing.T) {
	plain := workbook(t, nil)
	z, err := zip.NewReader(bytes.NewReader(plain), int64(len(plain)))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	out := zip.NewWriter(&b)
	for _, f := range z.File {
		if err := out.Copy(f); err != nil {
			t.Fatal(err)
		}
	}
	w, err := out.Create("xl/worksheets/sheet2.xml")
	if err != nil {
		t.Fatal(err)
	}
	zeros := make([]byte, 1<<20)
	for range maxUnzipped>>20 + 1 {
		w.Write(zeros)
	}
	out.Close()
	_, err = Load(&b, "book.xlsx", nil)
	const want = "book.xlsx: the workbook cannot be read: unzip size exceeds the 134217728 bytes limit; save it again as .xlsx, without a password"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestLongPlan: a plan of 100,000 rows is read, as text and as a workbook.
func TestLongPlan(t *testing.T) {
	if testing.Short() {
		t.Skip("it is about size only")
	}
	const rows = 100_000
	var text strings.Builder
	text.WriteString("A-Node,A-Port,Z-Node,Z-Port\n")
	for i := range rows {
		fmt.Fprintf(&text, "leaf-%d,%d,n%d mlx5_%d,1\n", i/32, i%32+1, i/8, i%8)
	}
	_, err := Load(strings.NewReader(text.String()), "plan", nil)
	const want = "plan:63551: expected at most 65536 nodes"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	text.Reset()
	text.WriteString("A-Node,A-Port,Z-Node,Z-Port\n")
	for i := range rows {
		fmt.Fprintf(&text, "leaf-%d,%d,spine-%d,%d\n", i/200, i%200+1, i%500, i/500+1)
	}
	f, err := Load(strings.NewReader(text.String()), "plan", nil)
	if err != nil {
		t.Fatal(err)
	}
	if f.Links() != rows {
		t.Errorf("got %d cables, want %d", f.Links(), rows)
	}
	var book bytes.Buffer
	if err := WritePlanWorkbook(&book, f, nil); err != nil {
		t.Fatal(err)
	}
	again, err := Load(&book, "plan.xlsx", nil)
	if err != nil {
		t.Fatal(err)
	}
	if again.Links() != rows {
		t.Errorf("workbook: got %d cables, want %d", again.Links(), rows)
	}
}

// TestPanelNames: names on the panel are IB ports by the model of the switch.
func TestPanelNames(t *testing.T) {
	for _, tt := range []struct {
		model, text string
		num         int
		cause       string
	}{
		{"MQM9700", "1/16/1", 31, ""}, {"MQM9700-NS2F", "31/2", 62, ""}, {"", "sw31p1", 61, ""}, {"Q3400_RA", "sw72p2", 144, ""},
		{"MQM9700", "33/1", 0, "no cage from 1 to 32 with a port from 1 to 2"},
		{"MQM8700", "21", 21, ""}, {"MQM8700", "21/2", 0, "the numbers of split ports of MQM8700 are unknown; write the IB port"},
		{"X9000", "P7", 7, ""}, {"X9000", "7/1", 0, `the panel of model "X9000" is unknown; write the IB port`},
	} {
		p, cause := parsePlanPort("leaf", tt.text)
		num := 0
		if cause == "" {
			num, cause = p.number(tt.model)
		}
		if num != tt.num || cause != tt.cause {
			t.Errorf("%s of %q: got %d %q, want %d %q", tt.text, tt.model, num, cause, tt.num, tt.cause)
		}
	}
}

// FuzzPlanFiles: no bytes make a reader of plans panic, and what is loaded can be written and read again.
func FuzzPlanFiles(f *testing.F) {
	for _, seed := range []string{
		"Rack,U,Name,HCA/Port,Rack,U,Name,Port\nR1,1,n1,1,R2,2,leaf,1/1\n",
		"A-Node;A-Port;Z-Node;Z-Port;Protocol\nn1;mlx5_0;leaf;sw1p1;ib\n",
		"0x0002c90300aa0040,1,0x0002c90300bb0010,1,Any,Active\n",
		`{"count":1,"results":[{"id":1,"a_terminations":[{"object_type":"dcim.interface","object":{"name":"1/1/1","device":{"name":"leaf"}}}],"b_terminations":[{"object":{"name":"mlx5_0","device":{"name":"n1"}}}]}]}`,
		"<Topology><Link><Cable><CableLabel>x</CableLabel></Cable><Port><PortNum>1</PortNum><NodeDesc>a</NodeDesc></Port><Port><PortNum>2</PortNum><NodeDesc>b</NodeDesc></Port></Link></Topology>",
		"SwitchName=s Nodes=n[1-3,07] \\\n Switches=t\n",
		"MQM9700 spine\n   P1 -4x-100G-> HCA_mlx5_1 n1 mlx5_0/P1\n",
		"ServerProfile,PhysicalPort,RDMAName,NICOSName\nP,1,mlx5_0,ibp1s0\n", "port,hca-name\n1,mlx5_0\n",
	} {
		f.Add([]byte(seed))
	}
	f.Add(workbook(f, nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := LoadPlan([]PlanFile{{"plan", bytes.NewReader(data)}}, PlanOptions{}, nil)
		if err != nil || g.Plan() == nil || g.Plan().Partial != "" {
			return
		}
		var text bytes.Buffer
		if err := Dump(&text, g, KindPlan); err != nil {
			t.Fatal(err)
		}
		again, err := Load(bytes.NewReader(text.Bytes()), "again", nil)
		if g.Links() == 0 {
			return
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, text.Bytes())
		}
		if again.Links() != g.Links() {
			t.Fatalf("got %d cables, want %d\n%s", again.Links(), g.Links(), text.Bytes())
		}
	})
}

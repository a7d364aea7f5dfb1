package format

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/mad"
)

// planCables are the cables that the complete files of testdata/plans have.
const planCables = `leaf-01/1, node-001 mlx5_0/1
leaf-01/2, node-002 mlx5_0/1
leaf-01/61, spine-01/1
leaf-01/62, spine-01/2
leaf-02/1, node-001 mlx5_1/1
leaf-02/2, node-002 mlx5_1/1
leaf-02/61, spine-01/3
leaf-02/62, spine-01/4
`

// cablesOf lists the cables of a fabric, sorted, each with the end first that sorts first.
func cablesOf(f *fabric.Fabric) string {
	var list []string
	for i := range f.Ports() {
		p := &f.Ports()[i]
		if q := p.Peer(); q != nil && q.ID() > p.ID() {
			list = append(list, min(p.Name(), q.Name())+", "+max(p.Name(), q.Name()))
		}
	}
	slices.Sort(list)
	return strings.Join(list, "\n") + "\n"
}

// planFiles opens files of testdata/plans.
func planFiles(t *testing.T, names ...string) (files []PlanFile) {
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join("testdata", "plans", name))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, PlanFile{name, bytes.NewReader(data)})
	}
	return files
}

// TestPlanFiles: the files of one fabric, each in another format, give the same cables.
func TestPlanFiles(t *testing.T) {
	adapters := map[string]string{"1": "mlx5_0", "2": "mlx5_1"}
	for _, tt := range []struct {
		files  []string
		hca    map[string]string
		cables string // "": planCables
		err    string
	}{
		{files: []string{"p2p_ib_old.csv"}},
		{files: []string{"p2p_ib_old.csv"}, hca: adapters},
		{files: []string{"p2p_ib_old.csv", "hca_mapping.csv"}},
		{files: []string{"cvt_links.csv", "cvt_nodes.csv", "cvt_profile.csv", "cvt_floor.csv"}},
		{files: []string{"cvt_ptp.xlsx"}},
		{files: []string{"ndt_min.csv"}},
		{files: []string{"ndt_old.csv"}},
		{files: []string{"ndt_brief.csv"}},
		{files: []string{"netbox_cables.csv"}},
		{files: []string{"netbox_cables.json"}},
		{files: []string{"cvt.topo"}},
		{files: []string{"p2p_ib_old.xlsx"}, cables: strings.Replace(planCables, "leaf-02/1, node-001 mlx5_1/1\n", "", 1)},
		{files: []string{"p2p_az.csv"}, err: "p2p_az.csv: no cables of InfiniBand; 2 rows are of another network or kind of cable"},
		{files: []string{"shcd.csv"}, cables: "leaf-01/1, node-001/1\nleaf-01/61, spine-01/1\n"},
		{files: []string{"opa_links.csv"}, cables: "core-1 L101A/5, leaf-01/47\nleaf-01/1, node-001 hfi1_0/1\nleaf-01/2, node-002 hfi1_0/1\n"},
		{files: []string{"opa_topology.xml"}, cables: "leaf-01/1, node-001 hfi1_0/1\n"},
		{files: []string{"topology.conf"}, cables: "\n"},
		{files: []string{"topoconfig.conf"}, cables: strings.NewReplacer("leaf-01", "0x0002c90300aa0040", "leaf-02", "0x0002c90300aa0080", "spine-01", "0x0002c90300aa0000",
			"node-001 mlx5_0", "0x0002c90300bb0010", "node-001 mlx5_1", "0x0002c90300bb0011", "node-002 mlx5_0", "0x0002c90300bb0020", "node-002 mlx5_1", "0x0002c90300bb0021").Replace(planCables)},
	} {
		t.Run(fmt.Sprint(strings.Join(tt.files, "+"), len(tt.hca)), func(t *testing.T) {
			f, err := LoadPlan(planFiles(t, tt.files...), PlanOptions{Adapters: tt.hca}, func(string) (io.ReadCloser, error) { return nil, os.ErrNotExist })
			if err != nil {
				if err.Error() != tt.err {
					t.Fatalf("got %v, want %s", err, tt.err)
				}
				return
			}
			if tt.err != "" {
				t.Fatalf("loaded %v, want %s", f, tt.err)
			}
			want := tt.cables
			if want == "" {
				want = planCables
			}
			var lines []string
			for _, cable := range strings.Split(strings.TrimSpace(want), "\n") {
				if a, b, ok := strings.Cut(cable, ", "); ok {
					lines = append(lines, min(a, b)+", "+max(a, b))
				}
			}
			slices.Sort(lines)
			if d := cmp.Diff(strings.Join(lines, "\n")+"\n", cablesOf(f)); d != "" {
				t.Errorf("(-want +got):\n%s\n%s", d, describe(f))
			}
		})
	}
}

// TestPlanDetails: a plan keeps places, labels, models and where it has a cable.
func TestPlanDetails(t *testing.T) {
	f, err := LoadPlan(planFiles(t, "cvt_ptp.xlsx"), PlanOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	leaf, host := f.NodeByName("leaf-01")[0], f.NodeByName("node-001 mlx5_1")[0]
	if got, want := leaf.Place(), (fabric.Place{Hall: "HallA", Rack: "R01", Unit: "41"}); got != want {
		t.Errorf("place of the leaf: got %v, want %v", got, want)
	}
	if got, want := host.Place(), (fabric.Place{Hall: "HallA", Rack: "R01", Unit: "11"}); got != want {
		t.Errorf("place of the host: got %v, want %v", got, want)
	}
	if got, want := leaf.Port(61).PanelLabel(), "sw31p1"; got != want {
		t.Errorf("label: got %q, want %q", got, want)
	}
	if got, want := leaf.Port(61).PlanCable(), (fabric.PlanCable{Source: "sheet Links row 6"}); got != want {
		t.Errorf("cable: got %v, want %v", got, want)
	}
	if got, want := f.Plan().Models[leaf.ID()], "MQM9700"; got != want {
		t.Errorf("model: got %q, want %q", got, want)
	}
	if f, err = LoadPlan(planFiles(t, "netbox_cables.json"), PlanOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	if got, want := f.NodeByName("leaf-01")[0].Port(61).PlanCable(), (fabric.PlanCable{Label: "F-0005", Length: "10.0 m", Source: "cable 5"}); got != want {
		t.Errorf("cable of NetBox: got %v, want %v", got, want)
	}
}

// planProblemsOf lists what could not be used, and the problems without those of every plan.
func planProblemsOf(f *fabric.Fabric) string {
	var b strings.Builder
	for _, p := range f.Problems() {
		if p.Kind == fabric.ProblemLeftOut || p.Kind == fabric.ProblemCut || p.Kind == fabric.ProblemInvalid {
			fmt.Fprintf(&b, "%s: %s\n", p.Kind, p.Text)
		}
	}
	for _, row := range f.Plan().Unread {
		fmt.Fprintln(&b, row)
	}
	for _, c := range f.Plan().Conflicts {
		fmt.Fprintf(&b, "%s %s: %s %s/%s, %s %s/%s\n", c.Node, c.Port, c.First.Source, c.First.FarNode, c.First.FarPort, c.Second.Source, c.Second.FarNode, c.Second.FarPort)
	}
	return b.String()
}

// TestPlanDamage: what people and spreadsheets do to a sheet is undone or reported by row and column.
func TestPlanDamage(t *testing.T) {
	const old = "Rack,U,Name,HCA/Port,Rack,U,Name,Port\n"
	for _, tt := range []struct{ name, in, cables, problems string }{
		{"title rows, CRLF, byte order mark, semicolons", "\ufeffCabling of hall 1\r\n\r\nversion 3;;;\r\nRack;U;Name;HCA/Port;Rack;U;Name;Port\r\nR1;1;n1;1;R2;2;leaf;1/1\r\nR1;;;;;;;\r\n",
			"leaf/1, n1 mlx5_0/1\n", ""},
		{"blanks, quotes, width", old + "R1,1,\u201cn1\u201d\u00a0,1,R2,2,\u00a0leaf ,\uff13/2\n", "leaf/6, n1 mlx5_0/1\n", ""},
		{"misprint of the manual", "Rack,U,Name,HCA/Port,Rack,Name,Name,Port\nR1,1,n1,2,R2,20,leaf,3\n", "leaf/3, n1 mlx5_1/1\n", ""},
		{"dates and fractions", old + "R1,1,n1,1,R2,2,leaf,2-Jan\nR1,1,n1,2,R2,2,leaf,2026-01-02\nR1,1,n1,3,R2,2,leaf,1.5\nR1,1,n1,4,R2,2,leaf,#REF!\nR1,1,n1,5,R2,2,leaf,5\n",
			"leaf/5, n1 mlx5_4/1\n", `invalid: plan: 4 rows could not be used: line 2: expected a port in column Port, not the date "2-Jan", which a spreadsheet may have made of a port such as 1/2; format the column as text and type the port again; and 3 more (fabric.plan)
line 2: expected a port in column Port, not the date "2-Jan", which a spreadsheet may have made of a port such as 1/2; format the column as text and type the port again
line 3: expected a port in column Port, not the date "2026-01-02", which a spreadsheet may have made of a port such as 1/2; format the column as text and type the port again
line 4: expected a port in column Port, not the number "1.5" with a fraction; format the column as text and type the port again
line 5: expected a port in column Port, not the error "#REF!" of a formula
`},
		{"unknown ports", "A-Node,A-Port,Z-Node,Z-Port,Protocol\nn1,mlx5_0,leaf,1/2/1/2,ib\nn1,mlx5_1,leaf,FNM1,ib\nn1,ibp9s0,leaf,sw3p1,ib\nn1,mlx5_2,leaf,sw80p1,ib\nn1,mlx5_3,leaf,red,ib\nn1,mlx5_4,leaf,sw2p1,ib\nn1,mlx5_5,,,ib\nn1,eth0,leaf,swp3,ethernet\nn1,,leaf,9,ib\n",
			"leaf/3, n1 mlx5_4/1\n", `invalid: plan: 6 rows could not be used: line 2: expected a port from 1 to 254 in column Z-Port, not "1/2/1/2"; the number of a split port is unknown; write the IB port; and 5 more (fabric.plan)
left out: plan: 1 line of another network or kind of cable
left out: plan: 1 line without another end
line 2: expected a port from 1 to 254 in column Z-Port, not "1/2/1/2"; the number of a split port is unknown; write the IB port
line 3: expected a port from 1 to 254 in column Z-Port, not "FNM1"; the number of a management port is unknown; write the IB port
line 4: expected a port from 1 to 254 in column A-Port, not "ibp9s0"; the adapter with the interface ibp9s0 is unknown; name it in the server profile or with --hca-map FILE
line 5: expected a port from 1 to 254 in column Z-Port, not "sw80p1"; no cage from 1 to 72 with a port from 1 to 2
line 6: expected a port from 1 to 254 in column Z-Port, not "red"
line 10: expected a port from 1 to 254 in column A-Port, not ""
`},
		{"an end twice", old + "R1,1,n1,1,R2,2,leaf,1/1\nR1,3,n2,1,R2,2,leaf,1/1\nR2,2,leaf,31/1,R3,1,spine,1\n",
			"leaf/1, n1 mlx5_0/1\nleaf/61, spine/1\n", "invalid: plan: 1 end is used more than once: port 1/1 of leaf in line 2 and line 3\nleaf 1/1: line 2 n1/1, line 3 n2/1\n"},
		{"a cable from both ends", "Device A,Port A,Device B,Port B\nleaf,Port 3,spine,P4\nSpine,P4,Leaf,Port 3\n", "leaf/3, spine/4\n", ""},
		{"a number that is no adapter's", old + "R1,1,leaf,31,R2,2,spine,3\nR1,1,n1,1,R2,2,spine,4\n", "n1 mlx5_0/1, spine/4\n",
			"invalid: plan: 1 row could not be used: line 2: expected a port from 1 to 254 in column HCA/Port, not \"31\"; the number of an adapter is not from 1 to 16; if the device is a switch, state its type\nline 2: expected a port from 1 to 254 in column HCA/Port, not \"31\"; the number of an adapter is not from 1 to 16; if the device is a switch, state its type\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, err := Load(strings.NewReader(tt.in), "plan", nil)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.cables, cablesOf(f)); d != "" {
				t.Errorf("cables (-want +got):\n%s", d)
			}
			if got := planProblemsOf(f); tt.problems != got {
				t.Errorf("problems (-want +got):\n%s", cmp.Diff(tt.problems, got))
			}
		})
	}
}

// TestPlanMap: a mapping names the columns of a header that is not recognised, or of no header.
func TestPlanMap(t *testing.T) {
	const in = "here;socket;there;hole\nleaf;3;spine;4\n"
	for _, tt := range []struct{ m, in, want, err string }{
		{"a_name=here,a_port=Socket,b_name=there,b_port=Col 4", in, "leaf/3, spine/4\n", ""},
		{"a_name=Col 1,a_port=Col 2,b_name=Col 3,b_port=Col 4", "leaf;3;spine;4\n", "leaf/3, spine/4\n", ""},
		{"", in, "", "plan: no header names a device and a port of two ends; name the columns, as in --map 'a_name=?,a_port=?,b_name=?,b_port=?'"},
		{"a_name=nowhere,a_port=socket,b_name=there,b_port=hole", in, "", "plan: no header has the columns of the mapping: a_name=nowhere; the first row has \"here\", \"socket\", \"there\", \"hole\""},
		{"a_name=here", in, "", "a_port is missing; a_name, a_port, b_name and b_port are required"},
		{"x=here", in, "", "unknown key \"x\"; supported: a_name, a_port, b_name, b_port, a_hall, a_row, a_rack, a_unit, b_hall, b_row, b_rack, b_unit, label, length"},
		{"a_name", in, "", "want KEY=COLUMN,..., as in a_name=Device,a_port=Col 3, not \"a_name\""},
	} {
		m, err := ParsePlanMap(tt.m)
		var f *fabric.Fabric
		if err == nil {
			f, err = LoadPlan([]PlanFile{{"plan", strings.NewReader(tt.in)}}, PlanOptions{Map: m}, nil)
		}
		switch {
		case err != nil && err.Error() != tt.err, err == nil && tt.err != "":
			t.Errorf("%s: got %v, want %s", tt.m, err, tt.err)
		case err == nil && cablesOf(f) != tt.want:
			t.Errorf("%s: got %s", tt.m, cablesOf(f))
		}
	}
}

// TestWritePlan: a plan that is written reads again as the same cables, whatever nodes are called.
func TestWritePlan(t *testing.T) {
	planned, err := LoadPlan(planFiles(t, "cvt_ptp.xlsx"), PlanOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	b := fabric.NewBuilder()
	leaf := b.AddNode(fabric.NodeSpec{Name: "leaf", Info: mad.NodeInfo{NodeType: mad.NodeTypeSwitch, NumPorts: 40, NodeGUID: 1}})
	for i, name := range []string{"=1+1", "-x", "a,\"b\";", "n1", "n1 mlx5_0", "n2 HCA-1", "two words"} {
		for num := 1; num <= 2; num++ {
			n := leaf + 1 + i
			if num == 1 {
				n = b.AddNode(fabric.NodeSpec{Name: name, Info: mad.NodeInfo{NodeType: mad.NodeTypeCA, NumPorts: 2, NodeGUID: mad.GUID(0x10 + i)}})
			}
			if err := b.Link(leaf, 2*i+num, n, num); err != nil {
				t.Fatal(err)
			}
		}
	}
	full, err := LoadPlan([]PlanFile{
		{"links.csv", strings.NewReader("A-Hall,A-Row,A-Rack,A-U,A-Node,A-Type,A-Role,A-Rail,A-Model,A-Firmware,A-SerialNumber,A-SM,A-Port,Z-Node,Z-Type,Z-Port,Z-Rail,Speed,Width,Label,Length\n" +
			"H1,3,R1,40,leaf,Switch,,1,MQM9700,31.1,MT1,yes,7,n1,Host,mlx5_0,1,ndr,4x,F-1,3 m\n" +
			"H1,3,R1,40,leaf,Switch,,1,MQM9700,31.1,MT1,,8,n1,Host,mlx5_1,2,ndr,4x,F-2,3 m\n")},
		{"nodes.csv", strings.NewReader("NodeName,Role,Model,Rack,Unit\nn1,storage,ConnectX-7,R2,5\n")},
		{"parts.csv", strings.NewReader("Partition\n0x8001\nblue\n")},
	}, PlanOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []*fabric.Fabric{planned, b.Build(), full} {
		var text, book bytes.Buffer
		if err := Dump(&text, f, KindPlan); err != nil {
			t.Fatal(err)
		}
		if err := WritePlanWorkbook(&book, f, nil); err != nil {
			t.Fatal(err)
		}
		for name, in := range map[string]*bytes.Buffer{"plan.csv": &text, "plan.xlsx": &book} {
			again, err := Load(in, name, nil)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(cablesOf(f), cablesOf(again)); d != "" {
				t.Errorf("%s: (-want +got):\n%s", name, d)
			}
			for i := range f.Nodes() {
				n := &f.Nodes()[i]
				m := again.NodeByName(n.Name())[0]
				if got, want := m.Place(), n.Place(); got != want {
					t.Errorf("%s: place of %s: got %v, want %v", name, n.Name(), got, want)
				}
				if f.Plan() == nil {
					continue
				}
				of := func(list []string, n *fabric.Node) string {
					if list == nil {
						return ""
					}
					return list[n.ID()]
				}
				p, q := f.Plan(), again.Plan()
				facts := func(p *fabric.Plan, n *fabric.Node) string {
					return strings.ToLower(fmt.Sprint(of(p.Models, n), of(p.Firmware, n), of(p.Serials, n), of(p.Roles, n), of(p.Rails, n)))
				}
				if got, want := facts(q, m), facts(p, n); got != want {
					t.Errorf("%s: %s: got %s, want %s", name, n.Name(), got, want)
				}
				if name == "plan.csv" {
					continue
				}
				if d := cmp.Diff(p.Partitions, q.Partitions); d != "" {
					t.Errorf("%s: partitions: %s", name, d)
				}
			}
			if p := f.Plan(); p != nil {
				if d := cmp.Diff(p.Managers, again.Plan().Managers); d != "" {
					t.Errorf("%s: managers: %s", name, d)
				}
			}
		}
	}
}

// TestPlanJSON: cables of older NetBox and of Nautobot, in pages, in several files, and those of which the
// answer has too little.
func TestPlanJSON(t *testing.T) {
	// netBox32 is a cable as NetBox until 3.2 returns it, nautobot as Nautobot does with depth=2 (from the
	// schemas of their REST APIs).
	netBox32 := func(id int, a, aPort, b, bPort string) string {
		end := func(device, port string) string {
			return fmt.Sprintf(`{"id":%d,"url":"https://nb.example/api/dcim/interfaces/%[1]d/","display":%[3]q,"device":{"id":9,"url":"https://nb.example/api/dcim/devices/9/","display":%[2]q,"name":%[2]q},"name":%[3]q,"cable":%[1]d,"_occupied":true}`, id, device, port)
		}
		return fmt.Sprintf(`{"id":%d,"url":"https://nb.example/api/dcim/cables/%[1]d/","display":"#%[1]d","termination_a_type":"dcim.interface","termination_a_id":%[1]d,"termination_a":%[2]s,"termination_b_type":"dcim.interface","termination_b_id":%[1]d,"termination_b":%[3]s,"type":"aoc","status":{"value":"connected","label":"Connected"},"tenant":null,"label":"N-%[1]d","color":"","length":"3.00","length_unit":{"value":"m","label":"Meters"},"tags":[],"custom_fields":{}}`, id, end(a, aPort), end(b, bPort))
	}
	nautobot := func(n int, status, a, aPort, b, bPort string) string {
		uuid := fmt.Sprintf("00000000-0000-4000-8000-%012d", n)
		end := func(device, port string) string {
			return fmt.Sprintf(`{"id":%[1]q,"object_type":"dcim.interface","display":%[3]q,"url":"https://n.example/api/dcim/interfaces/%[1]s/","name":%[3]q,"device":{"id":%[1]q,"object_type":"dcim.device","display":%[2]q,"name":%[2]q,"position":12,"rack":{"id":%[1]q,"object_type":"dcim.rack","name":"R7"}}}`, uuid, device, port)
		}
		return fmt.Sprintf(`{"id":%[1]q,"object_type":"dcim.cable","display":"x","termination_a_type":"dcim.interface","termination_b_type":"dcim.interface","termination_a":%[3]s,"termination_b":%[4]s,"length_unit":null,"type":null,"length":null,"label":"","status":{"id":%[1]q,"object_type":"extras.status","display":%[2]q,"name":%[2]q}}`, uuid, status, end(a, aPort), end(b, bPort))
	}
	page := func(count int, next string, cables ...string) string {
		if next = `"https://nb.example/api/dcim/cables/?limit=2&offset=` + next + `"`; strings.HasSuffix(next, `=""`) {
			next = "null"
		}
		return fmt.Sprintf(`{"count":%d,"next":%s,"previous":null,"results":[%s]}`, count, next, strings.Join(cables, ","))
	}
	const both = "leaf/1, n1 mlx5_0/1\nleaf/2, n2 mlx5_0/1\n"
	first, second := netBox32(1, "leaf", "sw1p1", "n1", "mlx5_0"), netBox32(2, "n2", "mlx5_0", "leaf", "sw1p2")
	for _, tt := range []struct {
		name             string
		files            []string
		cables, problems string
	}{
		{"NetBox 3.2, two pages in a file", []string{page(2, "2", first) + "\n" + page(2, "", second)}, both, ""},
		{"a list of pages", []string{"[" + page(2, "2", first) + "," + page(2, "", second) + "]"}, both, ""},
		{"the results alone", []string{"[" + first + "," + second + "]"}, both, ""},
		{"a page in each file", []string{page(2, "2", first), page(2, "", second)}, both, ""},
		{"a page is missing", []string{page(3, "2", first, second)}, both, "cut short: FILE has 2 of 3 cables; add the other pages (next)\n"},
		{"Nautobot", []string{page(3, "", nautobot(1, "Connected", "leaf", "sw1p1", "n1", "mlx5_0"), nautobot(2, "Planned", "leaf", "sw1p2", "n2", "mlx5_0"), nautobot(3, "Decommissioning", "leaf", "sw2p1", "n3", "mlx5_0"))}, both,
			"left out: FILE: 1 line whose state is not Active\n"},
		{"Nautobot without depth", []string{page(2, "", nautobot(1, "Connected", "leaf", "sw1p1", "n1", "mlx5_0"), `{"id":"7","termination_a_type":"dcim.interface","termination_b_type":"dcim.interface","termination_a":{"id":"8","object_type":"dcim.interface","url":"x"},"termination_b":{"id":"9","object_type":"dcim.interface","url":"x"},"status":{"id":"5","object_type":"extras.status","url":"x"}}`)},
			"leaf/1, n1 mlx5_0/1\n", "invalid: FILE: 1 row could not be used: cable 7: expected a device with its name at each end; request the cables with ?depth=2 (Nautobot), or export them as CSV\ncable 7: expected a device with its name at each end; request the cables with ?depth=2 (Nautobot), or export them as CSV\n"},
		{"Nautobot with addresses", []string{page(3, "", nautobot(1, "Connected", "leaf", "sw1p1", "n1", "mlx5_0"), strings.NewReplacer(`"rack":{"id":"00000000-0000-4000-8000-000000000002","object_type":"dcim.rack","name":"R7"}`, `"rack":"https://n.example/api/dcim/racks/2/"`, `"status":{"id":"00000000-0000-4000-8000-000000000002","object_type":"extras.status","display":"Connected","name":"Connected"}`, `"status":"https://n.example/api/extras/statuses/2/"`).Replace(nautobot(2, "Connected", "leaf", "sw1p2", "n2", "mlx5_0")), `{"id":"3","termination_a_type":"dcim.interface","termination_b_type":"dcim.interface","termination_a":"https://n.example/api/dcim/interfaces/8/","termination_b":{"name":"x","device":"https://n.example/api/dcim/devices/8/"},"status":{"name":"Connected"}}`)}, both,
			"invalid: FILE: 1 row could not be used: cable 3: expected a device with its name at each end; request the cables with ?depth=2 (Nautobot), or export them as CSV\ncable 3: expected a device with its name at each end; request the cables with ?depth=2 (Nautobot), or export them as CSV\n"},
		{"cables of other things", []string{page(2, "", first, strings.ReplaceAll(second, "dcim.interface", "dcim.powerport"))}, "leaf/1, n1 mlx5_0/1\n", "left out: FILE: 1 line of another network or kind of cable\n"},
		{"one end alone", []string{page(2, "", first, `{"id":2,"termination_a_type":"dcim.interface","termination_a":{"name":"sw1p2","device":{"name":"leaf"}},"termination_b_type":null,"termination_b":null,"status":{"value":"connected"}}`)}, "leaf/1, n1 mlx5_0/1\n", "left out: FILE: 1 line without another end\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var files []PlanFile
			for i, text := range tt.files {
				name := "FILE"
				if len(tt.files) > 1 {
					name += fmt.Sprint(i)
				}
				files = append(files, PlanFile{name, strings.NewReader(text)})
			}
			f, err := LoadPlan(files, PlanOptions{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.cables, cablesOf(f)); d != "" {
				t.Errorf("cables (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tt.problems, planProblemsOf(f)); d != "" {
				t.Errorf("problems (-want +got):\n%s", d)
			}
			if got, want := f.NodeByName("leaf")[0].Place(), (fabric.Place{Rack: "R7", Unit: "12"}); strings.HasPrefix(tt.name, "Nautobot") && got != want {
				t.Errorf("place: got %v, want %v", got, want)
			}
		})
	}
}

// TestPlanArchives: the files of an archive are one plan, with those beside it.
func TestPlanArchives(t *testing.T) {
	pack := func(names ...string) PlanFile {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for _, f := range planFiles(t, names...) {
			w, err := z.Create("plans/" + f.Name)
			if err != nil {
				t.Fatal(err)
			}
			io.Copy(w, f)
		}
		w, _ := z.Create("readme.txt")
		io.WriteString(w, "Cabling is done by night.")
		z.Close()
		return PlanFile{"all.zip", &b}
	}
	rest := []string{"cvt_nodes.csv", "cvt_profile.csv", "cvt_floor.csv"}
	for _, files := range [][]PlanFile{{pack(append(rest, "cvt_links.csv")...)}, append(planFiles(t, "cvt_links.csv"), pack(rest...))} {
		f, err := LoadPlan(files, PlanOptions{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(planCables, cablesOf(f)); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		if got, want := planProblemsOf(f), "left out: all.zip: not read: readme.txt (unknown format)\n"; got != want {
			t.Errorf("got %s", got)
		}
	}
	if _, err := LoadPlan([]PlanFile{pack()}, PlanOptions{Map: PlanMap{}}, nil); err == nil || err.Error() != "all.zip: no plan of cables among its 1 file; not read: readme.txt (unknown format)" {
		t.Errorf("got %v", err)
	}
}

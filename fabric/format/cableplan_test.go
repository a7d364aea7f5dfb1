package format

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/mad"
)

const planProblems = `a plan of cables: plan has cables only; models of nodes are unknown, and types and numbers of ports are guessed
guids were assigned: plan has names instead of GUIDs, which were assigned in its order
`

// TestLoadPlans: plans of cables, in all their spellings.
func TestLoadPlans(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"names", "\ufeffA, A_Port ,b,b_port,width,speed,length\r\n" +
			"leaf-1,19,\"spine,1\",3,4x,hdr,3 m\r\n\r\n# a comment\r\n" +
			"leaf-1,1,n1 HCA-1,1\r\n" +
			"\"the \"\"leaf\"\"\", 3 ,leaf-1,2,,,\r\n" +
			"spine\xff,7,leaf-1,3,4x,,\r\n" +
			"leaf-1,2,\"the \"\"leaf\"\"\",3\r\n", // the other end says so too
			`fabric: 5 nodes (4 switches, 1 CA), 4 links; the file does not state that it is whole
switch "leaf-1" guid 200000 image 200000 vendor 0 device 0 ports 19 port guid 200000 lid 1 lmc 0
  1 - 4 n1 HCA-1/1 
  2 - 2 the "leaf"/3 
  3 - 3 spine` + "\xff" + `/7 4x
  19 - 1 spine,1/3 4xhdr
switch "spine,1" guid 2000ff image 2000ff vendor 0 device 0 ports 3 port guid 2000ff lid 2 lmc 0
  3 - 0 leaf-1/19 4xhdr
switch "the \"leaf\"" guid 2001fe image 2001fe vendor 0 device 0 ports 3 port guid 2001fe lid 4 lmc 0
  3 - 0 leaf-1/2 
switch "spine\xff" guid 2002fd image 2002fd vendor 0 device 0 ports 7 port guid 2002fd lid 5 lmc 0
  7 - 0 leaf-1/3 4x
ca "n1 HCA-1" guid 100000 image 100000 vendor 0 device 0 ports 1
  1 - 0 leaf-1/1  guid 100001 lid 3 lmc 0
` + planProblems + "lids were assigned: plan has no LIDs; they were assigned in its order, from 1 to 5\n"},
		{"GUIDs", "my plan\na;a_port;b;b_port\n0x0002c90300001000;1;0x200000;36\nMF0;1\n\"MF0;leaf\";5;0x200000;35\n",
			`fabric: 3 nodes (2 switches, 1 CA), 2 links; the file does not state that it is whole
switch "" guid 200000 image 200000 vendor 0 device 0 ports 36 port guid 200000 lid 2 lmc 0
  35 - 1 MF0;leaf/5 
  36 - 2 0x0002c90300001000/1 
switch "MF0;leaf" guid 2000ff image 2000ff vendor 0 device 0 ports 5 port guid 2000ff lid 3 lmc 0
  5 - 0 0x0000000000200000/35 
ca "" guid 2c90300001000 image 2c90300001000 vendor 0 device 0 ports 1
  1 - 0 0x0000000000200000/36  guid 2c90300001001 lid 1 lmc 0
` + planProblems + "left out: plan: 1 line without another end\nlids were assigned: plan has no LIDs; they were assigned in its order, from 1 to 3\n"},
		{"NDT, brief", "StartDevice,StartPort,EndDevice,EndPort,State,Domain\n" +
			"MF0;sw-1:MQM8700/U1,Port 26,r-ufm64 mlx5_0,Port 1,Active,In-Scope\n" +
			"MF0;sw-1:MQM8700/U1,Port 1/16/1,dir-1,Blade 6_Port 2/20,Active,In-Scope\n" +
			"host7,HOST7 mlx5_1,MF0;sw-1:MQM8700/U1,3,Active,Boundary\n" +
			"MF0;sw-1:MQM8700/U1,Port 27,,,Disabled,Disconnected\n" +
			"MF0;sw-1:MQM8700/U1,Port 28,host8,Port 1,Disabled,In-Scope\n",
			`fabric: 4 nodes (2 switches, 2 CAs), 3 links; the file does not state that it is whole
switch "MF0;sw-1:MQM8700/U1" guid 200000 image 200000 vendor 0 device 0 ports 31 port guid 200000 lid 1 lmc 0
  3 - 3 host7 mlx5_1/1 
  26 - 2 r-ufm64 mlx5_0/1 
  31 - 1 dir-1/L6/U2/20 
switch "dir-1/L6/U2" guid 2000ff image 2000ff vendor 0 device 0 ports 20 port guid 2000ff lid 3 lmc 0
  20 - 0 MF0;sw-1:MQM8700/U1/31 
ca "r-ufm64 mlx5_0" guid 100000 image 100000 vendor 0 device 0 ports 1
  1 - 0 MF0;sw-1:MQM8700/U1/26  guid 100001 lid 2 lmc 0
ca "host7 mlx5_1" guid 1000ff image 1000ff vendor 0 device 0 ports 1
  1 - 0 MF0;sw-1:MQM8700/U1/3  guid 100100 lid 4 lmc 0
` + planProblems + `left out: plan: 1 line whose state is not Active
left out: plan: 1 line without another end
lids were assigned: plan has no LIDs; they were assigned in its order, from 1 to 4
`},
		{"NDT, in full", ",rack #,U height,#Fields:StartDevice,StartPort,StartDeviceLocation,EndDevice,EndPort,EndDeviceLocation,U height,LinkType,Speed,,Cable Length,,,,,\n" +
			",Rack IB0 #1,U41,leaf-01IB0,Port 21,F01,dir-01IB1,Blade 1_Port 1/1,F02,U25,Data,200000,200G HDR cable,10,,,,,Rack IB0 #1\n",
			`fabric: 2 nodes (2 switches, 0 CAs), 1 link; the file does not state that it is whole
switch "leaf-01IB0" guid 200000 image 200000 vendor 0 device 0 ports 21 port guid 200000 lid 1 lmc 0
  21 - 1 dir-01IB1/L1/U1/1 
switch "dir-01IB1/L1/U1" guid 2000ff image 2000ff vendor 0 device 0 ports 1 port guid 2000ff lid 2 lmc 0
  1 - 0 leaf-01IB0/21 
` + planProblems + "lids were assigned: plan has no LIDs; they were assigned in its order, from 1 to 2\n"},
		{"NDT, as a comment", "#StartDevice,StartPort,EndDevice,EndPort,LinkType\ns,Port 3,t,Port 4,Data\n",
			`fabric: 2 nodes (2 switches, 0 CAs), 1 link; the file does not state that it is whole
switch "s" guid 200000 image 200000 vendor 0 device 0 ports 3 port guid 200000 lid 1 lmc 0
  3 - 1 t/4 
switch "t" guid 2000ff image 2000ff vendor 0 device 0 ports 4 port guid 2000ff lid 2 lmc 0
  4 - 0 s/3 
` + planProblems + "lids were assigned: plan has no LIDs; they were assigned in its order, from 1 to 2\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, err := Load(strings.NewReader(tt.in), "plan", nil)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, describe(f)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestPlanErrors: what is wrong with a plan is said by line and column.
func TestPlanErrors(t *testing.T) {
	const own, ufm = "a,a_port,b,b_port,width,speed\n", "#StartDevice,StartPort,EndDevice,EndPort,LinkType\n"
	for in, want := range map[string]string{
		own:                       "plan: no cables below the line with the names of the columns",
		ufm + "s,Port 1,,,Data\n": "plan: no cables below the line with the names of the columns",
		own + "x,1,y\n":           `plan:2: expected a port from 1 to 254 in column b_port, not ""`,
		own + "x,one,y,1\n":       `plan:2: expected a port from 1 to 254 in column a_port, not "one"`,
		own + "x,1,y,255\n":       `plan:2: expected a port from 1 to 254 in column b_port, not "255"`,
		own + "\n,1,y,2\n":        `plan:3: expected a name of 1 to 255 bytes, or a GUID, in column a: ""`,
		own + strings.Repeat("x", 256) + ",1,y,2\n": fmt.Sprintf("plan:2: expected a name of 1 to 255 bytes, or a GUID, in column a: %q", strings.Repeat("x", 60)+"..."),
		own + "x,1,y,2,5x,\n":                       `plan:2: expected a width and a speed as 4x and hdr, or neither: "x,1,y,2,5x,"`,
		own + "x,1,y,2,,200000\n":                   `plan:2: expected a width and a speed as 4x and hdr, or neither: "x,1,y,2,,200000"`,
		own + "x,1,x,1\n":                           "plan:2: expected two ends, not port 1 of x twice",
		own + "x,1,y,1\nx,1,z,1\n":                  "plan:3: expected port 1 of x to be free, but plan:2 connects it to port 1 of y",
		own + "\"x,1,y,2\n":                         `plan:2: expected a quote at the end of each field that begins with one, and a comma or nothing after it: "\"x,1,y,2"`,
		own + "\"x\"y,1,y,2\n":                      `plan:2: expected a quote at the end of each field that begins with one, and a comma or nothing after it: "\"x\"y,1,y,2"`,
		own + strings.Repeat("x", 1<<16) + "\n":     "plan:2: expected a line of at most 65536 bytes",
		ufm + "s,Port 1/2,t,Port 3,Data\n":          `plan:2: expected a port from 1 to 254 in column StartPort, not "Port 1/2"`,
		ufm + "s,Port 2/3/1,t,Port 3,Data\n":        `plan:2: expected a port from 1 to 254 in column StartPort, not "Port 2/3/1"`,
		ufm + "s,s mlx5_0 x,t,Port 3,Data\n":        `plan:2: expected a port from 1 to 254 in column StartPort, not "s mlx5_0 x"`,
	} {
		_, err := Load(strings.NewReader(in), "plan", nil)
		if err == nil || err.Error() != want {
			t.Errorf("%q:\ngot  %v\nwant %s", fabric.Clip(in), err, want)
		}
	}
}

// TestWriteCables: what is written is read again, whatever nodes are called.
func TestWriteCables(t *testing.T) {
	b := fabric.NewBuilder()
	names := []string{"leaf 1", "a,\"b\";", "c\nd", "twin", "twin", "#x", "0x77", "", "\xff", " y", strings.Repeat("z", 300)}
	for i, name := range names {
		info := mad.NodeInfo{NodeType: mad.NodeTypeSwitch, NumPorts: 40, NodeGUID: mad.GUID(0xa0 + i)}
		b.AddNode(fabric.NodeSpec{Info: info, Name: name})
	}
	up, _ := portInfo(mad.LinkWidth4x, "hdr")
	b.SetPort(0, 0, &up)
	b.SetPort(0, 1, &up)
	for i := 1; i < len(names); i++ {
		if err := b.Link(0, i, i, 30); err != nil {
			t.Fatal(err)
		}
	}
	var text strings.Builder
	if err := Dump(&text, b.Build(), KindCables); err != nil {
		t.Fatal(err)
	}
	want := `a,a_port,b,b_port,width,speed
leaf 1,1,"a,""b"";",30,4x,hdr
leaf 1,2,0x00000000000000a2,30,,
leaf 1,3,0x00000000000000a3,30,,
leaf 1,4,0x00000000000000a4,30,,
leaf 1,5,0x00000000000000a5,30,,
leaf 1,6,0x00000000000000a6,30,,
leaf 1,7,0x00000000000000a7,30,,
leaf 1,8,0x00000000000000a8,30,,
leaf 1,9,0x00000000000000a9,30,,
leaf 1,10,0x00000000000000aa,30,,
`
	if d := cmp.Diff(want, text.String()); d != "" {
		t.Fatalf("(-want +got):\n%s", d)
	}
	f, err := Load(strings.NewReader(text.String()), "plan", nil)
	if err != nil {
		t.Fatal(err)
	}
	if f.Links() != len(names)-1 || len(f.NodeByGUID(0xa7)) != 1 || f.NodeByName(names[1])[0].Port(30).Speed() != "hdr" {
		t.Errorf("read again: %s", describe(f))
	}
}

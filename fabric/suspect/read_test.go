package suspect

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	ncclOutput = `# nccl-tests version 2.19.6 nccl-headers=23007 nccl-library=23007
# Collective test starting: sendrecv_perf
# nThread 1 nGpus 1 minBytes 1048576 maxBytes 1073741824 step: 32(factor) warmup iters: 1 iters: 20 agg iters: 1 validation: 1 graph: 0 unalign: 0
#
# Using devices
#  Rank  0 Group  0 Pid  41000 on       n1 device  0 [0000:1b:00] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid  41001 on       n1 device  1 [0000:43:00] NVIDIA H100 80GB HBM3
#  Rank  2 Group  0 Pid  41008 on       n2 device  0 [0000:1b:00] NVIDIA H100 80GB HBM3
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)
     1048576        262144     float     sum      -1   108.10    9.70    9.70       0   109.18    9.60    9.60    N/A
  1073741824     268435456     float     sum      -1  24292.8   44.20   44.25       0  24535.7   43.76   43.76    N/A
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 30.6144
#
# Collective test concluded: sendrecv_perf
#
`
	perftestOutput = `---------------------------------------------------------------------------------------
                    RDMA_Write BW Test
 Dual-port       : OFF		Device         : mlx5_4
---------------------------------------------------------------------------------------
 local address: LID 0x2a7 QPN 0x01c5 PSN 0x8f31aa RKey 0x1ff1c4 VAddr 0x007f2b40200000
 remote address: LID 0x31c QPN 0x01d9 PSN 0x40b21c RKey 0x1fe2d1 VAddr 0x007f8c1a200000
---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      5000             393.71             392.88 		     0.749359
 8388608    5000             394.02             197.41 		     0.002942
---------------------------------------------------------------------------------------
`
	serverOutput = `************************************
* Waiting for client to connect... *
************************************
                    Send BW Test
 local address: LID 0x2a7 QPN 0x01c5 PSN 0x8f31aa
 remote address: LID 0x31c QPN 0x01d9 PSN 0x40b21c
 #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]
 65536      1000             0.00               1000.00		     0.749346
`
	osuOutput = "# OSU MPI Bandwidth Test v5.3.2\n# Size      Bandwidth (MB/s)\n1                       6.10\n262144              49000.00\n"
	mpiGraph  = "START mpiGraph v1.5\nMsgSize\t1048576\n\nSend\tn1:0\tn2:1\t\nn1:0 to\t0.000\t1000.000\t\nn2:1 to\t500.000\t0.000\t\n\nRecv\tn1:0\tn2:1\t\nn1:0 from\t0.000\t1.0\t\nEND mpiGraph\n"
	hp2p      = "<script>\n// hostlist start\nvar hostlist = \n[    \"n1\",     \"n2\",     ]\n;\n// hostlist end\n// bandwidth start\nvar bandwidth = \n[    [ 0.00, 1000.0, ],     [ 500.0, 0.00, ],     ]\n;\n// bandwidth end\n"
	superB    = "ib-traffic/ib_write_bw_8388608_cpu-to-cpu_0_0:n1_n2:0 25\nib-traffic/ib_write_bw_8388608_cpu-to-cpu_0_1:n3_n4:1 -1\n"
)

// TestRead reads each format.
func TestRead(t *testing.T) {
	ring := Measurement{Group: []string{"n1", "n2"}, Value: 354, Class: "nccl sendrecv_perf 1073741824", Line: 1}
	write := Measurement{From: "0x2a7", To: "0x31c", Value: 197.41, Class: "perftest RDMA_Write BW 8388608", Line: 2}
	mib := 8 * 1.048576e-3
	for name, test := range map[string]struct {
		text string
		want []Measurement
	}{
		"table": {"from,to,gbps,round\nn1,n2,390,7\nn2,n3,\nn3,n1,-1\nfrom,to,MB/s\nn1,n3,1000\n", []Measurement{
			{From: "n1", To: "n2", Value: 390, Round: "7", Line: 2}, {From: "n2", To: "n3", State: Empty, Line: 3}, {From: "n3", To: "n1", State: Failed, Line: 4}, {From: "n1", To: "n3", Value: 8, Line: 6}}},
		"comments": {"\ufeff# by hand\n\nClient;Server;us;both;Rail;Test;Size\nn1;n2;1.5;yes;2;lat;8\n", []Measurement{{From: "n1", To: "n2", Value: 1.5, Time: true, Both: true, Rail: 2, Class: "lat 8", Line: 4}}},
		"group":    {"hosts\tpattern\tbusbw\nn[1-3]\tall-to-all\t40\n", []Measurement{{Group: []string{"n1", "n2", "n3"}, AllToAll: true, Value: 320, Line: 2}}},
		"nccl":     {ncclOutput, []Measurement{ring}},
		"perftest": {perftestOutput, []Measurement{write}},
		"read":     {strings.Replace(perftestOutput, "RDMA_Write", "RDMA_Read", 1), []Measurement{{From: "0x31c", To: "0x2a7", Value: 197.41, Class: "perftest RDMA_Read BW 8388608", Line: 2}}},
		"server":   {serverOutput, []Measurement{{From: "0x31c", To: "0x2a7", Value: 1000 * mib, Class: "perftest Send BW 65536", Line: 4}}},
		"both":     {strings.Replace(perftestOutput, "RDMA_Write BW", "RDMA_Write Bidirectional BW", 1), []Measurement{{From: "0x2a7", To: "0x31c", Both: true, Value: 197.41, Class: "perftest RDMA_Write BW 8388608", Line: 2}}},
		"several": {perftestOutput + "# pair: n1 to n2\n" + osuOutput + "# pair: n2 n1\n" + osuOutput + "# pair: n5 n6\n# OSU MPI Bandwidth Test v5.3.2\n", []Measurement{
			write, {From: "n1", To: "n2", Value: 392, Class: "osu Bandwidth 262144", Line: 13}, {From: "n2", To: "n1", Value: 392, Class: "osu Bandwidth 262144", Line: 18}, {From: "n5", To: "n6", State: Failed, Class: "osu Bandwidth 0", Line: 23}}},
		"json": {`{"version":3,"args":[".\/alltoall_perf"],"config":{"devices":[{"group":0,"hostname":"n1"},{"group":0,"hostname":"n2"}]},"results":[{"size":8,"out_of_place":{"bus_bw":1}},{"size":1024,"out_of_place":{"bus_bw":40}}]}`,
			[]Measurement{{Group: []string{"n1", "n2"}, AllToAll: true, Value: 320, Class: "nccl alltoall_perf 1024", Line: 1}}},
		"mpiGraph":   {mpiGraph, []Measurement{{From: "n1", To: "n2", Value: 1000 * mib, Class: "mpiGraph", Round: "1", Line: 5}, {From: "n2", To: "n1", Value: 500 * mib, Class: "mpiGraph", Round: "1", Line: 6}}},
		"hp2p":       {hp2p, []Measurement{{From: "n1", To: "n2", Value: 1000 * mib, Class: "hp2p", Line: 7}, {From: "n2", To: "n1", Value: 500 * mib, Class: "hp2p", Line: 7}}},
		"superbench": {superB, []Measurement{{From: "n2", To: "n1", Value: 200, Class: "ib_write_bw 8388608 cpu-to-cpu", Round: "0", Rail: 1, Line: 1}, {From: "n4", To: "n3", State: Failed, Class: "ib_write_bw 8388608 cpu-to-cpu", Round: "0", Rail: 2, Line: 2}}},
	} {
		got, err := Read(strings.NewReader(test.text), "t")
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
}

// TestReadErrors: what cannot be read is an error with its place.
func TestReadErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                        "t: empty; " + wanted,
		"\x00\x01":                                "t: not text; " + wanted,
		"\xff\xfef\x00":                           "t: UTF-16 text is unsupported; write the file as UTF-8",
		"from,to,gbps\n":                          "t: no measurement; " + wanted,
		"from,to,gbps\nn1,,5\n":                   "t:2: the name of an end is empty",
		"from,to,gbps\nn1,n2,fast\n":              `t:2: invalid value "fast"; want a number, or 0 or -1 for a pair without a result`,
		"from,to,gbps\nn1,n2,-5\n":                `t:2: invalid value "-5"; want a number, or 0 or -1 for a pair without a result`,
		"from,to,gbps\nn1,n2,inf\n":               `t:2: invalid value "inf"; want a number, or 0 or -1 for a pair without a result`,
		"from,to,gbps\nn1,n2,NaN\n":               `t:2: invalid value "NaN"; want a number, or 0 or -1 for a pair without a result`,
		"from,to,gbps\n\"a\x1b[2J\",n2,5\n":       `t:2: invalid name "a\x1b[2J": longer than 253 bytes, or with a character that cannot be printed`,
		"from,to,gb/s\nn1,n2,5\n":                 `t:1: the header "from,to,gb/s" has no columns of ends, or none of values; ` + wanted + " (values: Gb/s, GB/s, MB/s, MiB/s or us)",
		"from,to,gbps,rail\nn1,n2,5,0\n":          `t:2: invalid rail "0"; want 1, 2, ...`,
		"from,to,gbps,both\nn1,n2,5,maybe\n":      `t:2: invalid value "maybe" of the column of both directions; want yes or no`,
		"hosts,gbps\nn1,5\n":                      "t:2: a group of 1; want at least two members",
		"hosts,pattern,gbps\n\"n[1-2]\",tree,5\n": `t:2: unknown pattern "tree"; supported: ring, all-to-all`,
		"from,to,hosts,gbps\na,b,\"n[1-2]\",5\n":  "t:2: both a pair and a group",
		osuOutput:                                 "t:1: the output has no hosts; put a line # pair: FROM TO before it",
		"# pair: a\n" + osuOutput:                 `t:1: invalid line "# pair: a"; want # pair: FROM TO`,
		strings.ReplaceAll(ncclOutput, "on       n2", "on       n1"):                                  "t:1: no two hosts in the lines of ranks; run nccl-tests on at least two hosts, or put a line # pair: FROM TO before its output",
		strings.Replace(ncclOutput, "2 Group  0", "2 Group  1", 1):                                    "t:1: one number for several groups of ranks (NCCL_TESTS_SPLIT); run one group at a time",
		"# OSU MPI Multiple Bandwidth / Message Rate Test v7.4\n# [ pairs: 4 ] [ window size: 64 ]\n": "t:2: one number for 4 pairs; run 2 processes at a time",
		`{"test_info": {}, "results": {}}`:                                                            "t:1: the JSON of perftest has no hosts; use its text, which has the LIDs of both ends, or a table",
		`{"config":`:                                                                                  "t:1: unexpected EOF; want the file of nccl-tests -J",
		mpiGraph[:strings.Index(mpiGraph, "n2:1 to")]:                                                 "t: the matrix Send ends within its rows",
		strings.Replace(hp2p, "500.0,", "", 1):                                                        "t: 3 numbers of bandwidth for 2 hosts; want a square matrix",
		"ib_write_bw_8_cpu-to-cpu_0_0:a_b_c:0 5\n":                                                    `t:1: the names of two hosts in "a_b_c" are unclear; use a table`,
	} {
		if _, err := Read(strings.NewReader(text), "t"); err == nil || err.Error() != want {
			t.Errorf("%.40q:\n%v\nwant\n%s", text, err, want)
		}
	}
}

// FuzzRead: rubbish is an error, never a panic; names and values of what is read are valid.
func FuzzRead(f *testing.F) {
	for _, s := range []string{"from,to,gbps\nn1,n2,390\n", "hosts\tbusbw\nn[1-3]\t40\n", ncclOutput, perftestOutput, serverOutput, "# pair: a b\n" + osuOutput, mpiGraph, hp2p, superB, `{"config":{"devices":[{"hostname":"a"},{"hostname":"b"}]},"results":[{"size":1}]}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		list, err := Read(strings.NewReader(s), "t")
		if err != nil && list != nil {
			t.Fatal("an error, and measurements")
		}
		for _, m := range list {
			if m.State == Measured && !(m.Value > 0) || m.Group == nil && (m.From == "" || m.To == "") || m.Group != nil && len(m.Group) < 2 {
				t.Fatalf("%+v", m)
			}
		}
	})
}

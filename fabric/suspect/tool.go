package suspect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// Lines of the output of benchmarks. The layouts are those of NVIDIA/nccl-tests src/util.cu,
// linux-rdma/perftest src/perftest_parameters.h and perftest_resources.c, and
// osu-micro-benchmarks util/osu_util_mpi.c.
var (
	toolLine       = regexp.MustCompile(`(?m)^(# nccl-tests version|# nThread |# OSU MPI |#\s+Rank\s+\d+ |\s*local address:|\s*[A-Za-z_]+ (?:Bidirectional )?(?:BW|Latency) Test|# pair:)`)
	pairLine       = regexp.MustCompile(`^# pair:\s*(\S+)\s+(?:to |-> )?\s*(\S+)\s*$`)
	rankLine       = regexp.MustCompile(`^#\s+Rank\s+\d+\s+(?:Group\s+(\d+)\s+)?Pid\s+\d+\s+on\s+(\S+)\s+device`)
	ncclTest       = regexp.MustCompile(`^# Collective test (?:starting|concluded): (\w+)`)
	titleLine      = regexp.MustCompile(`^\s*([A-Za-z_]+) (Bidirectional )?(BW|Latency) Test`)
	addressLine    = regexp.MustCompile(`^\s*(local|remote) address: LID (0x[0-9a-fA-F]{1,4}|\d{1,5})\b`)
	osuTitle       = regexp.MustCompile(`^# OSU MPI(.*?)Test`)
	osuPairs       = regexp.MustCompile(`^# \[ pairs: (\d+) \]`)
	superbenchLine = regexp.MustCompile(`(?m)^\S*\b(ib_\w+?)_(\d+)_(\S*?)_(\d+)_(\d+):([^\s:]+):(\d+)\s+(-?[0-9.]+)\s*$`)
)

// run is one output of a benchmark.
type run struct {
	tool    string // "nccl", "perftest", "osu"
	test    string
	line    int
	hosts   []string
	groups  map[string]bool
	local   string
	remote  string
	server  bool // waited for a client, which sends
	both    bool
	latency bool
	factor  float64 // of values to Gb/s or µs; 0: no header yet
	column  int
	size    uint64
	value   float64
	rows    int
	pairs   int
}

// readTools reads outputs that follow each other.
func (f *file) readTools(text string) error {
	var x *run
	var pair [2]string
	server := false
	finish := func() error {
		if x == nil {
			return nil
		}
		done := x
		x = nil
		return f.addRun(done, pair)
	}
	begin := func(tool string, line int) error {
		err := finish()
		x = &run{tool: tool, line: line, groups: map[string]bool{}}
		return err
	}
	no := 0
	for line := range strings.Lines(text) {
		no++
		line = strings.TrimRight(line, "\r\n")
		var err error
		switch {
		case strings.HasPrefix(line, "# pair:"):
			m := pairLine.FindStringSubmatch(line)
			if m == nil {
				return fmt.Errorf("%s:%d: invalid line %.60q; want # pair: FROM TO", f.name, no, line)
			}
			err = finish()
			pair = [2]string{m[1], m[2]}
		case strings.HasPrefix(line, "# nccl-tests version") || strings.HasPrefix(line, "# nThread ") && (x == nil || x.tool != "nccl" || len(x.hosts) > 0):
			err = begin("nccl", no)
		case strings.HasPrefix(line, "# OSU MPI"):
			err = begin("osu", no)
			m := osuTitle.FindStringSubmatch(line)
			if m == nil {
				return fmt.Errorf("%s:%d: unknown benchmark %.60q", f.name, no, line)
			}
			x.test = strings.TrimSpace(m[1])
			x.both, x.latency = strings.Contains(x.test, "Bi-Directional"), strings.Contains(x.test, "Latency")
		case strings.Contains(line, "Waiting for client to connect"):
			server = true
		case titleLine.MatchString(line):
			err = begin("perftest", no)
			m := titleLine.FindStringSubmatch(line)
			x.test, x.both, x.latency = m[1]+" "+m[3], m[2] != "", m[3] == "Latency"
			x.server, server = server, false
		case x == nil:
		default:
			err = x.read(line)
			if err != nil {
				err = fmt.Errorf("%s:%d: %w", f.name, no, err)
			}
		}
		if err != nil {
			return err
		}
	}
	return finish()
}

// read reads a line of a run.
func (x *run) read(line string) error {
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return nil
	}
	if m := rankLine.FindStringSubmatch(line); m != nil && x.tool == "nccl" {
		x.groups[m[1]] = true
		if n := len(x.hosts); n == 0 || x.hosts[n-1] != m[2] {
			x.hosts = append(x.hosts, m[2])
		}
		return nil
	}
	if m := ncclTest.FindStringSubmatch(line); m != nil && x.tool == "nccl" {
		x.test = m[1]
		return nil
	}
	if m := addressLine.FindStringSubmatch(line); m != nil && x.tool == "perftest" {
		end := &x.local
		if m[1] == "remote" {
			end = &x.remote
		}
		if *end != "" && *end != m[2] {
			return errors.New("the connections of one output have different LIDs; run one port at a time")
		}
		*end = m[2]
		return nil
	}
	if m := osuPairs.FindStringSubmatch(line); m != nil {
		x.pairs, _ = strconv.Atoi(m[1])
		if x.pairs > 1 {
			return fmt.Errorf("one number for %d pairs; run 2 processes at a time", x.pairs)
		}
	}
	if strings.HasPrefix(fields[0], "#") {
		x.readHeader(line)
		return nil
	}
	if x.factor == 0 || len(fields) <= x.column {
		return nil
	}
	size, err := strconv.ParseUint(fields[0], 10, 63)
	if err != nil {
		return nil // another line
	}
	value, err := strconv.ParseFloat(fields[x.column], 64)
	if err != nil {
		return fmt.Errorf("invalid value %.20q", fields[x.column])
	}
	// Bandwidth is that of the largest message, latency that of the smallest.
	if x.rows++; x.rows == 1 || (size < x.size) == x.latency {
		x.size, x.value = size, value*x.factor
	}
	return nil
}

// readHeader reads a comment, which may be the header of the rows.
func (x *run) readHeader(line string) {
	switch {
	case x.tool == "nccl" && strings.Contains(line, "busbw"):
		x.factor, x.column = 8, 7
	case x.tool == "osu" && strings.Contains(line, "Size") && x.latency:
		x.factor, x.column = 1, 1
	case x.tool == "osu" && strings.Contains(line, "MB/s"):
		x.factor, x.column = 0.008, 1
	case x.tool == "perftest" && strings.Contains(line, "t_typical"):
		x.factor, x.column = 1, 4
	case x.tool == "perftest" && strings.Contains(line, "BW average"):
		x.column, x.factor = 3, 8*1.048576e-3
		if strings.Contains(line, "[Gb/sec]") {
			x.factor = 1
		}
	}
}

// addRun adds the measurement of a run.
func (f *file) addRun(x *run, pair [2]string) error {
	fail := func(text string) error { return fmt.Errorf("%s:%d: %s", f.name, x.line, text) }
	m := Measurement{Line: x.line, Class: fmt.Sprintf("%s %s %d", x.tool, x.test, x.size), Both: x.both, Time: x.latency, Value: x.value}
	if x.rows == 0 {
		m.State = Failed
	}
	switch {
	case pair[0] != "":
		m.From, m.To = pair[0], pair[1]
	case x.tool == "nccl":
		if len(x.groups) > 1 {
			return fail("one number for several groups of ranks (NCCL_TESTS_SPLIT); run one group at a time")
		}
		seen := map[string]bool{}
		for _, host := range x.hosts {
			if !seen[host] {
				seen[host] = true
				m.Group = append(m.Group, host)
			}
		}
		if len(m.Group) < 2 {
			return fail("no two hosts in the lines of ranks; run nccl-tests on at least two hosts, or put a line # pair: FROM TO before its output")
		}
		m.AllToAll = strings.HasPrefix(x.test, "alltoall")
	case x.tool == "perftest" && x.local != "" && x.remote != "":
		m.From, m.To = x.local, x.remote
		if x.server != strings.Contains(x.test, "Read") { // the data of a read goes to the client
			m.From, m.To = x.remote, x.local
		}
	default:
		return fail("the output has no hosts; put a line # pair: FROM TO before it")
	}
	return f.add(m)
}

// readJSON reads the files of nccl-tests -J, several of which may follow each other.
func (f *file) readJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	for {
		var x struct {
			TestInfo json.RawMessage `json:"test_info"`
			Args     json.RawMessage `json:"args"`
			Config   struct {
				Devices []struct {
					Group json.RawMessage
					Host  string `json:"hostname"`
				}
			}
			Results []struct {
				Size json.Number
				Out  struct {
					Bus json.Number `json:"bus_bw"`
				} `json:"out_of_place"`
				Name string `json:"experiment_name"`
			}
		}
		line := 1 + bytes.Count(data[:d.InputOffset()], []byte("\n"))
		err := d.Decode(&x)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && x.TestInfo == nil {
			return fmt.Errorf("%s:%d: %w; want the file of nccl-tests -J", f.name, line, err)
		}
		if x.TestInfo != nil {
			return fmt.Errorf("%s:%d: the JSON of perftest has no hosts; use its text, which has the LIDs of both ends, or a table", f.name, line)
		}
		r := &run{tool: "nccl", line: line, groups: map[string]bool{}, test: jsonTest(x.Args)}
		for _, dev := range x.Config.Devices {
			r.groups[string(dev.Group)] = true
			r.hosts = append(r.hosts, dev.Host)
		}
		for _, row := range x.Results {
			size, err := strconv.ParseUint(row.Size.String(), 10, 63)
			value, wrong := row.Out.Bus.Float64()
			if err != nil || wrong != nil {
				continue
			}
			if r.rows++; r.rows == 1 || size >= r.size {
				r.size, r.value = size, value*8
			}
		}
		if err := f.addRun(r, [2]string{}); err != nil {
			return err
		}
	}
}

// jsonTest returns the name of the program in the arguments of a run.
func jsonTest(args json.RawMessage) string {
	for _, test := range []string{"alltoall_perf", "all_reduce_perf", "all_gather_perf", "reduce_scatter_perf", "sendrecv_perf", "broadcast_perf", "reduce_perf"} {
		if bytes.Contains(args, []byte(test)) {
			return test
		}
	}
	return "collective"
}

// readMPIGraph reads the matrix of what is sent (LLNL/mpiGraph mpiGraph.c): in MiB/s, row to
// column. In round D of its schedule each rank sends to the one D places after it.
func (f *file) readMPIGraph(text string) error {
	var names []string
	row, no := 0, 0
	for line := range strings.Lines(text) {
		no++
		cells := strings.Split(strings.TrimRight(line, "\r\n"), "\t")
		switch {
		case cells[0] == "Send" && len(cells) > 2:
			for _, cell := range cells[1:] {
				if cell != "" {
					names = append(names, withoutRank(cell))
				}
			}
		case len(names) > 0 && strings.HasSuffix(cells[0], " to"):
			if row >= len(names) || withoutRank(strings.TrimSuffix(cells[0], " to")) != names[row] || len(cells) < 1+len(names) {
				return fmt.Errorf("%s:%d: unexpected row %.60q of the matrix", f.name, no, cells[0])
			}
			for i, cell := range cells[1 : 1+len(names)] {
				if i == row || names[i] == names[row] {
					continue
				}
				value, err := strconv.ParseFloat(cell, 64)
				if err != nil {
					return fmt.Errorf("%s:%d: invalid value %.20q", f.name, no, cell)
				}
				round := strconv.Itoa((i - row + len(names)) % len(names))
				if err := f.add(Measurement{From: names[row], To: names[i], Value: value * 8 * 1.048576e-3, Class: "mpiGraph", Round: round, Line: no}); err != nil {
					return err
				}
			}
			row++
		}
	}
	if row == 0 || row < len(names) {
		return fmt.Errorf("%s: the matrix Send ends within its rows", f.name)
	}
	return nil
}

// withoutRank returns the host of host:rank.
func withoutRank(s string) string {
	host, _, _ := strings.Cut(s, ":")
	return host
}

var (
	hp2pHosts  = regexp.MustCompile(`"([^"]*)"`)
	hp2pNumber = regexp.MustCompile(`-?[0-9.]+(?:[eE][-+]?\d+)?`)
)

// readHP2P reads the arrays in the page of hp2p (cea-hpc/hp2p src/hp2p_result.c): in MiB/s, row to
// column.
func (f *file) readHP2P(text string) error {
	section := func(name string) string {
		_, rest, _ := strings.Cut(text, "// "+name+" start")
		part, _, ok := strings.Cut(rest, "// "+name+" end")
		if !ok {
			return ""
		}
		_, part, _ = strings.Cut(part, "=")
		return part
	}
	var names []string
	for _, m := range hp2pHosts.FindAllStringSubmatch(section("hostlist"), maxMeasurements) {
		names = append(names, m[1])
	}
	matrix := section("bandwidth")
	numbers := hp2pNumber.FindAllString(matrix, maxMeasurements+len(names)+1)
	if len(names) == 0 || len(numbers) != len(names)*len(names) {
		return fmt.Errorf("%s: %d numbers of bandwidth for %d hosts; want a square matrix", f.name, len(numbers), len(names))
	}
	line := 1 + strings.Count(text[:strings.Index(text, "// bandwidth start")], "\n")
	for i, number := range numbers {
		from, to := names[i/len(names)], names[i%len(names)]
		value, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return fmt.Errorf("%s:%d: invalid value %.20q", f.name, line, number)
		}
		if from == to {
			continue
		}
		if err := f.add(Measurement{From: from, To: to, Value: value * 8 * 1.048576e-3, Class: "hp2p", Line: line}); err != nil {
			return err
		}
	}
	return nil
}

// readSuperBench reads the metrics of ib-traffic (microsoft/superbenchmark
// micro_benchmarks/ib_validation_performance.py): NAME_SIZE_MEMORY_ROUND_PAIR:SERVER_CLIENT:RANK
// and GB/s. The client sends; pairs of a round run at the same time.
func (f *file) readSuperBench(text string) error {
	no := 0
	for line := range strings.Lines(text) {
		no++
		m := superbenchLine.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
		if m == nil {
			continue
		}
		server, client, ok := strings.Cut(m[6], "_")
		if !ok || strings.Contains(client, "_") {
			return fmt.Errorf("%s:%d: the names of two hosts in %.60q are unclear; use a table", f.name, no, m[6])
		}
		rank, _ := strconv.Atoi(m[7])
		value, err := strconv.ParseFloat(m[8], 64)
		if err != nil || rank > 63 {
			return fmt.Errorf("%s:%d: invalid value %.20q or rank %d", f.name, no, m[8], rank)
		}
		if err := f.add(Measurement{From: client, To: server, Value: value * 8, Class: m[1] + " " + m[2] + " " + m[3], Round: m[4], Rail: rank + 1, Line: no}); err != nil {
			return err
		}
	}
	return nil
}

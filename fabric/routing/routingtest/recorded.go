package routingtest

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"embed"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/opensm"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// Recording is a run of OpenSM 3.3.23 on ibsim: its tables before and after losses. In
// testdata/opensm, CASE.txt.gz has a head, LIDs and tables; nets and options are beside it.
type Recording struct {
	Name, Engine string
	Fabric       *fabric.Fabric
	// SM is the LID of the subnet manager.
	SM     mad.LID
	States []RecordedState

	options []string
	sm      mad.GUID
	lids    map[recordedPort]mad.LID
	lmc     int
}

type recordedPort struct {
	node mad.GUID
	num  int
}

// RecordedState is the tables at some time. "before" or "start" is the first; "rerouted" were
// computed without memory.
type RecordedState struct {
	Name string
	// Down are the ports without their links, one or both ends of each; Restored reports that
	// links came up since the state before.
	Down     map[*fabric.Port]bool
	Restored bool
	Tables   map[mad.GUID][]uint8 // by switch, then LID
}

//go:embed testdata/opensm/*.gz testdata/opensm/nets/*
var recordedFiles embed.FS

const recordedDir = "testdata/opensm/"

func readRecorded(t testing.TB, name string) []byte {
	t.Helper()
	b, err := recordedFiles.ReadFile(recordedDir + name)
	if err == nil && strings.HasSuffix(name, ".gz") {
		var z *gzip.Reader
		if z, err = gzip.NewReader(bytes.NewReader(b)); err == nil {
			b, err = io.ReadAll(z)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func parseGUID(t testing.TB, text string) mad.GUID {
	t.Helper()
	n, err := strconv.ParseUint(strings.TrimPrefix(strings.TrimLeft(text, "SH-"), "0x"), 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return mad.GUID(n)
}

// Recordings reads all recorded runs.
func Recordings(t testing.TB) (list []*Recording) {
	t.Helper()
	paths, err := fs.Glob(recordedFiles, recordedDir+"*.txt.gz")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		list = append(list, readRecording(t, strings.TrimPrefix(path, recordedDir)))
	}
	return list
}

func readRecording(t testing.TB, name string) *Recording {
	t.Helper()
	r := &Recording{lids: map[recordedPort]mad.LID{}}
	number := func(text string) int {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return n
	}
	commands := map[string][]string{} // by state
	inTables := false
	lines := bufio.NewScanner(bytes.NewReader(readRecorded(t, name)))
	for lines.Scan() {
		text, _, _ := strings.Cut(lines.Text(), "   #")
		first, rest, _ := strings.Cut(text, " ")
		words := strings.Fields(text)
		switch {
		case len(words) == 0:
		case first == "case":
			r.Name = rest
		case first == "net":
			f, err := format.Load(bytes.NewReader(readRecorded(t, rest+".gz")), rest, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Fabric = f
		case first == "engine":
			r.Engine = rest
		case first == "options" && rest != "-":
			r.options = words[1:]
		case first == "sm":
			r.sm = parseGUID(t, rest)
		case first == "ibsim":
			commands["after"] = append(commands["after"], rest)
		case strings.HasPrefix(first, "step"):
			commands[first] = append(commands[first], rest)
		case first == "lids":
			r.lmc = number(words[3])
		case first == "table":
			inTables = true
			s := RecordedState{Name: words[1], Down: map[*fabric.Port]bool{}, Tables: map[mad.GUID][]uint8{}}
			if n := len(r.States); n > 0 {
				for p := range r.States[n-1].Down {
					s.Down[p] = true
				}
			}
			r.console(t, &s, commands[s.Name])
			r.States = append(r.States, s)
		case inTables:
			row := []uint8{mad.NoPort}
			for _, word := range words[2:] {
				port := mad.NoPort
				if word != "-" {
					port = number(word)
				}
				row = append(row, uint8(port))
			}
			r.States[len(r.States)-1].Tables[parseGUID(t, words[0])] = row
		case len(words) == 5:
			at, lid := recordedPort{parseGUID(t, words[2]), number(words[3])}, mad.LID(number(words[0]))
			r.lids[at] = lid
			if at.node == r.sm && (r.SM == 0 || lid < r.SM) {
				r.SM = lid
			}
		}
	}
	return r
}

// console applies commands of ibsim's console: Unlink "S-GUID"[PORT], or without a port, all.
func (r *Recording) console(t testing.TB, s *RecordedState, commands []string) {
	t.Helper()
	for _, c := range commands {
		words := strings.SplitN(c, `"`, 3)
		num, err := strconv.Atoi(strings.Trim(words[2], "[]"))
		for p := range r.Fabric.NodeByGUID(parseGUID(t, words[1]))[0].Ports() {
			switch {
			case p.Peer() == nil || err == nil && p.Num() != num:
			case strings.HasPrefix(c, "ReLink"):
				delete(s.Down, p)
				delete(s.Down, p.Peer())
				s.Restored = true
			default:
				s.Down[p] = true
			}
		}
	}
}

// Settings returns the options of the run; cache: with OpenSM's cache of routes. Engines that are not
// modelled are among them.
func (r *Recording) Settings(t testing.TB) (o opensm.Settings, cache bool) {
	t.Helper()
	o.Engines = []string{r.Engine}
	value := func(i int) string { return r.options[i+1] }
	for i, option := range r.options {
		switch option {
		case "-A":
			cache = true
		case "-a":
			for word := range strings.FieldsSeq(string(readRecorded(t, value(i)))) {
				o.Roots = append(o.Roots, parseGUID(t, word))
			}
		case "--scatter-ports":
			n, _ := strconv.Atoi(value(i))
			o.Scatter = uint32(n)
		case "-F":
			o.TooFewLanes = strings.Contains(value(i), "maxvl1")
		}
	}
	return o, cache
}

// LIDs returns the LIDs of an end port: the first, and the LMC.
func (r *Recording) LIDs(p *fabric.Port) (lid mad.LID, lmc int) {
	lid = r.lids[recordedPort{p.Node().GUID(), p.Num()}]
	if p.Node().IsSwitch() {
		return lid, 0
	}
	return lid, r.lmc
}

// Graph returns the graph of a state.
func (r *Recording) Graph(t testing.TB, s *RecordedState) *graph.Graph {
	t.Helper()
	g, err := graph.New(r.Fabric, graph.BuildOptions{LIDs: r.LIDs, Exclude: func(p *fabric.Port) bool { return s.Down[p] }})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Routes returns the tables of a state, for the graph of a state.
func (r *Recording) Routes(g *graph.Graph, s *RecordedState) *routes.Routes {
	tables := routes.New(g, 0)
	for i, n := range g.Switches() {
		copy(tables.Row(i), s.Tables[n.GUID()])
	}
	return tables
}

// Network returns the network of a state that the subnet manager reaches.
func (r *Recording) Network(s *RecordedState) *opensm.Network {
	n, _ := opensm.Of(r.Fabric, r.SM, func(p *fabric.Port) bool { return !s.Down[p] && !s.Down[p.Peer()] }, func(p *fabric.Port) (mad.LID, int) {
		lid, lmc := r.LIDs(p)
		if lid == 0 {
			return 0, 0
		}
		return lid, 1 << lmc
	})
	part, _, _ := n.Reached()
	return part
}

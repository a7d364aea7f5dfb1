package format

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// Limits of archives and directories.
const (
	maxArchive      = 1 << 30  // bytes of an archive, packed and unpacked
	maxMembers      = 1 << 14  // files
	maxMemberMemory = 96 << 20 // bytes of the files that are read, which are kept packed
	maxDirDepth     = 8
)

// LoadDir reads a fabric from the files of a directory, as Load reads it from an archive.
func LoadDir(dir fs.FS, name string, open Opener) (*fabric.Fabric, error) {
	g := gathering{name: name, nested: true}
	err := fs.WalkDir(dir, ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && p == ".":
			return FileError(err)
		case err != nil:
			g.leaveOut(p, FileError(err).Error())
			return nil
		case d.IsDir() && strings.Count(p, "/") >= maxDirDepth:
			g.leaveOut(p, "too deep")
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		return g.add(p, d.Type(), func() (io.ReadCloser, error) { return dir.Open(p) })
	})
	if err != nil {
		return nil, err
	}
	topology := slices.ContainsFunc(g.members, func(m member) bool { return m.format.load != nil && !m.format.beside })
	g.nested = false
	for _, p := range g.archives {
		if topology {
			g.leaveOut(p, "an archive; the topology is read from the files beside it")
		} else if err := g.addArchive(p, dir); err != nil {
			return nil, err
		}
	}
	return g.load(open)
}

// addArchive takes the files of an archive in a directory.
func (g *gathering) addArchive(p string, dir fs.FS) error {
	r, err := dir.Open(p)
	if err != nil {
		return FileError(err)
	}
	defer r.Close()
	in, err := plainBytes(&meter{r, g}, path.Join(g.name, p), maxArchive)
	if err != nil {
		return err
	}
	g.within = p + "/"
	defer func() { g.within = "" }()
	if !isZip(in) {
		return g.addTar(in)
	}
	_, z, err := readZip(in, path.Join(g.name, p))
	switch {
	case err != nil:
		return err
	case isWorkbook(z):
		g.within = ""
		g.leaveOut(p, "a workbook; name it alone")
		return nil
	}
	return g.addZip(z)
}

// isTar reports whether a file is a tar archive (POSIX ustar, GNU).
func isTar(in *bufio.Reader) bool {
	head, _ := in.Peek(263) // the next read meets an error again
	return len(head) == 263 && string(head[257:262]) == "ustar"
}

// isZip reports whether a file is a zip archive.
func isZip(in *bufio.Reader) bool {
	head, _ := in.Peek(4)
	return string(head) == "PK\x03\x04"
}

// loadTar reads a fabric from the files of a tar archive.
func loadTar(in io.Reader, name string, open Opener) (*fabric.Fabric, error) {
	g := gathering{name: name}
	if err := g.addTar(in); err != nil {
		return nil, err
	}
	return g.load(open)
}

// addTar takes the files of a tar archive.
func (g *gathering) addTar(in io.Reader) error {
	name := path.Join(g.name, g.within)
	for t := tar.NewReader(in); ; {
		h, err := t.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && strings.HasPrefix(err.Error(), name+":"): // of the packing, or a limit
			return err
		case err != nil:
			return fmt.Errorf("%s: the archive is damaged or cut short: %w", name, err)
		}
		mode := h.FileInfo().Mode().Type()
		if h.Typeflag == tar.TypeLink {
			mode = fs.ModeSymlink
		}
		if mode.IsDir() {
			continue
		}
		if err := g.add(h.Name, mode, func() (io.ReadCloser, error) { return io.NopCloser(t), nil }); err != nil {
			return err
		}
	}
}

// loadZip reads a fabric from the files of a zip archive, or a plan from a workbook, which is one.
func loadZip(in io.Reader, name string, open Opener) (*fabric.Fabric, error) {
	data, z, err := readZip(in, name)
	if err != nil {
		return nil, err
	}
	if isWorkbook(z) {
		b := newPlanBook(name, PlanOptions{})
		b.start(KindPlan, name)
		if err := b.workbook(data); err != nil {
			return nil, err
		}
		return b.fabric()
	}
	g := gathering{name: name}
	if err := g.addZip(z); err != nil {
		return nil, err
	}
	return g.load(open)
}

// readZip reads a zip archive into memory: its index is at the end.
func readZip(in io.Reader, name string) ([]byte, *zip.Reader, error) {
	in, err := Bounded(in, name, maxTopology)
	if err != nil {
		return nil, nil, err
	}
	data, err := io.ReadAll(in)
	if err != nil {
		return nil, nil, err
	}
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // add refuses the path
		return nil, nil, fmt.Errorf("%s: the archive is damaged or cut short: %w", name, err)
	}
	return data, z, nil
}

// addZip takes the files of a zip archive.
func (g *gathering) addZip(z *zip.Reader) error {
	for _, f := range z.File {
		if f.Mode().IsDir() {
			continue
		}
		if err := g.add(f.Name, f.Mode().Type(), func() (io.ReadCloser, error) { return f.Open() }); err != nil {
			return err
		}
	}
	return nil
}

// gathering is the files of an archive or a directory.
type gathering struct {
	name    string // of the archive, for messages
	within  string // the archive in a directory whose files are added, and a slash
	count   int    // of files
	total   int64  // bytes
	memory  int64  // bytes of members
	members []member
	leftOut []string        // files that are not read, and why
	seen    map[string]bool // paths
	// archives are those in a directory. They are read if no other file is a topology.
	archives []string
	nested   bool // archives may be among the files
}

// member is a file that is read.
type member struct {
	path   string // in the archive
	format *fileFormat
	data   []byte           // packed by zstd
	notes  []fabric.Problem // of what was removed from the text
}

// leaveOut notes a file that is not read.
func (g *gathering) leaveOut(p, why string) {
	g.leftOut = append(g.leftOut, fmt.Sprintf("%s (%s)", plainPath(p), why))
}

// plainPath is the path of a file for messages.
func plainPath(p string) string {
	if strings.ContainsFunc(p, func(r rune) bool { return r < ' ' || r > '~' }) {
		p = fmt.Sprintf("%+q", p)
	}
	return fabric.Clip(p)
}

// add takes a file. It fails where the archive as a whole is refused.
func (g *gathering) add(p string, mode fs.FileMode, open func() (io.ReadCloser, error)) error {
	p = strings.TrimPrefix(p, "./")
	if g.count++; g.count > maxMembers {
		return fmt.Errorf("%s: expected at most %d files", g.name, maxMembers)
	}
	switch {
	case !filepath.IsLocal(p):
		return fmt.Errorf("%s: the path of a file leads out of the archive: %s; refused", path.Join(g.name, g.within), plainPath(p))
	}
	p = g.within + p
	if g.seen[p] { // as in an archive that was appended to
		g.members = slices.DeleteFunc(g.members, func(m member) bool { return m.path == p })
		g.leaveOut(p, "the archive has it several times; the last is read")
	}
	if g.seen == nil {
		g.seen = map[string]bool{}
	}
	g.seen[p] = true
	switch {
	case mode&fs.ModeSymlink != 0:
		g.leaveOut(p, "a link")
		return nil
	case !mode.IsRegular():
		g.leaveOut(p, "not a regular file")
		return nil
	}
	if why, ok := unreadFile(path.Base(p)); ok {
		if why != "" {
			g.leaveOut(p, why)
		}
		return nil
	}
	r, err := open()
	if err != nil {
		g.leaveOut(p, FileError(err).Error())
		return nil
	}
	defer r.Close()
	if f, ok := r.(fs.File); ok { // what was listed as a regular file may have become another
		if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
			g.leaveOut(p, "not a regular file")
			return nil
		}
	}
	in, err := plainBytes(&meter{r, g}, path.Join(g.name, p), maxTopology)
	if err != nil {
		g.leaveOut(p, err.Error())
		return nil
	}
	if isTar(in) || isZip(in) {
		if g.nested {
			g.archives = append(g.archives, p)
		} else {
			g.leaveOut(p, "an archive in an archive; unpack it")
		}
		return nil
	}
	if head, _ := in.Peek(1); len(head) == 0 {
		if _, err := in.ReadByte(); errors.Is(err, io.EOF) {
			g.leaveOut(p, "empty")
			return nil
		}
	}
	var notes []fabric.Problem
	text, f := sniffFile(cleaned(utf8Text(in, path.Join(g.name, p)), path.Join(g.name, p), func(kind fabric.ProblemKind, text string) {
		notes = append(notes, fabric.Problem{Kind: kind, Text: text})
	}))
	if f == nil { // a capture of a terminal with tables
		head, _ := text.Peek(sniffSize)
		f = findPreamble(head, p, (*fileFormat).isTable).format
	}
	if suffix, ok := strings.CutPrefix(strings.TrimSuffix(path.Base(p), ".gz"), "ibdiagnet2."); ok && runFiles()[suffix] != nil {
		f = runFiles()[suffix]
	}
	if f == &ibdiagnetDB && strings.HasSuffix(strings.TrimSuffix(path.Base(p), ".gz"), "smdb.dump") {
		f = &managerDump
	}
	switch {
	case f == nil:
		g.leaveOut(p, "unknown format")
		return nil
	case f.load == nil && f.answers == nil && !f.isTable():
		g.leaveOut(p, f.about+": not used")
		return nil
	}
	data, err := g.pack(text)
	switch {
	case g.total > maxArchive:
		return fmt.Errorf("%s: expected at most %d MB of files", g.name, int64(maxArchive)>>20)
	case g.memory > maxMemberMemory:
		return fmt.Errorf("%s: expected at most %d MB of topologies and tables, packed", g.name, maxMemberMemory>>20)
	case err != nil:
		g.leaveOut(p, err.Error())
		return nil
	}
	g.members = append(g.members, member{p, f, data, notes})
	return nil
}

// isTable reports whether a format has tables that are read from an archive.
func (f *fileFormat) isTable() bool {
	return f.lfts != nil || f.fars != nil || f.mfts != nil || f.sl2vls != nil
}

// pack returns a file, packed: the tables of a large fabric are hundreds of megabytes of text.
func (g *gathering) pack(in io.Reader) ([]byte, error) {
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<20))
	if err != nil {
		return nil, err
	}
	for err == nil && g.memory+int64(b.Len()) <= maxMemberMemory {
		_, err = io.CopyN(z, in, 1<<20)
	}
	if e := z.Close(); errors.Is(err, io.EOF) {
		err = e
	}
	g.memory += int64(b.Len())
	return b.Bytes(), err
}

// meter counts the bytes that are read from the files of a gathering, and ends at its limit.
type meter struct {
	io.Reader
	g *gathering
}

func (m *meter) Read(b []byte) (int, error) {
	if m.g.total > maxArchive {
		return 0, errors.New("the archive is too large")
	}
	n, err := m.Reader.Read(b)
	m.g.total += int64(n)
	return n, err
}

// The files of a run of ibdiagnet (ibdiagnet2.SUFFIX), and of a directory of OpenSM, that are not
// read, and why.
var (
	unreadSuffixes = map[string]string{
		"log":           "a log; its findings are in ibdiagnet2.db_csv",
		"net_dump":      "links are read from the topology",
		"net_dump_agg":  "links are read from the topology",
		"iblinkinfo":    "links are read from the topology",
		"pm_agg":        "the counters are in ibdiagnet2.db_csv",
		"mlnx_cntrs":    "the format is not public",
		"pkey":          "it lacks the indices of P_Keys, which ibdiagnet2.db_csv has",
		"vports":        "the same is in ibdiagnet2.db_csv",
		"vports_pkey":   "the same is in ibdiagnet2.db_csv",
		"aguid":         "the format is not public",
		"slvl":          "the format is not public",
		"vl2vl":         "the format is not public",
		"ar":            "the format is not public",
		"plft":          "the format is not public",
		"flid":          "the format is not public",
		"far_flid":      "the format is not public",
		"arg2flid":      "the format is not public",
		"port_hi":       "the format is not public",
		"sharp":         "the format is not public",
		"sharp_an_info": "settings of aggregation nodes are not used",
		"sharp_pm":      "the format is not public",
		"rails":         "the format is not public",
		"aports":        "the format is not public",
		"dfp":           "the format is not public",
		"fat_tree":      "the format is not public",
		"debug":         "a log",
		"ibis":          "a log",
		"pcap":          "a recording: use -F replay:",
	}
	unreadNames = map[string]string{
		"guid2mkey": "keys", "guid2vskey": "keys", "guid2cckey": "keys", "guid2_m2n_key": "keys", "guid2pmkey": "keys",
		"neighbors":  "links are read from the topology",
		"opensm.log": "a log", "opensm.conf": "settings", "partitions.conf": "settings, which audit partitions --partitions compares", "topodiff.names": "not used",
	}
)

// unreadFile reports whether the file of that name is not read, and why; "": it is not worth a note.
func unreadFile(base string) (why string, ok bool) {
	base = strings.TrimSuffix(base, ".gz")
	if suffix, ok := strings.CutPrefix(base, "ibdiagnet2."); ok {
		why, ok = unreadSuffixes[suffix]
		return why, ok
	}
	if strings.HasPrefix(base, ".") {
		return "", true
	}
	why, ok = unreadNames[base]
	return why, ok
}

// topologyOrder is the order in which topologies are preferred, by what they hold.
var topologyOrder = []FormatName{KindSnapshot, KindDBCSV, KindCache, KindIbnetdiscover, KindSubnet}

func topologyRank(f *fileFormat) int {
	if i := slices.Index(topologyOrder, f.kind); i >= 0 {
		return i
	}
	return len(topologyOrder) + slices.Index(formats, f)
}

// load reads the fabric from the best topology, and adds the tables of the other files.
func (g *gathering) load(open Opener) (*fabric.Fabric, error) {
	slices.SortStableFunc(g.members, func(a, b member) int { return strings.Compare(a.path, b.path) })
	var best *member
	folders := map[string]bool{}
	plansOnly := g.plansOnly()
	for i := range g.members {
		m := &g.members[i]
		if m.format.load == nil || m.format.beside || m.format.plan != nil && !plansOnly {
			continue
		}
		folders[path.Dir(m.path)] = true
		if best == nil || topologyRank(m.format) < topologyRank(best.format) {
			best = m
		}
	}
	switch {
	case best == nil:
		slices.Sort(g.leftOut)
		return nil, fmt.Errorf("%s: no topology among its %s; expected ibdiagnet2.db_csv, opensm-subnet.lst, or what ibnetdiscover or iblinkinfo print; not read: %s", g.name, plural.Count(g.count, "file", "files"), cmp.Or(g.listed(), "none"))
	case len(folders) > 1:
		var names []string
		for dir := range folders {
			names = append(names, plainPath(dir))
		}
		slices.Sort(names)
		return nil, fmt.Errorf("%s: topologies in %d folders: %s; unpack it, and name one of them", g.name, len(names), some(names))
	}
	if best.format.plan != nil {
		return g.loadPlan()
	}
	f, err := Load(bytes.NewReader(best.data), path.Join(g.name, best.path), open)
	if err != nil {
		return nil, err
	}
	best.data = nil
	t := archiveTables{gathering: g, f: f, problems: best.notes}
	for i := range g.members {
		if m := &g.members[i]; m != best {
			t.add(m, best)
			m.data = nil
		}
	}
	return t.fabric(), nil
}

// plansOnly reports whether no file is a topology other than a plan of cables.
func (g *gathering) plansOnly() bool {
	return !slices.ContainsFunc(g.members, func(m member) bool { return m.format.load != nil && !m.format.beside && m.format.plan == nil })
}

// plans returns the files that are plans of cables; the others are not read.
func (g *gathering) plans() (files []PlanFile) {
	slices.SortStableFunc(g.members, func(a, b member) int { return strings.Compare(a.path, b.path) })
	for i := range g.members {
		if m := &g.members[i]; m.format.plan != nil {
			files = append(files, PlanFile{m.path, bytes.NewReader(m.data)})
		} else {
			g.leaveOut(m.path, m.format.about+": not a plan of cables")
		}
	}
	return files
}

// notRead is the problem that names the files that are not read; nil: all are read.
func (g *gathering) notRead() []fabric.Problem {
	if len(g.leftOut) == 0 {
		return nil
	}
	slices.Sort(g.leftOut)
	return []fabric.Problem{{Kind: fabric.ProblemLeftOut, Text: g.name + ": not read: " + g.listed()}}
}

// loadPlan reads the files as one plan of cables.
func (g *gathering) loadPlan() (*fabric.Fabric, error) {
	f, err := LoadPlan(g.plans(), PlanOptions{}, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", g.name, err)
	}
	return withProblems(f, g.notRead()), nil
}

// listed lists files that are not read; "": none.
func (g *gathering) listed() string {
	if len(g.leftOut) == 0 {
		return ""
	}
	const most = 40
	list := g.leftOut
	if len(list) > most {
		list = append(slices.Clone(list[:most]), fmt.Sprintf("and %d more", len(list)-most))
	}
	return strings.Join(list, ", ")
}

// archiveTables adds the tables of files to a fabric.
type archiveTables struct {
	*gathering
	f        *fabric.Fabric
	lfts     [][]byte
	lftsFrom *fileFormat // the format of the tables
	adaptive []*adaptive.Switch
	answers  []fabric.Answer
	began    time.Time // reading the counters among them
	problems []fabric.Problem
	notes    []string
}

// add reads a file with tables. What cannot be read is noted.
func (t *archiveTables) add(m, best *member) {
	name := path.Join(t.name, m.path)
	in, err := plainBytes(bytes.NewReader(m.data), name, maxTopology)
	switch f := m.format; {
	case err != nil:
	case f.load != nil && !f.beside:
		t.leaveOut(m.path, "the topology is read from "+plainPath(path.Base(best.path)))
		return
	case f.same != nil && f.same(t.f):
		t.leaveOut(m.path, "the same is in "+plainPath(path.Base(best.path)))
		return
	case f.answers != nil:
		var r fabric.Reading
		in = bufio.NewReaderSize(in, 1<<14)
		head, _ := in.Peek(1 << 14)
		head = bytes.Clone(head) // the buffer is reused
		if r, err = f.answers(in, name, t.f); err == nil && f != &guid2LID && len(r.Answers)+len(r.Problems) == 0 {
			err = fmt.Errorf("%s: no records are in it", name)
		}
		if err = explained(err, head); err == nil {
			t.answers = append(t.answers, r.Answers...)
			t.problems = append(t.problems, r.Problems...)
			if t.began.IsZero() {
				t.began = r.CountersRead
			}
		}
	case f.lfts != nil && (t.f.HasLFTs() || t.lftsFrom != nil && t.lftsFrom != f):
		t.leaveOut(m.path, "forwarding tables are read from another file")
		return
	case f.lfts != nil:
		t.lftsFrom = f
		err = t.addLFTs(in, name)
	case f.fars != nil:
		err = t.addFARs(in, name)
	case f.mfts != nil:
		err = t.addMFTs(in, name)
	default:
		err = t.addSL2VLs(in, name)
	}
	if err != nil {
		t.leaveOut(m.path, strings.TrimPrefix(err.Error(), path.Join(t.name, path.Dir(m.path))+"/"))
		return
	}
	t.problems = append(t.problems, m.notes...)
}

func (t *archiveTables) addLFTs(in io.Reader, name string) error {
	rows := make([][]byte, len(t.f.Nodes()))
	notes, err := ReadLFTs(&Capture{Reader: in, Note: t.note}, name, t.f, func(sw *fabric.Node) []byte {
		row := bytes.Repeat([]byte{mad.NoPort}, unicastLIDCount)
		rows[sw.ID()] = row
		return row
	})
	if err != nil {
		return err
	}
	for id, row := range rows {
		if t.lfts != nil && row != nil && t.lfts[id] != nil && !bytes.Equal(row[:len(t.lfts[id])], t.lfts[id]) {
			return fmt.Errorf("%s: its table of %s differs from that of another file", name, t.f.Nodes()[id].Label())
		}
	}
	t.notes = append(t.notes, notes...)
	if t.lfts == nil {
		t.lfts = make([][]byte, len(t.f.Nodes()))
	}
	for id, row := range rows {
		if row != nil {
			top := len(row)
			for top > 0 && row[top-1] == mad.NoPort {
				top--
			}
			t.lfts[id] = slices.Clone(row[:top])
		}
	}
	return nil
}

func (t *archiveTables) note(text string) { t.notes = append(t.notes, text) }

func (t *archiveTables) addFARs(in io.Reader, name string) error {
	list := make([]*adaptive.Switch, len(t.f.Nodes()))
	for far, err := range FARs(&Capture{Reader: in, Note: t.note}, name) {
		if err != nil {
			return err
		}
		n, err := far.Find(t.f)
		if err != nil {
			return err
		}
		if err := far.Check(n); err != nil {
			return err
		}
		list[n.ID()] = far.Switch()
	}
	t.adaptive = list
	return nil
}

// addMFTs makes blocks of MulticastForwardingTable of the tables.
func (t *archiveTables) addMFTs(in io.Reader, name string) error {
	const lids, ports = 32, 16 // of a block (IBA 14.2.5.12)
	attr := mad.AttrMulticastForwardingTable
	var answers []fabric.Answer
	for x, err := range MFTs(&Capture{Reader: in, Note: t.note}, name) {
		if err != nil {
			return err
		}
		n, err := x.Find(t.f)
		if err != nil {
			return err
		}
		blocks := map[uint32][]byte{}
		for _, e := range x.Entries {
			at := int(e.MLID - mad.MinMulticastLID)
			for _, port := range e.Ports {
				if e.MLID < mad.MinMulticastLID || int(port) > n.NumPorts() {
					return fmt.Errorf("%s: expected a multicast LID and ports that %s has, not port %d of LID %d", x.Position(), n.Label(), port, e.MLID)
				}
				modifier := uint32(port/ports)<<28 | uint32(at/lids)
				if blocks[modifier] == nil {
					blocks[modifier] = make([]byte, attr.Size)
				}
				f := &attr.Flat()[0]
				f.SetUintAt(blocks[modifier], at%lids, f.UintAt(blocks[modifier], at%lids)|1<<(port%ports))
			}
		}
		for modifier, data := range blocks {
			answers = append(answers, fabric.Answer{Node: int32(n.ID()), Port: fabric.NoPort, Class: attr.Class, ID: attr.ID, Modifier: modifier, Data: data})
		}
	}
	t.answers = append(t.answers, answers...)
	return nil
}

func (t *archiveTables) addSL2VLs(in io.Reader, name string) error {
	attr := mad.AttrSLtoVLMappingTable
	var answers []fabric.Answer
	for x, err := range SL2VLs(&Capture{Reader: in, Note: t.note}, name) {
		if err != nil {
			return err
		}
		n, err := x.Find(t.f)
		if err != nil {
			return err
		}
		if max(x.In, x.Out) > n.NumPorts() {
			return fmt.Errorf("%s: expected ports from 0 to %d, which %s has, not %d", x.Position(), n.NumPorts(), n.Label(), max(x.In, x.Out))
		}
		a := fabric.Answer{Node: int32(n.ID()), Port: int16(x.Out), Class: attr.Class, ID: attr.ID, Modifier: uint32(x.In)<<8 | uint32(x.Out), Data: make([]byte, attr.Size)}
		if !n.IsSwitch() {
			a.Modifier = 0
		}
		row := mad.SLtoVLMappingTable{SLtoVL: x.VLs}
		row.Encode(a.Data)
		answers = append(answers, a)
	}
	t.answers = append(t.answers, answers...)
	return nil
}

// fabric returns the fabric with the tables, and the problem that lists what was not read.
func (t *archiveTables) fabric() *fabric.Fabric {
	r := fabric.Reading{LFTs: t.lfts, Adaptive: t.adaptive}
	if len(t.answers) > 0 {
		var other int
		r.Answers, other = replacing(t.f.Answers(), t.answers)
		r.CountersRead = t.f.CountersRead()
		if other > 0 {
			t.notes = append(t.notes, fmt.Sprintf("%s: counters of %s are in several files with other values; the last file, by its name, is read", t.name, plural.Count(other, "port", "ports")))
		}
		if r.CountersRead.IsZero() {
			r.CountersRead = t.began
		}
	}
	r.Problems = t.problems
	for _, text := range t.notes {
		r.Problems = append(r.Problems, fabric.Problem{Kind: fabric.ProblemLeftOut, Text: text})
	}
	if n := len(t.leftOut); n > 0 {
		slices.Sort(t.leftOut)
		r.Problems = append(r.Problems, fabric.Problem{Kind: fabric.ProblemLeftOut,
			Text: fmt.Sprintf("%s: %s not read: %s", t.name, plural.Count(n, "file was", "files were"), t.listed())})
	}
	return t.f.With(r)
}

// replacing returns answers, in which those of more replace those of the same node, port, attribute,
// modifier and, of a register, selection. Of several in more the last counts; capabilities of an agent add up.
// other counts the ports whose PortCounters are among them several times, with other values.
func replacing(answers, more []fabric.Answer) (kept []fabric.Answer, other int) {
	all := slices.Concat(answers, more)
	selected := func(a fabric.Answer) []byte {
		if a.Class != mad.ClassVendor0A || a.ID != mad.AttrAccessRegister.ID || a.Modifier > 0xffff {
			return nil
		}
		layout := mad.LookupRegister(uint16(a.Modifier))
		if layout == nil || len(a.Data) < layout.Size {
			return nil
		}
		key := make([]byte, layout.Size)
		for _, f := range layout.Fields {
			if !f.ReadOnly && f.Type != mad.FieldTypeStruct && f.Bits <= 64 && f.Count == 1 {
				f.SetUint(key, f.Uint(a.Data))
			}
		}
		return key
	}
	compare := func(a, b fabric.Answer) int {
		if a.Node == fabric.NoNode && b.Node == fabric.NoNode { // records, of which there are many
			return cmp.Or(cmp.Compare(a.ID, b.ID), bytes.Compare(a.Data, b.Data))
		}
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Class, b.Class), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Modifier, b.Modifier), bytes.Compare(selected(a), selected(b)))
	}
	slices.SortStableFunc(all, compare)
	kept = all[:0]
	for _, a := range all {
		if n := len(kept); n == 0 || compare(kept[n-1], a) != 0 {
			kept = append(kept, a)
		} else {
			if a.Class == mad.ClassPerf && a.ID == mad.AttrPortCounters.ID && !bytes.Equal(kept[n-1].Data, a.Data) {
				other++
			}
			kept[n-1] = merged(kept[n-1], a)
		}
	}
	return kept, other
}

// merged returns the later of two answers to one request; of ClassPortInfo, with the capabilities of both.
func merged(a, b fabric.Answer) fabric.Answer {
	if b.Class == mad.ClassPerf && b.ID == mad.AttrPerfClassPortInfo.ID && len(a.Data) >= mad.AttrPerfClassPortInfo.Size && len(b.Data) >= mad.AttrPerfClassPortInfo.Size {
		var x, y mad.ClassPortInfo
		x.Decode(a.Data)
		y.Decode(b.Data)
		y.CapabilityMask |= x.CapabilityMask
		y.CapabilityMask2 |= x.CapabilityMask2
		b.Data = slices.Clone(b.Data)
		y.Encode(b.Data)
	}
	return b
}

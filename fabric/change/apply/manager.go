package apply

import (
	"bufio"
	"cmp"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"fabsh/fabric/change"
	"fabsh/fabric/format"
	"fabsh/fabric/routing/opensm"
	"fabsh/mad"
)

// managerLog is the log of OpenSM (opensm osm_base.h, OSM_DEFAULT_LOG_FILE), of which the last
// maxLog bytes are read.
const (
	managerLog = "/var/log/opensm.log"
	maxLog     = 1 << 20
	// noFallback in routing_engine keeps the tables where the engines fail.
	noFallback = "no_fallback"
)

// LocalManagerRouting returns the routing of the OpenSM that runs on this host, by its
// command line and its configuration, or else by its log. Nothing is known if no process or
// several have its name.
func LocalManagerRouting() change.ManagerRouting {
	return managerRouting(proc, managerLog)
}

func managerRouting(proc, log string) (m change.ManagerRouting) {
	names, _ := filepath.Glob(filepath.Join(proc, "[0-9]*", "comm"))
	var dirs []string
	for _, name := range names {
		if b, err := os.ReadFile(name); err == nil && strings.TrimSpace(string(b)) == "opensm" {
			dirs = append(dirs, filepath.Dir(name))
		}
	}
	if len(dirs) != 1 {
		return m
	}
	cwd := filepath.Join(dirs[0], "cwd")
	open := func(path string) (io.ReadCloser, error) { return format.OpenRegular(pathFrom(cwd, path)) }
	line, err := os.ReadFile(filepath.Join(dirs[0], "cmdline"))
	if err != nil {
		return m
	}
	set, err := settingsOf(strings.Split(strings.TrimRight(string(line), "\x00"), "\x00"), open)
	if err != nil {
		return fromLog(log)
	}
	engines := strings.Split(strings.ReplaceAll(set["routing_engine"], " ", ""), ",")
	tried := slices.DeleteFunc(slices.Clone(engines), func(name string) bool { return name == noFallback })
	if m.Engines, err = change.ParseManagerEngine(strings.Join(tried, ",")); err != nil {
		return fromLog(log)
	}
	m.Source = "the configuration of OpenSM"
	if m.Engines == nil {
		if logged := fromLog(log); logged.Engines != nil {
			return logged
		}
		if set["config"] == "" {
			return change.ManagerRouting{}
		}
		m.Engines = []string{opensm.MinHop} // its default
	}
	m.Options = &change.ManagerOptions{
		Shifting: isTrue(set["port_shifting"]), ConnectRoots: isTrue(set["connect_roots"]), Cache: isTrue(set["use_ucast_cache"]),
		Unmodelled: opensm.Unmodelled(m.Engines, func(name string) bool { return set[name] != "" || name == noFallback && slices.Contains(engines, name) }),
	}
	scatter, scatterErr := strconv.ParseUint(cmp.Or(set["scatter_ports"], "0"), 0, 32)
	roots, rootsErr := readGUIDs(open, set["root_guid_file"])
	order, orderErr := readGUIDs(open, set["guid_routing_order_file"])
	if cmp.Or(scatterErr, rootsErr, orderErr) != nil {
		m.Options = nil
		return m
	}
	m.Options.Scatter, m.Options.Roots, m.Options.Order = uint32(scatter), roots, order
	return m
}

func isTrue(text string) bool { return strings.EqualFold(text, "TRUE") }

// readGUIDs reads a file with a GUID at the beginning of each line; nil: path is "".
func readGUIDs(open func(path string) (io.ReadCloser, error), path string) ([]mad.GUID, error) {
	if path == "" {
		return nil, nil
	}
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	guids := []mad.GUID{}
	lines := bufio.NewScanner(io.LimitReader(f, maxConfig))
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) == 0 {
			continue
		}
		if guid, err := strconv.ParseUint(words[0], 0, 64); err == nil {
			guids = append(guids, mad.GUID(guid))
		}
	}
	return guids, lines.Err()
}

// fromLog returns the engine that OpenSM last logged.
func fromLog(path string) (m change.ManagerRouting) {
	f, err := format.OpenRegular(path)
	if err != nil {
		return m
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return m
	}
	lines := bufio.NewScanner(io.LimitReader(f, maxLog))
	lines.Buffer(nil, maxLog+1)
	if st.Size() > maxLog {
		if _, err := f.Seek(-maxLog, io.SeekEnd); err != nil {
			return m
		}
		lines.Scan() // the rest of a line
	}
	for lines.Scan() {
		before, _, found := strings.Cut(lines.Text(), " tables configured on all switches")
		if !found {
			continue
		}
		name := before[strings.LastIndexByte(before, ' ')+1:]
		if engines, err := change.ParseManagerEngine(name); err == nil && engines != nil {
			m.Engines, m.Source = engines, path
		}
	}
	if lines.Err() != nil {
		return change.ManagerRouting{}
	}
	return m
}

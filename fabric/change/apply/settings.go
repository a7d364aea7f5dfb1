package apply

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"fabsh/fabric/format"
)

// settings are the settings of OpenSM that determine its routing.
type settings struct{ engine, lfts, config string }

// maxConfig bounds what is read of the configuration, in bytes.
const maxConfig = 16 << 20

// defaultConfig is OpenSM's where its command line names none (Debian, RHEL;
// opensm main.c, OSM_DEFAULT_CONFIG_FILE).
const defaultConfig = "/etc/opensm/opensm.conf"

// CheckTables returns nil if OpenSM, which p is, takes its tables from the file alone,
// else the reason why it does not.
func (p *OpenSM) CheckTables(file string) error {
	dir := filepath.Join(proc, strconv.Itoa(p.pid))
	line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
	if err != nil {
		return err
	}
	cwd := filepath.Join(dir, "cwd")
	set, err := settingsOf(strings.Split(strings.TrimRight(string(line), "\x00"), "\x00"), func(path string) (io.ReadCloser, error) {
		return format.OpenRegular(within(cwd, path))
	})
	if err != nil {
		return err
	}
	const configure = "start OpenSM with -R file,no_fallback -U FILE, or set routing_engine file,no_fallback and lfts_file FILE in its configuration"
	switch {
	case set.engine == "":
		return fmt.Errorf("%v routes by its default engine, not by a file; %s", p, configure)
	case set.engine != "file,no_fallback":
		return fmt.Errorf("%v routes by %q; %s", p, set.engine, configure)
	case set.lfts == "":
		return fmt.Errorf("%v has no file of tables; %s", p, configure)
	}
	theirs, err := os.Stat(within(cwd, set.lfts))
	if err != nil {
		return fmt.Errorf("the file of tables that %v reads: %w", p, format.FileError(err))
	}
	ours, err := os.Stat(file)
	if err != nil {
		return format.FileError(err)
	}
	if !os.SameFile(theirs, ours) {
		return fmt.Errorf("%v reads %s, not %s", p, set.lfts, file)
	}
	return nil
}

// within is path as a process sees it that works in dir.
func within(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// settingsOf are those of a command line of OpenSM, whose options go before its
// configuration (opensm main.c).
func settingsOf(args []string, open func(path string) (io.ReadCloser, error)) (settings, error) {
	var line settings
	flags := map[string]*string{
		"-R": &line.engine, "--routing_engine": &line.engine,
		"-U": &line.lfts, "--lfts_file": &line.lfts,
		"-F": &line.config, "--config": &line.config,
	}
	for i := 1; i < len(args); i++ {
		name, value, hasValue := strings.Cut(args[i], "=")
		to := flags[name]
		switch {
		case to != nil && strings.HasPrefix(name, "--") && hasValue:
			*to = value
		case to != nil && !hasValue && i+1 < len(args):
			i++
			*to = args[i]
		case len(args[i]) > 2 && flags[args[i][:2]] != nil:
			*flags[args[i][:2]] = args[i][2:]
		}
	}
	named := line.config != ""
	if !named {
		line.config = defaultConfig
	}
	f, err := open(line.config)
	if err != nil {
		if !named && errors.Is(err, os.ErrNotExist) {
			return line, nil
		}
		if line.engine != "" && line.lfts != "" {
			return line, nil // nothing in it counts
		}
		return line, fmt.Errorf("the configuration of OpenSM: %w", format.FileError(err))
	}
	defer f.Close()
	var file settings
	lines := bufio.NewScanner(io.LimitReader(f, maxConfig))
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 2 {
			continue
		}
		switch words[0] {
		case "routing_engine":
			file.engine = strings.Join(words[1:], "")
		case "lfts_file":
			file.lfts = words[1]
		}
	}
	if line.engine == "" && file.engine != "(null)" {
		line.engine = file.engine
	}
	if line.lfts == "" && file.lfts != "(null)" {
		line.lfts = file.lfts
	}
	return line, lines.Err()
}

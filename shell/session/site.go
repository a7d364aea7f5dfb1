package session

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"fabsh/builtins/lang"
	"fabsh/fabric/format"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// Site settings for infiniband-diags apply here too (rdma-core ibdiag_common.c,
// read_ibdiag_config; util/node_name_map.c). The first name of the map is Debian's, the
// second rdma-core's own.
const siteConfig = "infiniband-diags/ibdiag.conf"

var siteNameMaps = []string{"infiniband-diags/ib-node-name-map", "rdma/ib-node-name-map"}

// siteFolder returns the directory of the configuration of the site.
func (s *Settings) siteFolder() string { return filepath.Join(cmp.Or(s.Root, "/"), "etc") }

// ThresholdFile returns the path of the limits of counters of the site, which ibqueryerrors reads
// (rdma-core ibqueryerrors.c, DEF_THRES_FILE); "" without one, and for fabrics other than those
// of the site.
func ThresholdFile(s *Settings) string { return thresholdFile(s.siteFolder(), s) }

func thresholdFile(etc string, s *Settings) string {
	spec, _ := s.FabricSpec()
	kind, _, _ := strings.Cut(spec, ":")
	path := filepath.Join(etc, "infiniband-diags/error_thresholds")
	if i, err := os.Stat(path); kind != "umad" && kind != "ibsim" || err != nil || !i.Mode().IsRegular() {
		return ""
	}
	return path
}

// site is what ibdiag.conf sets, besides settings.
type site struct {
	keys        *engine.Keys
	secrets     Secrets // the file, if it has keys
	plainSpeeds bool    // no requests for vendors' speeds
}

// readSite reads ibdiag.conf below etc, for a fabric of that kind. Flags take
// precedence: it sets only what s does not have from the command line. As with
// infiniband-diags, errors in it are warnings.
func readSite(etc, kind string, s *Settings, warn func(format string, args ...any)) (out site) {
	if kind != "umad" && kind != "ibsim" {
		return out
	}
	path := filepath.Join(etc, siteConfig)
	f, err := OpenRegular(path)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			warn("%v", format.FileError(err))
		}
		return out
	}
	defer f.Close()
	r, err := format.Bounded(f, path, MaxOwn)
	if err != nil {
		warn("%v", err)
		return out
	}
	var keys strings.Builder // lines of a key file, at their position in this one
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		if n > 1 {
			keys.WriteByte('\n')
		}
		name, value, ok := strings.Cut(strings.TrimSpace(lines.Text()), "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || strings.HasPrefix(name, "#") {
			continue
		}
		switch name {
		case "m_key", "sa_key":
			fmt.Fprintf(&keys, "%s %s", name, value)
		case "MLX_EPI":
			out.plainSpeeds = !strings.EqualFold(value, "true")
		default:
			if err := s.setFromSite(kind, name, value); err != nil {
				warn("%s:%d: %s: %v", path, n, name, err)
			}
		}
	}
	if err := lines.Err(); err != nil {
		warn("%s: %v", path, err)
	}
	if text := keys.String(); strings.Trim(text, "\n") != "" && !s.Given("keys") {
		out.keys, out.secrets, err = siteKeys(f, text)
		if err != nil {
			warn("%v; keys in it ignored", err)
		}
	}
	return out
}

// setFromSite applies a line of ibdiag.conf that corresponds to a flag.
func (s *Settings) setFromSite(kind, name, value string) error {
	switch {
	case name == "timeout" && !s.Given("timeout"):
		return s.Timeout.Set(value)
	case kind == "ibsim": // which has its own devices
	case name == "CA" && !s.Given("ca"):
		s.CA = value
	case name == "Port" && !s.Given("port"):
		return s.Port.Set(value)
	}
	return nil
}

// siteKeys returns the keys of ibdiag.conf, if it is as private as a key file must be;
// nil without keys.
func siteKeys(f *os.File, lines string) (*engine.Keys, Secrets, error) {
	keys, err := format.ReadKeys(strings.NewReader(lines), f.Name())
	if err != nil || keys.M == 0 && keys.SA == 0 {
		return nil, nil, err
	}
	secret, err := private(f)
	switch {
	case secret == nil:
		return nil, nil, err
	case err != nil:
		keys = nil
	}
	return keys, Secrets{secret}, err
}

// NodeNames returns the names of --node-name-map, else of the site's map, if any. A
// simulated fabric has its own names.
func (p *Program) NodeNames(ctx context.Context, kind string) (map[mad.GUID]string, error) {
	if p.Settings.Given("node-name-map") {
		names, err := readNodeNames(ctx, p.Settings.NameMap)
		if err != nil {
			return nil, fmt.Errorf("--node-name-map: %w", err)
		}
		return names, nil
	}
	return siteNames(p.Settings.siteFolder(), kind, p.Warn), nil
}

// readNodeNames reads the map that the command line names.
func readNodeNames(ctx context.Context, path string) (map[mad.GUID]string, error) {
	f, err := lang.OpenNamed(ctx, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return format.ReadNodeNames(f, path)
}

// siteNames returns the names of the map below etc, for a fabric of that kind.
func siteNames(etc, kind string, warn func(format string, args ...any)) map[mad.GUID]string {
	if kind == "sim" {
		return nil
	}
	for _, path := range siteNameMaps {
		names, err := readSiteNames(filepath.Join(etc, path))
		switch {
		case err == nil:
			return names
		case !errors.Is(err, fs.ErrNotExist):
			warn("%v; using the nodes' own names", format.FileError(err))
			return nil
		}
	}
	return nil
}

func readSiteNames(path string) (map[mad.GUID]string, error) {
	f, err := OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return format.ReadNodeNames(f, path)
}

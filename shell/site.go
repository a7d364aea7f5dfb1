package shell

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"fabsh/builtins/lang"
	"fabsh/fabric/format"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// What a site sets for infiniband-diags holds here too (rdma-core
// ibdiag_common.c, read_ibdiag_config; util/node_name_map.c). Debian's name of
// the map is the first of two, rdma-core's own the second.
const siteConfig = "infiniband-diags/ibdiag.conf"

var siteNameMaps = []string{"infiniband-diags/ib-node-name-map", "rdma/ib-node-name-map"}

// site reads ibdiag.conf, for a fabric of that kind. Flags go before it. As
// with infiniband-diags, what is wrong in it is a warning.
func (a *app) site(kind string) {
	if kind != "umad" && kind != "ibsim" {
		return
	}
	path := filepath.Join(a.etc, siteConfig)
	f, err := openRegular(path)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			a.warn("%v", noFile(err))
		}
		return
	}
	defer f.Close()
	r, err := format.Bounded(f, path, maxOwn)
	if err != nil {
		a.warn("%v", err)
		return
	}
	var keys strings.Builder // lines of a file of keys, where they are in this one
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
			a.plainSpeeds = !strings.EqualFold(value, "true")
		default:
			if err := a.siteSetting(kind, name, value); err != nil {
				a.warn("%s:%d: %s: %v", path, n, name, err)
			}
		}
	}
	if err := lines.Err(); err != nil {
		a.warn("%s: %v", path, err)
	}
	if text := keys.String(); strings.Trim(text, "\n") != "" && !a.flags.Changed("keys") {
		a.siteKeys = a.keysOf(f, text)
	}
}

// siteSetting is what a line means that stands for a flag.
func (a *app) siteSetting(kind, name, value string) error {
	flag := map[string]string{"CA": "ca", "Port": "port", "timeout": "timeout"}[name]
	if flag == "" || a.flags.Changed(flag) || kind == "ibsim" && name != "timeout" {
		return nil
	}
	return a.flags.Lookup(flag).Value.Set(value)
}

// keysOf are the keys of ibdiag.conf, if it is as private as a file of keys
// must be.
func (a *app) keysOf(f namedFile, lines string) *engine.Keys {
	keys, err := format.ReadKeys(strings.NewReader(lines), f.Name())
	if err == nil && keys.M == 0 && keys.SA == 0 {
		return nil
	}
	if err == nil {
		err = a.private(f)
	}
	if err != nil {
		a.warn("%v; the keys in it are left alone", err)
		return nil
	}
	return keys
}

// nodeNames are the names of --node-name-map, else of the site's map, if there
// is one. A simulated fabric has names of its own.
func (a *app) nodeNames(kind string) (map[mad.GUID]string, error) {
	if a.flags.Changed("node-name-map") {
		names, err := a.readNodeNames(a.nameMap)
		if err != nil {
			return nil, fmt.Errorf("--node-name-map: %w", err)
		}
		return names, nil
	}
	if kind == "sim" {
		return nil, nil
	}
	for _, path := range siteNameMaps {
		names, err := readSiteNames(filepath.Join(a.etc, path))
		switch {
		case err == nil:
			return names, nil
		case !errors.Is(err, fs.ErrNotExist):
			a.warn("%v; node names are the nodes' own", noFile(err))
			return nil, nil
		}
	}
	return nil, nil
}

// readNodeNames reads the map that the command line names.
func (a *app) readNodeNames(path string) (map[mad.GUID]string, error) {
	f, err := lang.OpenNamed(a.context(), path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return format.ReadNodeNames(f, path)
}

func readSiteNames(path string) (map[mad.GUID]string, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return format.ReadNodeNames(f, path)
}

// warn tells people of something that is left out.
func (a *app) warn(format string, args ...any) {
	if !a.quiet {
		fmt.Fprintf(a.console.Err(), "warning: "+format+"\n", args...)
	}
}

package umad

import "io/fs"

// ActivePorts returns the InfiniBand ports of the host that are ACTIVE and carry
// management datagrams, as DEVICE/PORT. A planarized adapter shows one port as two;
// the list has the one for subnet management. sys is the root of the files, as in
// Options.
func ActivePorts(sys fs.FS) ([]string, error) {
	all, err := newSysfs(sys).ports()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, p := range all {
		if !p.ethernet && p.umad != "" && !p.smDisabled && p.rank() == 2 {
			names = append(names, p.String())
		}
	}
	return names, nil
}

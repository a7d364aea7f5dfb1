package umad

import "github.com/spf13/afero"

// ActivePorts are the InfiniBand ports of the host that are ACTIVE and carry
// management datagrams, as DEVICE/PORT. Of a planarized adapter, which shows one
// port as two, it is the one for subnet management. sys holds /sys; nil is the
// host's.
func ActivePorts(sys afero.Fs) ([]string, error) {
	if sys == nil {
		sys = afero.NewOsFs()
	}
	all, err := (sysfs{sys}).ports()
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

package format

import (
	"fmt"
	"io"
	"strings"

	"fabsh/fabric"
)

// KindNDT is a network definition table of UFM.
const KindNDT FormatName = "ndt"

var ndt = fileFormat{
	kind:  KindNDT,
	about: "a plan of cables of UFM (NDT)",
	file:  "plan of cables of UFM's NDT plug-in, as CSV, with the brief header or the full one",
	sniff: sniffPlan(planOfUFM),
	load:  func(r io.Reader, name string, _ Opener) (*fabric.Fabric, error) { return loadPlan(r, name, planOfUFM) },
}

// planOfUFM are the columns of an NDT file (Mellanox/ufm_sdk_3.0
// plugins/UFM_NDT_Plugin/ndt_file_creator.py, HEADER_BRIEF and HEADER_FULL). Speed is
// in Mb/s there, of the whole link, and no word of a speed.
var planOfUFM = &planColumns{
	names: []string{"startdevice", "startport", "enddevice", "endport", "state", "", ""},
	clean: func(name string) string { return strings.TrimPrefix(strings.TrimPrefix(name, "#"), "fields:") },
	port:  ndtPort,
}

// ndtPort takes the names that ports have in UFM. The suffix is what the name of the
// device lacks of that of the node: a chip in a director, or an HCA in a host.
//
//	Port 21               of a switch or HCA
//	Port 1/16/1           chip, cage, port: of Quantum-2, where a cage has two ports
//	                      (ndt_file_creator.py; in its example this is port 31)
//	Blade 16_Port 2/20    port 20 of chip 2 of leaf board 16 of a director
//	                      (ibnetdiscover-to-ndt.py)
//	HOST mlx5_0           port 1 of that HCA
func ndtPort(device, text string) (suffix string, num int, ok bool) {
	// By the bytes of text: its lower case may have another length.
	if n := len(device); len(text) > n && text[n] == ' ' && strings.EqualFold(text[:n], device) {
		return text[n:], 1, !strings.Contains(text[n+1:], " ")
	}
	var blade, chip, cage, port int
	switch lower := strings.ToLower(text); {
	case scans(lower, "blade %d_port %d/%d", &blade, &chip, &port):
		return fmt.Sprintf("/L%d/U%d", blade, chip), port, true
	case scans(lower, "port %d/%d/%d", &chip, &cage, &port):
		return "", 2*(cage-1) + port, chip == 1 && cage > 0 && (port == 1 || port == 2)
	case scans(lower, "port %d", &port), scans(lower, "%d", &port):
		return "", port, true
	}
	return "", 0, false
}

// scans reports whether text has exactly the given format, with decimal numbers.
func scans(text, format string, numbers ...*int) bool {
	for i, part := range strings.Split(format, "%d") {
		if i > 0 {
			n, rest, ok := decimal([]byte(text))
			if !ok {
				return false
			}
			*numbers[i-1], text = n, string(rest)
		}
		var ok bool
		if text, ok = strings.CutPrefix(text, part); !ok {
			return false
		}
	}
	return text == ""
}

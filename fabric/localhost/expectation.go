package localhost

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/umad"
)

// Expected is what ports of one model should be.
type Expected struct {
	// Model is the type of the adapter or the ID of its board, "*" for any that no other
	// Expected names. If Devices are given, the ports are theirs instead.
	Model    string
	Devices  []string
	Count    int
	Width    string   // "4x"
	Speed    string   // "ndr"
	Firmware []string // any of these; none: any
}

// Limits of what is expected of a host.
const (
	maxExpected = 256     // models
	maxFile     = 1 << 20 // bytes of the file
)

// portsPattern matches 8xNDR, and 8x2xHDR.
var portsPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([0-9]{1,3})x(?:(1x|2x|4x|8x|12x))?([a-z]{3}10|[a-z]{3})$`)
})

// IsExpectation reports whether text is what ports should be, not the path of a file.
func IsExpectation(text string) bool {
	first, _, _ := strings.Cut(text, ",")
	return portsPattern().MatchString(strings.ToLower(first))
}

// ParseExpectation parses "8xNDR", or "8xNDR,2x2xHDR": counts of ports with their speeds, and
// widths other than 4x.
func ParseExpectation(text string) (list []Expected, err error) {
	for part := range strings.SplitSeq(text, ",") {
		x, err := parsePorts(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		x.Model = "*"
		list = append(list, x)
	}
	if len(list) > maxExpected {
		return nil, fmt.Errorf("%d kinds of ports; want at most %d", len(list), maxExpected)
	}
	return list, nil
}

func parsePorts(text string) (x Expected, err error) {
	m := portsPattern().FindStringSubmatch(strings.ToLower(text))
	if m == nil {
		return x, fmt.Errorf("invalid ports %.64q; want COUNTxSPEED such as 8xNDR, or COUNTxWIDTHxSPEED such as 8x2xHDR", text)
	}
	x.Count, _ = strconv.Atoi(m[1])
	x.Width, x.Speed = cmp.Or(m[2], "4x"), m[3]
	if mad.SpeedGbps(x.Speed) == 0 {
		return x, fmt.Errorf("unknown speed %q%s; supported: %s", m[3], fabric.DidYouMean(m[3], mad.Speeds()), strings.Join(mad.Speeds(), ", "))
	}
	return x, nil
}

// ParseExpectationFile parses a file: a line MODEL PORTS [FIRMWARE]... for each model, or the
// manifest of GCM, in JSON. # begins a comment.
func ParseExpectationFile(text []byte) (list []Expected, err error) {
	if len(text) > maxFile {
		return nil, fmt.Errorf("longer than %d bytes", maxFile)
	}
	if trimmed := strings.TrimSpace(string(text)); strings.HasPrefix(trimmed, "{") {
		return parseManifest([]byte(trimmed))
	}
	at := 0
	models := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		at++
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if len(words) < 2 {
			return nil, fmt.Errorf("line %d: want MODEL PORTS [FIRMWARE]..., such as MT4129 8xNDR 28.39.1002", at)
		}
		x, err := parsePorts(words[1])
		if err != nil && fabric.HoldsKey(line) {
			err = errors.New("want MODEL PORTS [FIRMWARE]...; the line is not shown, it may hold a key")
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", at, err)
		}
		if models[words[0]] {
			return nil, fmt.Errorf("line %d: second line of the model %.64q", at, words[0])
		}
		models[words[0]] = true
		x.Model, x.Firmware = words[0], words[2:]
		if list = append(list, x); len(list) > maxExpected {
			return nil, fmt.Errorf("line %d: more than %d models", at, maxExpected)
		}
	}
	if len(list) == 0 {
		return nil, errors.New("the file names no model")
	}
	return list, nil
}

// parseManifest reads the member "ib" of a manifest of GCM, Meta's GPU cluster monitoring:
// link_rate in the kernel's words, firmware_version, and interfaces with their devices (public
// repository facebookresearch/gcm, gcm/health_checks/checks/check_iblink.py, IBManifest).
func parseManifest(text []byte) ([]Expected, error) {
	var m struct {
		IB *struct {
			LinkRate   string   `json:"link_rate"`
			Firmware   []string `json:"firmware_version"`
			Interfaces map[string]struct {
				Device string `json:"mlx"`
			} `json:"interfaces"`
		} `json:"ib"`
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	if m.IB == nil || len(m.IB.Interfaces) == 0 {
		return nil, errors.New(`manifest: it has no "ib" with "interfaces"`)
	}
	_, width, speed := umad.ParseRate(m.IB.LinkRate)
	if width == "" || speed == "" {
		return nil, fmt.Errorf(`manifest: invalid link_rate %.64q; want the kernel's words, such as "400 Gb/sec (4X NDR)"`, m.IB.LinkRate)
	}
	x := Expected{Width: width, Speed: speed, Firmware: m.IB.Firmware}
	for _, name := range slices.Sorted(maps.Keys(m.IB.Interfaces)) {
		device := m.IB.Interfaces[name].Device
		if device == "" {
			return nil, fmt.Errorf(`manifest: the interface %.64q has no device "mlx"`, name)
		}
		if slices.Contains(x.Devices, device) {
			return nil, fmt.Errorf("manifest: the device %.64q belongs to two interfaces", device)
		}
		x.Devices = append(x.Devices, device)
	}
	slices.Sort(x.Devices)
	x.Count = len(x.Devices)
	return []Expected{x}, nil
}

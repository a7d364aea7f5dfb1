package audit

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/mad"
)

// Threshold is how often a counter may count: more is reported.
type Threshold struct {
	Counter string // its name in Counters
	Count   uint64
	Per     time.Duration // 0: in the window
}

// maxThresholds is how long a file of thresholds may be, in bytes.
const maxThresholds = 1 << 20

// ReadThresholds reads a file of thresholds, as infiniband-diags has it
// (etc/error_thresholds; ibqueryerrors.c, set_thresholds): NAME=NUMBER in a line,
// # begins a comment, and of two with one name the second counts. There a number is of
// what was counted since the counter was cleared; here of what it counts in a
// window, or in the time that may follow: 5/min, 100/s, 3/h. Names may be those of
// scripts, too. path is for messages.
func ReadThresholds(r io.Reader, path string) ([]Threshold, error) {
	in, err := format.Bounded(r, path, maxThresholds)
	if err != nil {
		return nil, err
	}
	var list []Threshold
	lines := bufio.NewScanner(in)
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		t, err := parseThreshold(line)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		list = append(list, t)
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("%s: a line is longer than %d bytes", path, bufio.MaxScanTokenSize)
	} else if err != nil {
		return nil, err
	}
	return list, nil
}

// per are the times that a number may be of.
var per = map[string]time.Duration{"s": time.Second, "min": time.Minute, "h": time.Hour}

func parseThreshold(line string) (t Threshold, err error) {
	name, value, ok := strings.Cut(line, "=")
	if !ok {
		return t, fmt.Errorf("expected NAME=NUMBER, got %.40q", line)
	}
	name = strings.TrimSpace(name)
	if t.Counter, err = thresholdCounter(name); err != nil {
		return t, err
	}
	number, unit, rated := strings.Cut(strings.TrimSpace(value), "/")
	if t.Count, err = strconv.ParseUint(strings.TrimSpace(number), 0, 64); err != nil {
		return t, fmt.Errorf("%s: expected a number, or one per time such as 5/min, got %.40q", t.Counter, value)
	}
	if t.Per = per[strings.TrimSpace(unit)]; rated && t.Per == 0 {
		return t, fmt.Errorf("%s: a number may be per s, min or h, got %.40q", t.Counter, value)
	}
	return t, nil
}

// thresholdCounter is the counter of a name, in the specification's spelling or
// that of scripts.
func thresholdCounter(name string) (string, error) {
	var names []string
	for _, c := range Counters() {
		if c.Traffic && c.Name != "port_xmit_wait" {
			continue
		}
		if c.Name == name || c.Name == mad.SnakeName(name) {
			return c.Name, nil
		}
		names = append(names, c.Name)
	}
	return "", fmt.Errorf("unknown error counter %.40q%s", name, fabric.DidYouMean(mad.SnakeName(name[:min(len(name), 64)]), names))
}

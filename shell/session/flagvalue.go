package session

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/fabric/export"
)

// Number is a flag's integer within limits; it may be unset.
type Number struct {
	Value, min, max int
	IsSet           bool
}

func (n *Number) Set(text string) error {
	v, err := strconv.ParseInt(text, 0, strconv.IntSize)
	if err != nil || int(v) < n.min || int(v) > n.max {
		return fmt.Errorf("want a number from %d to %d", n.min, n.max)
	}
	n.Value, n.IsSet = int(v), true
	return nil
}

func (n *Number) String() string {
	if !n.IsSet {
		return ""
	}
	return strconv.Itoa(n.Value)
}

func (n *Number) Type() string { return "int" }

// Duration is a flag's time; a bare number counts units.
type Duration struct {
	Value time.Duration // 0: not given
	Unit  time.Duration
	Units string // their name
}

func (d *Duration) Set(text string) error {
	t, err := time.ParseDuration(text)
	if n, numErr := strconv.ParseFloat(text, 64); numErr == nil {
		t, err = time.Duration(n*float64(d.Unit)), nil
	}
	switch {
	case err != nil:
		return fmt.Errorf("want %s, or a time such as 500ms or 2s", d.Units)
	case t <= 0 || t > 24*time.Hour:
		return errors.New("want more than 0, and at most 24h")
	}
	d.Value = t
	return nil
}

func (d *Duration) String() string {
	if d.Value == 0 {
		return ""
	}
	return d.Value.String()
}

func (d *Duration) Type() string { return "time" }

// OutputFormat is a flag's output format.
type OutputFormat lang.Format

// formatNodes is an output format of audits only: hosts by their health.
const formatNodes OutputFormat = "nodes"

func (f *OutputFormat) Set(text string) error {
	if dialect, ok := lang.Format(text).Dialect(); ok {
		if _, err := export.ParseDialect(dialect); err != nil {
			return err
		}
		*f = OutputFormat(strings.TrimSuffix(text, "="))
		return nil
	}
	var names []string
	for _, known := range lang.Formats {
		if text == string(known) {
			*f = OutputFormat(known)
			return nil
		}
		names = append(names, string(known))
	}
	if names = append(names, string(formatNodes)); text == string(formatNodes) {
		*f = formatNodes
		return nil
	}
	return fmt.Errorf("want text, json, jsonl, csv or prom; nodes with audit%s", fabric.DidYouMean(text, names))
}

func (f *OutputFormat) String() string { return string(*f) }
func (f *OutputFormat) Type() string   { return "format" }

// ByteSize is a flag's number of bytes.
type ByteSize uint64

// Bounds of --memory. fabsh itself needs the minimum.
const (
	minMemory ByteSize = 64 << 20
	maxMemory ByteSize = 1 << 50
)

// units are the powers of 1024, from the largest.
var units = []struct {
	name  string
	bytes ByteSize
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// Set takes 512MiB, 4G, 1.5GiB, or a number of bytes.
func (s *ByteSize) Set(text string) error {
	number, unit := strings.TrimRight(text, "KMGTiB"), ByteSize(1)
	if suffix := text[len(number):]; suffix != "" {
		unit = 0
		for _, u := range units {
			if suffix == u.name || suffix == u.name[:1] {
				unit = u.bytes
			}
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	// The negation also covers NaN.
	if bytes := n * float64(unit); err != nil || !(bytes >= float64(minMemory) && bytes <= float64(maxMemory)) {
		return errors.New("want a size of 64MiB or more, such as 512MiB or 4GiB")
	}
	*s = ByteSize(n * float64(unit))
	return nil
}

// String is the size in the largest unit of which it is a multiple.
func (s *ByteSize) String() string {
	for _, u := range units {
		if *s > 0 && *s%u.bytes == 0 {
			return strconv.FormatUint(uint64(*s/u.bytes), 10) + " " + u.name
		}
	}
	return ""
}

func (s *ByteSize) Type() string { return "size" }

// defaultMemory returns the memory limit of scripts without --memory: 4 GiB, or a
// quarter of the machine's memory if that is less.
func defaultMemory() ByteSize {
	machine := machineMemory()
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} { // of a container
		text, err := os.ReadFile(file)
		if n, numErr := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil && numErr == nil {
			machine = min(machine, ByteSize(n))
		}
	}
	return max(minMemory, min(4<<30, machine/4)) &^ (1<<20 - 1)
}

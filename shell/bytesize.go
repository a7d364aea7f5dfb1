package shell

import (
	"errors"
	"os"
	"strconv"
	"strings"
)

// byteSize is a flag's number of bytes.
type byteSize uint64

// Bounds of --memory. With less fabsh itself would not do.
const (
	minMemory byteSize = 64 << 20
	maxMemory byteSize = 1 << 50
)

// units are the powers of 1024, from the largest.
var units = []struct {
	name  string
	bytes byteSize
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// Set takes 512MiB, 4G, 1.5GiB, or a number of bytes.
func (s *byteSize) Set(text string) error {
	number, unit := strings.TrimRight(text, "KMGTiB"), byteSize(1)
	if suffix := text[len(number):]; suffix != "" {
		unit = 0
		for _, u := range units {
			if suffix == u.name || suffix == u.name[:1] {
				unit = u.bytes
			}
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	// Its negation is false for what is no number.
	if bytes := n * float64(unit); err != nil || !(bytes >= float64(minMemory) && bytes <= float64(maxMemory)) {
		return errors.New("want a size of 64MiB or more, such as 512MiB or 4GiB")
	}
	*s = byteSize(n * float64(unit))
	return nil
}

// String is the size in the largest unit of which it is a multiple.
func (s *byteSize) String() string {
	for _, u := range units {
		if *s > 0 && *s%u.bytes == 0 {
			return strconv.FormatUint(uint64(*s/u.bytes), 10) + " " + u.name
		}
	}
	return ""
}

func (s *byteSize) Type() string { return "size" }

// defaultMemory is what a script may use where --memory does not say: 4 GiB, or a
// quarter of the machine.
func defaultMemory() byteSize {
	machine := machineMemory()
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} { // of a container
		text, err := os.ReadFile(file)
		if n, numErr := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil && numErr == nil {
			machine = min(machine, byteSize(n))
		}
	}
	return max(minMemory, min(4<<30, machine/4)) &^ (1<<20 - 1)
}

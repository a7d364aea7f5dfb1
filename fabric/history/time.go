package history

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"fabsh/fabric"
)

// timeForms are how people write times. Without an offset they are of the zone of the host.
var timeForms = []string{time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04Z0700", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04Z07:00", "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly}

// ErrTime states which times ParseTime reads.
var ErrTime = errors.New("want a time such as 2026-05-01, 2026-05-01T14:05, yesterday, or 36h or 7d for as long before now")

// ParseTime returns the time that text names, as people write it: "2026-05-01", whose beginning it is,
// "2026-05-01T14:05", "2026-05-01T14:05+02:00", "14:05" of today, "yesterday", "today", "now", or how long
// before now: "36h", "-36h", "7d", "2w", "90m ago".
func ParseTime(text string, now time.Time) (time.Time, error) {
	day := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	switch text {
	case "now":
		return now, nil
	case "today":
		return day, nil
	case "yesterday":
		return day.AddDate(0, 0, -1), nil
	}
	ago := strings.TrimPrefix(strings.TrimSpace(strings.TrimSuffix(text, " ago")), "-")
	for unit, days := range map[string]int{"d": 1, "w": 7} {
		if count, ok := strings.CutSuffix(ago, unit); ok {
			if n, err := strconv.ParseUint(count, 10, 16); err == nil {
				return now.AddDate(0, 0, -days*int(n)), nil
			}
		}
	}
	if t, err := time.ParseInLocation("15:04", text, now.Location()); err == nil {
		return time.Date(now.Year(), now.Month(), now.Day(), t.Hour(), t.Minute(), 0, 0, now.Location()), nil
	}
	if d, err := time.ParseDuration(ago); err == nil && d >= 0 && !strings.HasPrefix(ago, "+") && !strings.HasPrefix(ago, "-") {
		return now.Add(-d), nil
	}
	for _, form := range timeForms {
		if t, err := time.ParseInLocation(form, text, now.Location()); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q: %w", text, ErrTime)
}

// Find returns the path of the history of the subnet of that name below the directory for state dir;
// without a name, of the only one.
func Find(dir, name string) (string, error) {
	if dir == "" {
		return "", fmt.Errorf("no directory for state; give --state DIR")
	}
	found := fabric.StateFiles(dir, FileName)
	var names []string
	for _, path := range found {
		n := filepath.Base(filepath.Dir(path))
		if n == name {
			return path, nil
		}
		names = append(names, n)
	}
	switch {
	case name != "" && len(found) > 0:
		return "", fmt.Errorf("%s: no history in %s, which has those of %s", name, dir, strings.Join(names, ", "))
	case len(found) == 0:
		return "", fmt.Errorf("%s: %w", dir, ErrNone)
	case len(found) > 1:
		return "", fmt.Errorf("%s has histories of %d subnets: name one of %s", dir, len(found), strings.Join(names, ", "))
	}
	return found[0], nil
}

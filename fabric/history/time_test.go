package history_test

import (
	"testing"
	"time"

	"fabsh/fabric/history"
)

func TestParseTime(t *testing.T) {
	zone := time.FixedZone("here", 2*3600)
	now := time.Date(2026, 5, 2, 13, 30, 0, 0, zone)
	for text, want := range map[string]string{
		"2026-05-01":                "2026-05-01T00:00:00+02:00",
		"2026-05-01T14:05":          "2026-05-01T14:05:00+02:00",
		"2026-05-01 14:05:09":       "2026-05-01T14:05:09+02:00",
		"2026-05-01T14:05Z":         "2026-05-01T14:05:00Z",
		"2026-05-01T14:05:06-07:00": "2026-05-01T14:05:06-07:00",
		"yesterday":                 "2026-05-01T00:00:00+02:00",
		"today":                     "2026-05-02T00:00:00+02:00",
		"now":                       "2026-05-02T13:30:00+02:00",
		"-36h":                      "2026-05-01T01:30:00+02:00",
		"90m":                       "2026-05-02T12:00:00+02:00",
		"7d":                        "2026-04-25T13:30:00+02:00",
		"--1h":                      "", "+1h": "", "1": "", "": "", "2026-13-01": "", "tomorrow": "", "-": "", "99999d": "",
	} {
		got, err := history.ParseTime(text, now)
		if want == "" {
			if err == nil {
				t.Errorf("%q: %v", text, got)
			}
			continue
		}
		if err != nil || got.Format(time.RFC3339) != want {
			t.Errorf("%q: %v %v, want %v", text, got, err, want)
		}
	}
}

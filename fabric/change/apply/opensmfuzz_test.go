package apply

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"
)

// FuzzSettings: the command line and the configuration of a process that calls itself
// OpenSM may be anything.
func FuzzSettings(f *testing.F) {
	f.Add("opensm\x00-R\x00file,no_fallback\x00-Ulfts", "routing_engine ftree\nlfts_file (null)\n")
	f.Add("opensm\x00--config=\x00--lfts_file", "lfts_file\n\x00")
	f.Fuzz(func(t *testing.T, args, config string) {
		set, err := settingsOf(strings.Split(args, "\x00"), func(string) (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader(config)), nil
		})
		if err != nil && !errors.Is(err, bufio.ErrTooLong) {
			t.Error(err)
		}
		if !strings.Contains(args+" "+config, set["lfts_file"]) {
			t.Errorf("the tables are in %q, of %q and %q", set["lfts_file"], args, config)
		}
	})
}

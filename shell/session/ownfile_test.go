package session

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"fabsh/fabric/format"
)

// TestOwnFiles: pipes, devices, folders and endless files where the program looks
// for its own files, or for those of the system, hold nobody up.
func TestOwnFiles(t *testing.T) {
	fifo := func(path string) error { return syscall.Mkfifo(path, 0o600) }
	for _, tt := range []struct {
		name string
		make func(path string) error
		want string // PATH stands for the file
	}{
		{"pipe", fifo, "PATH: not a regular file"},
		{"device", func(path string) error { return os.Symlink("/dev/zero", path) }, "PATH: not a regular file"},
		{"folder", func(path string) error { return os.Mkdir(path, 0o700) }, "PATH: is a directory"},
		{"sparse", func(path string) error {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				return err
			}
			return os.Truncate(path, 1<<40)
		}, "PATH: expected at most 16 MB"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, _ := testProgram(t)
			etc := siteFiles(t, map[string]string{"infiniband-diags/x": ""})
			for _, name := range append(siteNameMaps[:1:1], siteConfig) {
				if err := tt.make(filepath.Join(etc, name)); err != nil {
					t.Fatal(err)
				}
			}
			path := filepath.Join(etc, siteConfig)
			done := make(chan bool)
			var err error
			go func() {
				defer close(done)
				siteNames(etc, "umad", p.Warn)
				readSite(etc, "umad", p.Settings, p.Warn)
				_, err = ReadOwn(path)
			}()
			select {
			case <-done:
			case <-time.After(time.Minute):
				t.Fatal("it waits")
			}
			if err == nil || strings.ReplaceAll(format.FileError(err).Error(), path, "PATH") != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

package history

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"fabsh/fabric/format"
)

// ErrInUse reports that another process has the history open.
var ErrInUse = errors.New("another process uses the history; stop it, or try again")

// Compact rewrites the history at path without unused pages, checks the result, and replaces the file. No
// recorder and no reader may have it open; what a contributor writes meanwhile is waited for, or is
// written to the new file. It returns the sizes before and after.
func Compact(ctx context.Context, path string) (before, after int64, err error) {
	if err := checkFile(path); err != nil {
		return 0, 0, err
	}
	s, err := Open(ctx, path) // before a lock is made beside another kind of file
	if err != nil {
		return 0, 0, err
	}
	s.Close()
	lock, err := format.AcquireLock(path + ".lock")
	if err != nil {
		return 0, 0, err
	}
	defer lock.Release()
	s, err = open(ctx, path, recorderOptions)
	if err != nil {
		return 0, 0, err
	}
	defer s.Close()
	s.db.SetMaxOpenConns(1)
	part := path + ".new"
	os.Remove(part)
	f, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	defer os.Remove(part)
	// The log is removed with the old file: one of another file beside the new one would damage it.
	for _, pragma := range []string{"pragma locking_mode = exclusive", "pragma journal_mode = delete"} {
		var mode string
		if err := s.db.QueryRowContext(ctx, pragma).Scan(&mode); err != nil || mode == "wal" {
			if err == nil || strings.Contains(err.Error(), "locked") {
				err = ErrInUse
			}
			return 0, 0, s.failed(err)
		}
	}
	// No process writes from here on: the lock of the file is exclusive.
	if _, err := s.db.ExecContext(ctx, "update meta set value = value where key = 'schema'"); err != nil {
		return 0, 0, s.failed(err)
	}
	if _, err := s.db.ExecContext(ctx, "vacuum into ?", part); err != nil {
		return 0, 0, s.failed(err)
	}
	if err := checkCopy(ctx, part); err != nil {
		return 0, 0, err
	}
	if err := f.Sync(); err != nil {
		return 0, 0, err
	}
	old, err := os.Stat(path)
	if err != nil {
		return 0, 0, err
	}
	fresh, err := os.Stat(part)
	if err != nil {
		return 0, 0, err
	}
	if err := os.Rename(part, path); err != nil {
		return 0, 0, err
	}
	return old.Size(), fresh.Size(), nil
}

// checkCopy returns an error if a file is damaged.
func checkCopy(ctx context.Context, path string) error {
	s, err := open(ctx, path, "mode=ro&_pragma=query_only(1)&_pragma=trusted_schema(0)")
	if err != nil {
		return err
	}
	defer s.Close()
	v, err := s.Check(ctx)
	if err == nil && len(v.Damage) > 0 {
		err = fmt.Errorf("%s: the history is unchanged, because it is damaged: %s; fabsh history check", strings.TrimSuffix(path, ".new"), v.Damage[0])
	}
	return err
}

//go:build !linux

package umad

import "errors"

// openFile fails: only Linux has these devices.
func openFile(string) (file, error) { return nil, errors.ErrUnsupported }

func accessDevice(string) error { return errors.ErrUnsupported }

func readFile(string, int) ([]byte, error) { return nil, errors.ErrUnsupported }

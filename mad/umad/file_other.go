//go:build !linux

package umad

import "errors"

// openFile: only Linux has these devices.
func openFile(string) (file, error) { return nil, errors.ErrUnsupported }

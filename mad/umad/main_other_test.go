//go:build !kerneltest && !(linux && (amd64 || arm64))

package umad

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

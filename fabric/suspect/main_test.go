package suspect

import (
	"os"
	"testing"

	"fabsh/fabric/hermetic"
)

func TestMain(m *testing.M) { os.Exit(hermetic.Tests(m).Run()) }

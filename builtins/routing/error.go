package routing

import (
	"strings"

	"fabsh/builtins/lang"
)

// computeError is the error of a computation of fabric/routing, or the end of the
// fiber. Some computations name themselves as the builtin is called, "assign" and
// "dijkstra": the name is written once.
func computeError(c *lang.Call, err error) error {
	if stopped := c.Fiber().Stopped(); stopped != nil {
		return stopped
	}
	if strings.HasPrefix(err.Error(), c.Name+": ") {
		return err
	}
	return lang.Errorf("%w", err)
}

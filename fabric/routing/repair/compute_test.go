package repair

import (
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/routingtest"
)

// compute computes tables by an engine, and fails the test on an error.
var compute = routingtest.Computing(engines.Compute)

// verified is the verdict on tables; an error fails the test.
var verified = routingtest.Verified

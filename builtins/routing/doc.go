// Package routing is what scripts say of routing: graphs, routes, verdicts. The
// algorithms are fabric/routing's.
//
//	graphmake.go graphvalue.go   a graph of a fabric, and the value
//	hopsvalue.go dijkstra.go     distances between switches
//	ranks.go tree.go             trees: roots, ranks, up*/down*, fat trees
//	engines.go assign.go sssp.go tables by an engine, or by one step of one
//	policy.go                    the policy that runs an engine by its name
//	routesvalue.go row.go rowfill.go  routes, the row of a switch, what changes it
//	routesio.go                  routes of files and of the switches themselves
//	verdict.go linkfailure.go    does all arrive, can it deadlock, if a link fails
//	trace.go congestion.go balance.go diff.go  paths, loads, differences
//	plan.go                      a plan of the change to tables
//	report.go                    what a command tells of a policy
//	selector.go classes.go       nodes by name or class, and rules for classes
//	readtables.go                files of GUIDs, of numbers and of hops
//	kind.go error.go             kinds of parameters; errors of computations
package routing

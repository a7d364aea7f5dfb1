// Package routing is what scripts say of routing: graphs, routes, verdicts. The
// algorithms are fabric/routing's.
//
//	graphmake.go graphvalue.go   a graph of a fabric, and what it tells
//	engines.go dijkstra.go       engines and primitives
//	routesvalue.go row.go routesio.go   routes, a switch's row, files and live tables
//	verdict.go metrics.go hopsvalue.go  what is said of routes
//	selector.go readtables.go    nodes by rules; files of numbers and GUIDs
package routing

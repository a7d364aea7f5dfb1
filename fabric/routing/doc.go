// Package routing computes forwarding tables, and verifies them.
//
// Engines:
//
//	engine.go      the table of engines, and their options
//	minhop.go updn.go ftree.go dor.go nue.go sssp.go file.go   an engine each, or a few
//	               of a kind
//	assign.go      Assign chooses among next hops, by a policy
//	leastloaded.go the policies by load; dmodk.go: by digits
//	keep.go        entries that stay as they were
//	laneengine.go  the engines that use virtual lanes; layer.go: lanes for any tables
//	basis.go       what an engine made tables of
//	repair.go      Repair: the tables of a fabric that has changed a little
//	repairtree.go  of a fat tree
//	repairgaps.go  paths to switches that up*/down* has none to
//	repairpatch.go where nothing is known of what made the tables
//	nuesearch.go   paths that close no credit loop
//	turn.go        with turns that a script gives
//	complete.go    such paths where up*/down* has none; downup.go: to switches
//
// Verification:
//
//	endpoints.go   the ports between which paths are judged; paths.go: loads and
//	               dependencies of all paths
//	verify.go      Verify: do all packets arrive, and can none deadlock?
//	verdict.go     Verdict, Report: the answers; via.go: rules on what paths cross
//	walk.go        all paths to a LID; vlwalk.go: with virtual lanes
//	adaptive.go    all paths that adaptive routing may choose
//	sibling.go     the paths to the LIDs of one port (LMC); disjointness.go: how disjoint
//	               they are; separate.go: made so
//	failure.go     what the failure of each link would break
//	balance.go     how evenly routes are spread; congestion.go: under traffic
//	reroute.go     the number of paths that differ between two Routes; reroutepatch.go:
//	               those of few switches
//
// Switches are numbered as in the fabric: by GUID. A channel is one direction
// of a link between two switches. A terminal is where paths begin and end: a
// port of a CA or router, or port 0 of a switch.
//
// Times are given in S switches, N pairs of switches with links, C channels, L
// LIDs, and D, the longest distance between two switches.
//
// Results depend on the arguments alone, never on the number of workers.
package routing

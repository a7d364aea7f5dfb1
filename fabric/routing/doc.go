// Package routing computes forwarding tables, and judges them.
//
//	graph.go       Graph: a fabric with dense ids, as algorithms want it; graphbuild.go: made of it
//	class.go       what end ports are for: cn io an gateway sm
//	routes.go      Routes: forwarding tables, service levels and virtual lanes
//	row.go         what can be done with the table of one switch
//	diff.go        what differs between two Routes
//	trace.go       one path
//	hops.go        distances of all pairs; nexthop.go: the next hops they allow
//	updown.go      ranks, and distances by up*/down*
//	roots.go       which switches are the roots
//	tree.go        fat trees recognised: levels and digits
//	assign.go      chooses among next hops
//	spread.go      the policies of that choice
//	sssp.go        balanced shortest paths; nue.go: those that close no cycle
//	engine.go      the engines by name, one file each
//	walk.go        all paths to a destination at once
//	verify.go      are all pairs reached, without loops of packets or credits
//	verdict.go     what came of that
//	cdg.go         the channel dependency graph
//	failure.go     what each single link's failure would break
//	metrics.go     how evenly routes are spread; congestion.go: under traffic
//	parallel.go    work over all cores, with results that do not show how many
//
// Switches are numbered as in the fabric: by GUID. A channel is one direction
// of a link between two switches. A terminal is where paths begin and end: a
// port of a CA or router, or port 0 of a switch.
//
// Results depend on the arguments alone, never on the number of workers.
package routing

// Package topology is what scripts say of the fabric: fabrics, nodes, ports,
// links, routes, what a target is, and how requests reach it.
//
//	env.go          the fabric that a session works on
//	discover.go     discover() and load_fabric(); simvalue.go, the value sim
//	fabricvalue.go node.go ids.go   the values
//	target.go       what a target names; transact.go, requests to it and their failures
//	sa.go           what is asked of the subnet administrator; paths
//	maychange.go    may the script Set an attribute here
package topology

// Package topology is what scripts say of the fabric: fabrics, nodes, ports,
// links, directed routes, what a target is, and how requests reach it.
//
//	env.go          the fabric that a session works on
//	discover.go load.go   discover() and load_fabric()
//	fabric.go node.go port.go link.go problem.go   the values; dump.go, their files;
//	                find.go, fabric.node()
//	diff.go difftext.go   fabric.diff(), and its text
//	known.go        a fabric known without a sweep
//	ids.go route.go lft.go   guid(), gid(), dr(); a forwarding table as text
//	sim.go          the value sim; simcable.go, simcounter.go, simfault.go, simhardware.go,
//	                its methods by subject
//	target.go       a target; resolve.go name.go, what a script names as one
//	transact.go     requests; requesterror.go, their failures and what to try next
//	observe.go silence.go   who observes requests; devices that never answer
//	sa.go           what is asked of the subnet administrator
//	component.go    addresses as components of SA records
//	maychange.go    may the script Set an attribute here
package topology

// Package topology has the values and functions of scripts for the fabric: fabrics,
// nodes, ports, links, directed routes, targets, and how requests reach them.
//
//	env.go          the fabric that a session works on
//	discover.go load.go   discover() and load_fabric(); extended.go, what
//	                NVIDIA's devices have beyond a sweep
//	fabric.go node.go port.go link.go   the values; dump.go, their files;
//	                find.go, fabric.node()
//	diff.go difftext.go   fabric.diff(), and its text
//	known.go        a fabric from a file that is still current
//	ids.go route.go lft.go   guid(), gid(), dr(); a forwarding table as text
//	sim.go          the value sim; simremote.go, its methods on a fabric that
//	                another process serves; simflow.go, simcable.go, simcounter.go, simfault.go, simhardware.go, simadaptive.go,
//	                its methods by subject
//	target.go       a target; resolve.go name.go, its lookup from the value in a script
//	transact.go     requests; requesterror.go, their failures and remedies
//	observe.go silence.go   the observer of requests; devices that never answer
//	sa.go           requests to the subnet administrator
//	component.go    addresses as components of SA records
//	maychange.go    the permission to Set an attribute
package topology

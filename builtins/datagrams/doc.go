// Package datagrams is the builtins that send MADs: requests of all management
// classes, whole tables, links, subscriptions. What a request says is here; how
// it is addressed and sent is builtins/topology's, what a table or a port goes
// through is fabric/table's.
//
// Each builtin takes a struct of its arguments; those that builtins share are
// embedded. Errors about arguments end the script. What goes wrong at one of
// many targets is a value in its place (topology.Results).
//
//	attribute.go modifier.go    which attribute is meant; which block, which port
//	targetrequest.go            one request to many targets
//	smp.go smpset.go            subnet management: smp_get, smp_set
//	perf.go perfset.go          performance management: perf_get, perf_set, perf_clear
//	sa.go sapath.go saset.go    subnet administration: queries, paths, changes
//	mad.go madrequest.go madanswer.go   any class: mad_get, mad_set, mad_send; madraw.go,
//	                            the fields of headers
//	register.go eeprom.go       reg_get: registers, and the EEPROMs of modules
//	wholetable.go tablerequest.go       the values of whole tables; how they are read and written
//	lft.go mft.go sl2vl.go vlarb.go pkeys.go guids.go   a table each; mftfile.go, MFTs in files
//	ports.go                    port_disable, port_enable, port_reset, port_set
//	subscribe.go subscription.go   sa_subscribe, and the events that come
//	stats.go                    what the engine did
package datagrams

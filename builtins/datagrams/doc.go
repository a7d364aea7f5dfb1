// Package datagrams has the builtins that send MADs: requests of all management
// classes, whole tables, links, subscriptions. The content of requests is here; their
// addressing and sending is in builtins/topology, reading and writing of tables and
// ports in fabric/table.
//
// Each builtin has a struct of its arguments, which embeds those that builtins share.
// Errors about arguments end the script. If one of many targets fails, the failure is a
// value in its place (topology.Results).
//
//	attribute.go modifier.go    the attribute of a request; its block and port
//	targetrequest.go            one request to many targets
//	smp.go smpset.go            subnet management: smp_get, smp_set
//	perf.go perfset.go          performance management: perf_get, perf_set, perf_clear
//	sa.go sapath.go saset.go    subnet administration: queries, paths, changes
//	mad.go madrequest.go madanswer.go   any class: mad_get, mad_set, mad_send; madraw.go,
//	                            the fields of headers
//	register.go eeprom.go       reg_get: registers, and the EEPROMs of modules
//	wholetable.go tablerequest.go       the values of whole tables; their reading and writing
//	lft.go mft.go sl2vl.go vlarb.go pkeys.go guids.go   one table each; mftfile.go, MFTs in files
//	staticlft.go                set_lft is refused where adaptive routing is on
//	ar.go plft.go               get_ar, get_plft; vendorread.go, what they share
//	ports.go                    port_disable, port_enable, port_reset, port_set
//	subscribe.go subscription.go   sa_subscribe, and its events
//	stats.go                    statistics of the engine
package datagrams

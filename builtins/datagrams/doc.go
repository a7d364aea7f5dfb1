// Package datagrams is the verbs of scripts: requests of all management classes,
// whole tables, ports, subscriptions.
//
//	smp.go perf.go perfset.go sa.go sapath.go saset.go mad*.go   a class each
//	targetrequest.go    one request to many targets
//	change.go           smp_set
//	wholetable.go       get_ and set_ of tables; lft.go mft.go sl2vl.go vlarb.go
//	                    pkeys.go guids.go are the tables
//	ports.go            port_disable and its like
//	subscribe.go subscription.go   events
//	stats.go            what the engine did
package datagrams

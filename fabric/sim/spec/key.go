package spec

import (
	"slices"
	"strings"

	"fabsh/fabric/sim/state"
)

// Key is a key of a spec.
type Key struct {
	Name, Default string
	Doc           string
	Example       string // KEY=VALUE, on the default topology of its kind
}

// CommonKeys returns the keys of all kinds of topologies, and of files.
func CommonKeys() []Key { return slices.Clone(commonKeys) }

// GeneratedKeys returns the keys of all kinds of topologies, but not of files.
func GeneratedKeys() []Key { return slices.Clone(generatedKeys) }

var generatedKeys = []Key{
	{"generation", "", "devices and speed of all links: hdr (Quantum, ConnectX-6), ndr (Quantum-2 with two ports in a cage, ConnectX-7) or xdr (Quantum-3, ConnectX-8)", "generation=ndr"},
	{"split", "no", "yes: adapters are at halves of a switch's ports, 2n-1 and 2n of port n, with half its lanes; other ports have the number 2n-1", "split=yes"},
	{"aggregation", "no", "yes: each switch has an aggregation node (SHARP) at its next port", "aggregation=yes"},
	{"planes", "1", "planes: 2 or 4 networks alike, and in each a port of every adapter, with a share of the lanes; the last ports of switches (FNM) link the planes for management", "planes=4"},
}

var commonKeys = []Key{
	{"remove_links", "0", "cables between switches to remove: a number or a share, chosen by seed=", "remove_links=5%"},
	{"remove_switches", "0", "switches to remove, with their hosts: a number or a share, chosen by seed=", "remove_switches=1"},
	{"loss", "0", "probability that a datagram is lost, in each direction", "loss=5%"},
	{"dup", "0", "probability that a datagram arrives twice", "dup=0.01"},
	{"busy", "0", "probability that an agent answers BUSY", "busy=10%"},
	{"delay", "0s", "time from a request to its answer", "delay=20ms"},
	{"jitter", "0s", "random time added to delay=", "jitter=5ms"},
	{"seed", "1", "seed of everything random", "seed=7"},
	{"dead", "", "ports that answer nothing: NODE or NODE/PORT, several with +; or a number or a share of the hosts, chosen by seed=, without the subnet manager's", "dead=leaf-3+leaf-4/1"},
	{"lmc", "0", "LMC of the ports of CAs: each gets 2^lmc LIDs", "lmc=2"},
	{"sm", "", "node of the subnet manager; default: the first CA", "sm=node-0002 HCA-1"},
	{"mkey", "0", "M_Key of all ports", "mkey=0x1234"},
	{"mkey_level", "1", "what the M_Key protects: 0 and 1 Sets, 2 and 3 Gets too", "mkey_level=2"},
	{"speed", "", "speed of all links", "speed=edr"},
	{"width", "", "width of all links", "width=2x"},
	{"errors", "", "ports whose symbol errors grow: NODE/PORT, several with +; or a number or a share of the ports with a cable, chosen by seed=; @RATE is errors per time (default 1/s). A bad cable", "errors=leaf-2/6@20/s"},
	{"traffic", "0", "what each host sends to another, in bytes or bits per second", "traffic=10GB/s"},
	{"vl15", "0", "how many answers to SMPs may wait for a program at a time; further ones are lost; 0: any number", "vl15=8"},
	{"redirect", "", "NODE@NODE, several with +: performance management of the first is redirected to the second", "redirect=leaf-1@leaf-2"},
	{"ar", "no", "adaptive routing: " + strings.Join(state.LFTEngines, ", ") + ", the engine that determines which ports may be chosen", "ar=updn"},
	{"ar_with", "", "more of adaptive routing (ar=updn without ar=), several with +: " + AdaptiveOptionsDoc(), "ar_with=hbf+pfrn"},
	{"ar_faults", "", "faults of adaptive routing: FAULT@SWITCH, several with +: " + state.AdaptiveFaultDoc(), "ar_faults=empty@leaf-1"},
	{"vports", "0", "virtual ports of each port of an adapter; those with an odd index have a LID of their own", "vports=4"},
	{"registers", "no", "registers of Mellanox devices: yes; or faults hot@NODE/PORT, hot@NODE, ber@NODE/PORT, dark@NODE/PORT, fan@NODE, supply@NODE, firmware@NODE, several with +", "registers=hot@leaf-1/2"},
}

package engines

// Policies, by name: how Assign chooses among the next hops of a LID.
const (
	LeastLoaded = "least_loaded" // the port with the fewest LIDs so far
	Scatter     = "scatter"      // the same, but random among equal ones
	RoundRobin  = "round_robin"  // one port after the other
	DModK       = "dmodk"        // by a digit of the destination's number
	Hash        = "hash"         // a hash of seed, switch and LID
	First       = "first"        // the neighbour of the lowest port; its parallel links by LID
)

// PolicyDoc and ScopeDoc are their help as parameters.
const (
	PolicyDoc = `how to choose among the next hops: "least_loaded", "scatter" (the same, equal ones at random), "round_robin", "dmodk", "hash", "first"`
	ScopeDoc  = `what counts as load: "global", the LIDs of packets that pass through the switch; "switch", all LIDs, as in OpenSM's minhop`
)

// policies are all policies.
func policies() []string { return []string{LeastLoaded, Scatter, RoundRobin, DModK, Hash, First} }

// Scopes: which LIDs count as load of a switch's ports.
const (
	// Global counts a LID if packets for it from some CA or router pass through
	// the switch. So it depends on what the switches farther away have chosen.
	Global = "global"
	// PerSwitch counts all LIDs, as OpenSM's minhop does.
	PerSwitch = "switch"
)

// scopes are all scopes.
func scopes() []string { return []string{Global, PerSwitch} }

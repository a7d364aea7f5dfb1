package routing

// Adaptive is what is known of adaptive routing in the switches. No public
// layout tells whether a switch adapts its routes, so the caller has to know.
type Adaptive uint8

const (
	AdaptiveUnknown Adaptive = iota
	AdaptiveOff
	AdaptiveOn // packets may take other paths than the tables say
)

// note is what a verdict says of it; "": nothing.
func (a Adaptive) note() string {
	switch a {
	case AdaptiveUnknown:
		return "adaptive routing not determined"
	case AdaptiveOn:
		return "adaptive routing: packets take other ways than the tables say, and so the verdict is unknown"
	}
	return ""
}

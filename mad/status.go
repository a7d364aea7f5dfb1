package mad

// Status is the status field of a MAD (IBA 13.4.7); class-specific bits are
// the upper eight.
type Status uint16

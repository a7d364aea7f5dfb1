package mad

// PortState is the logical state of a port (IBA 14.2.5.6 PortInfo.PortState).
type PortState uint8

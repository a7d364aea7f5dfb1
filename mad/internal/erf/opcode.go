package erf

import "fmt"

// OpcodeError is the error of a packet that is not an unreliable datagram.
type OpcodeError struct {
	Opcode     uint8
	SLID, DLID uint16
	DestQP     uint32
}

func (e *OpcodeError) Error() string {
	return fmt.Sprintf("not an unreliable datagram: opcode %#02x (%s), LID %d to LID %d, queue pair %#x", e.Opcode, OpcodeName(e.Opcode), e.SLID, e.DLID, e.DestQP)
}

// The services and operations of opcodes (IBA 9.2.1, table 38; tshark packet-infiniband.c).
var (
	services   = [8]string{"RC", "UC", "RD", "UD", "CNP", "XRC"}
	operations = [32]string{
		"SEND first", "SEND middle", "SEND last", "SEND last with immediate", "SEND only", "SEND only with immediate",
		"RDMA WRITE first", "RDMA WRITE middle", "RDMA WRITE last", "RDMA WRITE last with immediate", "RDMA WRITE only", "RDMA WRITE only with immediate",
		"RDMA READ request", "RDMA READ response first", "RDMA READ response middle", "RDMA READ response last", "RDMA READ response only",
		"acknowledge", "ATOMIC acknowledge", "CmpSwap", "FetchAdd", "RESYNC", "SEND last with invalidate", "SEND only with invalidate",
	}
)

// OpcodeName returns the service and the operation of an opcode: "RC SEND only".
func OpcodeName(opcode uint8) string {
	service, operation := services[opcode>>5], operations[opcode&31]
	switch {
	case service == "CNP" && opcode&31 == 0:
		return "CNP"
	case service == "", operation == "", service == "CNP":
		return "reserved"
	}
	return service + " " + operation
}

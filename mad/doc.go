// Package mad is the wire format of InfiniBand management datagrams (MADs):
// headers, classes, methods, status, attributes, their effects, and generated
// codecs. Package mad/engine sends and receives them.
//
// Section numbers are those of the InfiniBand Architecture Specification,
// volume 1 (IBA).
package mad

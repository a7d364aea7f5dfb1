package capture

import (
	"errors"
	"fmt"
	"io"

	"fabsh/mad"
	"fabsh/mad/internal/erf"
)

// Datagrams calls each with the MADs of a recording, or of another capture of
// InfiniBand by ERF, that were sent and received, in their order; came says
// whether it was received. name is what messages call the file. It ends at
// the first error of each; incomplete, if not nil, says that the recording breaks off
// after those that were given.
func Datagrams(r io.Reader, name string, each func(m []byte, came bool) error) (incomplete, err error) {
	file, err := erf.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for n := 0; ; n++ {
		var p erf.Packet
		var cut *erf.CutError
		switch err := file.Read(&p); {
		case err == io.EOF:
			return nil, nil
		case n > 0 && errors.As(err, &cut): // what is whole is of use
			return fmt.Errorf("%s: %w", name, cut), nil
		case err != nil:
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if p.Interface != sent && p.Interface != received || len(p.Payload) < mad.HeaderSize {
			continue // the facts of the local port
		}
		if err := each(p.Payload, p.Interface == received); err != nil {
			return nil, err
		}
	}
}

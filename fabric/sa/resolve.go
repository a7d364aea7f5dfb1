package sa

import (
	"context"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// Resolve asks the subnet administrator for the LID behind a GID, by a path from
// e's port. It is an engine's Options.Resolve.
func Resolve(ctx context.Context, e *engine.Engine, gid mad.GID) (mad.LID, error) {
	port, err := e.Port()
	if err != nil {
		return 0, err
	}
	if port.SMLID == 0 {
		return 0, engine.ErrNoSA
	}
	query := mad.PathRecord{DGID: gid, SGID: mad.MakeGID(port.GIDPrefix, port.PortGUID), NumbPath: 1}
	var data [64]byte
	query.Encode(data[:])
	var mask uint64
	for _, name := range []string{"dgid", "sgid", "numb_path"} {
		mask |= mad.AttrPathRecord.Field(name).Mask()
	}
	var c engine.Call
	c.PutSA(mad.MethodGet, mad.AttrPathRecord.ID, 0, mask, data[:])
	c.SetLID(port.SMLID)
	c.To.SL = port.SMSL
	if i := port.PKeyIndex(mad.DefaultPKey); i >= 0 {
		c.To.PKeyIndex = uint16(i)
	}
	if err := e.Do(ctx, &c); err != nil {
		return 0, err
	}
	if c.Err != nil {
		return 0, c.Err
	}
	var path mad.PathRecord
	path.Decode(c.Data())
	return path.DLID, nil
}

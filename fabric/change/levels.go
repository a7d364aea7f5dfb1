package change

import (
	"context"
	"fmt"

	"fabsh/fabric/device"
	"fabsh/fabric/format"
	"fabsh/fabric/plural"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/sa"
	"fabsh/mad/engine"
)

// Levels determines which service levels packets have: from a file, or from path
// records.
type Levels struct {
	// Client queries the subnet administrator; nil: no query is sent.
	Client *sa.Client
	// File has the service levels of paths, as ibdmchk reads them; "": no file.
	File string
	Open format.Opener
}

// InForce makes t read its lanes by e, and its service levels by l, where they matter.
func (l Levels) InForce(t *Tables, e *engine.Engine) {
	t.Lanes = func(ctx context.Context, live *routes.Routes) error { return device.ReadLanes(ctx, e, live) }
	t.Levels = l.Of
}

// Of returns the service levels of packets in a fabric, which r has tables of, and the
// source of this knowledge, in words. Nil: any may be in use. The error is the end of
// ctx, or that the file cannot be read.
func (l Levels) Of(ctx context.Context, r *routes.Routes) (levels *routes.SL, basis string, err error) {
	if l.File != "" {
		read, err := routes.Load(r.Graph().Fabric(), routes.Files{SL: l.File}, l.Open)
		if err != nil {
			return nil, "", err
		}
		return read.SL, "those of " + l.File + " assumed to be in use, and no others", nil
	}
	const all = "all 16 assumed to be in use: "
	if l.Client == nil {
		return nil, all + "the subnet administrator was not queried", nil
	}
	levels, records, err := device.ReadLevels(ctx, l.Client, r)
	switch {
	case ctx.Err() != nil:
		return nil, "", context.Cause(ctx)
	case err != nil:
		return nil, all + err.Error(), nil
	}
	return levels, fmt.Sprintf("those of %s assumed to be in use, which the subnet administrator returns for queries without partition, service or class", plural.Count(records, "path record", "path records")), nil
}
